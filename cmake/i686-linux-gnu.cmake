# 32-bit x86 (packages gcc-i686-linux-gnu and libc6-dev-i386-cross). A 64-bit kernel runs the programs itself, by the
# loader of the compiler's C library: the building host may have none for them.
set(triple i686-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/${triple}/lib/ld-linux.so.2 --library-path /usr/${triple}/lib)
