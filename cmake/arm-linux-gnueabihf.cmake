# 32-bit Arm with hardware floating point (packages gcc-arm-linux-gnueabihf and libc6-dev-armhf-cross).
set(triple arm-linux-gnueabihf)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm -L /usr/${triple})
