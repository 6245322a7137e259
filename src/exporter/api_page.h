/* api_page.h - the live page beside the aggregated APIs, for whoever may list (and watch)
 * ui.view.slinky.slurm.net.
 *
 *     /apis/view.slinky.slurm.net/v1alpha1/ui   through the API server, which names the user:
 *                                               `kubectl proxy`, then a browser
 *     /ui/                                      directly: a bearer token, or the cookie that
 *     /ui/login                                 a token got here (POST, token=...)
 *
 * The page itself holds no facts, so everybody gets it directly; what it shows needs the right. */
#ifndef SLINC_EXPORTER_API_PAGE_H
#define SLINC_EXPORTER_API_PAGE_H

#include "exporter/ui.h"
#include "kube/access.h"

enum { API_PAGE_ROUTES = 5 };

struct api_page;

struct api_page *api_page_new(struct access *access, struct ui *ui); /* both borrowed */
void api_page_free(struct api_page *page); /* takes NULL; after the access is freed */
void api_page_routes(struct api_page *page, struct http_route ret_routes[API_PAGE_ROUTES]);

/* Pure: the token of our cookie in a Cookie header, borrowed from it; false when there is none. */
bool api_page_cookie(struct str header, struct str *ret_token);

#endif
