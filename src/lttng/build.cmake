# The module of LTTng's events, loaded on demand (trace/lttng.h); nothing links with it.
if(LTTNG_FOUND)
        add_library(spancl_lttng MODULE ${PROJECT_SOURCE_DIR}/src/lttng/client.c
                ${PROJECT_SOURCE_DIR}/src/lttng/server.c ${PROJECT_SOURCE_DIR}/src/lttng/module.c)
        target_link_libraries(spancl_lttng PRIVATE spancl_flags PkgConfig::LTTNG)
        set_target_properties(spancl_lttng PROPERTIES OUTPUT_NAME spancl-lttng)
endif()
