/* answer.c - errors by Slurm's number, with slurmrestd's status; numbers; the end of an answer.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "answer.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

enum { MAX_BODY = 64 << 20 };

/* As slurmrestd 26.05 answers: the first row that fits; 500 for all others. */
static const struct {
    int first, last; /* numbers of Slurm */
    int status;
} statuses[] = {
    /* Incompatible versions: slurmctld has taken nothing. slurmrestd may speak its version. */
    { SLURM_PROTOCOL_VERSION_ERROR, SLURM_PROTOCOL_VERSION_ERROR, 501 },
    { SLURM_PROTOCOL_AUTHENTICATION_ERROR, SLURM_PROTOCOL_AUTHENTICATION_ERROR, 511 },
    { 1800, 1899, 502 },
    { SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT, SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT, 504 },
    { ESLURM_INVALID_JOB_ID, ESLURM_INVALID_JOB_ID, 404 },
    { ESLURM_INVALID_EXTERNAL_JOB, ESLURM_INVALID_EXTERNAL_JOB, 500 },
    { 2000, 2999, 422 },
    { 8000, 9999, 422 },
};

static int status_of(int number)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (number >= statuses[i].first && number <= statuses[i].last)
            return statuses[i].status;
    return 500;
}

void agent_answer_init(struct agent_answer *answer)
{
    *answer = (struct agent_answer){ .status = 200, .build = json_build_new() };
    answer->root = json_new_object(answer->build);
    buf_init(&answer->body, MAX_BODY);
}

void agent_answer_done(struct agent_answer *answer)
{
    json_build_free(answer->build);
    buf_done(&answer->body);
}

static void add_error(struct agent_answer *answer, int number, const char *error,
                      const char *description)
{
    struct json_mut *errors = json_mut_get(answer->root, STR("errors"));
    struct json_mut *one = json_new_object(answer->build);

    if (!errors)
        errors = json_put_array(answer->build, answer->root, "errors");
    json_put_text(answer->build, one, "description", description);
    json_put_i64(answer->build, one, "error_number", number);
    json_put_text(answer->build, one, "error", error);
    json_put_text(answer->build, one, "source", "slinc-agent");
    json_push(errors, one);
}

void agent_answer_error(struct agent_answer *answer, int number, const char *call)
{
    answer->status = status_of(number);
    add_error(answer, number, slurm_strerror(number), call);
}

void agent_answer_cannot(struct agent_answer *answer, const char *why)
{
    answer->status = 501;
    add_error(answer, 0, "the agent cannot do this", why);
}

void agent_answer_warn(struct agent_answer *answer, int number, const char *call)
{
    struct json_mut *warnings = json_put_array(answer->build, answer->root, "warnings");
    struct json_mut *one = json_new_object(answer->build);

    json_put_text(answer->build, one, "description", slurm_strerror(number));
    json_put_text(answer->build, one, "source", call);
    json_push(warnings, one);
}

void agent_answer_finish(struct agent_answer *answer)
{
    if (!json_mut_get(answer->root, STR("errors")))
        json_put_array(answer->build, answer->root, "errors");
    if (!json_mut_get(answer->root, STR("warnings")))
        json_put_array(answer->build, answer->root, "warnings");
    json_mut_write(answer->root, &answer->body);
}

void agent_put_number(struct agent_answer *answer, struct json_mut *object, const char *key,
                      uint64_t number, unsigned bits)
{
    struct json_mut *wrapped = json_put_object(answer->build, object, key);
    uint64_t top = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    bool is_infinite = number == top, is_unset = number == top - 1;

    json_put_bool(answer->build, wrapped, "set", !is_infinite && !is_unset);
    json_put_bool(answer->build, wrapped, "infinite", is_infinite);
    json_put_u64(answer->build, wrapped, "number", is_infinite || is_unset ? 0 : number);
}

/* Crockford's base 32, the most significant digit first. */
static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

uint64_t sluid_read(struct str text)
{
    uint64_t sluid = 0;

    if (text.len != SLUID_TEXT - 1 || text.at[0] != 's')
        return 0;
    for (size_t i = 1; i < text.len; i++) {
        const char *digit = text.at[i] ? strchr(digits, text.at[i]) : NULL;

        if (!digit || sluid >> 59 != 0)
            return 0;
        sluid = sluid << 5 | (uint64_t)(digit - digits);
    }
    return sluid;
}

void sluid_write(uint64_t sluid, char ret_text[SLUID_TEXT])
{
    ret_text[0] = '\0';
    if (sluid == 0)
        return;
    ret_text[0] = 's';
    for (unsigned i = 0; i < SLUID_TEXT - 2; i++)
        ret_text[i + 1] = digits[sluid >> (5 * (SLUID_TEXT - 3 - i)) & 31];
    ret_text[SLUID_TEXT - 1] = '\0';
}
