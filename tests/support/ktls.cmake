# A kernel's TLS, played with OpenSSL in front of libc's calls (ktls.h), for one program.
function(spancl_play_ktls target)
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/ktls.c)
        target_link_libraries(${target} PRIVATE OpenSSL::Crypto)
        foreach(call setsockopt getsockopt sendmsg recvmsg)
                target_link_options(${target} PRIVATE LINKER:--wrap=${call})
        endforeach()
endfunction()
