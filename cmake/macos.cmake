# macOS on 64-bit Arm, by Zig's C compiler: it has the headers and the lists of symbols of macOS. SPANCL_ZIG names the
# program zig, if it is not in PATH; PyPI's package ziglang has it. The products were never run.
#
# The build takes the headers that are the same for all systems, OpenCL's and uthash, through links in a folder of its
# own.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(SPANCL_CROSS_NAME macos)
find_program(SPANCL_ZIG zig REQUIRED)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SPANCL_ZIG)
# strchrnul is of macOS 15.4.
set(CMAKE_C_COMPILER ${SPANCL_ZIG} cc -target ${CMAKE_SYSTEM_PROCESSOR}-macos.15.4)

# CMake wants the tools of Apple. The archives are Zig's, and no path is changed at installation.
set(CMAKE_C_ARCHIVE_CREATE "\"${SPANCL_ZIG}\" ar qc <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_APPEND "\"${SPANCL_ZIG}\" ar q <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "\"${SPANCL_ZIG}\" ranlib <TARGET>")
set(CMAKE_INSTALL_NAME_TOOL "${CMAKE_COMMAND};-E;false" CACHE STRING "No such tool")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

set(CMAKE_FIND_ROOT_PATH ${CMAKE_BINARY_DIR}/macos ${CMAKE_PREFIX_PATH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_BINARY_DIR}/macos/lib/pkgconfig)

include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
spancl_host_headers(${CMAKE_BINARY_DIR}/macos/include)
# Zig defines NDEBUG itself when it optimises.
set(CMAKE_C_FLAGS_INIT "-UNDEBUG ${SPANCL_HOST_HEADERS}")
