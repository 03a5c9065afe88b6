# Debian's cross compiler for 32-bit Arm with hardware floating point (packages gcc-arm-linux-gnueabihf and
# libc6-dev-armhf-cross).
#
# Libraries and pkg-config files of the building host are of another processor, so none of them is found.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm -L /usr/arm-linux-gnueabihf)

set(CMAKE_FIND_ROOT_PATH /usr/arm-linux-gnueabihf)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} /usr/arm-linux-gnueabihf/lib/pkgconfig)
# Headers that are the same for all processors: OpenCL's and uthash. The cross compiler's own come first.
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include")
