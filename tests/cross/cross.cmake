# The programs of api/ for another processor or C library. Each is linked with the library itself, because the building
# host has no ICD loader for these. SPANCL_HOST_BUILD is a build for this host's processor: its servers run.
set(SPANCL_HOST_BUILD ${PROJECT_SOURCE_DIR}/build/release CACHE PATH
        "When cross compiling: a build for this host, for the servers of tests")

# The names of the tests begin with it.
if(NOT SPANCL_CROSS_NAME)
        set(SPANCL_CROSS_NAME ${CMAKE_SYSTEM_PROCESSOR})
endif()

# All programs of these tests.
add_custom_target(cross)

file(GLOB sources CONFIGURE_DEPENDS api/*.c)
foreach(source IN LISTS sources)
        # The emulator can't execute a program that runs itself or loads the ICD loader, and no native implementation for
        # that processor is here for servers in the process.
        file(STRINGS ${source} unfit LIMIT_COUNT 1 REGEX "runner: with-|execv|execl|stats_run|stats\\.h|dlopen|in-process")
        if(unfit)
                continue()
        endif()
        # Windows has no fork, no mappings of POSIX and no mkdtemp or mkstemp.
        if(WIN32)
                file(STRINGS ${source} unfit LIMIT_COUNT 1 REGEX "fork\\(|sys/mman\\.h|mkdtemp|mkstemp")
                if(unfit)
                        continue()
                endif()
        endif()
        get_filename_component(name ${source} NAME_WE)
        add_executable(api_${name} ${source})
        add_dependencies(cross api_${name})
        target_include_directories(api_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
        target_link_libraries(api_${name} PRIVATE spancl_flags spancl)
        if(WIN32)
                target_link_libraries(api_${name} PRIVATE spancl_posix)
        endif()
        spancl_servers_of(${source} servers)
        add_test(NAME ${SPANCL_CROSS_NAME}/${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run/with-servers
                ${SPANCL_HOST_BUILD} ${servers} -- ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:api_${name}>)
        set_tests_properties(${SPANCL_CROSS_NAME}/${name} PROPERTIES LABELS cross TIMEOUT 600
                SKIP_RETURN_CODE 77)
        # The first program makes the installation of Wine.
        if(WIN32)
                set_tests_properties(${SPANCL_CROSS_NAME}/${name} PROPERTIES FIXTURES_REQUIRED wine)
        endif()
endforeach()

# A program without any shared library, its C library included: with musl, because glibc's static programs can't load
# any library.
if(SPANCL_CROSS_NAME STREQUAL "musl" AND TARGET spancl_static)
        foreach(name buffers transfer)
                add_executable(static_${name} api/${name}.c)
                target_include_directories(static_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
                target_link_libraries(static_${name} PRIVATE spancl_flags ${SPANCL_STATIC})
                target_link_options(static_${name} PRIVATE -static)
                add_dependencies(static_${name} spancl_static)
                set_target_properties(static_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF
                        LINK_DEPENDS ${SPANCL_STATIC})
                add_test(NAME ${SPANCL_CROSS_NAME}/static/${name} COMMAND
                        ${CMAKE_CURRENT_SOURCE_DIR}/run/with-servers ${SPANCL_HOST_BUILD} 2 --
                        $<TARGET_FILE:static_${name}>)
                set_tests_properties(${SPANCL_CROSS_NAME}/static/${name} PROPERTIES LABELS cross
                        TIMEOUT 600)
        endforeach()
endif()

# Tests of the server for 64-bit Arm with Debian's PoCL for that processor, alone and beside a server of this host, and
# of the library with Debian's clinfo. The other clients are programs of SPANCL_HOST_BUILD.
if(SPANCL_CROSS_NAME STREQUAL "aarch64" AND TARGET spancld)
        function(spancl_arm64_test name servers)
                add_test(NAME aarch64/debian/${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cross/with-arm64
                        ${PROJECT_BINARY_DIR} ${SPANCL_HOST_BUILD} "${servers}" -- ${ARGN})
                set_tests_properties(aarch64/debian/${name} PROPERTIES LABELS cross TIMEOUT 900
                        SKIP_RETURN_CODE 77)
        endfunction()
        spancl_arm64_test(clinfo host arm64:bin/clinfo)
        spancl_arm64_test(server arm64 ${SPANCL_HOST_BUILD}/bin/api_buffers)
        spancl_arm64_test(both "host arm64" ${SPANCL_HOST_BUILD}/bin/api_migrate)
endif()

if(WIN32)
        add_executable(windows_access cross/windows_access.c)
        target_link_libraries(windows_access PRIVATE spancl_common)
        add_dependencies(cross windows_access)
        add_test(NAME ${SPANCL_CROSS_NAME}/access COMMAND windows_access)
        set_tests_properties(${SPANCL_CROSS_NAME}/access PROPERTIES LABELS cross TIMEOUT 600
                FIXTURES_SETUP wine)
        # Paths of the system in options of builds, and the kernel's output.
        add_executable(windows_include cross/windows_include.c)
        target_link_libraries(windows_include PRIVATE spancl_flags spancl)
        add_dependencies(cross windows_include)
        add_test(NAME ${SPANCL_CROSS_NAME}/include COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run/with-servers
                ${SPANCL_HOST_BUILD} 1 -- ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:windows_include>)
        set_tests_properties(${SPANCL_CROSS_NAME}/include PROPERTIES LABELS cross TIMEOUT 600
                FIXTURES_REQUIRED wine PASS_REGULAR_EXPRESSION "the kernel has 4711" FAIL_REGULAR_EXPRESSION "failed:")
        # The command-line tool, with a program that prints its arguments.
        add_executable(windows_arguments cross/windows_arguments.c)
        target_link_libraries(windows_arguments PRIVATE spancl_common)
        spancl_windows_program(windows_arguments)
        add_dependencies(cross windows_arguments spancl_cli)
        if(TARGET spancl_tls)
                add_dependencies(cross spancl_tls)
        endif()
        add_test(NAME ${SPANCL_CROSS_NAME}/tool COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run/with-servers
                ${SPANCL_HOST_BUILD} 1 --
                ${CMAKE_CURRENT_SOURCE_DIR}/cross/windows-tool ${PROJECT_BINARY_DIR} ${SPANCL_HOST_BUILD} --
                ${CMAKE_CROSSCOMPILING_EMULATOR})
        set_tests_properties(${SPANCL_CROSS_NAME}/tool PROPERTIES LABELS cross TIMEOUT 600
                SKIP_RETURN_CODE 77 FIXTURES_REQUIRED wine)
        # The server, with clients of this host and of this build.
        if(TARGET spancld)
                add_dependencies(cross spancld)
                foreach(source IN LISTS sources)
                        get_filename_component(name ${source} NAME_WE)
                        # docs/PLATFORMS.md says why these are left out.
                        file(STRINGS ${source} unfit LIMIT_COUNT 1 REGEX "runner: with-")
                        if(unfit OR name MATCHES "^(printf|program|spancl_(build_errors|cache|launch|link|mixed|program|trace|upload))$")
                                continue()
                        endif()
                        spancl_servers_of(${source} servers)
                        add_test(NAME ${SPANCL_CROSS_NAME}/server/${name} COMMAND
                                ${CMAKE_CURRENT_SOURCE_DIR}/cross/with-windows ${PROJECT_BINARY_DIR}
                                ${SPANCL_HOST_BUILD} ${servers} ${CMAKE_CROSSCOMPILING_EMULATOR} --
                                ${SPANCL_HOST_BUILD}/bin/api_${name})
                        set_tests_properties(${SPANCL_CROSS_NAME}/server/${name} PROPERTIES LABELS cross
                                TIMEOUT 600 SKIP_RETURN_CODE 77 FIXTURES_REQUIRED wine)
                endforeach()
                add_test(NAME ${SPANCL_CROSS_NAME}/server COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cross/windows-server
                        ${PROJECT_BINARY_DIR} ${SPANCL_HOST_BUILD} -- ${CMAKE_CROSSCOMPILING_EMULATOR})
                set_tests_properties(${SPANCL_CROSS_NAME}/server PROPERTIES LABELS cross TIMEOUT 600
                        FIXTURES_REQUIRED wine)
        endif()
endif()
