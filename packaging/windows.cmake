# The archive for Windows, a zip: bin/ with the library, the tool and the server, lib/spancl/ with the module for TLS.
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/windows/README.md ${PROJECT_SOURCE_DIR}/LICENSE
        DESTINATION . COMPONENT windows)
install(TARGETS spancl spancl_cli RUNTIME DESTINATION bin COMPONENT windows)
add_dependencies(products spancl spancl_cli)
if(TARGET spancld)
        install(TARGETS spancld RUNTIME DESTINATION bin COMPONENT windows)
        add_dependencies(products spancld)
endif()
if(TARGET spancl_tls)
        install(TARGETS spancl_tls LIBRARY DESTINATION lib/spancl COMPONENT windows)
        add_dependencies(products spancl_tls)
        # OpenSSL, if it is not linked statically.
        get_filename_component(openssl ${OPENSSL_INCLUDE_DIR} DIRECTORY)
        file(GLOB libraries ${openssl}/bin/libcrypto-3*.dll ${openssl}/bin/libssl-3*.dll)
        install(FILES ${libraries} DESTINATION lib/spancl COMPONENT windows)
        # The tests run the module where it is built.
        file(COPY ${libraries} DESTINATION ${PROJECT_BINARY_DIR}/lib)
endif()
# `cpack` takes what `products` has built. The other targets are no part of it, and some do not link.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY TRUE CACHE INTERNAL "")

set(CPACK_GENERATOR ZIP)
set(CPACK_PACKAGE_NAME spancl)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_FILE_NAME spancl-${PROJECT_VERSION}-windows-x86_64)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/dist)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};spancl;windows;/")
include(CPack)
