#include "loop/lanes.h"

#include "base/log.h"

void lanes_down(struct lanes *l)
{
        for (unsigned lane = SESSION_LANES; lane-- > 0;)
                link_down(&l->links[lane]);
}

bool lanes_busy(const struct lanes *l)
{
        bool busy = false;
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                busy |= link_busy(&l->links[lane]);
        return busy;
}

void lanes_halt(struct lanes *l)
{
        for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                if (l->threads[lane])
                        link_halt(&l->links[lane]);
}

void lanes_carry(struct lanes *l, unsigned lane, struct lane_thread_params how)
{
        if (l->threads[lane]) {
                lane_thread_rouse(l->threads[lane]);
                return;
        }
        how.link = &l->links[lane];
        int r = lane_thread_start(&how, &l->threads[lane]);
        if (r < 0)
                log_info("link", "no thread for lane %u: %s", lane, status_text(r));
}

void lanes_stop(struct lanes *l)
{
        for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                lane_thread_request_stop(l->threads[lane]);
}

void lanes_join(struct lanes *l)
{
        for (unsigned lane = 1; lane < SESSION_LANES; lane++)
                l->threads[lane] = lane_thread_free(l->threads[lane]);
}

int lanes_silent(struct lanes *l, uint64_t now_ns)
{
        enum { SHARE = 4 }; /* of the limit, between two questions */
        const uint64_t pause_ns = transport_timeout_ms * UINT64_C(1000000) / SHARE;
        l->silence_ns = 0;
        for (unsigned lane = 0; pause_ns && lane < lanes_used(l); lane++) {
                struct link *k = &l->links[lane];
                if (!k->conn || !k->owed)
                        continue;
                if (!k->ask_ns) {
                        k->ask_ns = now_ns + pause_ns;
                } else if (now_ns >= k->ask_ns) {
                        enum silence s = conn_silence(k->conn, &k->acks, now_ns);
                        if (s == SILENCE_LOST)
                                return (int)lane;
                        k->owed = s == SILENCE_OWES;
                        k->ask_ns = k->owed ? now_ns + pause_ns : 0;
                }
                if (k->ask_ns && (!l->silence_ns || k->ask_ns < l->silence_ns))
                        l->silence_ns = k->ask_ns;
        }
        return -1;
}

bool lanes_unwatched(const struct lanes *l)
{
        bool owed = false;
        if (l->silence_ns || !transport_timeout_ms)
                return false;
        for (unsigned lane = 0; lane < lanes_used(l); lane++)
                owed |= l->links[lane].conn && l->links[lane].owed;
        return owed;
}

bool lanes_poll(struct lanes *l, struct spin_on *on)
{
        bool due = false;
        for (unsigned lane = 0; lane < lanes_used(l); lane++) {
                struct link *k = lanes_own(l, lane);
                if (!k)
                        continue;
                due |= link_is_due(k);
                int added = link_poll(k, on->fds + on->count);
                if (added && k->conn->ops->peek)
                        on->conns[on->conn_count++] = k->conn;
                on->count += (nfds_t)added;
        }
        return due;
}
