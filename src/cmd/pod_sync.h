/* pod_sync.h - a token of Slurm that was renewed reaches this pod at once.
 *
 * kubelet brings mounted Secrets up to date when it syncs a pod: every one to two minutes, and when
 * the pod changes. While Slurm refuses the token and its file stays the same, our own pod gets an
 * annotation, the more seldom the longer that lasts. */
#ifndef SLINC_CMD_POD_SYNC_H
#define SLINC_CMD_POD_SYNC_H

#include "kube/client.h"
#include "slurm/token.h"

#define POD_SYNC_ANNOTATION "slinc.slurm.net/token-refused"

struct pod_sync;

/* Client and token are borrowed and outlive it; the names are copied. */
struct pod_sync *pod_sync_new(struct kube_client *client, const struct slurm_token *token,
                              const char *ns, const char *pod);
void pod_sync_free(struct pod_sync *sync); /* takes NULL */

#endif
