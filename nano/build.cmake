# The nano client, for this host: its tests, and the example of a port. For a processor without a system its sources are
# compiled with that processor's compiler (docs/NANO.md).

set(nano_from ${PROJECT_SOURCE_DIR}/nano)
file(GLOB nano_sources CONFIGURE_DEPENDS ${nano_from}/*.c)
# The files that it shares with the large client.
set(nano_shared src/base/bytes.c src/proto/args.c src/proto/frame.c src/proto/info.c src/proto/wire.c)
foreach(name bulk hello incoming outbox owed packed_frame pieces session)
        list(APPEND nano_shared src/session/${name}.c)
endforeach()
list(TRANSFORM nano_shared PREPEND ${PROJECT_SOURCE_DIR}/)

add_library(spancl_nano STATIC ${nano_sources} ${nano_shared})
target_include_directories(spancl_nano BEFORE PRIVATE ${nano_from}/port PUBLIC ${nano_from})
target_link_libraries(spancl_nano PRIVATE spancl_flags)
target_compile_options(spancl_nano PRIVATE -ffunction-sections -fdata-sections
        -include ${nano_from}/port/names.h)
set_target_properties(spancl_nano PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)

add_library(spancl_nano_posix STATIC ${nano_from}/posix/transport.c)
target_link_libraries(spancl_nano_posix PUBLIC spancl_nano PRIVATE spancl_flags)

# TLS, over the ciphers of mbedTLS.
find_path(MBEDTLS_INCLUDE mbedtls/chachapoly.h)
find_library(MBEDTLS_CRYPTO mbedcrypto)
if(MBEDTLS_INCLUDE AND MBEDTLS_CRYPTO)
        set(SPANCL_NANO_TLS yes)
        file(GLOB nano_tls_sources CONFIGURE_DEPENDS ${nano_from}/tls/*.c)
        add_library(spancl_nano_tls STATIC ${nano_tls_sources})
        target_include_directories(spancl_nano_tls SYSTEM PUBLIC ${MBEDTLS_INCLUDE})
        target_link_libraries(spancl_nano_tls PUBLIC spancl_nano ${MBEDTLS_CRYPTO} PRIVATE spancl_flags)
        target_compile_definitions(spancl_nano_tls INTERFACE HAVE_NANO_TLS)
        target_compile_options(spancl_nano_tls PRIVATE -ffunction-sections -fdata-sections)
        set_target_properties(spancl_nano_tls PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
endif()
