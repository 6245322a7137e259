/* client_private.h - for calls.c: a call that is refused before anything is sent. */
#ifndef SLINC_SLURM_CLIENT_PRIVATE_H
#define SLINC_SLURM_CLIENT_PRIVATE_H

#include "slurm/client.h"

/* Ends as any other call: by its callback, from the loop, with INVALID. */
struct slurm_call *slurm_send_refused(struct slurm_client *client, enum slurm_verb verb,
                                      enum slurm_endpoint endpoint, const struct err *why,
                                      slurm_done done, void *context);

#endif
