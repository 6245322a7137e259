/* replica_page.h - reads a page of one of our own processes, through the proxy of the API server.
 *
 * A page that needs a right is asked for with a token of the account NAME-debug that the charts
 * make beside the process's own account NAME. It is made for our audience, by TokenRequest: what
 * the user is to Kubernetes (a certificate, a token, a program) does not matter, and nothing of it
 * reaches the pod. */
#ifndef SLINC_CMD_REPLICA_PAGE_H
#define SLINC_CMD_REPLICA_PAGE_H

#include "cmd/terminal.h"

/* ret_fetch is freed by the caller; terminal_lacks says of it what was missing. */
void replica_page_read(struct terminal *terminal, const struct json *pod, const char *path,
                       int64_t timeout_us, struct fetch *ret_fetch);

#endif
