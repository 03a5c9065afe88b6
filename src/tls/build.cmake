# The module for TLS links, loaded when one is made (transport/crypto.h); nothing links with it.
if(OPENSSL_FOUND)
        add_library(spancl_tls MODULE ${PROJECT_SOURCE_DIR}/src/tls/module.c)
        target_link_libraries(spancl_tls PRIVATE spancl_flags OpenSSL::SSL OpenSSL::Crypto)
        set_target_properties(spancl_tls PROPERTIES OUTPUT_NAME spancl-tls)
endif()
# Where it is looked for, relative to the prefix.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/installed.c PROPERTIES
        COMPILE_DEFINITIONS SPANCL_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
