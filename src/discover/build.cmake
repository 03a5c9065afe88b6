# Programs that find servers, and publish this one, by libraries that no other program of ours links with. They are
# built into libexec/spancl, where base/installed.c searches for them.
set(discover ${PROJECT_SOURCE_DIR}/src/discover)
spancl_archive(spancl_discover SOURCES ${discover}/dht_record.c ${discover}/dht_services.c
        ${discover}/dns_message.c ${discover}/line.c
        ${discover}/reach.c ${discover}/txt.c
        LINK spancl_common)

# spancl_discover_program(NAME LIBRARY SOURCE...): a program with one more library.
function(spancl_discover_program name library)
        list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/discover/ OUTPUT_VARIABLE sources)
        string(REPLACE "-" "_" target spancl_${name})
        add_executable(${target} ${sources})
        target_link_libraries(${target} PRIVATE spancl_discover ${library})
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
                RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/spancl)
        set_property(GLOBAL APPEND PROPERTY SPANCL_DISCOVER_PROGRAMS ${target})
endfunction()

if(AVAHI_FOUND)
        spancl_discover_program(discover-mdns PkgConfig::AVAHI mdns.c avahi_link.c)
        spancl_discover_program(advertise-mdns PkgConfig::AVAHI publish.c avahi_link.c)
endif()
if(CARES_FOUND)
        spancl_discover_program(discover-dns PkgConfig::CARES dns.c)
endif()
if(OPENDHT_FOUND)
        spancl_discover_program(discover-dht PkgConfig::OPENDHT dht_find.c dht_node.c)
        spancl_discover_program(advertise-dht PkgConfig::OPENDHT dht_publish.c dht_node.c)
endif()
