/* endpoint.c - the table of paths.
 *
 * `array` is the member that a whole answer holds: its absence means that the object is not there
 * or that the answer is not one, never an empty list. */
#include "slurm/endpoint.h"

enum {
    SMALL = 4 << 20,
    LIST = 256 << 20,  /* 10,000 nodes printed prettily are 25 MB */
    JOBS = 1024 << 20, /* 50,000 jobs without detail, printed prettily, are 400 MB */
};

static const struct slurm_endpoint_row rows[SLURM_ENDPOINTS] = {
    [SLURM_PING] = { "ping", "ping/", "pings", .since = 42, .max_answer = SMALL },
    [SLURM_CONF] = { "conf", "conf", "slurm_conf", .since = 45, .max_answer = SMALL },
    [SLURM_JOBS] = { "jobs", "jobs/", "jobs", .bulk = true, .since = 42, .max_answer = JOBS,
                     .agent = SLURM_VERB(SLURM_DELETE) },
    [SLURM_JOBS_STATE] = { "jobs state", "jobs/state/", "jobs", .since = 42, .max_answer = LIST,
                           .agent = SLURM_VERB(SLURM_GET) },
    [SLURM_JOB] = { "job", "job/", "jobs", .takes_name = true, .since = 42, .max_answer = LIST,
                    .agent =
                        SLURM_VERB(SLURM_GET) | SLURM_VERB(SLURM_POST) | SLURM_VERB(SLURM_DELETE) },
    [SLURM_JOB_SUBMIT] = { "job submit", "job/submit", NULL, .since = 42, .max_answer = SMALL,
                           .agent = SLURM_VERB(SLURM_POST) },
    [SLURM_JOB_ALLOCATE] = { "job allocate", "job/allocate", NULL, .since = 42, .max_answer = SMALL,
                             .agent = SLURM_VERB(SLURM_POST) },
    [SLURM_NODES] = { "nodes", "nodes/", "nodes", .bulk = true, .since = 42, .max_answer = LIST },
    [SLURM_NODE] = { "node", "node/", "nodes", .takes_name = true, .since = 42,
                     .max_answer = SMALL },
    [SLURM_NEW_NODE] = { "new node", "new/node/", NULL, .since = 44, .max_answer = SMALL },
    [SLURM_PARTITIONS] = { "partitions", "partitions/", "partitions", .since = 42,
                           .max_answer = LIST },
    [SLURM_PARTITION] = { "partition", "partition/", "partitions", .takes_name = true, .since = 42,
                          .max_answer = SMALL },
    [SLURM_RESERVATIONS] = { "reservations", "reservations/", "reservations", .since = 42,
                             .max_answer = LIST },
    [SLURM_RESERVATION] = { "reservation", "reservation/", "reservations", .takes_name = true,
                            .since = 42, .max_answer = SMALL },
    [SLURM_NEW_RESERVATION] = { "new reservation", "reservation", NULL, .since = 43,
                                .max_answer = SMALL },
    [SLURM_RESOURCES] = { "resources", "resources/", "nodes", .takes_name = true, .since = 44,
                          .max_answer = LIST, .agent = SLURM_VERB(SLURM_GET) },
    [SLURM_DIAG] = { "diag", "diag/", "statistics", .since = 42, .max_answer = SMALL },
    [SLURM_LICENSES] = { "licenses", "licenses/", "licenses", .since = 42, .max_answer = SMALL },
    [SLURM_SHARES] = { "shares", "shares", "shares", .since = 42, .max_answer = LIST },
    [SLURM_RECONFIGURE] = { "reconfigure", "reconfigure/", NULL, .acts = true, .since = 42,
                            .max_answer = SMALL },
    [SLURM_DB_ACCOUNTS] = { "accounts", "accounts/", "accounts", .db = true, .since = 42,
                            .max_answer = LIST },
    [SLURM_DB_ASSOCIATIONS] = { "associations", "associations/", "associations", .db = true,
                                .since = 42, .max_answer = LIST },
    [SLURM_DB_QOS] = { "qos", "qos/", "qos", .db = true, .since = 42, .max_answer = LIST },
    [SLURM_DB_USERS] = { "users", "users/", "users", .db = true, .since = 42, .max_answer = LIST },
    [SLURM_DB_USER] = { "user", "user/", "users", .db = true, .takes_name = true, .since = 42,
                        .max_answer = SMALL },
    [SLURM_DB_JOBS] = { "accounting jobs", "jobs/", "jobs", .db = true, .bulk = true, .since = 42,
                        .max_answer = JOBS },
    [SLURM_JOB_COMPLETE] = { "job complete", "job/", NULL, .takes_name = true, .max_answer = SMALL,
                             .after = "/complete", .agent = SLURM_VERB(SLURM_POST),
                             .agent_only = true },
    [SLURM_WILL_RUN] = { "will run", "will-run", NULL, .max_answer = SMALL,
                         .agent = SLURM_VERB(SLURM_POST), .agent_only = true },
};

static const char *const verbs[] = {
    [SLURM_GET] = "GET", [SLURM_POST] = "POST", [SLURM_DELETE] = "DELETE"
};

const struct slurm_endpoint_row *slurm_endpoint(enum slurm_endpoint endpoint)
{
    return &rows[endpoint];
}

const char *slurm_verb_name(enum slurm_verb verb)
{
    return verbs[verb];
}

bool slurm_is_write(enum slurm_verb verb, enum slurm_endpoint endpoint)
{
    return verb != SLURM_GET || rows[endpoint].acts;
}
