# Static probes for the operating system's tracers: only a header.
if(SPANCL_HAVE_SDT)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/trace/trace.c PROPERTIES
                COMPILE_DEFINITIONS SPANCL_HAVE_SDT)
endif()
