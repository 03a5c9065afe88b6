# Android, by Google's NDK, whose folder is in the environment variable ANDROID_NDK (docs/ANDROID.md).
#
# The NDK has neither OpenCL's headers nor uthash. The build takes those of its host, through links in a folder of the
# build.
set(ANDROID_ABI arm64-v8a CACHE STRING "arm64-v8a or x86_64")
set(ANDROID_PLATFORM 26 CACHE STRING "The first level of Android's API on which the library runs")
set(SPANCL_CROSS_NAME android)
include($ENV{ANDROID_NDK}/build/cmake/android.toolchain.cmake)

set(headers ${CMAKE_BINARY_DIR}/android/include)
file(MAKE_DIRECTORY ${headers})
foreach(name CL uthash.h utlist.h)
        if(EXISTS /usr/include/${name} AND NOT EXISTS ${headers}/${name})
                file(CREATE_LINK /usr/include/${name} ${headers}/${name} SYMBOLIC)
        endif()
endforeach()
set(CMAKE_C_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -idirafter ${headers}")
