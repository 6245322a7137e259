/* answer.h - the answers of the agent: JSON as slurmrestd writes it, and its statuses.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_ANSWER_H
#define SLINC_AGENT_ANSWER_H

#include "base/buf.h"
#include "codec/json.h"

struct agent_answer {
    int status;
    struct buf body;
    struct json_build *build;
    struct json_mut *root; /* an object */
};

void agent_answer_init(struct agent_answer *answer); /* 200 and {} */
void agent_answer_done(struct agent_answer *answer);

/* One error of Slurm by its number, with the status that slurmrestd gives it. call: what was asked
 * of libslurm. */
void agent_answer_error(struct agent_answer *answer, int number, const char *call);
/* 501: the agent has done nothing, and cannot do this. */
void agent_answer_cannot(struct agent_answer *answer, const char *why);

/* What Slurm says of something that it did: it is done all the same. */
void agent_answer_warn(struct agent_answer *answer, int number, const char *call);

/* Ends the answer: errors and warnings are there, and the body is written. */
void agent_answer_finish(struct agent_answer *answer);

/* {"set":..,"infinite":..,"number":..} by the two highest numbers of the width. */
void agent_put_number(struct agent_answer *answer, struct json_mut *object, const char *key,
                      uint64_t number, unsigned bits);
/* Slurm's own way to write the number that makes a job unique: "s" and 13 letters and digits. */
enum { SLUID_TEXT = 15 };
void sluid_write(uint64_t sluid, char ret_text[SLUID_TEXT]);
uint64_t sluid_read(struct str text); /* 0: it is none */

#endif
