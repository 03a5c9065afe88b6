# Where `spancl run` looks for the installed library, relative to the prefix.
if(TARGET spancl_cli)
        target_compile_definitions(spancl_cli PRIVATE SPANCL_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
endif()
