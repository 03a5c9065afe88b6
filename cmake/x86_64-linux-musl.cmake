# The host's processor with musl as C library (package musl-tools): clients for systems without glibc.
#
# Libraries of the building host are for its own C library, so none of them is found. Of its headers only those that
# depend on no C library are taken, through links in a folder of the build: OpenCL's, uthash and the kernel's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(SPANCL_CROSS_NAME musl)

set(CMAKE_FIND_ROOT_PATH /usr/lib/x86_64-linux-musl ${CMAKE_BINARY_DIR}/musl)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/x86_64-linux-musl/pkgconfig)

set(headers ${CMAKE_BINARY_DIR}/musl/include)
file(MAKE_DIRECTORY ${headers})
foreach(name CL uthash.h utlist.h linux asm-generic x86_64-linux-gnu/asm)
        get_filename_component(as ${name} NAME)
        if(EXISTS /usr/include/${name} AND NOT EXISTS ${headers}/${as})
                file(CREATE_LINK /usr/include/${name} ${headers}/${as} SYMBOLIC)
        endif()
endforeach()
set(CMAKE_C_FLAGS_INIT "-idirafter ${headers}")
