/* unit_state.c - units by key, and how many submits are in which state.
 *
 * Holds: the counts are those of the units; only unit_states_move changes a state. */
#include "bridge/world/unit_state.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUBMIT_STATES = SUBMIT_REFUSED + 1,
    MAX_UNITS = 1 << 22,
    SECOND_US = 1000000,
    MAX_REFUSED_TRY_S = 15,
    REFUSED_JOB_S = 60, /* how long a job waits for a write, and at least the next one for it */
    MAX_REFUSED_JOB_S = 600,
    MISFIT_S = 30, /* how long a node is left out for its devices, the first time */
    MAX_MISFIT_S = 600,
};

static const char *const state_names[SUBMIT_STATES] = {
    [SUBMIT_NONE] = "none",
    [SUBMIT_SENT] = "sent",
    [SUBMIT_UNRESOLVED] = "unresolved",
    [SUBMIT_REFUSED] = "refused",
};

struct unit_states {
    struct map units; /* struct entry */
    size_t in[SUBMIT_STATES];
    struct list waiting[WAKE_SOURCES]; /* struct entry */
    size_t waiting_count[WAKE_SOURCES];
};

struct entry {
    struct unit_state unit;
    struct list links[WAKE_SOURCES]; /* in the list of each source that it waits for */
    char key[];
};

const char *submit_state_name(enum submit_state state)
{
    return (unsigned)state < SUBMIT_STATES ? state_names[state] : "no state";
}

static void free_misfit(struct misfit *misfit)
{
    mem_free(misfit->name);
    mem_free(misfit->why);
}

static void free_entry(void *value)
{
    struct entry *entry = value;

    for (unsigned i = 0; i < entry->unit.misfit_count; i++)
        free_misfit(&entry->unit.misfits[i]);
    mem_free(entry->unit.write_refusal.text);
    mem_free(entry);
}

struct unit_states *unit_states_new(void)
{
    struct map_options options = { .max = MAX_UNITS,
                                   .borrow_keys = true,
                                   .free_value = free_entry };
    struct unit_states *states = mem_alloc(sizeof(*states));

    map_init(&states->units, &options);
    for (unsigned i = 0; i < WAKE_SOURCES; i++)
        list_init(&states->waiting[i]);
    return states;
}

void unit_states_free(struct unit_states *states)
{
    if (!states)
        return;
    map_done(&states->units);
    mem_free(states);
}

const struct unit_state *unit_states_get(const struct unit_states *states, struct str key)
{
    const struct entry *entry = map_get(&states->units, key);

    return entry ? &entry->unit : NULL;
}

struct unit_state *unit_states_find(struct unit_states *states, struct str key)
{
    struct entry *entry = map_get(&states->units, key);

    return entry ? &entry->unit : NULL;
}

static struct entry *add(struct unit_states *states, struct str key)
{
    struct entry *entry = mem_alloc(sizeof(*entry) + key.len + 1);

    memcpy(entry->key, key.at, key.len);
    entry->unit.key = (struct str){ entry->key, key.len };
    if (map_put(&states->units, entry->unit.key, entry, NULL) < 0) {
        fprintf(stderr, "memory: more than %d units\n", MAX_UNITS);
        abort();
    }
    states->in[SUBMIT_NONE]++;
    return entry;
}

struct unit_state *unit_states_need(struct unit_states *states, struct str key)
{
    struct unit_state *unit = unit_states_find(states, key);

    return unit ? unit : &add(states, key)->unit;
}

void unit_states_forget(struct unit_states *states, struct str key)
{
    struct entry *entry = map_get(&states->units, key);

    if (!entry)
        return;
    unit_states_wait(states, &entry->unit, 0);
    states->in[entry->unit.submit.state]--;
    map_remove(&states->units, entry->unit.key);
}

void unit_states_forget_applied(struct unit_states *states)
{
    map_each (item, &states->units)
        ((struct entry *)item->value)->unit.last_applied = (struct last_applied){ .job_id = 0 };
}

size_t unit_states_in(const struct unit_states *states, enum submit_state state)
{
    return (unsigned)state < SUBMIT_STATES ? states->in[state] : 0;
}

void unit_states_move(struct unit_states *states, struct unit_state *unit, enum submit_state state)
{
    states->in[unit->submit.state]--;
    unit->submit.state = state;
    states->in[state]++;
}

void unit_state_give_up(struct unit_state *unit, unsigned attempt)
{
    if (!unit_state_has_given_up(unit, attempt))
        unit->given_up[unit->given_up_count++ % UNIT_STATE_MAX_GIVEN_UP] = attempt;
}

unsigned unit_state_attempt(const struct unit_state *unit)
{
    unsigned last = unit->submit.attempt;

    for (unsigned i = 0; i < unit->given_up_count && i < UNIT_STATE_MAX_GIVEN_UP; i++)
        if (unit->given_up[i] > last)
            last = unit->given_up[i];
    return last;
}

bool unit_state_has_given_up(const struct unit_state *unit, unsigned attempt)
{
    for (unsigned i = 0; unit && i < unit->given_up_count && i < UNIT_STATE_MAX_GIVEN_UP; i++)
        if (unit->given_up[i] == attempt)
            return true;
    return false;
}

/* 1, 2, 4 ... times the first pause, up to the longest. */
static int64_t growing_s(int64_t first_s, unsigned times, int64_t longest_s)
{
    int64_t pause_s = first_s << (times < 10 ? times : 10);

    return pause_s < longest_s ? pause_s : longest_s;
}

static struct misfit *need_misfit(struct unit_state *unit, const char *slurm_name)
{
    for (unsigned i = 0; i < unit->misfit_count; i++)
        if (strcmp(unit->misfits[i].name, slurm_name) == 0)
            return &unit->misfits[i];
    if (unit->misfit_count == UNIT_STATE_MAX_MISFITS) {
        free_misfit(&unit->misfits[0]);
        memmove(&unit->misfits[0], &unit->misfits[1],
                (UNIT_STATE_MAX_MISFITS - 1) * sizeof(unit->misfits[0]));
        unit->misfit_count--;
    }
    unit->misfits[unit->misfit_count] = (struct misfit){ .name = mem_strdup(slurm_name) };
    return &unit->misfits[unit->misfit_count++];
}

void unit_state_add_misfit(struct unit_state *unit, const char *slurm_name, uint64_t devices,
                           const char *why, int64_t now_us)
{
    struct misfit *misfit = need_misfit(unit, slurm_name);

    if (devices == misfit->devices && now_us < misfit->until_us)
        return;
    mem_free(misfit->why);
    misfit->why = devices ? mem_strdup(why) : NULL;
    misfit->devices = devices;
    if (devices)
        misfit->until_us = now_us + growing_s(MISFIT_S, misfit->times++, MAX_MISFIT_S) * SECOND_US;
}

void unit_state_refuse_write(struct unit_state *unit, const char *text, int64_t now_us)
{
    struct write_refusal *refusal = &unit->write_refusal;

    if (now_us < refusal->again_us)
        return;
    if (now_us >= refusal->given_back_us) {
        refusal->given_back_us = now_us + REFUSED_JOB_S * SECOND_US;
        refusal->submit_us =
            refusal->given_back_us +
            growing_s(REFUSED_JOB_S, refusal->jobs++, MAX_REFUSED_JOB_S) * SECOND_US;
        refusal->tries = 0;
    }
    refusal->again_us = now_us + growing_s(1, refusal->tries++, MAX_REFUSED_TRY_S) * SECOND_US;
    mem_free(refusal->text);
    refusal->text = mem_strdup(text);
}

void unit_state_forget_refusal(struct unit_state *unit)
{
    mem_free(unit->write_refusal.text);
    unit->write_refusal = (struct write_refusal){ .text = NULL };
}

void unit_states_each(const struct unit_states *states, unit_states_visit visit, void *context)
{
    map_each (item, &states->units)
        visit(context, &((const struct entry *)item->value)->unit);
}

/* ---- waiting ---- */

void unit_states_wait(struct unit_states *states, struct unit_state *unit, unsigned woken_by)
{
    struct entry *entry = list_item(unit, struct entry, unit);

    for (unsigned i = 0; i < WAKE_SOURCES; i++) {
        bool waited = unit->woken_by & 1u << i, waits = woken_by & 1u << i;

        if (waited && !waits)
            list_remove(&entry->links[i]);
        else if (waits && !waited)
            list_push_back(&states->waiting[i], &entry->links[i]);
        states->waiting_count[i] += waits;
        states->waiting_count[i] -= waited;
    }
    unit->woken_by = woken_by;
}

static unsigned index_of(enum wake source)
{
    unsigned i = 0;

    while (i < WAKE_SOURCES - 1 && !(source & 1u << i))
        i++;
    return i;
}

size_t unit_states_waiting(const struct unit_states *states, enum wake source)
{
    return states->waiting_count[index_of(source)];
}

void unit_states_each_waiting(const struct unit_states *states, enum wake source,
                              unit_states_visit visit, void *context)
{
    unsigned i = index_of(source);

    list_each (const struct entry, entry, &states->waiting[i], links[i])
        visit(context, &entry->unit);
}
