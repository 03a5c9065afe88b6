# Android, by Google's NDK, whose folder is in the environment variable ANDROID_NDK (docs/ANDROID.md).
#
# The NDK has neither OpenCL's headers nor uthash. The build takes those of its host, through links in a folder of the
# build.
set(ANDROID_ABI arm64-v8a CACHE STRING "arm64-v8a or x86_64")
set(ANDROID_PLATFORM 26 CACHE STRING "The first level of Android's API on which the library runs")
set(SPANCL_CROSS_NAME android)
include($ENV{ANDROID_NDK}/build/cmake/android.toolchain.cmake)

include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
spancl_host_headers(${CMAKE_BINARY_DIR}/android/include)
set(CMAKE_C_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} ${SPANCL_HOST_HEADERS}")
