# The process of the media device that has libavcodec. Debian's is under the GPL, so no other program of ours links with
# it. It is built into libexec/spancl, where base/installed.c searches for it.
if(AV_FOUND)
        file(GLOB av CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/av/*.c)
        file(GLOB io CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/av/io/*.c)
        # Sources: libavformat's code faces the network, so this program decodes nothing.
        add_executable(spancl_media_io ${io} ${PROJECT_SOURCE_DIR}/src/av/serve.c)
        target_link_libraries(spancl_media_io PRIVATE spancl_daemon PkgConfig::AV)
        set_target_properties(spancl_media_io PROPERTIES OUTPUT_NAME media-io
                RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/spancl)
        add_executable(spancl_media_av ${av} ${PROJECT_SOURCE_DIR}/src/media/nal.c)
        target_link_libraries(spancl_media_av PRIVATE spancl_daemon PkgConfig::AV)
        # Neither program needs all libraries, and those of devices take long to load.
        target_link_options(spancl_media_av PRIVATE LINKER:--as-needed)
        target_link_options(spancl_media_io PRIVATE LINKER:--as-needed)
        set_target_properties(spancl_media_av PROPERTIES OUTPUT_NAME media-av
                RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/libexec/spancl)
endif()
