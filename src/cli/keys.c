#include "cli/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/folder.h"
#include "transport/tls.h"

struct side {
        char folder[KEYS_PATH_MAX];
        struct keys_entry entry; /* the entry in the other side's list */
};

/* Make a new folder with a new identity. */
static int make_side(const struct crypto_ops *crypto, const char *parent, const char *name,
                     struct side *ret, char text[KEYS_TEXT_MAX])
{
        char *pem;
        int n = snprintf(ret->folder, sizeof(ret->folder), "%s/%s", parent, name);
        if (n >= KEYS_PATH_MAX - 64) {
                snprintf(text, KEYS_TEXT_MAX, "the folder's name is too long");
                return SP_E_LIMIT;
        }
        if (!folder_make_new(ret->folder)) {
                snprintf(text, KEYS_TEXT_MAX, "%s can't be made: %s", ret->folder, strerror(errno));
                return SP_E_INVAL;
        }
        int r = keys_identity(crypto, ret->folder, &pem, ret->entry.fingerprint, text);
        if (r < 0)
                return r;
        explicit_bzero(pem, strlen(pem));
        mem_free(pem);
        return 0;
}

static int make_both(const char *parent, char text[KEYS_TEXT_MAX])
{
        struct side client = { .entry.name = "client" }, server = { .entry.name = "*" };
        const struct crypto_ops *crypto = tls_crypto(text);
        if (!crypto)
                return SP_E_UNSUPP;
        (void)!folder_make_new(parent); /* on an error the folders in it fail, too */
        int r = make_side(crypto, parent, "client", &client, text);
        if (!r)
                r = make_side(crypto, parent, "server", &server, text);
        if (!r)
                r = keys_put(client.folder, KEYS_SERVERS, &server.entry, true, text);
        if (!r)
                r = keys_put(server.folder, KEYS_CLIENTS, &client.entry, true, text);
        if (!r)
                printf("SPANCL_KEYS=%s for the client; spancld --keys %s, on any number of hosts\n",
                       client.folder, server.folder);
        return r;
}

int command_keys(int argc, char **argv)
{
        char text[KEYS_TEXT_MAX];
        if (argc != 1 || argv[0][0] == '-') {
                fprintf(stderr, "Usage: spancl keys DIR\n");
                return 2;
        }
        if (!make_both(argv[0], text))
                return 0;
        fprintf(stderr, "spancl: %s\n", text);
        return 1;
}
