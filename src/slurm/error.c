/* error.c - the one table of what slurmrestd answers, and the function that reads it.
 *
 * Every row was seen on a real Slurm 26.05 or stands in the contract; the recordings are the tests.
 * Surprises worth knowing:
 * - 200 does not mean that it went well: errors[] may be filled, the array missing, or the refusal
 *   stand in status[].
 * - 404 in plain text is an unknown path, 404 in JSON an unknown job.
 * - Before 26.05 what is 422 here was 500: a row for 422 that names its number takes both.
 * - Deleting a range and updating many nodes do what they can, and then tell of one that failed.
 * - 403 with number 1 to a cancel is what slurmrestd makes of a slurmctld that does not answer. It
 *   says nothing about permission.
 *
 * Holds: NOT_FOUND, and nothing_done for a write, come from a row of the table only. */
#include "slurm/error.h"

#include "io/http_text.h"

#include <stdio.h>

#define ANY    SLURM_ANY_NUMBER
#define TEXT   SLURM_FACT_TEXT
#define BROKEN SLURM_FACT_BROKEN
#define ERRORS SLURM_FACT_ERRORS

#define ON_SUBMIT  (SLURM_ON(SLURM_JOB_SUBMIT) | SLURM_ON(SLURM_JOB_ALLOCATE))
#define ON_JOB     (SLURM_ON(SLURM_JOB) | SLURM_ON(SLURM_RESOURCES) | SLURM_ON(SLURM_JOB_COMPLETE))
#define ON_NODE    (SLURM_ON(SLURM_NODE) | SLURM_ON(SLURM_NODES))
#define ON_CANCEL  (SLURM_ON(SLURM_JOB) | SLURM_ON(SLURM_JOBS))
#define ON_RESERVE (SLURM_ON(SLURM_RESERVATION) | SLURM_ON(SLURM_NEW_RESERVATION))

enum { NO = false, YES = true }; /* nothing_done */

/* clang-format off */
static const struct slurm_situation situations[] = {
    /* who asks */
    { 401, ANY, '*', 0, 0, SLURM_AUTH, YES, "no token" },
    { 511, 1007, '*', 0, ERRORS, SLURM_AUTH, YES, "the token is not valid, or no longer" },
    { 0, 1007, '*', 0, ERRORS, SLURM_AUTH, YES, "the token is not valid, or no longer" },
    { 511, ANY, '*', 0, 0, SLURM_AUTH, YES, "the token is not valid, or no longer" },
    { 500, 6010, '*', 0, ERRORS, SLURM_INVALID, YES, "user or group is nobody" },
    { 0, 2010, '*', 0, ERRORS, SLURM_FORBIDDEN, YES, "not allowed for this user" },
    { 0, 2002, '*', 0, ERRORS, SLURM_FORBIDDEN, YES, "access denied" },

    /* what slurmrestd itself does not take */
    { 404, ANY, '*', 0, TEXT, SLURM_NOT_SUPPORTED, YES, "unknown version, path or method" },
    { 405, ANY, '*', 0, TEXT, SLURM_NOT_SUPPORTED, YES, "unknown method" },
    { 400, ANY, '*', 0, TEXT, SLURM_INVALID, YES, "the body is not JSON" },
    { 415, ANY, '*', 0, TEXT, SLURM_INVALID, YES, "unknown content type" },
    { 500, ANY, 'P', 0, TEXT, SLURM_INVALID, NO, "unknown content type" }, /* before 26.05 */
    { 0, 9207, '*', 0, ERRORS, SLURM_INVALID, YES, "unknown flag; needs a newer version" },

    /* whether slurmctld answers at all */
    { 502, 1800, 'r', 0, ERRORS, SLURM_UNAVAILABLE, YES, "slurmctld cannot be reached" },
    { 502, 1800, 'w', 0, ERRORS, SLURM_UNAVAILABLE, NO, "slurmctld cannot be reached" },
    { 504, 5004, 'r', 0, ERRORS, SLURM_TIMEOUT, YES, "slurmctld did not answer in time" },
    { 504, 5004, 'w', 0, ERRORS, SLURM_UNKNOWN, NO, "slurmctld did not answer in time" },
    { 403, 1, 'D', ON_CANCEL, ERRORS, SLURM_UNKNOWN, NO, "slurmctld did not answer a cancel" },
    { 0, 2027, '*', 0, ERRORS, SLURM_UNAVAILABLE, YES, "slurmctld is in standby" },
    { 0, 2131, '*', 0, ERRORS, SLURM_UNAVAILABLE, YES, "slurmctld is in standby, ask the other" },

    /* lists that did not change */
    { 304, ANY, 'G', 0, 0, SLURM_NOT_MODIFIED, YES, "nothing changed since update_time" },
    { 200, ANY, 'G', SLURM_ON(SLURM_JOBS), SLURM_FACT_EMPTY | SLURM_FACT_UNCHANGED,
      SLURM_NOT_MODIFIED, YES, "nothing changed since update_time" },

    /* jobs */
    { 404, 2017, '*', ON_JOB, ERRORS, SLURM_NOT_FOUND, YES, "no such job" },
    { 200, 2017, 'D', SLURM_ON(SLURM_JOB), SLURM_FACT_STATUS, SLURM_NOT_FOUND, YES, "no such job" },
    { 200, 2021, 'D', SLURM_ON(SLURM_JOB), SLURM_FACT_STATUS, SLURM_DONE, YES, "ended already" },
    { 422, 2084, 'P', SLURM_ON(SLURM_JOB), ERRORS, SLURM_INVALID, YES, "the job has ended" },
    { 422, 2021, 'P', SLURM_ON(SLURM_JOB), ERRORS, SLURM_INVALID, YES, "the job has ended" },

    /* nodes */
    { 200, 0, 'G', SLURM_ON(SLURM_NODE), ERRORS | SLURM_FACT_NO_ARRAY, SLURM_NOT_FOUND, YES,
      "no such node" },
    { 422, 2018, 'D', SLURM_ON(SLURM_NODE), ERRORS, SLURM_NOT_FOUND, NO, "no such node, or one of the range" },
    { 422, 2018, 'P', SLURM_ON(SLURM_NODES), ERRORS, SLURM_UNKNOWN_NODE, NO, "one of the nodes is unknown" },
    { 422, 2018, '*', SLURM_ON(SLURM_NODE), ERRORS, SLURM_NOT_FOUND, YES, "no such node" },
    { 422, 2168, 'P', SLURM_ON(SLURM_NEW_NODE), ERRORS, SLURM_EXISTS, YES, "the node exists" },
    { 422, 2178, 'P', SLURM_ON(SLURM_NEW_NODE), ERRORS, SLURM_INVALID, YES, "no such place in the topology" },
    { 422, 2016, 'D', SLURM_ON(SLURM_NODE), ERRORS, SLURM_BUSY, NO, "the node, or one of the range, has jobs" },
    { 422, 2028, 'P', 0, ERRORS, SLURM_INVALID, YES, "a node cannot be made in, or brought to, that state" },
    { 500, 22, 'P', SLURM_ON(SLURM_NEW_NODE), ERRORS, SLURM_INVALID, YES, "gres without a GresConf that carries count=" },
    { 500, -1, 'P', SLURM_ON(SLURM_NEW_NODE), ERRORS, SLURM_INVALID, YES, "the node line cannot be read" },
    { 422, 2169, 'P', SLURM_ON(SLURM_NEW_NODE), ERRORS, SLURM_BUSY, YES, "no room for more nodes: raise MaxNodeCount" },
    { 422, 2029, 'P', ON_NODE, ERRORS, SLURM_INVALID, YES, "feature cannot be set" },
    { 422, 2031, 'P', ON_NODE, ERRORS, SLURM_INVALID, YES, "active features are not among the available" },
    { 422, 2180, 'P', ON_NODE, ERRORS, SLURM_BUSY, YES, "not a step from the node's present state" },

    /* partitions and reservations */
    { 200, ANY, 'G', SLURM_ON(SLURM_PARTITION), SLURM_FACT_NO_ARRAY | SLURM_FACT_WARNINGS,
      SLURM_NOT_FOUND, YES, "no such partition" },
    { 200, 0, 'G', SLURM_ON(SLURM_RESERVATION), ERRORS | SLURM_FACT_NO_ARRAY, SLURM_NOT_FOUND, YES,
      "no such reservation" },
    { 422, 2053, 'D', SLURM_ON(SLURM_RESERVATION), ERRORS, SLURM_NOT_FOUND, YES, "no such reservation" },
    { 422, 2055, 'D', SLURM_ON(SLURM_RESERVATION), ERRORS, SLURM_BUSY, YES, "the reservation has jobs" },
    { 422, 2053, 'P', ON_RESERVE, ERRORS, SLURM_INVALID, YES, "the reservation is not complete" },
    { 422, 2058, 'P', ON_RESERVE, ERRORS, SLURM_BUSY, YES, "overlaps another reservation" },
    { 422, 2016, 'P', ON_RESERVE, ERRORS, SLURM_BUSY, YES, "the nodes have jobs" },
    { 422, 2018, 'P', ON_RESERVE, ERRORS, SLURM_UNKNOWN_NODE, YES, "unknown node" },
    { 0, 2082, 'P', ON_RESERVE, ERRORS, SLURM_EXISTS, YES, "the name is taken" },

    /* asking for a job: refusals, each one certain */
    { 422, 2018, 'P', ON_SUBMIT, ERRORS, SLURM_UNKNOWN_NODE, YES, "an excluded or required node is unknown" },
    { 422, 2014, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "no nodes of that shape" },
    { 422, 2004, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "the nodes are not in the partition" },
    { 422, 2005, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "more processors than there are" },
    { 422, 2006, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "more nodes than there are, or none" },
    { 422, 2068, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "nodes not available" },
    { 422, 2134, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "not enough gres" },
    { 422, 2178, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "the topology does not allow it" },
    { 422, 2013, 'P', SLURM_ON(SLURM_JOB_ALLOCATE), ERRORS, SLURM_BUSY, YES, "others are first in the queue" },
    { 422, 2015, 'P', SLURM_ON(SLURM_JOB_ALLOCATE), ERRORS, SLURM_BUSY, YES, "not available now" },
    { 422, 2016, 'P', SLURM_ON(SLURM_JOB_ALLOCATE), ERRORS, SLURM_BUSY, YES, "the nodes are busy" },
    { 422, 2078, 'P', SLURM_ON(SLURM_JOB_ALLOCATE), ERRORS, SLURM_BUSY, YES, "cannot start at once" },
    { 422, 2015, 'P', ON_SUBMIT, ERRORS, SLURM_UNSATISFIABLE, YES, "not with this partition's limits" },
    { 422, 2000, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "no such partition" },
    { 422, 2001, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "no partition named, and there is no default" },
    { 422, 2003, 'P', ON_SUBMIT, ERRORS, SLURM_FORBIDDEN, YES, "the user's group may not use the partition" },
    { 422, 2007, 'P', ON_SUBMIT, ERRORS, SLURM_BUSY, YES, "MaxJobCount reached" },
    { 422, 2012, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "a text is too long" },
    { 422, 2025, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "task count" },
    { 422, 2029, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "unknown feature" },
    { 422, 2036, 'P', ON_SUBMIT, ERRORS, SLURM_NOT_SUPPORTED, YES, "not supported" },
    { 422, 2037, 'P', ON_SUBMIT, ERRORS, SLURM_NOT_SUPPORTED, YES, "disabled" },
    { 422, 2038, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "dependency" },
    { 422, 2044, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "memory" },
    { 422, 2045, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "account, or account and partition" },
    { 422, 2048, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "license" },
    { 422, 2050, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "a limit of the accounting" },
    { 422, 2051, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "time limit" },
    { 422, 2052, 'P', ON_SUBMIT, ERRORS, SLURM_FORBIDDEN, YES, "the reservation is not for this user" },
    { 422, 2053, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "no such reservation" },
    { 422, 2057, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "wckey" },
    { 422, 2066, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "QOS" },
    { 422, 2069, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "processor count" },
    { 422, 2070, 'P', ON_SUBMIT, ERRORS, SLURM_BUSY, YES, "the partition is not available" },
    { 422, 2072, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "gres" },
    { 422, 2081, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "array" },
    { 422, 2099, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "MCS label" },
    { 422, 2101, 'P', ON_SUBMIT, ERRORS, SLURM_BUSY, YES, "the partition is down" },
    { 422, 2105, 'P', ON_SUBMIT, ERRORS, SLURM_BUSY, YES, "submissions are switched off" },
    { 422, 2115, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "tres" },
    { 422, 2119, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "gres type" },
    { 422, 2127, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "environment missing" },
    { 422, 2130, 'P', ON_SUBMIT, ERRORS, SLURM_FORBIDDEN, YES, "the partition is not for this association" },
    { 422, 2133, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "preferred features" },
    { 422, 2163, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "group" },
    { 422, 2164, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "unknown group" },
    { 422, 2165, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "user" },
    { 422, 2166, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "unknown user" },
    { 422, 2171, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "extra" },
    { 500, 2189, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "an external job has no script" },
    { 422, 8000, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "time limit missing" },
    { 422, 9000, 'P', ON_SUBMIT, ERRORS, SLURM_INVALID, YES, "script missing" },

    /* what is left of 422 is about the request, but is no proof that nothing was done */
    { 422, ANY, '*', 0, ERRORS, SLURM_INVALID, NO, "refused" },

    /* a proxy before slurmrestd that limits rates */
    { 429, ANY, '*', 0, 0, SLURM_UNAVAILABLE, YES, "too many requests" },

    /* answers that are none: nothing follows from them */
    { 504, ANY, 'r', 0, 0, SLURM_TIMEOUT, YES, "no answer in time" },
    { 200, ANY, 'r', 0, TEXT, SLURM_UNAVAILABLE, YES, "the answer is not JSON" },
    { 200, ANY, 'w', 0, TEXT, SLURM_UNKNOWN, NO, "the answer is not JSON" },
    { 200, ANY, 'r', 0, BROKEN, SLURM_UNAVAILABLE, YES, "the answer is cut off or cannot be read" },
    { 200, ANY, 'w', 0, BROKEN, SLURM_UNKNOWN, NO, "the answer is cut off or cannot be read" },
    { 200, ANY, 'r', 0, ERRORS, SLURM_UNAVAILABLE, YES, "an answer with errors" },
    { 200, ANY, 'w', 0, ERRORS, SLURM_UNKNOWN, NO, "an answer with errors" },
    { 200, ANY, 'r', 0, SLURM_FACT_NO_ARRAY, SLURM_UNAVAILABLE, YES, "the answer does not hold what was asked for" },
    { 200, ANY, 'G', ON_JOB | SLURM_ON(SLURM_NODE) | SLURM_ON(SLURM_PARTITION) | SLURM_ON(SLURM_RESERVATION),
      SLURM_FACT_EMPTY, SLURM_UNAVAILABLE, YES, "an empty answer about one object" },
    { 200, ANY, 'D', SLURM_ON(SLURM_JOB), SLURM_FACT_STATUS, SLURM_UNKNOWN, NO, "not cancelled" },
    { 200, ANY, 'P', ON_SUBMIT, SLURM_FACT_NO_JOB_ID, SLURM_UNKNOWN, NO, "an answer without a job id" },

    { 200, ANY, '*', 0, 0, SLURM_DONE, NO, "done" },
    { 0, ANY, 'r', 0, 0, SLURM_UNAVAILABLE, YES, "an answer that is not understood" },
    { 0, ANY, 'w', 0, 0, SLURM_UNKNOWN, NO, "an answer that is not understood" },
};

/* A call that got no answer (io/http.h says what each means). */
static const struct {
    enum err_class why;
    enum slurm_class read, write;
    bool unsent;
} failures[] = {
    { ERR_UNAVAILABLE, SLURM_UNAVAILABLE, SLURM_UNAVAILABLE, true },
    { ERR_TIMEOUT, SLURM_TIMEOUT, SLURM_TIMEOUT, true },
    { ERR_DENIED, SLURM_AUTH, SLURM_AUTH, true },
    { ERR_INVALID, SLURM_INVALID, SLURM_INVALID, true },
    { ERR_SYSTEM, SLURM_UNAVAILABLE, SLURM_UNAVAILABLE, true },
    { ERR_TOO_BIG, SLURM_INVALID, SLURM_UNKNOWN, false }, /* a read would be as big again */
    { ERR_UNKNOWN, SLURM_UNAVAILABLE, SLURM_UNKNOWN, false },
};

static const struct {
    const char *name;
    int err; /* enum err_class; 0: no error */
} classes[SLURM_CLASSES] = {
    [SLURM_DONE] = { "done", 0 },
    [SLURM_NOT_MODIFIED] = { "not modified", 0 },
    [SLURM_NOT_FOUND] = { "not found", ERR_NOT_FOUND },
    [SLURM_EXISTS] = { "exists", ERR_EXISTS },
    [SLURM_BUSY] = { "busy", ERR_CONFLICT },
    [SLURM_AUTH] = { "not authenticated", ERR_DENIED },
    [SLURM_FORBIDDEN] = { "forbidden", ERR_DENIED },
    [SLURM_INVALID] = { "invalid", ERR_INVALID },
    [SLURM_UNKNOWN_NODE] = { "unknown node", ERR_CONFLICT },
    [SLURM_UNSATISFIABLE] = { "unsatisfiable", ERR_INVALID },
    [SLURM_NOT_SUPPORTED] = { "not supported", ERR_INVALID },
    [SLURM_UNAVAILABLE] = { "unavailable", ERR_UNAVAILABLE },
    [SLURM_TIMEOUT] = { "timeout", ERR_TIMEOUT },
    [SLURM_UNKNOWN] = { "unknown", ERR_UNKNOWN },
};
/* clang-format on */

const char *slurm_class_name(enum slurm_class class)
{
    return (unsigned)class < SLURM_CLASSES ? classes[class].name : "no class";
}

const struct slurm_situation *slurm_situations(size_t *ret_count)
{
    *ret_count = sizeof(situations) / sizeof(situations[0]);
    return situations;
}

/* ---- what can be seen ---- */

static bool is_json(const char *content_type)
{
    struct str type = str_of(content_type), before, after;

    if (str_cut(type, ';', &before, &after))
        type = before;
    return str_is(str_trim(type), "application/json");
}

static const struct json *first(const struct json *body, const char *array)
{
    return json_item(json_get(body, array), 0);
}

static bool is_unchanged(const struct json *body)
{
    const struct json *last_update = json_get(body, "last_update");

    return json_is_object(last_update) && json_i64_or(json_get(last_update, "number"), 1) == 0;
}

static bool wants_job_id(enum slurm_endpoint endpoint)
{
    return endpoint == SLURM_JOB_SUBMIT || endpoint == SLURM_JOB_ALLOCATE;
}

static unsigned facts_of(const struct slurm_reply *reply)
{
    const char *name = slurm_endpoint(reply->endpoint)->array;
    const struct json *body = reply->body, *array = name ? json_get(body, name) : NULL;
    unsigned facts = 0;

    if (!is_json(reply->content_type))
        return SLURM_FACT_TEXT;
    if (!json_is_object(body))
        return SLURM_FACT_BROKEN;
    if (json_len(json_get(body, "errors")) > 0)
        facts |= SLURM_FACT_ERRORS;
    if (json_len(json_get(body, "warnings")) > 0)
        facts |= SLURM_FACT_WARNINGS;
    if (name && !json_is_array(array) && !json_is_object(array))
        facts |= SLURM_FACT_NO_ARRAY;
    if (json_is_array(array) && json_len(array) == 0)
        facts |= SLURM_FACT_EMPTY;
    if (is_unchanged(body))
        facts |= SLURM_FACT_UNCHANGED;
    if (json_i64_or(json_at(first(body, "status"), "error", "code"), 0) != 0)
        facts |= SLURM_FACT_STATUS;
    if (wants_job_id(reply->endpoint) && json_i64_or(json_get(body, "job_id"), 0) <= 0)
        facts |= SLURM_FACT_NO_JOB_ID;
    return facts;
}

static int number_of(const struct slurm_reply *reply, unsigned facts)
{
    const struct json *value = NULL;

    if (facts & SLURM_FACT_ERRORS)
        value = json_get(first(reply->body, "errors"), "error_number");
    else if (facts & SLURM_FACT_STATUS)
        value = json_at(first(reply->body, "status"), "error", "code");
    int64_t number = json_i64_or(value, 0);

    return number > INT32_MIN && number <= INT32_MAX ? (int)number : 0;
}

/* ---- which row ---- */

static bool verb_fits(char wanted, enum slurm_verb verb, enum slurm_endpoint endpoint)
{
    switch (wanted) {
    case 'r':
        return !slurm_is_write(verb, endpoint);
    case 'w':
        return slurm_is_write(verb, endpoint);
    case 'G':
        return verb == SLURM_GET;
    case 'P':
        return verb == SLURM_POST;
    case 'D':
        return verb == SLURM_DELETE;
    default:
        return true;
    }
}

/* A 500 before 26.05 may be a refusal or a fault: the number tells. */
static bool status_fits(const struct slurm_situation *row, int status)
{
    return row->status == 0 || row->status == status ||
           (row->status == 422 && row->number != ANY && status == 500);
}

static bool fits(const struct slurm_situation *row, const struct slurm_reply *reply, unsigned facts,
                 int number)
{
    return status_fits(row, reply->status) && (row->number == ANY || row->number == number) &&
           verb_fits(row->verb, reply->verb, reply->endpoint) &&
           (row->endpoints == 0 || row->endpoints & SLURM_ON(reply->endpoint)) &&
           (row->facts & facts) == row->facts;
}

static const struct slurm_situation *find(const struct slurm_reply *reply, unsigned facts,
                                          int number)
{
    const struct slurm_situation *row = situations;

    while (!fits(row, reply, facts, number)) /* the last two rows take everything */
        row++;
    return row;
}

/* ---- in words ---- */

static void add_part(char *text, size_t size, struct str words)
{
    if (words.len == 0 || str_is(words, "No error"))
        return;
    if (text[0])
        http_add_words(text, size - 2,
                       STR(":")); /* what follows is worth more than its last byte */
    if (text[0] && strlen(text) + 1 < size) {
        size_t length = strlen(text);

        text[length] = ' ';
        text[length + 1] = '\0';
    }
    http_add_words(text, size, words);
}

/* Slurm's own words where it has some: what it was doing, what is wrong, what a plugin says. */
static void describe(const struct slurm_reply *reply, unsigned facts,
                     const struct slurm_situation *row, struct slurm_error *error)
{
    const struct json *told = first(reply->body, "errors");

    if (facts & SLURM_FACT_ERRORS) {
        add_part(error->text, sizeof(error->text), json_str(json_get(told, "description")));
        add_part(error->text, sizeof(error->text), json_str(json_get(told, "error")));
        add_part(error->text, sizeof(error->text),
                 json_str(json_get(reply->body, "job_submit_user_msg")));
    } else if (facts & SLURM_FACT_STATUS) {
        add_part(error->text, sizeof(error->text),
                 json_str(json_at(first(reply->body, "status"), "error", "message")));
    } else if (facts & SLURM_FACT_TEXT) {
        add_part(error->text, sizeof(error->text), str_sub(reply->raw, 0, 100));
    }
    if (error->text[0] == '\0')
        snprintf(error->text, sizeof(error->text), "%s", row->words);
}

void slurm_classify(const struct slurm_reply *reply, struct slurm_error *ret_error)
{
    unsigned facts = facts_of(reply);
    int number = number_of(reply, facts);
    const struct slurm_situation *row = find(reply, facts, number);

    *ret_error = (struct slurm_error){
        .class = row->class,
        .http = reply->status,
        .number = number,
        .nothing_done = row->nothing_done,
    };
    if (row->class != SLURM_DONE && row->class != SLURM_NOT_MODIFIED)
        describe(reply, facts, row, ret_error);
}

void slurm_classify_failure(enum slurm_verb verb, enum slurm_endpoint endpoint,
                            const struct err *why, struct slurm_error *ret_error)
{
    bool write = slurm_is_write(verb, endpoint);

    *ret_error = (struct slurm_error){ .class = write ? SLURM_UNKNOWN : SLURM_UNAVAILABLE,
                                       .nothing_done = !write };
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
        if ((int)failures[i].why == why->class) {
            ret_error->class = write ? failures[i].write : failures[i].read;
            ret_error->unsent = failures[i].unsent;
            ret_error->nothing_done = !write || failures[i].unsent;
        }
    snprintf(ret_error->text, sizeof(ret_error->text), "%s", why->text);
}

void slurm_classify_status(const struct json *status, struct slurm_error *ret_error)
{
    int64_t number = json_i64_or(json_at(status, "error", "code"), -1);
    struct slurm_reply reply = {
        SLURM_DELETE, SLURM_JOB, 200, "application/json", NULL, { "", 0 }
    };
    const struct slurm_situation *row;

    if (number < 0 || number > INT32_MAX) /* no code at all: it was not understood */
        number = -1;
    row = find(&reply, number == 0 ? 0 : SLURM_FACT_STATUS, (int)number);
    *ret_error = (struct slurm_error){
        .class = row->class, .http = 200, .number = (int)number, .nothing_done = row->nothing_done
    };
    if (row->class == SLURM_DONE)
        return;
    add_part(ret_error->text, sizeof(ret_error->text),
             json_str(json_at(status, "error", "message")));
    if (ret_error->text[0] == '\0')
        snprintf(ret_error->text, sizeof(ret_error->text), "%s", row->words);
}

int slurm_error_to_err(const struct slurm_error *error, struct err *err)
{
    int class = classes[error->class].err;

    if (class == 0)
        return 0;
    if (error->number != 0)
        return err_set(err, (enum err_class) class, "%s (Slurm error %d)", error->text,
                       error->number);
    return err_set(err, (enum err_class) class, "%s", error->text);
}
