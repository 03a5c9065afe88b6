# The library for macOS, libspancl.dylib. It exports the functions that are declared with CL_API_ENTRY, OpenCL's. Zig's
# linker takes no list of exports.
set_source_files_properties(${api_sources} PROPERTIES COMPILE_OPTIONS ""
        COMPILE_DEFINITIONS "CL_API_ENTRY=__attribute__((visibility(\"default\")))")
target_sources(spancl PRIVATE ${PROJECT_SOURCE_DIR}/src/os/macos/library/keep.c)
target_link_options(spancl PRIVATE -Wl,-dead_strip)
set_target_properties(spancl PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1)
