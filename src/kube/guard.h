/* guard.h - routes of a server that answer only those who may: access.h judges who asks, for the
 * verb get and the path of the request (a nonResourceURL of RBAC).
 *
 * The proxy of the API server takes the header Authorization away, so a token may come in
 * GUARD_TOKEN instead. There only a token counts that is made for ACCESS_AUDIENCE: it is good for
 * nothing else, whoever sees it on its way. */
#ifndef SLINC_KUBE_GUARD_H
#define SLINC_KUBE_GUARD_H

#include "kube/access.h"

#define GUARD_TOKEN "X-Slinc-Token"

enum { GUARD_ROUTES = 32 };

struct guard;

/* The client is borrowed. */
struct guard *guard_new(struct kube_client *client);
void guard_free(struct guard *guard); /* takes NULL; before the server. Who waits gets 503 */

/* The same route, behind the guard; GUARD_ROUTES at most. GET and HEAD are let through. What the
 * route is handed is a copy without headers and body. */
struct http_route guard_route(struct guard *guard, struct http_route route);

#endif
