# The module for TLS links, loaded when one is made (transport/crypto.h); nothing links with it.
if(OPENSSL_FOUND)
        # The sources that unit/gcm tests alone.
        add_library(spancl_gcm INTERFACE)
        target_sources(spancl_gcm INTERFACE ${PROJECT_SOURCE_DIR}/src/tls/gcm.c)
        target_link_libraries(spancl_gcm INTERFACE OpenSSL::Crypto)
        if(SPANCL_IPSEC_MB)
                target_compile_definitions(spancl_gcm INTERFACE SPANCL_IPSEC_MB)
                target_link_libraries(spancl_gcm INTERFACE ${SPANCL_IPSEC_MB_LIB})
        endif()
        add_library(spancl_tls MODULE ${PROJECT_SOURCE_DIR}/src/tls/module.c)
        target_link_libraries(spancl_tls PRIVATE spancl_flags spancl_gcm OpenSSL::SSL)
        set_target_properties(spancl_tls PROPERTIES OUTPUT_NAME spancl-tls)
        if(WIN32)
                target_link_libraries(spancl_tls PRIVATE spancl_posix)
                set_target_properties(spancl_tls PROPERTIES PREFIX "")
        endif()
endif()
# Where it is looked for, relative to the prefix.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/installed.c PROPERTIES
        COMPILE_DEFINITIONS SPANCL_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
