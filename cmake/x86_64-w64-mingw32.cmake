# 64-bit Windows (package gcc-mingw-w64-x86-64-posix; package wine64 runs the programs). The build takes the headers
# that are the same for all systems, OpenCL's and uthash, through links in a folder of its own.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(SPANCL_CROSS_NAME windows)

# Debian has no OpenSSL for Windows: CMAKE_PREFIX_PATH may name the folder of one.
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32 ${CMAKE_BINARY_DIR}/mingw ${CMAKE_PREFIX_PATH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} /usr/x86_64-w64-mingw32/lib/pkgconfig)

include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
spancl_host_headers(${CMAKE_BINARY_DIR}/mingw/include)
set(CMAKE_C_FLAGS_INIT "${SPANCL_HOST_HEADERS}")

# The programs run in an installation of Wine of the build's own.
find_program(SPANCL_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(SPANCL_WINE)
        set(CMAKE_CROSSCOMPILING_EMULATOR env WINEPREFIX=${CMAKE_BINARY_DIR}/wine WINEDEBUG=-all
                WINEDLLOVERRIDES=mscoree,mshtml= ${SPANCL_WINE})
endif()
