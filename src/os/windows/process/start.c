#include "os/windows/process/start.h"

#include <errno.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "os/windows/descriptor.h"
#include "os/windows/packets.h"
#include "os/windows/process/children.h"
#include "os/windows/wide.h"

enum { LINE_MAX = 32767 }; /* the system's limit */

struct line {
        wchar_t text[LINE_MAX];
        size_t n;
        bool full;
};

static void put(struct line *l, wchar_t c)
{
        if (l->n + 1 < LINE_MAX)
                l->text[l->n++] = c;
        else
                l->full = true;
}

/* Put an argument in quotes, as CommandLineToArgvW and the C library read it: only backslashes in front of a quote
 * have to be doubled. */
static void put_argument(struct line *l, const wchar_t *arg)
{
        size_t slashes = 0;
        put(l, L'"');
        for (; *arg; arg++) {
                slashes = *arg == L'\\' ? slashes + 1 : slashes;
                for (; *arg == L'"' && slashes; slashes--)
                        put(l, L'\\');
                if (*arg == L'"')
                        put(l, L'\\');
                if (*arg != L'\\')
                        slashes = 0;
                put(l, *arg);
        }
        while (slashes--)
                put(l, L'\\');
        put(l, L'"');
}

static bool has_ending(const wchar_t *path, const wchar_t *ending)
{
        size_t n = wcslen(path), m = wcslen(ending);
        return n >= m && !_wcsicmp(path + n - m, ending);
}

/* Find the file of a program. A name without a folder is looked for in PATH alone, not in the current folder. */
static bool find(const char *name, wchar_t ret[WIDE_MAX])
{
        wchar_t wide[WIDE_MAX], *folders = NULL;
        DWORD n = 0;
        if (!wide_path(name, wide))
                return false;
        if (!wcspbrk(wide, L"\\:")) {
                DWORD size = GetEnvironmentVariableW(L"PATH", NULL, 0);
                folders = size ? malloc(size * sizeof(*folders)) : NULL;
                if (!folders || GetEnvironmentVariableW(L"PATH", folders, size) >= size) {
                        free(folders);
                        errno = ENOENT;
                        return false;
                }
                n = SearchPathW(folders, wide, L".exe", WIDE_MAX, ret, NULL);
                free(folders);
        } else {
                /* The path of a folder that has the name's file, or the same with the ending. */
                n = GetFullPathNameW(wide, WIDE_MAX, ret, NULL);
                if (n && n + 4 < WIDE_MAX && GetFileAttributesW(ret) == INVALID_FILE_ATTRIBUTES)
                        wcscat(ret, L".exe");
        }
        if (!n || n + 4 >= WIDE_MAX) {
                errno = ENOENT;
                return false;
        }
        if (has_ending(ret, L".bat") || has_ending(ret, L".cmd")) {
                errno = ENOEXEC;
                return false;
        }
        return true;
}

/* Let programs inherit a handle. */
static HANDLE inherited(HANDLE h)
{
        if (h && h != INVALID_HANDLE_VALUE)
                (void)SetHandleInformation(h, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
        return h;
}

static bool start(const wchar_t *path, wchar_t *line, HANDLE output, HANDLE *ret)
{
        STARTUPINFOW info = { .cb = sizeof(info),
                              .dwFlags = STARTF_USESTDHANDLES,
                              .hStdInput = inherited(GetStdHandle(STD_INPUT_HANDLE)),
                              .hStdOutput =
                                      inherited(output ? output : GetStdHandle(STD_OUTPUT_HANDLE)),
                              .hStdError = inherited(GetStdHandle(STD_ERROR_HANDLE)) };
        PROCESS_INFORMATION process;
        if (!CreateProcessW(path, line, NULL, NULL, TRUE, 0, NULL, NULL, &info, &process)) {
                if (GetLastError() == ERROR_BAD_EXE_FORMAT)
                        errno = ENOEXEC;
                else
                        (void)descriptor_fail_system();
                return false;
        }
        CloseHandle(process.hThread);
        *ret = process.hProcess;
        return true;
}

/* Compose a command line. NULL: errno gives the reason. */
static struct line *compose(char *const argv[])
{
        wchar_t arg[WIDE_MAX];
        struct line *l = calloc(1, sizeof(*l));
        bool ok = l;
        for (size_t i = 0; ok && argv[i]; i++) {
                if (i)
                        put(l, L' ');
                ok = wide_of(argv[i], arg);
                if (ok)
                        put_argument(l, arg);
        }
        if (ok && !l->full)
                return l;
        errno = !l ? ENOMEM : l->full ? E2BIG : errno;
        free(l);
        return NULL;
}

wchar_t *start_command_line(char *const argv[])
{
        struct line *l = compose(argv);
        wchar_t *text = l ? _wcsdup(l->text) : NULL;
        free(l);
        return text;
}

bool start_program(char *const argv[], HANDLE output, HANDLE *ret)
{
        wchar_t path[WIDE_MAX];
        if (!find(argv[0], path))
                return false;
        struct line *l = compose(argv);
        bool ok = l && start(path, l->text, output, ret);
        free(l);
        return ok;
}

/* ---- this program ---------------------------------------------------------------------------- */

/* The variable with the handle of a section, which describes the control socket, and with the parent's number. An
 * inherited handle alone is no socket: Winsock knows the sockets that it has made in the process. */
#define CONTROL L"SPANCLD_CONTROL"

enum { HANDLES = 2 };

struct handles {
        HANDLE all[HANDLES];
        DWORD count;
};

static HANDLE handle_of(int fd)
{
        return fd < 0                     ? NULL
               : descriptor_is_socket(fd) ? (HANDLE)descriptor_socket(fd)
                                          : (HANDLE)_get_osfhandle(fd);
}

/* Let the process inherit a handle, which the list may have once. Returns the handle. */
static HANDLE list_handle(struct handles *h, HANDLE one)
{
        if ((intptr_t)one <= 0) /* a descriptor without a file has -2 */
                return NULL;
        for (DWORD i = 0; i < h->count; i++)
                if (h->all[i] == one)
                        return one;
        h->all[h->count++] = one;
        return inherited(one);
}

/* Return the job of the children that get no other one. The system closes its only handle with this process, which ends
 * the children. NULL: there is none (errno). */
static HANDLE common_job(void)
{
        static HANDLE job;
        JOBOBJECT_EXTENDED_LIMIT_INFORMATION l = {
                .BasicLimitInformation = { .LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE }
        };
        HANDLE made = job ? NULL : CreateJobObjectW(NULL, NULL);
        if (made && SetInformationJobObject(made, JobObjectExtendedLimitInformation, &l, sizeof(l)))
                job = made;
        if (job)
                return job;
        (void)descriptor_fail_system();
        if (made)
                CloseHandle(made);
        return NULL;
}

static bool create(wchar_t *line, HANDLE job, struct handles *h, STARTUPINFOEXW *info,
                   PROCESS_INFORMATION *ret)
{
        enum { ATTRIBUTES = 2 };
        wchar_t path[WIDE_MAX];
        SIZE_T size = 0;
        DWORD n = GetModuleFileNameW(NULL, path, WIDE_MAX);
        (void)InitializeProcThreadAttributeList(NULL, ATTRIBUTES, 0, &size);
        info->lpAttributeList = malloc(size);
        bool ok = n && n < WIDE_MAX && info->lpAttributeList &&
                  InitializeProcThreadAttributeList(info->lpAttributeList, ATTRIBUTES, 0, &size);
        /* The process gets a group of its own, so that Ctrl-C reaches the parent only. */
        const DWORD flags =
                CREATE_NEW_PROCESS_GROUP | EXTENDED_STARTUPINFO_PRESENT | CREATE_SUSPENDED;
        bool made =
                ok &&
                UpdateProcThreadAttribute(info->lpAttributeList, 0,
                                          PROC_THREAD_ATTRIBUTE_HANDLE_LIST, h->all,
                                          h->count * sizeof(h->all[0]), NULL, NULL) &&
                /* The job ends also a process that never ran. */
                UpdateProcThreadAttribute(info->lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_JOB_LIST,
                                          &job, sizeof(job), NULL, NULL) &&
                CreateProcessW(path, line, NULL, NULL, h->count > 0, flags, NULL, NULL,
                               &info->StartupInfo, ret);
        if (!made)
                (void)descriptor_fail_system();
        if (ok)
                DeleteProcThreadAttributeList(info->lpAttributeList);
        free(info->lpAttributeList);
        return made;
}

/* Make a section for the description of a socket. */
static HANDLE section_new(WSAPROTOCOL_INFOW **ret)
{
        HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0,
                                            sizeof(**ret), NULL);
        *ret = section ? MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, sizeof(**ret)) : NULL;
        if (*ret)
                return section;
        (void)descriptor_fail_system();
        if (section)
                CloseHandle(section);
        return NULL;
}

/* Start the process, which waits. The environment names the section, if there is one. */
static bool create_with(char *const argv[], const struct start_with *with, HANDLE section,
                        PROCESS_INFORMATION *ret)
{
        struct handles h = { 0 };
        wchar_t text[64];
        STARTUPINFOEXW info = { .StartupInfo = { .cb = sizeof(info),
                                                 .dwFlags = STARTF_USESTDHANDLES } };
        HANDLE job = with->job ? with->job : common_job();
        struct line *l = job ? compose(argv) : NULL;
        if (!l)
                return false;
        info.StartupInfo.hStdError = list_handle(&h, handle_of(with->error));
        /* Kernels print to it, so it is not this process's own. */
        info.StartupInfo.hStdOutput = info.StartupInfo.hStdError;
        (void)list_handle(&h, section);
        (void)_snwprintf(text, sizeof(text) / sizeof(text[0]), L"%llu %lu",
                         (unsigned long long)(uintptr_t)section, GetCurrentProcessId());
        (void)SetEnvironmentVariableW(CONTROL, section ? text : NULL);
        bool ok = create(l->text, job, &h, &info, ret);
        (void)SetEnvironmentVariableW(CONTROL, NULL);
        free(l);
        /* No program that another call starts may inherit them. */
        for (DWORD i = 0; i < h.count; i++)
                (void)SetHandleInformation(h.all[i], HANDLE_FLAG_INHERIT, 0);
        return ok;
}

pid_t start_self(char *const argv[], const struct start_with *with)
{
        WSAPROTOCOL_INFOW *control = NULL;
        PROCESS_INFORMATION process;
        HANDLE section = with->control < 0 ? NULL : section_new(&control);
        if (with->control >= 0 && !section)
                return -1;
        bool ok = create_with(argv, with, section, &process);
        if (ok && control &&
            WSADuplicateSocketW(descriptor_socket(with->control), process.dwProcessId, control)) {
                (void)descriptor_fail();
                (void)TerminateProcess(process.hProcess, 1);
                CloseHandle(process.hThread);
                CloseHandle(process.hProcess);
                ok = false;
        }
        if (control)
                (void)UnmapViewOfFile(control);
        if (section)
                CloseHandle(section);
        if (!ok)
                return -1;
        const pid_t pid = (pid_t)process.dwProcessId;
        if (with->control >= 0)
                packets_given(with->control, pid);
        (void)ResumeThread(process.hThread);
        CloseHandle(process.hThread);
        return children_add(pid, process.hProcess) ? pid : -1;
}

void start_adopt(void)
{
        wchar_t text[64];
        unsigned long long handle;
        unsigned long parent;
        DWORD n = GetEnvironmentVariableW(CONTROL, text, sizeof(text) / sizeof(text[0]));
        if (!n || n >= sizeof(text) / sizeof(text[0]) ||
            swscanf(text, L"%llu %lu", &handle, &parent) != 2)
                return;
        (void)SetEnvironmentVariableW(CONTROL, NULL);
        HANDLE section = (HANDLE)(uintptr_t)handle;
        WSAPROTOCOL_INFOW *control = MapViewOfFile(section, FILE_MAP_READ, 0, 0, sizeof(*control));
        SOCKET s = control && descriptor_start()
                           ? WSASocketW(FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO, FROM_PROTOCOL_INFO,
                                        control, 0, WSA_FLAG_OVERLAPPED)
                           : INVALID_SOCKET;
        if (s == INVALID_SOCKET || !descriptor_place(s, START_CONTROL) ||
            !packets_adopt(START_CONTROL, (pid_t)parent, true))
                _exit(1);
        (void)UnmapViewOfFile(control);
        CloseHandle(section);
}

bool start_wait(HANDLE process, DWORD *ret_status)
{
        bool ok = WaitForSingleObject(process, INFINITE) == WAIT_OBJECT_0 &&
                  GetExitCodeProcess(process, ret_status);
        CloseHandle(process);
        return ok;
}
