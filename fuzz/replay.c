/* Runs a fuzz target over files and folders of inputs, without libFuzzer: a corpus is a test. */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static int replay_file(const char *path)
{
        FILE *f = fopen(path, "rb");
        if (!f) {
                perror(path);
                return 1;
        }

        uint8_t *data = NULL;
        size_t size = 0;
        size_t room = 0;
        for (;;) {
                if (size == room) {
                        room = room ? 2 * room : 4096;
                        uint8_t *grown = realloc(data, room);
                        if (!grown)
                                abort();
                        data = grown;
                }
                size_t got = fread(data + size, 1, room - size, f);
                if (!got)
                        break;
                size += got;
        }
        fclose(f);

        /* An allocation of the exact size, so that a sanitizer sees the first byte past the end. */
        uint8_t *exact = malloc(size ? size : 1);
        if (!exact)
                abort();
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
        inputs++;
        free(exact);
        free(data);
        return 0;
}

static int replay(const char *path)
{
        struct stat st;
        if (stat(path, &st) < 0)
                return 0; /* a target without a corpus yet */
        if (!S_ISDIR(st.st_mode))
                return replay_file(path);

        DIR *dir = opendir(path);
        if (!dir) {
                perror(path);
                return 1;
        }

        int bad = 0;
        struct dirent *entry;
        while ((entry = readdir(dir))) {
                if (entry->d_name[0] == '.')
                        continue;
                char *name;
                if (asprintf(&name, "%s/%s", path, entry->d_name) < 0)
                        abort();
                bad |= replay(name);
                free(name);
        }
        closedir(dir);
        return bad;
}

int main(int argc, char **argv)
{
        int bad = 0;
        LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
        for (int i = 1; i < argc; i++)
                bad |= replay(argv[i]);
        printf("%lu inputs\n", inputs);
        return bad;
}
