# Debian's cross compiler for 64-bit Arm (packages gcc-aarch64-linux-gnu and libc6-dev-arm64-cross).
#
# Libraries and pkg-config files of the building host are of another processor, so none of them is found. A sysroot
# with Arm's packages may be named by SPANCL_SYSROOT; optional parts that it has are built then.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} /usr/aarch64-linux-gnu/lib/pkgconfig)
# Headers that are the same for all processors: OpenCL's and uthash. The cross compiler's own come first.
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include")
