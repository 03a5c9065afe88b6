#include "cli/pair.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/use.h"
#include "loop/dial.h"
#include "os/host.h"
#include "transport/address.h"
#include "transport/tls.h"

/* The state of one pairing. */
struct pairing {
        const struct crypto_ops *crypto;
        char folder[KEYS_PATH_MAX];
        char hex[KEYS_HEX + 1]; /* the fingerprint of this user's key */
        char text[KEYS_TEXT_MAX];
};

static int find_keys(struct pairing *p)
{
        uint8_t own[CRYPTO_FINGERPRINT];
        char *pem;
        p->crypto = tls_crypto(p->text);
        int r = p->crypto ? keys_folder(NULL, p->folder) : SP_E_UNSUPP;
        if (r == SP_E_NOENT)
                snprintf(p->text, sizeof(p->text), "there is no folder for keys: set SPANCL_KEYS");
        if (!r)
                r = keys_identity(p->crypto, p->folder, &pem, own, p->text);
        if (r < 0)
                return r;
        explicit_bzero(pem, strlen(pem));
        mem_free(pem);
        keys_hex(own, p->hex);
        return 0;
}

/* Take the code from the arguments, or ask for it. */
static int ask_code(const char *given, char ret[KEYS_CODE_MAX])
{
        char line[128];
        if (!given) {
                printf("The code that `spancld pair` shows there: ");
                fflush(stdout);
                if (!fgets(line, sizeof(line), stdin))
                        line[0] = 0;
                line[strcspn(line, "\r\n")] = 0;
                given = line;
        }
        if (keys_code_parse(given, ret))
                return 0;
        fprintf(stderr, "spancl: this is not a code: a code has %d letters and digits\n",
                KEYS_CODE_LETTERS);
        return SP_E_INVAL;
}

/* Make a text part of a name: one word. */
static void make_word(char *text)
{
        for (; *text; text++)
                if (*text <= ' ' || *text > '~' || *text == '@')
                        *text = '_';
}

/* Write the line that the server puts into its list: "FINGERPRINT USER@HOST". */
static void describe(const struct pairing *p, char *ret, size_t size)
{
        char host[64], user[64];
        host_name(host, sizeof(host));
        host_user(user, sizeof(user));
        make_word(host);
        make_word(user);
        snprintf(ret, size, "%s %.40s%s%.60s", p->hex, user, *user ? "@" : "",
                 *host ? host : "client");
}

static int pair(struct pairing *p, const char *address, const char *code, int timeout_ms)
{
        struct crypto_psk psk = { .name = KEYS_PSK_PAIR };
        char line[256], where[ADDRESS_MAX];
        struct conn *conn;
        struct dial_reply reply = { 0 };
        struct keys_entry server = { 0 };
        describe(p, line, sizeof(line));
        address_show(address, where);
        if (!p->crypto->stretch(code, "spancl pair", KEYS_STRETCH, psk.secret)) {
                snprintf(p->text, sizeof(p->text), "out of memory");
                return SP_E_NOMEM;
        }
        int r = tls_connect_psk(address, &psk, timeout_ms, &conn);
        explicit_bzero(&psk, sizeof(psk));
        if (r == SP_E_AUTH) {
                snprintf(p->text, sizeof(p->text),
                         "%s: the server does not accept the code, or no longer: %s", where,
                         *tls_reason() ? tls_reason() : status_text(r));
                return r;
        }
        if (r < 0) {
                loop_explain(&(struct dial_params){ .address = address }, r, &reply);
                snprintf(p->text, sizeof(p->text), "%s", reply.text);
                return r;
        }
        r = loop_hello(&(struct dial_params){ .address = address,
                                              .timeout_ms = timeout_ms,
                                              .role = DIAL_PAIR,
                                              .name = line },
                       conn, &conn, &reply);
        if (r < 0) {
                snprintf(p->text, sizeof(p->text), "%s", reply.text);
                return r;
        }
        conn_close(conn);
        snprintf(server.name, sizeof(server.name), "%.*s", KEYS_NAME_MAX, where);
        if (strlen(reply.identity) != KEYS_HEX || !keys_unhex(reply.identity, server.fingerprint)) {
                snprintf(p->text, sizeof(p->text), "%s: the server did not send its identity",
                         where);
                return SP_E_PROTO;
        }
        r = keys_put(p->folder, KEYS_SERVERS, &server, true, p->text);
        if (!r)
                printf("%s is known now: %s\n", server.name, reply.identity);
        return r;
}

/* Convert HOST[:PORT] to an address. */
static int parse_host(const char *text, const char *command, char ret[ADDRESS_MAX])
{
        struct server_spec *specs;
        struct address a;
        size_t count;
        int r = options_servers(text, command, &specs, &count);
        if (r < 0)
                return r;
        bool host = count == 1 && specs[0].address && !address_parse(specs[0].address, &a) &&
                    a.ops->caps & TRANSPORT_HOSTS;
        if (host) {
                address_encrypt(&a); /* pairing is, and the list of keys has such addresses */
                address_put(&a, ret);
        } else {
                fprintf(stderr, "spancl: '%s' is not a host\n", text);
        }
        config_servers_free(specs, count);
        return host ? 0 : SP_E_INVAL;
}

/* Give this user a new key. */
static int rotate(struct pairing *p)
{
        int r = keys_rotate(p->crypto, p->folder, p->text);
        if (!r)
                r = find_keys(p);
        if (!r)
                printf("%s\nThis is the new key. Servers that know the old one learn it with the next "
                       "connection;\nuntil then they accept the old one.\n",
                       p->hex);
        return r;
}

int command_pair(int argc, char **argv)
{
        struct pairing p = { 0 };
        char address[ADDRESS_MAX], code[KEYS_CODE_MAX];
        bool new_key = argc == 1 && !strcmp(argv[0], "--rotate");
        bool use = argc && !strcmp(argv[argc - 1], "--use");
        argc -= use;
        if (argc > 2 || (use && !argc) || (argc && argv[0][0] == '-' && !new_key))
                return command_usage("pair");
        if (find_keys(&p) < 0) {
                fprintf(stderr, "spancl: %s\n", p.text);
                return 1;
        }
        if (new_key) {
                int r = rotate(&p);
                if (r < 0)
                        fprintf(stderr, "spancl: %s\n", p.text);
                return r < 0;
        }
        if (!argc) {
                printf("%s\nThe keys are in %s.\n", p.hex, p.folder);
                return 0;
        }
        if (parse_host(argv[0], "pair", address) < 0 ||
            ask_code(argc > 1 ? argv[1] : NULL, code) < 0)
                return 2;
        int r = pair(&p, address, code, options_timeout());
        explicit_bzero(code, sizeof(code));
        if (r < 0) {
                fprintf(stderr, "spancl: %s\n", p.text);
                return 1;
        }
        if (use)
                return use_also(argv[0]);
        printf("`spancl use %s` makes all programs of this user see its devices.\n", argv[0]);
        return 0;
}

int command_unpair(int argc, char **argv)
{
        char address[ADDRESS_MAX], folder[KEYS_PATH_MAX], where[ADDRESS_MAX], text[KEYS_TEXT_MAX];
        if (argc != 1 || argv[0][0] == '-')
                return command_usage("unpair");
        if (parse_host(argv[0], "unpair", address) < 0)
                return 2;
        address_show(address, where);
        int r = keys_folder(NULL, folder);
        if (r < 0)
                snprintf(text, sizeof(text), "there is no folder for keys: set SPANCL_KEYS");
        else
                r = keys_forget(folder, KEYS_SERVERS, where, text);
        if (r < 0) {
                fprintf(stderr, "spancl: %s\n",
                        r == SP_E_NOENT ? "this user is not paired with it" : text);
                return 1;
        }
        printf("%s is no longer known. It still knows this user, until its list of clients changes.\n",
               where);
        return 0;
}
