/* The system has the variables in UTF-16. This file keeps each value that a caller has asked for in UTF-8, so that the
 * caller may keep the pointer. */
#include "os/process/environment.h"

#include <stdlib.h>
#include <string.h>

#include "os/lock.h"
#include "os/windows/wide.h"

#include <windows.h>

struct value {
        struct value *next;
        char *name, *text;
};

static struct lock lock = LOCK_INIT;
static struct value *values;

/* Return the kept copy of a value; make one if it is new. NULL: out of memory. */
static const char *keep(const char *name, const char *text)
{
        const char *kept = NULL;
        lock_take(&lock);
        for (struct value *v = values; v && !kept; v = v->next)
                if (!strcmp(v->name, name) && !strcmp(v->text, text))
                        kept = v->text;
        struct value *v = kept ? NULL : calloc(1, sizeof(*v));
        if (v && (v->name = _strdup(name)) && (v->text = _strdup(text))) {
                v->next = values;
                values = v;
                kept = v->text;
        } else if (v) {
                free(v->name);
                free(v);
        }
        lock_release(&lock);
        return kept;
}

/* Return the name that Windows has for a variable of a folder. */
static const wchar_t *windows_name(const char *name)
{
        return !strcmp(name, "HOME")              ? L"USERPROFILE"
               : !strcmp(name, "XDG_CONFIG_HOME") ? L"APPDATA"
               : !strcmp(name, "XDG_CACHE_HOME")  ? L"LOCALAPPDATA"
               : !strcmp(name, "TMPDIR")          ? L"TEMP"
                                                  : NULL;
}

const char *environment_get(const char *name)
{
        enum { VALUE_MAX = 32768 }; /* the system's limit */
        wchar_t wide_name[WIDE_MAX];
        const wchar_t *other = windows_name(name);
        const char *ret = NULL;
        if (!other && !wide_of(name, wide_name))
                return NULL;
        wchar_t *wide = malloc(VALUE_MAX * sizeof(*wide));
        char *text = malloc(3 * VALUE_MAX);
        if (wide && text) {
                wide[0] = 0;
                SetLastError(0);
                DWORD n = GetEnvironmentVariableW(other ? other : wide_name, wide, VALUE_MAX);
                if ((n || !GetLastError()) && n < VALUE_MAX &&
                    (other ? wide_path_text(wide, text, 3 * VALUE_MAX)
                           : wide_text(wide, text, 3 * VALUE_MAX)))
                        ret = keep(name, text);
        }
        free(wide);
        free(text);
        return ret;
}

int environment_set(const char *name, const char *value)
{
        wchar_t wide_name[WIDE_MAX], wide_value[WIDE_MAX];
        return wide_of(name, wide_name) && wide_of(value, wide_value) &&
                               SetEnvironmentVariableW(wide_name, wide_value)
                       ? 0
                       : SP_E_NOMEM;
}

void environment_unset(const char *name)
{
        wchar_t wide_name[WIDE_MAX];
        if (wide_of(name, wide_name))
                (void)SetEnvironmentVariableW(wide_name, NULL);
}

char **environment_all(void)
{
        static char *none[] = { NULL };
        return environ ? environ : none;
}
