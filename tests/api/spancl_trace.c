/* servers: 2. SPANCL_TRACE: one timeline of the client and both servers. The program runs itself
 * with it and reads the timeline. The client enqueues each command, its server submits and
 * completes it, and the client is notified, in this order on one clock. */
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

enum { COMMANDS = 20, MAX = 4096 };

static int work(void)
{
        struct api a = api_open(0);
        CHECK(a.count >= 2);
        for (int i = 0; i < COMMANDS; i++) {
                cl_int err, zero = 0;
                cl_event event;
                cl_mem m = clCreateBuffer(a.context, CL_MEM_READ_WRITE, 4096, NULL, &err);
                OK(err);
                OK(clEnqueueFillBuffer(a.queues[i % 2], m, &zero, sizeof(zero), 0, 4096, 0, NULL,
                                       &event));
                OK(clWaitForEvents(1, &event));
                OK(clReleaseEvent(event));
                OK(clReleaseMemObject(m));
        }
        api_close(&a);
        return 0;
}

struct span {
        char name[32];
        unsigned process;
        uint64_t event, begin_ns, end_ns;
};

static uint64_t to_ns(const char *us)
{
        char *end;
        uint64_t whole = strtoull(us, &end, 10);
        CHECK(*end == '.');
        return whole * 1000 + strtoull(end + 1, NULL, 10);
}

/* The spans that have an event; one stands on each line. */
static size_t read_spans(const char *path, struct span *ret, unsigned *ret_processes)
{
        char line[512];
        size_t n = 0;
        FILE *f = fopen(path, "r");
        CHECK(f);
        while (fgets(line, sizeof(line), f)) {
                unsigned long tid;
                char ts[40], dur[40];
                struct span *s = &ret[n];
                unsigned process;
                if (sscanf(line, "{\"ph\": \"M\", \"pid\": %u, \"name\": \"process_name\"",
                           &process) == 1 &&
                    strstr(line, "process_name") && process < 32)
                        *ret_processes |= 1u << process;
                if (n < MAX &&
                    sscanf(line,
                           "{\"ph\": \"X\", \"pid\": %u, \"tid\": %lu, \"ts\": %39[0-9.], \"dur\": "
                           "%39[0-9.], \"name\": \"%31[a-z]\", \"cat\": \"%*[a-z]\", \"args\": "
                           "{\"event\": %" SCNu64 "}",
                           &s->process, &tid, ts, dur, s->name, &s->event) == 6) {
                        s->begin_ns = to_ns(ts);
                        s->end_ns = s->begin_ns + to_ns(dur);
                        n++;
                }
        }
        fclose(f);
        return n;
}

static const struct span *find(const struct span *all, size_t n, const char *name, uint64_t event)
{
        for (size_t i = 0; i < n; i++)
                if (!strcmp(all[i].name, name) && all[i].event == event)
                        return &all[i];
        return NULL;
}

static void check_timeline(const char *path)
{
        static struct span all[MAX];
        unsigned processes = 0, whole = 0, by_server[4] = { 0 };
        size_t n = read_spans(path, all, &processes);
        CHECK(processes == (1u << 1 | 1u << 2 | 1u << 3));
        for (size_t i = 0; i < n; i++) {
                const struct span *enqueue = &all[i];
                if (strcmp(enqueue->name, "enqueue"))
                        continue;
                const struct span *submit = find(all, n, "submit", enqueue->event);
                const struct span *complete = find(all, n, "complete", enqueue->event);
                const struct span *completed = find(all, n, "completed", enqueue->event);
                CHECK(submit && complete && completed);
                CHECK(enqueue->process == 1 && completed->process == 1);
                CHECK(submit->process == complete->process && submit->process > 1);
                CHECK(enqueue->begin_ns <= submit->begin_ns);
                CHECK(submit->begin_ns <= complete->begin_ns);
                CHECK(complete->begin_ns <= completed->begin_ns);
                whole++;
                by_server[submit->process]++;
        }
        CHECK(whole == COMMANDS && by_server[2] == COMMANDS / 2 && by_server[3] == COMMANDS / 2);
}

int main(int argc, char **argv)
{
        if (argc == 2)
                return work();
        char path[] = "/tmp/spancl-trace.XXXXXX";
        int fd = mkstemp(path);
        CHECK(fd >= 0);
        close(fd);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                setenv("SPANCL_TRACE", path, 1);
                execl(argv[0], argv[0], "work", (char *)NULL);
                _exit(127);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        check_timeline(path);
        unlink(path);
        return 0;
}
