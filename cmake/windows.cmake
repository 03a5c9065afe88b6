# The library for Windows, spancl.dll. It needs no other library than those of the system.
#
# A file of definitions names what it exports: OpenCL's functions, as libspancl.map does elsewhere.
set(exports ${PROJECT_BINARY_DIR}/spancl.def)
add_custom_command(OUTPUT ${exports}
        COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D OUT=${exports} -D "OBJECTS=$<TARGET_OBJECTS:spancl_client>"
                -P ${PROJECT_SOURCE_DIR}/cmake/windows_exports.cmake
        DEPENDS spancl_client $<TARGET_OBJECTS:spancl_client> ${PROJECT_SOURCE_DIR}/cmake/windows_exports.cmake
        COMMENT "Listing the functions of spancl.dll" VERBATIM)
target_sources(spancl PRIVATE ${exports} ${PROJECT_SOURCE_DIR}/src/os/windows/library/entry.c)
target_link_options(spancl PRIVATE -static -Wl,--gc-sections)
set_target_properties(spancl PROPERTIES PREFIX "")
target_link_options(spancl_flags INTERFACE -static)

# Functions of POSIX for programs of the tests.
add_library(spancl_posix STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/src/os/windows/compatible.c
        ${PROJECT_SOURCE_DIR}/src/os/windows/wide.c ${PROJECT_SOURCE_DIR}/src/os/windows/process/environment.c)
target_link_libraries(spancl_posix PUBLIC spancl_flags)

# The start of the programs that take paths and other text: as UTF-8.
function(spancl_windows_program target)
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/os/windows/program/start.c)
        target_link_options(${target} PRIVATE -municode)
endfunction()
