# libfabric's interface; the library itself is loaded by who opens an endpoint.
if(FABRIC_FOUND)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/transport/rma.c PROPERTIES
                COMPILE_DEFINITIONS SPANCL_HAVE_FABRIC INCLUDE_DIRECTORIES "${FABRIC_INCLUDE_DIRS}")
endif()
