/* libslurm_hidden.h - what libslurm exports, or means by its public header, and has in no header.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SLINC_AGENT_LIBSLURM_HIDDEN_H
#define SLINC_AGENT_LIBSLURM_HIDDEN_H

#include <signal.h>
#include <slurm/slurm.h>

#define SLURM_AUTH_NOBODY 99 /* in KILL_JOB_MSG_INITIALIZER: of any user */

extern const char *slurm_job_state_reason_string(enum job_state_reason reason);
extern char *slurm_bit_fmt(char *text, int32_t size, bitstr_t *bits);
extern void slurm_free_resource_layout_msg(void *layout);
extern void slurm_free_kill_jobs_response_msg(kill_jobs_resp_msg_t *response);
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *response);

#endif
