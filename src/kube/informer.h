/* informer.h - keeps one cache true: list, then watch, for ever.
 *
 * States: LISTING (paged) -> WATCHING (bookmarks, resumes from the last version it saw) -> on a 410
 * LISTING again, on a broken stream WATCHING again, after a failure WAITING with growing, jittered
 * back-off (0.2 s to 15 s). No event is missed or given twice: listeners of the cache see each
 * change once. Silence longer than idle_us counts as a broken stream.
 *
 * Several namespaces are listed one after the other as one list, and watched at the same time: a
 * broken stream is mended alone, a 410 of any lists all again. What is told of them together is
 * what holds for all: WATCHING when every one is, and the oldest of the last contacts. One that we
 * may not list stops no other: what was seen of it stays, the cache says that it is not readable,
 * last_error names it, and it is tried again every minute. */
#ifndef SLINC_KUBE_INFORMER_H
#define SLINC_KUBE_INFORMER_H

#include "base/rand.h"
#include "kube/cache.h"
#include "kube/client.h"

enum { KUBE_INFORMER_MAX_NAMESPACES = 64 };

enum kube_informer_state { KUBE_IDLE, KUBE_LISTING, KUBE_WATCHING, KUBE_WAITING };

struct kube_informer_options {
    const char *ns; /* NULL or "" = all */
    /* Instead of ns, when there are any: copied, none of them "", at most
     * KUBE_INFORMER_MAX_NAMESPACES. A kind without namespaces ignores them. */
    const char *const *namespaces;
    unsigned namespace_count;
    const char *label_selector, *field_selector;
    unsigned page;     /* objects per page; 0 = 500 */
    int64_t idle_us;   /* 0 = 60 s; bookmarks come about once a minute, so the request asks the
                          server to end the watch before that (timeoutSeconds) */
    size_t max_object; /* bytes of one watch line; 0 = 4 MiB */
};

struct kube_informer;

/* All are borrowed and must outlive it. rand drives jitter. */
struct kube_informer *kube_informer_new(struct kube_client *client, struct kube_cache *cache,
                                        struct rand *rand,
                                        const struct kube_informer_options *options);
void kube_informer_start(struct kube_informer *informer);
void kube_informer_free(struct kube_informer *informer); /* stops it first */

enum kube_informer_state kube_informer_state(const struct kube_informer *informer);
const char *kube_informer_state_name(enum kube_informer_state state);
/* Monotonic time of the last sign of life from the server (list page, event, bookmark), of the
 * namespace that has been silent for longest; 0 = one was never heard. */
int64_t kube_informer_last_contact_us(const struct kube_informer *informer);
const char *kube_informer_last_error(const struct kube_informer *informer); /* "" when well */
/* Objects that could not be decoded: each is left in the cache as it was. */
uint64_t kube_informer_undecoded(const struct kube_informer *informer);

#endif
