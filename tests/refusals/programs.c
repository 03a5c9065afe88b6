/* Programs: making, building, compiling, linking. */
#include "refusals.h"

static const char plain[] = "kernel void f(global int *a) { a[0] = 1; }",
                  wrong[] = "kernel void f(global int *a) { a[0] = undeclared; }",
                  library[] = "int helper(int x) { return x + 1; }",
                  caller[] = "int helper(int x); kernel void f(global int *a) { a[0] = helper(1); "
                             "}";

static void CL_CALLBACK on_program(cl_program program, void *data)
{
        (void)program, (void)data;
}

void group_programs(struct world *w)
{
        cl_context x = w->context;
        const char *text = plain, *empty = "", *two[2] = { plain, NULL };
        const size_t length = sizeof(plain) - 1, short_length = 5, no_length = 0;
        static const uint32_t spirv[5] = { 0x07230203, 0x00010000, 0, 1, 0 }, garbage[5] = { 1 };
        MAKE("source", clReleaseProgram, clCreateProgramWithSource(x, 1, &text, &length, &w->err));
        MAKE("source_short", clReleaseProgram,
             clCreateProgramWithSource(x, 1, &text, &short_length, &w->err));
        MAKE("source_no_length", clReleaseProgram,
             clCreateProgramWithSource(x, 1, &text, &no_length, &w->err));
        MAKE("source_empty", clReleaseProgram,
             clCreateProgramWithSource(x, 1, &empty, NULL, &w->err));
        MAKE("source_none", clReleaseProgram,
             clCreateProgramWithSource(x, 0, &text, NULL, &w->err));
        MAKE("source_null", clReleaseProgram, clCreateProgramWithSource(x, 1, NULL, NULL, &w->err));
        MAKE("source_null_string", clReleaseProgram,
             clCreateProgramWithSource(x, 2, two, NULL, &w->err));
        MAKE("source_null_context", clReleaseProgram,
             clCreateProgramWithSource(NULL, 1, &text, NULL, &w->err));
        MAKE("il", clReleaseProgram, clCreateProgramWithIL(x, spirv, sizeof(spirv), &w->err));
        MAKE("il_null", clReleaseProgram, clCreateProgramWithIL(x, NULL, 20, &w->err));
        MAKE("il_empty", clReleaseProgram, clCreateProgramWithIL(x, spirv, 0, &w->err));
        MAKE("il_garbage", clReleaseProgram,
             clCreateProgramWithIL(x, garbage, sizeof(garbage), &w->err));
        MAKE("built_in_unknown", clReleaseProgram,
             clCreateProgramWithBuiltInKernels(x, 1, &w->device, "nothing.of.this.name", &w->err));
        MAKE("built_in_empty", clReleaseProgram,
             clCreateProgramWithBuiltInKernels(x, 1, &w->device, "", &w->err));
        MAKE("built_in_no_devices", clReleaseProgram,
             clCreateProgramWithBuiltInKernels(x, 0, NULL, "a", &w->err));
        MAKE("built_in_null", clReleaseProgram,
             clCreateProgramWithBuiltInKernels(x, 1, &w->device, NULL, &w->err));
        cl_program p = program_new(w, plain);
        uint32_t value = 1;
        CALL("constant", clSetProgramSpecializationConstant(p, 0, 4, &value));
        CALL("release_callback", clSetProgramReleaseCallback(p, on_program, NULL));
        CALL("release_callback_null", clSetProgramReleaseCallback(p, NULL, NULL));
        CALL("release_null", clReleaseProgram(NULL));
        NEED(clReleaseProgram(p));
}

/* ---- building ------------------------------------------------------------------------------- */

static void build(struct world *w, const char *name, const char *source, const char *options)
{
        cl_program p = program_new(w, source);
        CALL(name, clBuildProgram(p, 0, NULL, options, NULL, NULL));
        NEED(clReleaseProgram(p));
}

static void options(struct world *w)
{
        static const struct {
                const char *name, *options;
        } table[] = {
                { "empty", "" },
                { "spaces", "   " },
                { "define", "-D X=1" },
                { "define_joined", "-DX=1" },
                { "define_none", "-D" },
                { "define_digit", "-D 1X" },
                { "define_dollar", "-D $X=1" },
                { "define_text", "-D X=\"a b\"" },
                { "define_call", "-D F(x)=x" },
                { "undefine", "-U X" },
                { "undefine_none", "-U" },
                { "include", "-I ." },
                { "include_none", "-I" },
                { "include_missing", "-I /nowhere/at/all" },
                { "std", "-cl-std=CL1.2" },
                { "std_unknown", "-cl-std=CL9.9" },
                { "unknown", "-no-such-option" },
                { "unknown_cl", "-cl-no-such-option" },
                { "word", "word" },
                { "warnings", "-w" },
                { "werror", "-Werror" },
                { "fast", "-cl-fast-relaxed-math -cl-mad-enable" },
                { "debug", "-g" },
                { "optimize", "-O3" },
                { "arg_info", "-cl-kernel-arg-info" },
                { "uniform", "-cl-uniform-work-group-size" },
                { "semicolon", "-D X=1;" },
                { "quote_open", "-D X=\"a" },
                { "create_library", "-create-library" },
                { "link_options", "-enable-link-options" },
                { "nv_verbose", "-cl-nv-verbose" },
        };
        char name[64];
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                snprintf(name, sizeof(name), "options_%s", table[i].name);
                build(w, name, plain, table[i].options);
                cl_program p = program_new(w, plain);
                snprintf(name, sizeof(name), "compile_options_%s", table[i].name);
                CALL(name,
                     clCompileProgram(p, 0, NULL, table[i].options, 0, NULL, NULL, NULL, NULL));
                NEED(clReleaseProgram(p));
        }
}

void group_builds(struct world *w)
{
        cl_device_id d = w->device, two[2] = { d, d }, null = NULL;
        int data = 0;
        cl_program p = program_new(w, plain);
        CALL("devices_null", clBuildProgram(p, 1, NULL, NULL, NULL, NULL));
        CALL("devices_none", clBuildProgram(p, 0, &d, NULL, NULL, NULL));
        CALL("data_without_callback", clBuildProgram(p, 0, NULL, NULL, NULL, &data));
        CALL("null_program", clBuildProgram(NULL, 0, NULL, NULL, NULL, NULL));
        CALL("plain", clBuildProgram(p, 1, &d, NULL, NULL, NULL));
        CALL("again", clBuildProgram(p, 1, &d, NULL, NULL, NULL));
        CALL("again_options", clBuildProgram(p, 1, &d, "-D X=2", NULL, NULL));
        CALL("device_twice", clBuildProgram(p, 2, two, NULL, NULL, NULL));
        cl_kernel k = kernel_new(p, "f");
        CALL("with_kernel", clBuildProgram(p, 1, &d, NULL, NULL, NULL));
        CALL("with_kernel_options", clBuildProgram(p, 1, &d, "-D X=3", NULL, NULL));
        CALL("compile_with_kernel", clCompileProgram(p, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        NEED(clReleaseKernel(k));
        CALL("compile_built", clCompileProgram(p, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        NEED(clReleaseProgram(p));
        build(w, "wrong", wrong, NULL);
        build(w, "empty", "", NULL);
        build(w, "no_kernels", library, NULL);
        build(w, "unresolved", caller, NULL);
        options(w);
        p = program_new(w, plain);
        CALL("null_device", clBuildProgram(p, 1, &null, NULL, NULL, NULL));
        NEED(clReleaseProgram(p));
}

/* ---- compiling and linking ------------------------------------------------------------------ */

static void compiles(struct world *w)
{
        cl_program p = program_new(w,
                                   "#include \"x.h\"\nkernel void f(global int *a) { a[0] = X; }"),
                   header = program_new(w, "#define X 1\n"), built = program_built(w, plain, NULL),
                   null = NULL;
        const char *name = "x.h", *no_name = NULL, *empty = "", *src = plain;
        cl_program foreign = clCreateProgramWithSource(w->foreign_context, 1, &src, NULL, &w->err);
        NEED(w->err);
        int data = 0;
        CALL("compile", clCompileProgram(p, 0, NULL, NULL, 1, &header, &name, NULL, NULL));
        CALL("compile_missing", clCompileProgram(p, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        CALL("compile_no_names", clCompileProgram(p, 0, NULL, NULL, 1, &header, NULL, NULL, NULL));
        CALL("compile_no_headers", clCompileProgram(p, 0, NULL, NULL, 1, NULL, &name, NULL, NULL));
        CALL("compile_no_count", clCompileProgram(p, 0, NULL, NULL, 0, &header, &name, NULL, NULL));
        CALL("compile_empty_name",
             clCompileProgram(p, 0, NULL, NULL, 1, &header, &empty, NULL, NULL));
        CALL("compile_foreign", clCompileProgram(p, 0, NULL, NULL, 1, &foreign, &name, NULL, NULL));
        CALL("compile_built_header",
             clCompileProgram(p, 0, NULL, NULL, 1, &built, &name, NULL, NULL));
        CALL("compile_data", clCompileProgram(p, 0, NULL, NULL, 1, &header, &name, NULL, &data));
        CALL("compile_devices_null",
             clCompileProgram(p, 1, NULL, NULL, 1, &header, &name, NULL, NULL));
        CALL("compile_null_header",
             clCompileProgram(p, 0, NULL, NULL, 1, &null, &name, NULL, NULL));
        CALL("compile_null_name",
             clCompileProgram(p, 0, NULL, NULL, 1, &header, &no_name, NULL, NULL));
}

static cl_program compiled(struct world *w, const char *source)
{
        cl_program p = program_new(w, source);
        NEED(clCompileProgram(p, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        return p;
}

void group_links(struct world *w)
{
        cl_context x = w->context;
        cl_device_id d = w->device;
        cl_program a = compiled(w, caller), b = compiled(w, library),
                   source = program_new(w, plain), built = program_built(w, plain, NULL),
                   both[2] = { a, b }, mixed[2] = { a, source }, with_built[2] = { b, built },
                   null = NULL;
        const char *text = plain;
        cl_program foreign = clCreateProgramWithSource(w->foreign_context, 1, &text, NULL, &w->err);
        int data = 0;
        NEED(w->err);
        NEED(clCompileProgram(foreign, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
        MAKE("plain", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 2, both, NULL, NULL, &w->err));
        MAKE("device", clReleaseProgram,
             clLinkProgram(x, 1, &d, NULL, 2, both, NULL, NULL, &w->err));
        MAKE("library", clReleaseProgram,
             clLinkProgram(x, 0, NULL, "-create-library", 1, &b, NULL, NULL, &w->err));
        MAKE("library_link_options", clReleaseProgram,
             clLinkProgram(x, 0, NULL, "-create-library -enable-link-options", 1, &b, NULL, NULL,
                           &w->err));
        MAKE("link_options_alone", clReleaseProgram,
             clLinkProgram(x, 0, NULL, "-enable-link-options", 2, both, NULL, NULL, &w->err));
        MAKE("fast", clReleaseProgram,
             clLinkProgram(x, 0, NULL, "-cl-fast-relaxed-math", 2, both, NULL, NULL, &w->err));
        MAKE("options_compile", clReleaseProgram,
             clLinkProgram(x, 0, NULL, "-D X=1", 2, both, NULL, NULL, &w->err));
        MAKE("options_unknown", clReleaseProgram,
             clLinkProgram(x, 0, NULL, "-no-such-option", 2, both, NULL, NULL, &w->err));
        MAKE("unresolved", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 1, &a, NULL, NULL, &w->err));
        MAKE("source", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 1, &source, NULL, NULL, &w->err));
        MAKE("mixed", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 2, mixed, NULL, NULL, &w->err));
        MAKE("built", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 1, &built, NULL, NULL, &w->err));
        MAKE("with_built", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 2, with_built, NULL, NULL, &w->err));
        MAKE("foreign", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 1, &foreign, NULL, NULL, &w->err));
        MAKE("none", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 0, both, NULL, NULL, &w->err));
        MAKE("null_list", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 1, NULL, NULL, NULL, &w->err));
        MAKE("data", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 2, both, NULL, &data, &w->err));
        MAKE("devices_null", clReleaseProgram,
             clLinkProgram(x, 1, NULL, NULL, 2, both, NULL, NULL, &w->err));
        MAKE("devices_none", clReleaseProgram,
             clLinkProgram(x, 0, &d, NULL, 2, both, NULL, NULL, &w->err));
        cl_program linked = clLinkProgram(x, 0, NULL, NULL, 2, both, NULL, NULL, &w->err);
        if (w->err == CL_SUCCESS) {
                CALL("build_linked", clBuildProgram(linked, 0, NULL, NULL, NULL, NULL));
                CALL("compile_linked",
                     clCompileProgram(linked, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
                NEED(clReleaseProgram(linked));
        }
        CALL("build_compiled", clBuildProgram(compiled(w, plain), 0, NULL, NULL, NULL, NULL));
        compiles(w);
        MAKE("null", clReleaseProgram,
             clLinkProgram(x, 0, NULL, NULL, 1, &null, NULL, NULL, &w->err));
}
