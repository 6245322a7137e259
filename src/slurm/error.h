/* error.h - what an answer of slurmrestd means: a class for the program, Slurm's words for people.
 *
 * What to do next depends on the class alone:
 *
 *   DONE           it happened
 *   NOT_MODIFIED   a list is as it was at update_time; nothing was sent along
 *   NOT_FOUND      a positive fact: it is not there
 *   EXISTS         it is there already
 *   BUSY           not now: the node has jobs, or the allocation cannot start at once
 *   AUTH           the token does not count; nothing was done
 *   FORBIDDEN      the token counts, its user may not
 *   INVALID        the request can never succeed as it is
 *   UNKNOWN_NODE   a job names a node that Slurm does not have: read the nodes, plan again
 *   UNSATISFIABLE  no set of nodes will ever do (Slurm may keep a FAILED record of the ask)
 *   NOT_SUPPORTED  this slurmrestd has no such path, version or plugin
 *   UNAVAILABLE    no answer that says anything; a read may be repeated
 *   TIMEOUT        the same, and it took its time
 *   UNKNOWN        a write that may or may not have happened; only a read can tell
 *
 * Only what a row of the table names is a fact. Everything else, also an answer that cannot be
 * read, is UNAVAILABLE for a read and UNKNOWN for a write: it never means "not there". */
#ifndef SLINC_SLURM_ERROR_H
#define SLINC_SLURM_ERROR_H

#include "base/err.h"
#include "base/str.h"
#include "codec/json.h"
#include "slurm/endpoint.h"

enum slurm_class {
    SLURM_DONE,
    SLURM_NOT_MODIFIED,
    SLURM_NOT_FOUND,
    SLURM_EXISTS,
    SLURM_BUSY,
    SLURM_AUTH,
    SLURM_FORBIDDEN,
    SLURM_INVALID,
    SLURM_UNKNOWN_NODE,
    SLURM_UNSATISFIABLE,
    SLURM_NOT_SUPPORTED,
    SLURM_UNAVAILABLE,
    SLURM_TIMEOUT,
    SLURM_UNKNOWN,
    SLURM_CLASSES, /* how many there are */
};

const char *slurm_class_name(enum slurm_class class); /* "not found" ... */

struct slurm_error {
    enum slurm_class class;
    int http;          /* status; 0 when there was no answer */
    int number;        /* Slurm's error number; 0 when it named none */
    bool nothing_done; /* it is certain that the call changed nothing, and no job lives by it */
    bool unsent;       /* and that slurmrestd never saw it */
    char text[240];    /* for people; "" when all went well */
};

/* An answer as it came. body is NULL when there was none or it could not be parsed. */
struct slurm_reply {
    enum slurm_verb verb;
    enum slurm_endpoint endpoint;
    int status;
    const char *content_type; /* "" when absent */
    const struct json *body;
    struct str raw; /* the bytes of the body; used for the words of a plain text */
};

/* Pure: the same reply always gives the same error. */
void slurm_classify(const struct slurm_reply *reply, struct slurm_error *ret_error);

/* For a call that got no answer: why is one of the classes of io/http.h. */
void slurm_classify_failure(enum slurm_verb verb, enum slurm_endpoint endpoint,
                            const struct err *why, struct slurm_error *ret_error);

/* For one entry of the `status` array that cancelling many jobs answers with. */
void slurm_classify_status(const struct json *status, struct slurm_error *ret_error);

/* What a base/err.h caller would be told: 0 for DONE and NOT_MODIFIED, else the negated class. */
int slurm_error_to_err(const struct slurm_error *error, struct err *err);

/* ---- the table, for tests and for the reference ---- */

enum slurm_fact { /* what can be seen in a body; a row may ask for several */
                  SLURM_FACT_TEXT = 1 << 0,      /* not JSON by its content type */
                  SLURM_FACT_BROKEN = 1 << 1,    /* JSON by its content type, and cannot be read */
                  SLURM_FACT_ERRORS = 1 << 2,    /* errors[] is not empty */
                  SLURM_FACT_WARNINGS = 1 << 3,  /* warnings[] is not empty */
                  SLURM_FACT_NO_ARRAY = 1 << 4,  /* what the endpoint answers with is missing */
                  SLURM_FACT_EMPTY = 1 << 5,     /* it is there, and empty */
                  SLURM_FACT_UNCHANGED = 1 << 6, /* last_update is there, and 0 */
                  SLURM_FACT_STATUS = 1 << 7,    /* status[0].error.code is not 0 */
                  SLURM_FACT_NO_JOB_ID =
                      1 << 8, /* an answer to submit or allocate without a job id */
};

#define SLURM_ANY_NUMBER   INT32_MIN
#define SLURM_ON(endpoint) (UINT64_C(1) << (endpoint))

struct slurm_situation {
    int status;         /* 0: any; 422 with a number: also 500, as before Slurm 26.05 */
    int number;         /* SLURM_ANY_NUMBER: any */
    char verb;          /* 'r' reads, 'w' writes, 'G' GET, 'P' POST, 'D' DELETE, '*' any */
    uint64_t endpoints; /* a set of SLURM_ON; 0: any */
    unsigned facts;     /* all of these must hold */
    enum slurm_class class;
    bool nothing_done;
    const char *words; /* what it is, for the reference and when Slurm is silent */
};

const struct slurm_situation *slurm_situations(size_t *ret_count); /* the first match counts */

#endif
