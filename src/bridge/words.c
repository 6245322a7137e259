/* words.c - the texts of the rules, filled in with the facts of a situation. */
#include "bridge/words.h"

#include "codec/timestamp.h"
#include "slurm/reason.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_TEXT = 1024, SECOND_US = 1000000 };

/* By the minute: a time that moves by seconds is not worth a write. */
static const char *why_it_waits(struct arena *arena, const struct slurm_job *job)
{
    int64_t start = slurm_job_expected_start(job) / 60 * 60;
    const char *reason = job->reason_text[0] ? job->reason_text : job->reason;

    if (!reason[0] || str_is(str_of(reason), "None"))
        reason = slurm_reason_of(reason, false).text;
    if (start <= 0)
        return arena_printf(arena, "job %" PRId64 " waits: %s", job->id, reason);
    return arena_printf(arena, "job %" PRId64 " waits: %s (expected to start at %s)", job->id,
                        reason, timestamp_text(start * SECOND_US, arena));
}

/* ---- the words ---- */

static const char *number(const struct situation *s, int64_t value)
{
    return arena_printf(s->arena, "%" PRId64, value);
}

/* clang-format off */
/* Only the word that is asked for is evaluated: its fact may not be there for other rules. */
static const char *fact(const struct situation *s, struct str word)
{
    const struct bridge_facts *facts = &s->world->facts;
    const struct unit *unit = s->unit;

#define WORD(name, text) if (str_is(word, name)) return text
    WORD("job", unit->job ? unit->job->object.key : "");
    WORD("inherited", unit->jobs.inherited->object.key);
    WORD("gates", number(s, unit->pod->gate_count));
    WORD("others", number(s, (int64_t)unit->jobs.count - 1));
    WORD("node", unit->pod->node_name);
    WORD("slurm reason", unit->job->reason);
    WORD("SlurmReason", slurm_reason_condition(unit->job->reason, s->arena));
    WORD("pending", why_it_waits(s->arena, unit->job));
    WORD("owner", unit->owner.wanting);
    WORD("group phase", group_end(unit));
    WORD("group", group_kind_name(unit->kind));
    WORD("waiting", number(s, unit->in[POD_WAITS]));
    WORD("needed", number(s, unit->owner.needed));
    WORD("invalid", s->invalid);
    WORD("nodes left", exclusion_text(&s->exclusion, &s->desc, s->arena));
    WORD("trouble", facts->trouble);
    WORD("suspicion", facts->suspicion);
    WORD("visibility", facts->job_visibility_why);
    WORD("pause", facts->pause_why);
    WORD("most jobs", number(s, facts->max_jobs));
    WORD("cap", number(s, s->world->config->jobs_per_namespace));
    WORD("answer", unit->state->submit.text);
    WORD("lack", too_few_devices(s->world, unit, s->arena));
    WORD("refusal", unit->state->write_refusal.text);
    WORD("attempts", number(s, unit->jobs.failed_attempts));
    WORD("change", s->sync.invalid);
    WORD("annotation", s->sync.anew);
    WORD("pending nodes left", exclusion_text(&s->sync.exclusion, &s->sync.desc, s->arena));
    WORD("misfit", s->assigned.misfit);
    WORD("misfit why", s->assigned.why);
    WORD("misfits", number(s, unit->state->misfit_count));
    WORD("left", number(s, s->assigned.left));
    WORD("forgotten", s->forgotten);
    WORD("volume", s->volumes.why);
    WORD("place wait", number(s, world_place_wait_s(s->world)));
    WORD("time-out", number(s, VOLUMES_TIME_OUT_S));
    WORD("claim", s->claims.why);
#undef WORD
    return "?"; /* a world decides each rule, so a test would show it */
}
/* clang-format on */

const char *words_fill(const struct situation *situation, const char *template)
{
    auto_buf struct buf text = { .max = 1 << 16 };
    const char *at = template, *open, *close;

    if (!strchr(template, '{'))
        return template;
    while ((open = strchr(at, '{')) != NULL && (close = strchr(open, '}')) != NULL) {
        buf_add(&text, at, (size_t)(open - at));
        buf_add_text(&text, fact(situation, (struct str){ open + 1, (size_t)(close - open - 1) }));
        at = close + 1;
    }
    buf_add_text(&text, at);
    return arena_strndup(situation->arena, buf_text(&text),
                         text.len < MAX_TEXT ? text.len : MAX_TEXT - 1);
}
