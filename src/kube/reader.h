/* reader.h - keeps a cache true for objects that are read by name: nothing is listed or watched, so
 * that the right to get an object suffices.
 *
 * The names are those that a plan looks up in the cache between kube_reader_begin and
 * kube_reader_end. Each is read by a GET, and again every few seconds while somebody's last plan
 * looked it up. What was not read yet is not known to be absent: kube_reader_end says so, and the
 * plan must be dropped. A read that fails changes nothing. Names that nobody looks up any more
 * leave the cache. */
#ifndef SLINC_KUBE_READER_H
#define SLINC_KUBE_READER_H

#include "base/rand.h"
#include "kube/cache.h"
#include "kube/client.h"

enum { KUBE_READER_MAX_NAMES = 1 << 16 };

struct kube_reader_options {
    int64_t refresh_us; /* between two reads of a name; 0 = 10 s. Hundreds are read less often */
    int64_t absent_us;  /* the same while there is no such object; 0 = 2 s */
    /* All names that this one waited for are read now, or cannot be. */
    void (*is_read)(void *context, struct str who);
    void *context;
};

enum kube_known {
    KUBE_KNOWN,        /* every name was read */
    KUBE_NOT_READ_YET, /* is_read is called */
    KUBE_UNREADABLE,   /* err says why; it is tried again, and is_read called when it goes well */
};

struct kube_reader;

/* All are borrowed and must outlive it. The cache has no informer; it counts as synced. */
struct kube_reader *kube_reader_new(struct kube_client *client, struct kube_cache *cache,
                                    struct rand *rand, const struct kube_reader_options *options);
void kube_reader_free(struct kube_reader *reader);

/* Names that are looked up from here to kube_reader_end are those of `who`, instead of those of
 * the last time. Both take NULL: then everything is known. */
void kube_reader_begin(struct kube_reader *reader, struct str who);
enum kube_known kube_reader_end(struct kube_reader *reader, struct err *err);

/* Forgets all names, and what the cache has of them. */
void kube_reader_forget(struct kube_reader *reader);

/* As of an informer. */
int64_t kube_reader_last_contact_us(const struct kube_reader *reader);
const char *kube_reader_last_error(const struct kube_reader *reader); /* "" when well */
uint64_t kube_reader_undecoded(const struct kube_reader *reader);

#endif
