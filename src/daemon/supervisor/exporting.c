#include "daemon/supervisor/exporting.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/supervisor/pending.h"
#include "os/clock.h"
#include "transport/address.h"

#define NAME "exporter"

enum { AGAIN_MS = 1000, HEAR_BATCH = 8, PORT = 9779 };

static const char any[] = "any:"; /* in front of an address that other hosts reach */

/* Parse PATH, or HOST:PORT. SP_E_INVAL: neither a socket's path nor a host of plain IP. */
static int parse(const char *text, struct address *ret)
{
        int r = *text == '/' ? address_of_path(text, ret) : address_of_listen(text, PORT, ret);
        if (r < 0)
                r = address_parse(text, ret);
        if (r < 0)
                return r;
        if (!strcmp(ret->host, "localhost"))
                strcpy(ret->host, "127.0.0.1");
        bool plain = (ret->ops->caps & TRANSPORT_PEERS) && !(ret->ops->caps & TRANSPORT_ENCRYPTED);
        return plain || (ret->ops->caps & TRANSPORT_KNOWS_USER) ? 0 : SP_E_INVAL;
}

/* Check that the listener got an address of this host only, unless the word `any:` permits
 * another one. */
static int check(const struct listener *l, bool open)
{
        struct address got;
        int r = address_parse(l->address, &got);
        if (!r && !open && !address_is_here(&got))
                return SP_E_AUTH;
        return r;
}

int exporter_open(struct supervisor *s)
{
        const char *text = config_option_text(s->options, CONFIG_metrics);
        struct exporter_process *x = &s->exporter;
        struct address at;
        char where[ADDRESS_MAX];
        x->again_ns = UINT64_MAX;
        if (!*text)
                return 0;
        bool open = !strncmp(text, any, sizeof(any) - 1);
        int r = parse(open ? text + sizeof(any) - 1 : text, &at);
        mode_t before = umask(0177);
        if (!r)
                r = address_listen(&at, &x->listener);
        umask(before);
        if (!r)
                r = check(x->listener, open);
        switch (r) {
        case 0:
                address_show(x->listener->address, where);
                log_info(LOG, "metrics are served on %s", where);
                x->again_ns = 0;
                return 0;
        case SP_E_AUTH:
                log_error(LOG,
                          "--metrics %s: other hosts reach this address, and metrics are neither "
                          "encrypted nor authenticated. Use a path, or an address of this host "
                          "alone (localhost:%d). To serve metrics to every host, say any:%s",
                          text, PORT, text);
                break;
        case SP_E_BUSY:
                log_error(LOG, "--metrics %s: the address is in use", text);
                break;
        case SP_E_HOST:
                log_error(LOG, "--metrics %s: not an address of this host", text);
                break;
        case SP_E_INVAL:
                log_error(LOG,
                          "--metrics %s: it takes unix:PATH or HOST:PORT, where this "
                          "user may listen",
                          text);
                break;
        default:
                log_error(LOG, "--metrics %s: %s", text, status_text(r));
        }
        return r;
}

static void forget(struct supervisor *s)
{
        struct exporter_process *x = &s->exporter;
        if (x->control >= 0)
                close(x->control);
        child_log_close(&x->log, NAME, clock_now_ns());
        x->control = -1;
        x->pid = 0;
}

static int start(struct supervisor *s)
{
        static char word[] = "--exporter";
        struct exporter_process *x = &s->exporter;
        int pair[2], log;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return SP_E_LIMIT;
        x->control = pair[0];
        x->source.kind = SOURCE_EXPORTER;
        x->log_source.kind = SOURCE_EXPORTER_LOG;
        int r = child_log_open(&x->log, &s->spawner.log_budget, &log);
        if (!r) {
                r = run_self(&s->spawner, (char *[]){ word, NULL }, (char *[]){ NULL }, pair[1],
                             log, &x->pid);
                close(log);
        }
        close(pair[1]);
        if (!r)
                r = control_send(x->control, CONTROL_METRICS, bytes_str(""), x->listener->fd);
        if (!r && (supervisor_watch(s, x->control, &x->source) < 0 ||
                   supervisor_watch(s, x->log.fd, &x->log_source) < 0))
                r = SP_E_LIMIT;
        return r;
}

void exporter_provide(struct supervisor *s)
{
        struct exporter_process *x = &s->exporter;
        if (!x->listener || x->pid || s->stopping || clock_now_ns() < x->again_ns)
                return;
        x->again_ns = UINT64_MAX;
        int r = start(s);
        if (!r)
                return;
        log_error(LOG, "the exporter of metrics can't be started: %s", status_text(r));
        if (x->pid)
                kill(x->pid, SIGKILL);
        forget(s);
        x->again_ns = clock_now_ns() + AGAIN_MS * MS;
}

uint64_t exporter_deadline(const struct supervisor *s)
{
        return s->exporter.again_ns;
}

void exporter_hear(struct supervisor *s)
{
        static struct control c;
        int r = SP_E_AGAIN;
        for (int i = 0; i < HEAR_BATCH && s->exporter.control >= 0 &&
                        !(r = control_receive(s->exporter.control, &c));
             i++) {
                if (c.kind == CONTROL_METRICS && c.fd >= 0) {
                        s->exporter.look = pending_look(s, c.fd, s->exporter.look);
                        c.fd = -1;
                }
                control_drop(&c);
        }
        if (r == SP_E_LINK) /* SIGCHLD will follow */
                supervisor_unwatch(s, s->exporter.control);
}

bool exporter_ended(struct supervisor *s, pid_t pid)
{
        if (!pid || pid != s->exporter.pid)
                return false;
        forget(s);
        s->exporter.again_ns = clock_now_ns() + AGAIN_MS * MS;
        if (!s->stopping)
                log_error(LOG, "the exporter of metrics has ended; it is started again");
        return true;
}

void exporter_stop(struct supervisor *s)
{
        pid_t pid = s->exporter.pid;
        forget(s);
        if (pid) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
        }
        s->exporter.listener = listener_close(s->exporter.listener);
}
