# Debian's cross compiler for 32-bit x86 (packages gcc-i686-linux-gnu and libc6-dev-i386-cross).
#
# Libraries and pkg-config files of the building host are of another processor, so none of them is found. A 64-bit
# kernel runs the programs itself, by the loader of the compiler's C library: the building host may have none for them.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_C_COMPILER i686-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib)

set(CMAKE_FIND_ROOT_PATH /usr/i686-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} /usr/i686-linux-gnu/lib/pkgconfig)
# Headers that are the same for all processors: OpenCL's and uthash. The cross compiler's own come first.
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include")
