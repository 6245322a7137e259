/* submit.h - asking for a job so that a lost answer never makes two.
 *
 * Every job carries its owner's key: in admin_comment, a JSON object
 * {"pods":[...],"v":1,"cluster":"...","release":"...","unit":"<key>"}, and again in `extra`
 * (mark.h), because site plugins may rewrite the comment. After the key the comment may have a
 * "note" of the owner. An ask has one of three outcomes:
 *
 *   SUBMITTED   there is a job, and this is its id
 *   REFUSED     there is none, by an answer that is proof of it
 *   UNRESOLVED  anything else. Do not ask again. A job list that started after settles_us tells:
 *               a job with the key is there, adopt it; there is none, ask again, but later when
 *               slurmctld had answered with an error: that was a refusal
 *
 * What makes the last rule hold: requests that we gave up may still be alive inside slurmrestd, for
 * as long as their token is good. So asks are sent with a token that dies soon where we sign our
 * own, and with any other token the fence is longer. */
#ifndef SLINC_SLURM_SUBMIT_H
#define SLINC_SLURM_SUBMIT_H

#include "slurm/client.h"
#include "slurm/mark.h"
#include "slurm/object.h"

enum {
    SLURM_MAX_NOTE = 512,        /* bytes */
    SLURM_MAX_COMMENT = 1 << 20, /* bytes of admin_comment */
    SLURM_MAX_SUBMIT = 8 << 20,  /* bytes of a whole request */
};

struct slurm_submit_ask {
    struct json_build *build;
    struct json_mut *job; /* the description; admin_comment, extra and immediate are set in it */
    struct str key;
    const struct slurm_owner *owner;
    const char *job_user;   /* whose the job will be by its description; NULL: `user`'s */
    const struct str *pods; /* "namespace/name" */
    size_t pod_count;
    struct str note;           /* the owner's own, kept in the comment; may be empty */
    bool at_once;              /* by allocate: RUNNING in the answer or refused as BUSY */
    const char *user;          /* on behalf of; NULL: the client's */
    int64_t message_timeout_s; /* slurmctld's MessageTimeout (sight.h); 0 = 10 */
};

/* The whole request as JSON text. -ERR_INVALID or -ERR_TOO_BIG name what is wrong. */
int slurm_submit_body(const struct slurm_submit_ask *ask, struct buf *ret_body, struct err *err);

/* Sends it, once, with the deadline MessageTimeout + 2 s. The callback hands the answer to
 * slurm_submit_judge. */
struct slurm_call *slurm_submit(struct slurm_client *client, const struct slurm_submit_ask *ask,
                                slurm_done done, void *context);

/* What an update writes into a job that has pods in its comment, but no cluster: `admin_comment`
 * and `extra` with the key. -ERR_INVALID when it has no pods. */
int slurm_submit_adopt(const struct slurm_job *job, const struct slurm_owner *owner, struct str key,
                       struct json_build *build, struct json_mut *fields);

/* The comment of a job of ours with other pods (NULL and 0: those that it has) and another note
 * (empty: the one that it has) in it, for an update. -ERR_INVALID when it has no comment of ours.
 */
int slurm_submit_comment(const struct slurm_job *job, const struct str *pods, size_t pod_count,
                         struct str note, struct buf *ret_comment);

/* The note in it; false: there is none, or the comment is not ours. slurmctld takes another comment
 * also with an update that it refuses: what a note says of the update must be true then, too. */
bool slurm_submit_note(const struct slurm_job *job, struct buf *ret_note);

/* How long after sending an ask can still take effect: MessageTimeout + 5 s, and with tokens that
 * are not our own at least 60 s. Also how long a new leader waits before it asks for what was there
 * before. */
int64_t slurm_submit_fence_us(const struct slurm_client *client, int64_t message_timeout_s);

enum slurm_submit_result { SLURM_SUBMITTED, SLURM_REFUSED, SLURM_UNRESOLVED };

struct slurm_submit_outcome {
    enum slurm_submit_result result;
    int64_t job_id;     /* SUBMITTED */
    const char *sluid;  /* "" when the answer does not tell; until the callback ends */
    int64_t settles_us; /* UNRESOLVED: loop time; 0 when any list from now on will do */
    bool is_answered;   /* UNRESOLVED: slurmctld gave an error that the table does not know: if the
                           list shows no job, it refused, and would again */
};

void slurm_submit_judge(const struct slurm_answer *answer, int64_t fence_us,
                        struct slurm_submit_outcome *ret_outcome);

/* ---- keys ---- */

/* "<unit>.<attempt>", or "<unit>@<uid>.<attempt>" for a unit that is known by a name which another
 * object may have had before: the uid says which of them asked. */
struct slurm_key {
    struct str unit, uid; /* uid: may be empty */
    unsigned attempt;
};

bool slurm_key_read(struct str text, struct slurm_key *ret_key); /* borrows from the text */
void slurm_key_write(const struct slurm_key *key, struct buf *out);

/* ---- finding them again ---- */

/* Whether the job is the owner's, and its key: it has the flag EXTERNAL_JOB, and its comment names
 * cluster and release; or it names no cluster, and `extra` is proof (mark.h). */
bool slurm_submit_key(const struct slurm_job *job, const struct slurm_owner *owner,
                      struct buf *ret_key);
bool slurm_submit_is_for(const struct slurm_job *job, const struct slurm_owner *owner,
                         struct str key);
/* The key that it claims to have, which is no proof of anything. */
bool slurm_submit_claimed_key(const struct slurm_job *job, struct buf *ret_key);
/* Whether its comment names a cluster: it is some bridge's, maybe an older one's. */
bool slurm_submit_is_marked(const struct slurm_job *job);

/* The jobs for a key that have not ended, at most `max`; how many there are in all. */
size_t slurm_submit_find(const struct slurm_list *jobs, const struct slurm_owner *owner,
                         struct str key, const struct slurm_job **ret_jobs, size_t max);

/* Which one to keep when there are several: the one with bound pods, else the recorded one, else
 * the one that Slurm took first. */
struct slurm_submit_claim {
    bool (*has_pods)(void *context, const struct slurm_job *job); /* NULL: none has */
    void *context;
    int64_t recorded_id;        /* 0: none */
    const char *recorded_sluid; /* NULL or "": the id alone counts */
};
size_t slurm_submit_choose(const struct slurm_job *const *jobs, size_t count,
                           const struct slurm_submit_claim *claim);

#endif
