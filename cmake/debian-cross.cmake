# For toolchain files: one of Debian's cross compilers, whose name is in `triple`.
#
# Libraries and pkg-config files of the building host are of another processor, so none of them is found.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${triple}-gcc)

set(CMAKE_FIND_ROOT_PATH /usr/${triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} /usr/${triple}/lib/pkgconfig)
# Headers that are the same for all processors: OpenCL's and uthash. The cross compiler's own come first.
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include")
