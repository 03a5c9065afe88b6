/* The documentation of the configuration: docs/CONFIG.md, and tables for man pages and completions. */
#ifndef SPANCL_CONFIG_DOCUMENT_H
#define SPANCL_CONFIG_DOCUMENT_H

/* Rows of the documents beside the entries: the variables of PoCL that are read, the commands
 * of spancld with their arguments, and files. A row without name ends each table. */
struct config_note {
        const char *name;
        const char *doc;
};
extern const struct config_note config_pocl[];
extern const struct config_note config_commands[];

/* The configuration files of clients and of spancld. */
extern const struct config_note config_client_files[];
extern const struct config_note config_server_files[];

/* All entries as Markdown (docs/CONFIG.md): calls `out` piecewise. */
void config_document(void (*out)(void *user, const char *text), void *user);

#endif
