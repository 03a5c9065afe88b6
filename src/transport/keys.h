/* The folder of a user's keys: the user's own identity, and the keys that the user knows.
 *
 *   identity.pem    private key and certificate; made on first use
 *   servers         known servers: "FINGERPRINT HOST:PORT"; "*" for HOST:PORT: at any address
 *   clients         clients that may use a server: "FINGERPRINT NAME [KEY=VALUE]... [own]"; the keys
 *                   are devices, user, host, and settings of the server
 *   seen/           an empty file for each client, named by its fingerprint: its time is the last connection's
 *   authority.pem   certificates of the user's own authority, which vouches for others; optional
 *   nano            keys of nano clients (transport/nano_key.h)
 *   token           a secret that clients and servers share; optional
 *   pairing         the code that a server shows now: "SECRET UNTIL TRIES NAME"
 *
 * The folder is private to the user: it has mode 0700, its files 0600. Other modes are refused,
 * with a sentence that says how to mend them. Root's folder may have any mode on a read-only mount,
 * because nobody can put files there. Root's files may be readable for their group, because
 * Kubernetes mounts a Secret like this. One identity serves as client and as server, so hosts that
 * share a home folder know each other. No state; files are replaced whole. */
#ifndef SPANCL_TRANSPORT_KEYS_H
#define SPANCL_TRANSPORT_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "transport/crypto.h"

enum {
        KEYS_PATH_MAX = 1024,
        KEYS_TEXT_MAX = 1600,
        KEYS_NAME_MAX = 255,
        KEYS_SETTINGS_MAX = 1023,
        KEYS_HEX = 2 * CRYPTO_FINGERPRINT,
        KEYS_FILE_MAX = 1 << 20,
};

#define KEYS_IDENTITY  "identity.pem"
#define KEYS_SERVERS   "servers"
#define KEYS_CLIENTS   "clients"
#define KEYS_AUTHORITY "authority.pem"
#define KEYS_TOKEN     "token"
#define KEYS_PAIRING   "pairing"
#define KEYS_SEEN      "seen"

/* Find the folder: `given`, or the user's own if `given` is NULL or empty. The user's own is
 * SPANCL_KEYS, else spancl in XDG_CONFIG_HOME or ~/.config. SP_E_NOENT: there is no home;
 * SP_E_LIMIT: too long. */
SP_NODISCARD int keys_folder(const char *given, char ret[KEYS_PATH_MAX]);

/* Read a whole file; it is freed with mem_free. SP_E_NOENT: there is none; SP_E_AUTH: the file or
 * the folder is not private; SP_E_INVAL, SP_E_LIMIT, SP_E_NOMEM. `text` explains the error. */
SP_NODISCARD int keys_read(const char *folder, const char *file, char **ret,
                           char text[KEYS_TEXT_MAX]);

/* Replace a file, and make the folder if it is missing. `fresh`: only if there is no file yet, else
 * SP_E_BUSY. SP_E_LIMIT: longer than KEYS_FILE_MAX; SP_E_AUTH, SP_E_INVAL, SP_E_NOMEM. */
SP_NODISCARD int keys_write(const char *folder, const char *file, const char *data, bool fresh,
                            char text[KEYS_TEXT_MAX]);
void keys_remove(const char *folder, const char *file);

/* Lock the folder against other programs that read a list and write it anew. Waits for a second at most. Returns a
 * descriptor whose close unlocks; SP_E_BUSY: another program has the lock; SP_E_NOENT: there is no folder. */
SP_NODISCARD int keys_lock(const char *folder, char text[KEYS_TEXT_MAX]);

/* Read the identity as PEM, which is freed with mem_free, and its fingerprint. It is made if there
 * is none yet. Errors as of keys_read and keys_write. */
SP_NODISCARD int keys_identity(const struct crypto_ops *crypto, const char *folder, char **ret_pem,
                               uint8_t ret[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX]);

/* Replace the identity by a new key, which the old key signs. A side that knows the old key will
 * accept the new one and then forget the old one. SP_E_INVAL: an authority has issued the identity,
 * and has to issue the next one; SP_E_NOENT: there is none yet; else as keys_read and
 * keys_write. */
SP_NODISCARD int keys_rotate(const struct crypto_ops *crypto, const char *folder,
                             char text[KEYS_TEXT_MAX]);

/* ---- lists: `servers` and `clients` --------------------------------------------------------- */

struct keys_entry {
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        char name[KEYS_NAME_MAX + 1];    /* "HOST:PORT", or a client's name */
        char devices[KEYS_NAME_MAX + 1]; /* as --devices has it; "": all */
        char user[KEYS_NAME_MAX +
                  1]; /* as the client named itself when it was paired; "": not known */
        char host[KEYS_NAME_MAX + 1];
        /* The line's other words, "key=value", as they stand, with a blank between them. */
        char settings[KEYS_SETTINGS_MAX + 1];
        bool own; /* the client is the user that runs the server; they share compile caches */
};

/* Read the next entry of a list. Empty lines and comments (#) are skipped. Lines that are not
 * understood are skipped, too, and counted in *bad. False: no more entries. */
bool keys_next(const char **text, struct keys_entry *ret, unsigned *bad);

/* Find the entry of this fingerprint, with this name (NULL: any) or with "*". */
bool keys_find(const char *text, const uint8_t fingerprint[CRYPTO_FINGERPRINT], const char *name,
               struct keys_entry *ret);

/* Does any entry have this name? */
bool keys_knows(const char *text, const char *name);

/* Take the next "key=value" off a text of settings. False: there is none. The parts point into the text. */
struct keys_setting {
        struct bytes key, value;
};
bool keys_setting(const char **settings, struct keys_setting *ret);

/* Return true if a text can be the name of an entry: printable, without blanks, at most KEYS_NAME_MAX bytes. */
bool keys_is_name(const char *name);

/* Put an entry into a list. It replaces the entries of the same name (`by_name`) or key. */
SP_NODISCARD int keys_put(const char *folder, const char *file, const struct keys_entry *e,
                          bool by_name, char text[KEYS_TEXT_MAX]);

/* Remove the entries of this name, and those of the same keys under other names, except for "*".
 * SP_E_NOENT: no entry has the name; else as keys_read and keys_write. */
SP_NODISCARD int keys_forget(const char *folder, const char *file, const char *name,
                             char text[KEYS_TEXT_MAX]);

/* Remove the entries of this key. SP_E_NOENT: there is none. */
SP_NODISCARD int keys_drop(const char *folder, const char *file,
                           const uint8_t fingerprint[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX]);

/* Replace the key `old` by `fresh` in all lines of a list. SP_E_NOENT: no line has it. */
SP_NODISCARD int keys_replace(const char *folder, const char *file,
                              const uint8_t old[CRYPTO_FINGERPRINT],
                              const uint8_t fresh[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX]);

/* Note that the client connects now; it does nothing where the folder is read-only. */
void keys_saw(const char *folder, const char hex[KEYS_HEX + 1]);
/* When the client connected last, in seconds of the wall clock; 0: not known. */
uint64_t keys_seen(const char *folder, const char hex[KEYS_HEX + 1]);
void keys_unsee(const char *folder, const char hex[KEYS_HEX + 1]);

/* Convert fingerprints to text and back. */
void keys_hex(const uint8_t fingerprint[CRYPTO_FINGERPRINT], char ret[KEYS_HEX + 1]);
bool keys_unhex(const char *hex, uint8_t ret[CRYPTO_FINGERPRINT]);

/* ---- pairing -------------------------------------------------------------------------------- */

/* The state of a code that a server shows. */
struct keys_pairing {
        uint8_t secret[CRYPTO_SECRET];
        uint64_t until_s; /* seconds of the wall clock */
        unsigned tries;   /* left */
};

enum {
        KEYS_CODE_MAX = 32,
        KEYS_CODE_LETTERS = 12, /* 60 bits */
        KEYS_PAIRING_TRIES = 5,
        KEYS_PAIRING_S = 600,
        KEYS_STRETCH = 200000, /* rounds: the cost of one guess of a code */
};

/* A code of random letters, made readable: "K7QX-M2PA-9DZR". */
void keys_code_new(const uint8_t random[KEYS_CODE_LETTERS], char ret[KEYS_CODE_MAX]);

/* Reduce a code that a user typed to its letters. False: not a code. */
bool keys_code_parse(const char *typed, char ret[KEYS_CODE_MAX]);

bool keys_pairing_parse(const char *text, struct keys_pairing *ret);
SP_NODISCARD int keys_pairing_write(const char *folder, const struct keys_pairing *p,
                                    char text[KEYS_TEXT_MAX]);

/* Read the folder's token as a secret. SP_E_NOENT: none; SP_E_INVAL: too short. */
SP_NODISCARD int keys_token(const struct crypto_ops *crypto, const char *folder,
                            struct crypto_psk *ret, char text[KEYS_TEXT_MAX]);

/* The names of the secrets in a handshake. */
#define KEYS_PSK_TOKEN "token"
#define KEYS_PSK_PAIR  "pair"

#endif
