/* The service manager starts the program, which connects to it. A request to stop is SIGTERM. */
#include "daemon/system/service.h"

#include <io.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/system/notify.h"
#include "os/file.h"
#include "os/windows/process/start.h"
#include "os/windows/signals.h"
#include "os/windows/wide.h"

#define NAME L"spancld"

enum { WAIT_MS = 30000 }; /* for the start and the end, as the manager is told */

static struct {
        SERVICE_STATUS_HANDLE handle;
        int (*run)(int argc, char **argv);
        int argc;
        char **argv;
        int status;
} service;

static void report(DWORD state)
{
        SERVICE_STATUS s = { .dwServiceType = SERVICE_WIN32_OWN_PROCESS,
                             .dwCurrentState = state,
                             .dwControlsAccepted =
                                     state == SERVICE_RUNNING
                                             ? SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_SHUTDOWN
                                             : 0 };
        if (state == SERVICE_START_PENDING || state == SERVICE_STOP_PENDING)
                s.dwWaitHint = WAIT_MS;
        if (state == SERVICE_STOPPED && service.status) {
                s.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
                s.dwServiceSpecificExitCode = (DWORD)service.status;
        }
        (void)SetServiceStatus(service.handle, &s);
}

/* The states have the names of systemd's. */
void notify_send(const char *state)
{
        if (service.handle && !strncmp(state, "READY=1", 7))
                report(SERVICE_RUNNING);
        else if (service.handle && !strncmp(state, "STOPPING=1", 10))
                report(SERVICE_STOP_PENDING);
}

static DWORD WINAPI on_control(DWORD control, DWORD type, void *data, void *user)
{
        (void)type, (void)data, (void)user;
        if (control == SERVICE_CONTROL_STOP || control == SERVICE_CONTROL_SHUTDOWN)
                (void)signals_note(SIGTERM);
        else if (control != SERVICE_CONTROL_INTERROGATE)
                return ERROR_CALL_NOT_IMPLEMENTED;
        return NO_ERROR;
}

/* A service has no standard files, and their descriptors count as open: freopen takes others. The log goes to a file in
 * its user's folder. */
static void open_files(void)
{
        wchar_t path[WIDE_MAX];
        DWORD n = GetEnvironmentVariableW(L"LOCALAPPDATA", path, WIDE_MAX - 32);
        wcscpy(n && n < WIDE_MAX - 32 ? path + n : path,
               n && n < WIDE_MAX - 32 ? L"\\spancld.log" : L"NUL");
        (void)freopen("NUL", "r", stdin);
        (void)freopen("NUL", "w", stdout);
        if (_wfreopen(path, L"ab", stderr))
                (void)setvbuf(stderr, NULL, _IONBF, 0);
        FILE *const files[] = { stdin, stdout, stderr };
        for (int fd = FILE_STDIN; fd <= FILE_STDERR; fd++)
                if (_fileno(files[fd]) >= 0 && _fileno(files[fd]) != fd)
                        (void)_dup2(_fileno(files[fd]), fd);
}

static void WINAPI service_main(DWORD argc, wchar_t **argv)
{
        (void)argc, (void)argv;
        service.handle = RegisterServiceCtrlHandlerExW(NAME, on_control, NULL);
        report(SERVICE_START_PENDING);
        open_files();
        service.status = service.run(service.argc, service.argv);
        report(SERVICE_STOPPED);
}

static int complain(const char *what)
{
        fprintf(stderr, "spancld: %s: error %lu of Windows; an administrator may do this\n", what,
                GetLastError());
        return 1;
}

static int install(int argc, char **argv)
{
        wchar_t path[WIDE_MAX];
        char name[WIDE_MAX], word[] = "--service";
        DWORD n = GetModuleFileNameW(NULL, path, WIDE_MAX);
        char **line = mem_zalloc(((size_t)argc + 1) * sizeof(*line));
        wchar_t *text = NULL;
        if (line && n && n < WIDE_MAX && wide_text(path, name, sizeof(name))) {
                memcpy(line, argv, (size_t)argc * sizeof(*line));
                line[0] = name;
                line[1] = word;
                text = start_command_line(line);
        }
        mem_free(line);
        SC_HANDLE manager = text ? OpenSCManagerW(NULL, NULL, SC_MANAGER_CREATE_SERVICE) : NULL;
        SC_HANDLE made =
                manager ? CreateServiceW(manager, NAME, L"SpanCL server", SERVICE_ALL_ACCESS,
                                         SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START,
                                         SERVICE_ERROR_NORMAL, text, NULL, NULL, L"Tcpip\0",
                                         L"NT AUTHORITY\\LocalService", NULL)
                        : NULL;
        int r = made ? 0 : complain("the service can't be installed");
        if (made)
                CloseServiceHandle(made);
        if (manager)
                CloseServiceHandle(manager);
        free(text);
        if (!r)
                printf("The service spancld is installed; `sc start spancld` starts it.\n");
        return r;
}

static int uninstall(void)
{
        SC_HANDLE manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT);
        SC_HANDLE found = manager ? OpenServiceW(manager, NAME, DELETE) : NULL;
        int r = found && DeleteService(found) ? 0 : complain("the service can't be removed");
        if (found)
                CloseServiceHandle(found);
        if (manager)
                CloseServiceHandle(manager);
        return r;
}

bool service_handle(int argc, char **argv, int (*run)(int argc, char **argv), int *ret_status)
{
        static const SERVICE_TABLE_ENTRYW table[] = { { (wchar_t *)(uintptr_t)NAME, service_main },
                                                      { NULL, NULL } };
        if (argc < 2)
                return false;
        if (!strcmp(argv[1], "--install-service")) {
                *ret_status = install(argc, argv);
        } else if (!strcmp(argv[1], "--uninstall-service")) {
                *ret_status = uninstall();
        } else if (!strcmp(argv[1], "--service")) {
                argv[1] = argv[0];
                service.run = run;
                service.argc = argc - 1;
                service.argv = argv + 1;
                *ret_status = StartServiceCtrlDispatcherW(table)
                                      ? service.status
                                      : complain("only the service manager can do this");
        } else {
                return false;
        }
        return true;
}
