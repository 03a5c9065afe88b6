#include "daemon/supervisor/exporting.h"

#include <string.h>

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/supervisor/pending.h"
#include "os/clock.h"
#include "transport/address.h"

enum { AGAIN_MS = 1000, READ_BATCH = 8, PORT = 9779 };

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
        x->process.again_ns = UINT64_MAX;
        if (!*text)
                return 0;
        bool open = !strncmp(text, any, sizeof(any) - 1);
        int r = parse(open ? text + sizeof(any) - 1 : text, &at);
        unsigned before = process_file_mask(0177);
        if (!r)
                r = address_listen(&at, &x->listener);
        (void)process_file_mask(before);
        if (!r)
                r = check(x->listener, open);
        switch (r) {
        case 0:
                address_show(x->listener->address, where);
                log_info(LOG, "metrics are served on %s", where);
                x->process.again_ns = 0;
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

static int start(struct supervisor *s, struct helper *h)
{
        static char word[] = "--exporter";
        int r = helper_start(s, h, (char *[]){ word, NULL });
        return r ? r
                 : control_send(h->control, CONTROL_METRICS, bytes_str(""),
                                s->exporter.listener->fd);
}

void exporter_provide(struct supervisor *s)
{
        struct helper *h = &s->exporter.process;
        if (!s->exporter.listener || h->pid || s->end.stopping || clock_now_ns() < h->again_ns)
                return;
        int r = start(s, h);
        if (!r)
                return;
        log_error(LOG, "the exporter of metrics can't be started: %s", status_text(r));
        helper_gone(s, h, AGAIN_MS);
}

void exporter_read(struct supervisor *s)
{
        static struct control c;
        int r = SP_E_AGAIN;
        for (int i = 0; i < READ_BATCH && s->exporter.process.control >= 0 &&
                        !(r = control_receive(s->exporter.process.control, &c));
             i++) {
                if (c.kind == CONTROL_METRICS && c.fd >= 0) {
                        s->exporter.query = pending_query(s, c.fd, s->exporter.query);
                        c.fd = -1;
                }
                control_drop(&c);
        }
        if (r == SP_E_LINK) /* SIGCHLD will follow */
                supervisor_unwatch(s, s->exporter.process.control);
}

bool exporter_ended(struct supervisor *s, pid_t pid)
{
        if (!helper_ended(s, &s->exporter.process, pid, AGAIN_MS))
                return false;
        if (!s->end.stopping)
                log_error(LOG, "the exporter of metrics has ended; it is started again");
        return true;
}

void exporter_stop(struct supervisor *s)
{
        helper_stop(s, &s->exporter.process);
        s->exporter.listener = listener_close(s->exporter.listener);
}
