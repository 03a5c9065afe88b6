# For toolchain files: give a build the headers that are the same for all systems, OpenCL's and uthash, through links in
# FOLDER, which is in the build's folder. SPANCL_HOST_HEADERS are the compiler's options for them.
function(spancl_host_headers folder)
        file(MAKE_DIRECTORY ${folder})
        foreach(name CL uthash.h utlist.h)
                if(EXISTS /usr/include/${name} AND NOT EXISTS ${folder}/${name})
                        file(CREATE_LINK /usr/include/${name} ${folder}/${name} SYMBOLIC)
                endif()
        endforeach()
        set(SPANCL_HOST_HEADERS "-idirafter ${folder}" PARENT_SCOPE)
endfunction()
