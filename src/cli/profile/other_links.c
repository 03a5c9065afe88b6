#include "cli/profile/other_links.h"

#include <math.h>

#include "cli/profile/answers.h"

enum { ERROR_MAX = 15 }; /* percent */

const char *other_links_name(const struct what_if_results *r, size_t i, char ret[OTHER_LINKS_NAME])
{
        char trip[ANSWERS_NUMBER_MAX], rate[ANSWERS_NUMBER_MAX];
        if (i) {
                snprintf(ret, OTHER_LINKS_NAME, "%s", r->all[i].link.text);
        } else if (r->bytes_per_s) {
                snprintf(ret, OTHER_LINKS_NAME, "as recorded: %s, %s/s",
                         answers_time(r->round_trip_ns, trip), answers_size(r->bytes_per_s, rate));
        } else {
                snprintf(ret, OTHER_LINKS_NAME, "as recorded: %s",
                         answers_time(r->round_trip_ns, trip));
        }
        return ret;
}

double other_links_error(const struct what_if_results *r)
{
        return r->measured_ns ? ((double)r->all[0].ns / (double)r->measured_ns - 1) * 100 : 0;
}

void other_links_note(FILE *to, const struct what_if_results *r)
{
        char took[ANSWERS_NUMBER_MAX];
        double error = other_links_error(r);
        fprintf(to, "The run took %s. The model is off by %+.1f %% for the recorded link",
                answers_time(r->measured_ns, took), error);
        if (fabs(error) > ERROR_MAX)
                fputs(", so take the other links as a tendency only", to);
        fputs(". Links between servers stay as they were.", to);
        if (r->share < 1)
                fprintf(to,
                        " Only %.0f %% of the run was recorded; the rest is taken to be like it.",
                        r->share * 100);
}

static double times(const struct what_if_results *r, size_t i)
{
        return r->measured_ns ? (double)r->all[i].ns / (double)r->measured_ns : 0;
}

void other_links_text(FILE *to, const struct what_if_results *r)
{
        char name[OTHER_LINKS_NAME], time[ANSWERS_NUMBER_MAX];
        if (!r)
                return;
        fprintf(to, "\n%-40s %10s %10s  %s\n", "Link to the servers", "predicted", "x measured",
                "dominated by");
        for (size_t i = 0; i < r->count; i++)
                fprintf(to, "%-40s %10s %10.2f  %s\n", other_links_name(r, i, name),
                        answers_time(r->all[i].ns, time), times(r, i),
                        what_if_bound_name(r->all[i].bound));
        other_links_note(to, r);
        fputc('\n', to);
}

void other_links_json(struct json_writer *w, const struct what_if_results *r)
{
        if (!r)
                return;
        json_begin(w, "what_if", '{');
        json_put_u64(w, "measured_ns", r->measured_ns);
        json_put_u64(w, "round_trip_ns", r->round_trip_ns);
        if (r->bytes_per_s)
                json_put_u64(w, "bytes_per_s", r->bytes_per_s);
        else
                json_put_null(w, "bytes_per_s");
        json_put_real(w, "share", r->share, 3);
        json_begin(w, "links", '[');
        for (size_t i = 0; i < r->count; i++) {
                json_begin(w, NULL, '{');
                json_put_text(w, "link", i ? r->all[i].link.text : NULL);
                json_put_u64(w, "predicted_ns", r->all[i].ns);
                json_put_real(w, "times_measured", times(r, i), 3);
                json_put_text(w, "bound", what_if_bound_name(r->all[i].bound));
                json_end(w, '}');
        }
        json_end(w, ']');
        json_end(w, '}');
}
