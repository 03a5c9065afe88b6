#include "os/windows/access.h"

#include <aclapi.h>
#include <errno.h>
#include <sddl.h>
#include <string.h>
#include <wchar.h>

#include "os/once.h"
#include "os/windows/descriptor.h"

enum {
        READS = FILE_READ_DATA,
        /* With these rights a user can change the content, put another file in its place, or take further rights. */
        WRITES = FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_WRITE_EA | FILE_WRITE_ATTRIBUTES |
                 FILE_DELETE_CHILD | DELETE | WRITE_DAC | WRITE_OWNER,
};

union user {
        TOKEN_USER of;
        char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
};

/* Find the user of this process. False: GetLastError() gives the reason. */
static bool own_user(union user *ret)
{
        HANDLE token;
        DWORD size;
        if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
                return false;
        bool ok = GetTokenInformation(token, TokenUser, ret, sizeof(*ret), &size);
        CloseHandle(token);
        return ok;
}

/* Return true if this process runs as that user. */
static bool is_own(PSID user)
{
        union user own;
        return own_user(&own) && EqualSid(own.of.User.Sid, user);
}

/* Return true if the user has all rights on this host anyway. */
static bool is_trusted(PSID user)
{
        return IsWellKnownSid(user, WinLocalSystemSid) ||
               IsWellKnownSid(user, WinBuiltinAdministratorsSid) || is_own(user);
}

/* Return true for the identifier OWNER RIGHTS, by which a list limits the owner. access_judge() checks the owner
 * itself. */
static bool is_owner_rights(PSID user)
{
        static const SID_IDENTIFIER_AUTHORITY creator = SECURITY_CREATOR_SID_AUTHORITY;
        return *GetSidSubAuthorityCount(user) == 1 && *GetSidSubAuthority(user, 0) == 4 &&
               !memcmp(GetSidIdentifierAuthority(user), &creator, sizeof(creator));
}

/* Return the rights that an entry may give to other users. */
static DWORD others_rights(ACE_HEADER *entry)
{
        GENERIC_MAPPING map = { FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_GENERIC_EXECUTE,
                                FILE_ALL_ACCESS };
        if (entry->AceFlags & INHERIT_ONLY_ACE)
                return 0;
        switch (entry->AceType) {
        case ACCESS_DENIED_ACE_TYPE:
        case ACCESS_DENIED_OBJECT_ACE_TYPE:
        case ACCESS_DENIED_CALLBACK_ACE_TYPE:
        case ACCESS_DENIED_CALLBACK_OBJECT_ACE_TYPE:
                return 0;
        case ACCESS_ALLOWED_ACE_TYPE: {
                ACCESS_ALLOWED_ACE *allowed = (ACCESS_ALLOWED_ACE *)(void *)entry;
                PSID user = &allowed->SidStart;
                DWORD mask = allowed->Mask;
                if (!IsValidSid(user))
                        return FILE_ALL_ACCESS;
                if (is_trusted(user) || is_owner_rights(user))
                        return 0;
                MapGenericMask(&mask, &map);
                return mask;
        }
        default: /* a kind that this function does not know */
                return FILE_ALL_ACCESS;
        }
}

void access_judge(PSID owner, PACL list, struct access *ret)
{
        DWORD rights = list ? 0 : FILE_ALL_ACCESS;
        for (DWORD i = 0; list && i < list->AceCount; i++) {
                void *entry;
                rights |= GetAce(list, i, &entry) ? others_rights(entry) : FILE_ALL_ACCESS;
        }
        bool valid = owner && IsValidSid(owner);
        UCHAR numbers = valid ? *GetSidSubAuthorityCount(owner) : 0;
        *ret = (struct access){
                .foreign = !valid || !is_trusted(owner),
                .read = rights & READS,
                .write = rights & WRITES,
                .owner = numbers ? *GetSidSubAuthority(owner, numbers - 1u) : 0,
        };
}

bool access_of(HANDLE file, struct access *ret)
{
        PSID owner = NULL;
        PACL list = NULL;
        PSECURITY_DESCRIPTOR all = NULL;
        DWORD error = GetSecurityInfo(file, SE_FILE_OBJECT,
                                      OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
                                      &owner, NULL, &list, NULL, &all);
        if (error != ERROR_SUCCESS) {
                SetLastError(error);
                return descriptor_fail_system() == 0;
        }
        access_judge(owner, list, ret);
        LocalFree(all);
        return true;
}

static SECURITY_ATTRIBUTES private = { .nLength = sizeof(private) };

static void make_private(void)
{
        union user own;
        wchar_t *name, text[256];
        if (!own_user(&own) || !ConvertSidToStringSidW(own.of.User.Sid, &name))
                return;
        /* No inherited entries; all rights for the system, administrators and this user. */
        (void)_snwprintf(text, 256, L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;%ls)", name);
        text[255] = 0;
        LocalFree(name);
        (void)ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text, SDDL_REVISION_1, &private.lpSecurityDescriptor, NULL);
}

SECURITY_ATTRIBUTES *access_private(void)
{
        static struct once once = ONCE_INIT;
        once_run(&once, make_private);
        if (private.lpSecurityDescriptor)
                return &private;
        errno = EACCES;
        return NULL;
}
