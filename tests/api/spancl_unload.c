/* A loader that unloads the library while its threads run: in a callback, or in a server in this
 * process. servers: 1 */
#include <CL/cl_icd.h>
#include <dlfcn.h>

#include "api.h"

static const char *library(void)
{
        static char path[4096];
        snprintf(path, sizeof(path), "%s/spancl.icd", getenv("OCL_ICD_VENDORS"));
        FILE *f = fopen(path, "r");
        CHECK(f && fgets(path, sizeof(path), f));
        fclose(f);
        path[strcspn(path, "\n")] = 0;
        return path;
}

static int calls, told;

static void CL_CALLBACK on_event(cl_event e, cl_int status, void *user)
{
        (void)e, (void)status, (void)user;
        __atomic_store_n(&calls, 1, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&told, __ATOMIC_SEQ_CST))
                usleep(1000);
        __atomic_store_n(&calls, 2, __ATOMIC_SEQ_CST);
}

static void await(int n)
{
        while (__atomic_load_n(&calls, __ATOMIC_SEQ_CST) < n)
                usleep(1000);
}

int main(void)
{
        cl_platform_id platform;
        cl_device_id device;
        cl_int e;
        setenv("SPANCL_SERVERS", "in-process:reference", 1);
        const char *path = library();
        void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        CHECK(l);
        cl_int (*ids)(cl_uint, cl_platform_id *, cl_uint *);
        *(void **)&ids = dlsym(l, "clIcdGetPlatformIDsKHR");
        CHECK(ids);
        OK(ids(1, &platform, NULL));
        const struct _cl_icd_dispatch *cl = *(const struct _cl_icd_dispatch **)platform;
        OK(cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &device, NULL));
        cl_context x = cl->clCreateContext(NULL, 1, &device, NULL, NULL, &e);
        OK(e);
        cl_event event = cl->clCreateUserEvent(x, &e);
        OK(e);
        OK(cl->clSetEventCallback(event, CL_COMPLETE, on_event, NULL));
        OK(cl->clSetUserEventStatus(event, CL_COMPLETE));
        await(1);
        CHECK(dlclose(l) == 0);
        __atomic_store_n(&told, 1, __ATOMIC_SEQ_CST);
        await(2);
        CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
        OK(cl->clReleaseEvent(event));
        OK(cl->clReleaseContext(x));
        printf("unloaded\n");
        return 0;
}
