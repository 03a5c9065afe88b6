/* The rights of other users on Windows, by lists in the system's textual form (SDDL), and by real files. */
#include "os/windows/access.h"

#include <sddl.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include "os/file.h"
#include "os/file_info.h"
#include "os/ownership.h"
#include "os/windows/wide.h"

#define CHECK(e)                                                                         \
        do                                                                               \
                if (!(e)) {                                                              \
                        fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #e); \
                        exit(1);                                                         \
                }                                                                        \
        while (0)

enum { FOREIGN = 1, READ = 2, WRITE = 4 };

static PSECURITY_DESCRIPTOR parse(const char *text)
{
        PSECURITY_DESCRIPTOR ret;
        CHECK(ConvertStringSecurityDescriptorToSecurityDescriptorA(text, SDDL_REVISION_1, &ret,
                                                                   NULL));
        return ret;
}

static void judged(const char *text, int expected)
{
        struct access a;
        PSECURITY_DESCRIPTOR all = parse(text);
        PSID owner;
        PACL list = NULL;
        BOOL unused, present;
        CHECK(GetSecurityDescriptorOwner(all, &owner, &unused));
        CHECK(GetSecurityDescriptorDacl(all, &present, &list, &unused));
        access_judge(owner, list, &a);
        int found = (a.foreign ? FOREIGN : 0) | (a.read ? READ : 0) | (a.write ? WRITE : 0);
        if (found != expected) {
                fprintf(stderr, "%s: %d instead of %d\n", text, found, expected);
                exit(1);
        }
        LocalFree(all);
}

static void lists(void)
{
        judged("O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)", 0);
        judged("O:SYD:P(A;;FR;;;WD)", READ);
        judged("O:SYD:P(A;;FA;;;WD)", READ | WRITE);
        judged("O:SYD:P(A;;FR;;;BU)(A;;FX;;;AU)", READ);
        judged("O:SYD:P(A;;FW;;;BU)", WRITE);
        judged("O:SYD:P(A;;GA;;;AU)", READ | WRITE);
        judged("O:SYD:P(A;;0x2;;;S-1-5-21-1-2-3-1000)", WRITE);
        judged("O:SYD:P(A;;0x40000;;;BU)", WRITE); /* it can change the list */
        judged("O:SYD:P(A;;0x40;;;BU)", WRITE);    /* it can delete files of the folder */
        judged("O:SYD:P(A;OICIIO;FA;;;WD)(A;;FA;;;SY)", 0);
        judged("O:SYD:P(D;;FA;;;WD)(A;;FA;;;SY)", 0);
        judged("O:SYD:P(D;;FA;;;WD)(A;;FR;;;WD)", READ);
        judged("O:SYD:P", 0);
        judged("O:SY", READ | WRITE);
        judged("O:BUD:P(A;;FA;;;SY)", FOREIGN);
        judged("O:S-1-5-21-1-2-3-1000D:P(A;;FA;;;SY)", FOREIGN);
        struct access a;
        access_judge(NULL, NULL, &a);
        CHECK(a.foreign && a.read && a.write);
}

/* Judge a file of this user, first without and then with rights for everyone. */
static void files(void)
{
        wchar_t folder[WIDE_MAX], wide[WIDE_MAX];
        char path[WIDE_MAX];
        enum ownership o;
        struct file_info f;
        unsigned user;
        uint64_t size;
        CHECK(GetTempPathW(WIDE_MAX, folder) && GetTempFileNameW(folder, L"spa", 0, wide) &&
              wide_path_text(wide, path, sizeof(path)));
        PSECURITY_DESCRIPTOR alone = parse("D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)");
        PSECURITY_DESCRIPTOR shared = parse("D:P(A;;FA;;;WD)");
        CHECK(SetFileSecurityW(wide, DACL_SECURITY_INFORMATION, shared));
        int fd = file_open(path, true, &size);
        CHECK(fd >= 0 && ownership_of_file(fd, &o, &user) && o == OWNERSHIP_SHARED);
        CHECK(file_info(path, true, &f) && f.mode == 0666);
        CHECK(SetFileSecurityW(wide, DACL_SECURITY_INFORMATION, alone));
        CHECK(ownership_of_file(fd, &o, &user) && o == OWNERSHIP_PRIVATE);
        CHECK(file_info(path, true, &f) && f.mode == 0600);
        CHECK(!ownership_of_file(-1, &o, &user));
        CHECK(!ownership_of_folder("/C:/there is none", &o, &user));
        CHECK(file_close(fd) && file_unlink(path));
        LocalFree(alone);
        LocalFree(shared);
}

int main(void)
{
        lists();
        files();
        return 0;
}
