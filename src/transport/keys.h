/* The folder of a user's keys: what this user is known by, and whom it knows.
 *
 *   identity.pem    private key and certificate; made on first use
 *   servers         what servers are known by: lines "FINGERPRINT HOST:PORT"; with "*", wherever the server is
 *   clients         who may use a server: lines "FINGERPRINT NAME [devices=FILTER] [own]"
 *   authority.pem   certificates of an authority of the user's own, which vouches for others; optional
 *   token           a secret that clients and servers share; optional
 *   pairing         a code that a server shows now: "SECRET UNTIL TRIES NAME"
 *
 * Private to the user: the folder has mode 0700, the files 0600; others are refused, with a sentence that
 * says what to do. Root's folder may have any mode on a read-only mount, because nobody can put files there, and root's
 * files may be readable for their group: Kubernetes mounts a Secret like this. One identity serves as client and as server: hosts that share a home folder know
 * each other. No state; files are replaced whole. */
#ifndef SPANCL_TRANSPORT_KEYS_H
#define SPANCL_TRANSPORT_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "transport/crypto.h"

enum {
        KEYS_PATH_MAX = 1024,
        KEYS_TEXT_MAX = 1600,
        KEYS_NAME_MAX = 255,
        KEYS_HEX = 2 * CRYPTO_FINGERPRINT,
        KEYS_FILE_MAX = 1 << 20,
};

#define KEYS_IDENTITY  "identity.pem"
#define KEYS_SERVERS   "servers"
#define KEYS_CLIENTS   "clients"
#define KEYS_AUTHORITY "authority.pem"
#define KEYS_TOKEN     "token"
#define KEYS_PAIRING   "pairing"

/* The folder: `given`, or the user's own when it is NULL or empty (SPANCL_KEYS, else spancl in
 * XDG_CONFIG_HOME or ~/.config). SP_E_NOENT: there is no home; SP_E_LIMIT: too long. */
SP_NODISCARD int keys_folder(const char *given, char ret[KEYS_PATH_MAX]);

/* A whole file, freed with mem_free. SP_E_NOENT: there is none; SP_E_AUTH: it, or the folder, is not
 * private; SP_E_INVAL, SP_E_LIMIT, SP_E_NOMEM. `text` says so. */
SP_NODISCARD int keys_read(const char *folder, const char *file, char **ret,
                           char text[KEYS_TEXT_MAX]);

/* Replace a file, making the folder when it is missing. With `fresh` only if there is none: SP_E_BUSY.
 * SP_E_AUTH, SP_E_INVAL, SP_E_NOMEM. */
SP_NODISCARD int keys_write(const char *folder, const char *file, const char *data, bool fresh,
                            char text[KEYS_TEXT_MAX]);
void keys_remove(const char *folder, const char *file);

/* The identity as PEM, freed with mem_free, and its fingerprint; made when there is none yet. As keys_read
 * and keys_write. */
SP_NODISCARD int keys_identity(const struct crypto_ops *crypto, const char *folder, char **ret_pem,
                               uint8_t ret[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX]);

/* Put a new key into the place of the identity, which hands over to it: whoever knows the old one will believe the new
 * one, and forget the old one then. SP_E_INVAL: an authority has issued it, and has to issue the next; SP_E_NOENT: there
 * is none yet; as keys_read and keys_write. */
SP_NODISCARD int keys_rotate(const struct crypto_ops *crypto, const char *folder,
                             char text[KEYS_TEXT_MAX]);

/* ---- lists: `servers` and `clients` --------------------------------------------------------- */

struct keys_entry {
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        char name[KEYS_NAME_MAX + 1];    /* "HOST:PORT", or a client's name */
        char devices[KEYS_NAME_MAX + 1]; /* as --devices has it; "": all */
        bool own; /* the client is the user that runs the server, whose compile caches it shares */
};

/* The next entry of a list. Lines that are empty, comments (#) or not understood are passed over; those
 * are counted in *bad. False: no more. */
bool keys_next(const char **text, struct keys_entry *ret, unsigned *bad);

/* The entry of this fingerprint, with this name (NULL: any) or with "*". */
bool keys_find(const char *text, const uint8_t fingerprint[CRYPTO_FINGERPRINT], const char *name,
               struct keys_entry *ret);

/* Is anybody known by this name? */
bool keys_knows(const char *text, const char *name);

/* Put an entry into a list, in the place of those of the same name (`by_name`) or key. */
SP_NODISCARD int keys_put(const char *folder, const char *file, const struct keys_entry *e,
                          bool by_name, char text[KEYS_TEXT_MAX]);

/* Put the key `fresh` into the place of `old` in all lines of a list. SP_E_NOENT: there is no such line. */
SP_NODISCARD int keys_replace(const char *folder, const char *file,
                              const uint8_t old[CRYPTO_FINGERPRINT],
                              const uint8_t fresh[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX]);

/* Fingerprints as text. */
void keys_hex(const uint8_t fingerprint[CRYPTO_FINGERPRINT], char ret[KEYS_HEX + 1]);
bool keys_unhex(const char *hex, uint8_t ret[CRYPTO_FINGERPRINT]);

/* ---- pairing -------------------------------------------------------------------------------- */

/* What a server that shows a code keeps of it. */
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
        KEYS_STRETCH = 200000, /* rounds: what one guess of a code costs */
};

/* A code of random letters, made readable: "K7QX-M2PA-9DZR". */
void keys_code_new(const uint8_t random[KEYS_CODE_LETTERS], char ret[KEYS_CODE_MAX]);

/* The letters alone of what a user typed. False: not a code. */
bool keys_code_parse(const char *typed, char ret[KEYS_CODE_MAX]);

bool keys_pairing_parse(const char *text, struct keys_pairing *ret);
SP_NODISCARD int keys_pairing_write(const char *folder, const struct keys_pairing *p,
                                    char text[KEYS_TEXT_MAX]);

/* The token of the folder as a secret. SP_E_NOENT: none; SP_E_INVAL: too short to be one. */
SP_NODISCARD int keys_token(const struct crypto_ops *crypto, const char *folder,
                            struct crypto_psk *ret, char text[KEYS_TEXT_MAX]);

/* What the secrets are called in a handshake. */
#define KEYS_PSK_TOKEN "token"
#define KEYS_PSK_PAIR  "pair"

#endif
