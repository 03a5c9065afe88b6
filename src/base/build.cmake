# Only its header: the library is loaded when it is needed (base/lz4.c).
if(LZ4_FOUND)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/lz4.c PROPERTIES
                COMPILE_DEFINITIONS SPANCL_HAVE_LZ4 INCLUDE_DIRECTORIES "${LZ4_INCLUDE_DIRS}")
endif()
