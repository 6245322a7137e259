/* memory.h - what this process remembers of a unit beside the caches, and could do without.
 *
 * A crash loses it, and nothing depends on its being there: what was asked of Slurm is found again
 * by the key that every job carries, and the fence of DESIGN 5a covers asks that another process
 * sent. It saves writes, keeps refused asks from being repeated, and times the steps. */
#ifndef SLINC_BRIDGE_MEMORY_H
#define SLINC_BRIDGE_MEMORY_H

#include "base/buf.h"
#include "base/str.h"
#include "bridge/job_change.h"
#include "slurm/error.h"

#include <stdbool.h>
#include <stdint.h>

enum ask_state {
    ASK_NONE,       /* none of ours is on its way; if it made a job, the job cache has it */
    ASK_SENT,       /* on its way: only its answer moves it */
    ASK_UNRESOLVED, /* may have made a job, now or later: a list begun after settles_us tells, and
                       the actor then moves it to NONE */
    ASK_REFUSED,    /* made none, and the same ask would not today */
};

const char *ask_state_name(enum ask_state state); /* "sent" ... */

struct ask_memory {
    enum ask_state state;
    unsigned attempt;   /* of the last ask; 0 = never asked */
    uint64_t hash;      /* job_ask_hash of it */
    uint64_t site;      /* room_generation when it was refused */
    int64_t sent_us;    /* loop times */
    int64_t settles_us; /* UNRESOLVED */
    int64_t again_us;   /* REFUSED: the same ask may be tried again then, though nothing changed */
    enum slurm_class class; /* of the last answer, whatever the state now is, and its words; */
    int number;             /* DONE, 0 and "" when it went well */
    char text[240];
};

/* What a job of ours that waits was asked with, and what it would not become. */
struct said_memory {
    int64_t job_id;         /* 0: of no job */
    struct job_marks marks; /* what it is as far as we said it; open what may have been made */
    bool settles;           /* an update was made whose note left that open */
    uint64_t refused;       /* job_ask_hash of a change that Slurm refused; ask.text says why */
    uint64_t site;          /* room_generation at that time */
    int64_t again_us;       /* the same change may be tried again then, though nothing changed */
};

enum {
    MEMORY_MAX_MISFITS = 32, /* the last nodes given back count */
    MEMORY_MAX_GIVEN_UP = 8, /* the last of them count */
};

struct unit_memory {
    struct str key; /* "namespace/uid" */
    struct ask_memory ask;
    struct said_memory said;
    bool queues;                       /* an immediate try was refused: submit from now on */
    bool prefers_nothing;              /* a preference was refused: the next ask has none */
    char *misfits[MEMORY_MAX_MISFITS]; /* Slurm nodes that did not fit, the last one last */
    unsigned misfit_count;
    /* Attempts whose jobs we wanted cancelled: a cancel without an answer may come late, so nothing
     * is bound by them any more. */
    unsigned given_up[MEMORY_MAX_GIVEN_UP];
    unsigned given_up_count;
    unsigned members;  /* that were there at the last look */
    int64_t grown_us;  /* when there were more than before */
    int64_t lost_us;   /* since when it is bound and has no job; 0 = it has one */
    bool is_uncovered; /* and others wait for it to get one: not for ever */
    int64_t seen_us, asked_us, allocated_us, bound_us; /* loop times; 0 = not yet */
};

struct memory;

struct memory *memory_new(void);
void memory_free(struct memory *memory);

const struct unit_memory *memory_get(const struct memory *memory, struct str key); /* or NULL */
struct unit_memory *memory_need(struct memory *memory, struct str key); /* made when missing */
void memory_forget(struct memory *memory, struct str key);
/* What jobs were asked with: another leader may have changed them since. */
void memory_forget_said(struct memory *memory);
size_t memory_count(const struct memory *memory);
/* How many are in this state; O(1). */
size_t memory_in(const struct memory *memory, enum ask_state state);
/* The only way to move an ask: keeps the counts. */
void memory_move(struct memory *memory, struct unit_memory *unit, enum ask_state state);

/* A node that did not fit; one that is known already changes nothing. */
void memory_add_misfit(struct unit_memory *unit, const char *slurm_name);
void memory_give_up(struct unit_memory *unit, unsigned attempt);
unsigned memory_attempt(
    const struct unit_memory *unit); /* the last, of asks and of those given up */
bool memory_has_given_up(const struct unit_memory *unit, unsigned attempt); /* takes NULL */

typedef void (*memory_visit)(void *context, const struct unit_memory *unit);
void memory_each(const struct memory *memory, memory_visit visit, void *context);

#endif
