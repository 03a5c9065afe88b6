# libfabric's interface; rma.c loads the library itself when it opens an endpoint.
if(FABRIC_FOUND)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/src/transport/rma.c PROPERTIES
                COMPILE_DEFINITIONS SPANCL_HAVE_FABRIC INCLUDE_DIRECTORIES "${FABRIC_INCLUDE_DIRS}")
endif()
