# libspancl.a, for applications that link with SpanCL itself and not with an ICD loader. It is one object, in which only
# OpenCL's own names are global, as in libspancl.so: an application has symbols of its own.
set(SPANCL_STATIC ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libspancl.a)
set(whole ${PROJECT_BINARY_DIR}/spancl-whole.o)
file(MAKE_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
# The objects also have what optimisation as a whole would need, which no compiler but this one could read.
add_custom_command(OUTPUT ${SPANCL_STATIC}
        COMMAND ${CMAKE_LINKER} -r -o ${whole} $<TARGET_OBJECTS:spancl_client>
                $<TARGET_OBJECTS:spancl_engine> $<TARGET_OBJECTS:spancl_common>
        COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=cl[A-Z]*
                --keep-global-symbol=spancl_icd_version --remove-section=.gnu.lto_* ${whole}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${SPANCL_STATIC}
        COMMAND ${CMAKE_AR} rcs ${SPANCL_STATIC} ${whole}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${whole}
        DEPENDS spancl_client spancl_engine spancl_common
                $<TARGET_OBJECTS:spancl_client> $<TARGET_OBJECTS:spancl_engine>
                $<TARGET_OBJECTS:spancl_common>
        COMMENT "Linking ${SPANCL_STATIC}" COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(spancl_static ALL DEPENDS ${SPANCL_STATIC})
