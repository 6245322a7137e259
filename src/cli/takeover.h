/* takeover.h - what a switch from the release of another chart would do, read from what Helm says.
 *
 * A release is the JSON that `helm status -o json` and `helm upgrade --dry-run=server -o json`
 * print. The chart itself tells in its notes which values it does not use; what its objects would
 * do is asked elsewhere (cmd/takeover.c). Nothing but names, paths and images is told. */
#ifndef SLINC_CLI_TAKEOVER_H
#define SLINC_CLI_TAKEOVER_H

#include "base/arena.h"
#include "base/buf.h"
#include "codec/json.h"
#include "codec/yaml.h"

struct takeover_release {
    struct json_doc *doc;     /* as Helm printed it */
    struct yaml_docs objects; /* of its manifest */
    struct yaml_docs hooks;
};

/* -ERR_INVALID: it is no release. */
int takeover_read(struct str text, struct takeover_release *ret_release, struct err *err);
void takeover_done(struct takeover_release *release);

struct str takeover_namespace(const struct takeover_release *release);

/* The object of a manifest with this kind and name; NULL: none. */
const struct json *takeover_find(const struct takeover_release *release, struct str kind,
                                 struct str name);

/* A live object as Helm would leave it: with the difference of both manifests. */
struct json_doc *takeover_changed(const struct json *live, const struct json *before,
                                  const struct json *after);

/* ---- the report ---- */

enum takeover_topic {
    TAKEOVER_REFUSED,
    TAKEOVER_ROLLS,
    TAKEOVER_IGNORED,
    TAKEOVER_IMAGES,
    TAKEOVER_CHANGES,
    TAKEOVER_UNKNOWN, /* what could not be looked at */
    TAKEOVER_TOPICS,
};

struct takeover_report {
    struct arena *arena;
    const char *summary; /* which release, from which chart to which */
    struct takeover_line {
        const char *text;
        struct takeover_line *next;
    } *first[TAKEOVER_TOPICS], *last[TAKEOVER_TOPICS];
};

/* The same line is told once. */
void takeover_tell(struct takeover_report *report, enum takeover_topic topic, const char *format,
                   ...) __attribute__((format(printf, 3, 4)));

/* What the releases alone tell: images, ignored values, objects that go. */
void takeover_compare(const struct takeover_release *before, const struct takeover_release *after,
                      struct takeover_report *report);

void takeover_write(const struct takeover_report *report, bool is_json, struct buf *out);

#endif
