# The code for RISC-V cores: the firmware, the functions of OpenCL C for programs, and the monitor that makes QEMU an
# accelerator.
# Needs clang and lld; without them there is no compiler for such accelerators.
#
# SPANCL_RISCV_FROM: the folder of another build, whose files this build takes. They are the same in every build.

find_program(SPANCL_RISCV_CLANG NAMES clang clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
find_program(SPANCL_RISCV_LLD NAMES ld.lld ld.lld-20 ld.lld-19 ld.lld-18 ld.lld-17 ld.lld-16 ld.lld-15 ld.lld-14)
set(SPANCL_RISCV OFF)
if(SPANCL_RISCV_CLANG AND SPANCL_RISCV_LLD)
        execute_process(COMMAND ${SPANCL_RISCV_CLANG} --print-targets
                OUTPUT_VARIABLE targets ERROR_QUIET)
        if(targets MATCHES "riscv32")
                set(SPANCL_RISCV ON)
        endif()
endif()

if(SPANCL_RISCV)
        set(riscv_from ${PROJECT_SOURCE_DIR}/firmware/riscv)
        set(riscv_to ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/spancl/riscv)
        set(riscv_objects ${PROJECT_BINARY_DIR}/firmware/riscv)
        file(MAKE_DIRECTORY ${riscv_to} ${riscv_objects})
        file(GLOB riscv_headers CONFIGURE_DEPENDS ${riscv_from}/*.h ${riscv_from}/lib/*.h
                ${PROJECT_SOURCE_DIR}/include/spancl/*.h)
        set(riscv_flags --target=riscv32 -march=rv32im -mabi=ilp32 -mno-relax -ffreestanding -Os
                -Wall -Wextra -fno-unroll-loops -fno-vectorize -fno-slp-vectorize
                -I${PROJECT_SOURCE_DIR}/include -I${riscv_from})
        set(riscv_cl_flags -fPIC -fvisibility=hidden -ffunction-sections -Wno-unused-parameter -cl-std=CL3.0
                -Xclang
                -cl-ext=-all,+cl_khr_global_int32_base_atomics,+cl_khr_global_int32_extended_atomics,+cl_khr_local_int32_base_atomics,+cl_khr_local_int32_extended_atomics
                -D__opencl_c_atomic_scope_device=1 -D__opencl_c_atomic_order_seq_cst=1
                -D__opencl_c_work_group_collective_functions=1)

        # spancl_riscv_object(SOURCE RET FLAGS...)
        function(spancl_riscv_object source ret)
                string(REPLACE "/" "." object ${source})
                set(object ${riscv_objects}/${object}.o)
                add_custom_command(OUTPUT ${object}
                        COMMAND ${SPANCL_RISCV_CLANG} ${riscv_flags} ${ARGN} -c ${riscv_from}/${source} -o ${object}
                        DEPENDS ${riscv_from}/${source} ${riscv_headers}
                        COMMENT "RISC-V: ${source}" VERBATIM)
                set(${ret} ${object} PARENT_SCOPE)
        endfunction()

        set(riscv_files ${riscv_to}/firmware.bin ${riscv_to}/monitor.bin ${riscv_to}/boot.bin
                ${riscv_to}/builtins.o)
endif()

if(SPANCL_RISCV AND SPANCL_RISCV_FROM)
        foreach(to IN LISTS riscv_files)
                get_filename_component(name ${to} NAME)
                add_custom_command(OUTPUT ${to}
                        COMMAND ${CMAKE_COMMAND} -E copy ${SPANCL_RISCV_FROM}/lib/spancl/riscv/${name} ${to}
                        DEPENDS ${SPANCL_RISCV_FROM}/lib/spancl/riscv/${name} VERBATIM)
        endforeach()
elseif(SPANCL_RISCV)
        # Raw images, which the core executes in place.
        foreach(image firmware monitor boot)
                set(objects)
                set(sources ${image}.c start.S)
                if(image STREQUAL monitor)
                        set(sources monitor.S monitor.c)
                elseif(image STREQUAL boot)
                        set(sources boot.S)
                endif()
                set(script ${image})
                if(image STREQUAL boot)
                        set(script monitor)
                endif()
                foreach(source IN LISTS sources)
                        spancl_riscv_object(${source} object -mcmodel=medany -fno-jump-tables -fno-builtin)
                        list(APPEND objects ${object})
                endforeach()
                add_custom_command(OUTPUT ${riscv_to}/${image}.bin
                        COMMAND ${SPANCL_RISCV_LLD} -T ${riscv_from}/${script}.ld --oformat=binary ${objects}
                                -o ${riscv_to}/${image}.bin
                        DEPENDS ${objects} ${riscv_from}/${script}.ld VERBATIM)
        endforeach()

        # The library of programs: one object, from which the linker takes the functions that a program calls.
        set(objects)
        foreach(source softfloat.c integer.c math.c print.c)
                spancl_riscv_object(lib/${source} object -fPIC -fvisibility=hidden -ffunction-sections -fno-builtin)
                list(APPEND objects ${object})
        endforeach()
        foreach(source work.cl integer.cl float.cl vector.cl)
                spancl_riscv_object(lib/${source} object -x cl ${riscv_cl_flags})
                list(APPEND objects ${object})
        endforeach()
        add_custom_command(OUTPUT ${riscv_to}/builtins.o
                COMMAND ${SPANCL_RISCV_LLD} -r ${objects} -o ${riscv_to}/builtins.o
                DEPENDS ${objects} VERBATIM)
endif()

if(SPANCL_RISCV)
        add_custom_target(spancl_riscv ALL DEPENDS ${riscv_files})
        add_dependencies(products spancl_riscv)
        install(FILES ${riscv_files} DESTINATION ${CMAKE_INSTALL_LIBDIR}/spancl/riscv
                COMPONENT libspancl-riscv)
endif()
