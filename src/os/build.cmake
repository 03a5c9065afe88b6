# Sanitizers map more memory than the limit of programs of discovery.
if(SPANCL_SANITIZE)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/os/linux/process/rights.c PROPERTIES
                COMPILE_DEFINITIONS SPANCL_SANITIZED)
endif()
