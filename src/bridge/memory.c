/* memory.c - units by key, and how many asks are in which state.
 *
 * Holds: the counts are those of the units; only memory_move changes a state. */
#include "bridge/memory.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_STATES = ASK_REFUSED + 1, MAX_UNITS = 1 << 22 };

static const char *const state_names[ASK_STATES] = {
    [ASK_NONE] = "none",
    [ASK_SENT] = "sent",
    [ASK_UNRESOLVED] = "unresolved",
    [ASK_REFUSED] = "refused",
};

struct memory {
    struct map units; /* struct entry */
    size_t in[ASK_STATES];
};

struct entry {
    struct unit_memory unit;
    char key[];
};

const char *ask_state_name(enum ask_state state)
{
    return (unsigned)state < ASK_STATES ? state_names[state] : "no state";
}

static void free_entry(void *value)
{
    struct entry *entry = value;

    for (unsigned i = 0; i < entry->unit.misfit_count; i++)
        mem_free(entry->unit.misfits[i]);
    mem_free(entry);
}

struct memory *memory_new(void)
{
    struct map_options options = { .max = MAX_UNITS,
                                   .borrow_keys = true,
                                   .free_value = free_entry };
    struct memory *memory = mem_alloc(sizeof(*memory));

    map_init(&memory->units, &options);
    return memory;
}

void memory_free(struct memory *memory)
{
    if (!memory)
        return;
    map_done(&memory->units);
    mem_free(memory);
}

const struct unit_memory *memory_get(const struct memory *memory, struct str key)
{
    const struct entry *entry = map_get(&memory->units, key);

    return entry ? &entry->unit : NULL;
}

static struct entry *add(struct memory *memory, struct str key)
{
    struct entry *entry = mem_alloc(sizeof(*entry) + key.len + 1);

    memcpy(entry->key, key.at, key.len);
    entry->unit.key = (struct str){ entry->key, key.len };
    if (map_put(&memory->units, entry->unit.key, entry, NULL) < 0) {
        fprintf(stderr, "memory: more than %d units\n", MAX_UNITS);
        abort();
    }
    memory->in[ASK_NONE]++;
    return entry;
}

struct unit_memory *memory_need(struct memory *memory, struct str key)
{
    struct entry *entry = map_get(&memory->units, key);

    return entry ? &entry->unit : &add(memory, key)->unit;
}

void memory_forget(struct memory *memory, struct str key)
{
    const struct entry *entry = map_get(&memory->units, key);

    if (!entry)
        return;
    memory->in[entry->unit.ask.state]--;
    map_remove(&memory->units, entry->unit.key);
}

void memory_forget_said(struct memory *memory)
{
    map_each (item, &memory->units)
        ((struct entry *)item->value)->unit.said = (struct said_memory){ .job_id = 0 };
}

size_t memory_count(const struct memory *memory)
{
    return memory->units.count;
}

size_t memory_in(const struct memory *memory, enum ask_state state)
{
    return (unsigned)state < ASK_STATES ? memory->in[state] : 0;
}

void memory_move(struct memory *memory, struct unit_memory *unit, enum ask_state state)
{
    memory->in[unit->ask.state]--;
    unit->ask.state = state;
    memory->in[state]++;
}

void memory_add_misfit(struct unit_memory *unit, const char *slurm_name)
{
    for (unsigned i = 0; i < unit->misfit_count; i++)
        if (strcmp(unit->misfits[i], slurm_name) == 0)
            return;
    if (unit->misfit_count == MEMORY_MAX_MISFITS) {
        mem_free(unit->misfits[0]);
        memmove(&unit->misfits[0], &unit->misfits[1],
                (MEMORY_MAX_MISFITS - 1) * sizeof(unit->misfits[0]));
        unit->misfit_count--;
    }
    unit->misfits[unit->misfit_count++] = mem_strdup(slurm_name);
}

void memory_give_up(struct unit_memory *unit, unsigned attempt)
{
    if (!memory_has_given_up(unit, attempt))
        unit->given_up[unit->given_up_count++ % MEMORY_MAX_GIVEN_UP] = attempt;
}

unsigned memory_attempt(const struct unit_memory *unit)
{
    unsigned last = unit->ask.attempt;

    for (unsigned i = 0; i < unit->given_up_count && i < MEMORY_MAX_GIVEN_UP; i++)
        if (unit->given_up[i] > last)
            last = unit->given_up[i];
    return last;
}

bool memory_has_given_up(const struct unit_memory *unit, unsigned attempt)
{
    for (unsigned i = 0; unit && i < unit->given_up_count && i < MEMORY_MAX_GIVEN_UP; i++)
        if (unit->given_up[i] == attempt)
            return true;
    return false;
}

void memory_each(const struct memory *memory, memory_visit visit, void *context)
{
    map_each (item, &memory->units)
        visit(context, &((const struct entry *)item->value)->unit);
}
