# The path of the installed library for `spancl run`, relative to the prefix; the date of man pages.
if(TARGET spancl_cli)
        target_compile_definitions(spancl_cli PRIVATE SPANCL_LIBDIR="${CMAKE_INSTALL_LIBDIR}"
                SPANCL_DATE="${SPANCL_DATE}")
endif()
