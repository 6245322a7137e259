/* replica_page.c - reads a page of one of our own processes. */
#include "cmd/replica_page.h"

#include "cli/replica.h"
#include "kube/guard.h"

#include <stdio.h>

enum { TOKEN_LIFE_S = 600 }; /* the least that the API server gives */

static const struct kube_resource accounts = { "", "v1", "serviceaccounts", "ServiceAccount",
                                               true };

/* The token is in *ret_fetch, or why there is none. */
static void make_token(struct terminal *terminal, const char *ns, const char *account,
                       int64_t timeout_us, struct fetch *ret_fetch)
{
    const char *body = arena_printf(
        &terminal->arena,
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\",\"spec\":"
        "{\"audiences\":[\"" ACCESS_AUDIENCE "\"],\"expirationSeconds\":%d}}",
        TOKEN_LIFE_S);

    *ret_fetch = (struct fetch){ .request = { .verb = KUBE_CREATE,
                                              .resource = &accounts,
                                              .ns = ns,
                                              .name = account,
                                              .subresource = "token",
                                              .body = str_of(body),
                                              .timeout_us = timeout_us },
                                 .role = account };
    terminal_fetch(terminal, ret_fetch, 1);
}

static bool needs_token(const struct json *pod, const char *path)
{
    return str_starts(str_of(path), STR("/debug/")) ||
           (replica_is_secure(pod) && !str_is(str_of(path), "/version"));
}

void replica_page_read(struct terminal *terminal, const struct json *pod, const char *path,
                       int64_t timeout_us, struct fetch *ret_fetch)
{
    const char *ns = arena_printf(&terminal->arena, STR_FMT,
                                  STR_ARG(json_str(json_at(pod, "metadata", "namespace"))));
    const char *account =
        arena_printf(&terminal->arena, STR_FMT "-debug",
                     STR_ARG(json_str(json_at(pod, "spec", "serviceAccountName"))));
    struct fetch token = { .path = NULL };

    if (needs_token(pod, path))
        make_token(terminal, ns, account, timeout_us, &token);
    if (token.status != 0 && !token.doc && token.status != 404) {
        *ret_fetch = token;
        return;
    }
    *ret_fetch = (struct fetch){ .request = { .verb = KUBE_GET,
                                              .resource = &kube_pods,
                                              .ns = ns,
                                              .subresource = "proxy",
                                              .timeout_us = timeout_us },
                                 .role = account,
                                 .path = replica_path(&terminal->arena, pod, path) };
    if (token.doc) {
        ret_fetch->header_name = GUARD_TOKEN;
        ret_fetch->header_value =
            arena_printf(&terminal->arena, STR_FMT,
                         STR_ARG(json_str(json_at(fetch_root(&token), "status", "token"))));
    }
    terminal_fetch(terminal, ret_fetch, 1);
    if (token.status == 404 && ret_fetch->status == 401)
        (void)snprintf(ret_fetch->message, sizeof(ret_fetch->message),
                       "there is no ServiceAccount %s in namespace %s, by which it could be asked",
                       account, ns);
    fetch_done(&token, 1);
}
