/* agent.h - the agent: a second address, beside slurmrestd, of the same Slurm.
 *
 * slinc-agent answers some calls of slurmrestd by libslurm, over a unix socket, and two that
 * slurmrestd does not have. Which ones stands in the table of endpoints. The client prefers the
 * agent while the agent's last ping was good and slurmrestd speaks the version that the agent
 * does. All else goes to slurmrestd as if there were no agent:
 *
 *   501, 503        nothing was done: the same call goes to slurmrestd
 *   not sent        the same
 *   token refused   the same: the agent has a token of its own
 *   no answer, 504  a write is unresolved, as with slurmrestd; a read is repeated
 *
 * After a call without an answer nothing is sent to the agent until it has been pinged again.
 *
 * Holds: a write is sent to the second address only on proof that the first did nothing. */
#ifndef SLINC_SLURM_AGENT_H
#define SLINC_SLURM_AGENT_H

#include "slurm/client.h"

struct slurm_agent_status {
    bool is_known;       /* a ping has ended */
    bool is_up;          /* by its last ping */
    const char *why;     /* when it is not up; borrowed until the loop runs */
    const char *version; /* of Slurm, as it says itself; "" while it is not known */
    uint64_t answered;   /* calls that it answered, */
    uint64_t passed_on;  /* that went to slurmrestd after all, */
    uint64_t lost;       /* and that got no answer */
};

/* Once for a client. The transport is borrowed and outlives the client. */
void slurm_client_use_agent(struct slurm_client *client, struct http_transport *transport);

/* False, and nothing is written: the client has none. */
bool slurm_agent_status(const struct slurm_client *client, struct slurm_agent_status *ret_status);
bool slurm_agent_is_up(const struct slurm_client *client);

/* ---- what only the agent answers; without it: UNAVAILABLE, and nothing was done ---- */

/* Ends a job with what happened. wait_status is that of waitpid(2): code << 8, or a signal. A job
 * that has ended already is DONE; another job under this id is NOT_FOUND. */
struct slurm_call *slurm_job_complete(struct slurm_client *client, int64_t id, const char *sluid,
                                      uint32_t wait_status, slurm_done done, void *context);

/* When and where a job would start. body: {"job": description}, or {"job_id": N, "job": fields that
 * would change}. Changes nothing. */
struct slurm_call *slurm_will_run(struct slurm_client *client, struct str body, slurm_done done,
                                  void *context);

#endif
