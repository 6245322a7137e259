/* admit_rules.h - what is wrong with a custom resource: its state now, the state before, and what
 * the cluster knows of the objects that it names; denials and warnings out. Pure functions.
 *
 * Nothing is wrong with an object that is being deleted. On an update only what changed is checked,
 * so an object that was valid once can always be edited and cleaned up. Every text begins with the
 * path of the field. */
#ifndef SLINC_OPERATOR_ADMIT_RULES_H
#define SLINC_OPERATOR_ADMIT_RULES_H

#include "base/arena.h"
#include "base/buf.h"
#include "codec/json.h"
#include "engine/review_reads.h"

enum { ADMIT_MAX_FINDINGS = 32 };

struct admit_findings {
    struct str at[ADMIT_MAX_FINDINGS];
    unsigned count;
};

struct admit_check {
    const char *kind; /* "NodeSet" */
    struct str uid;   /* of the review */
    struct str ns, name;
    const struct json *object, *old; /* old: NULL when the object is created */
    struct arena *arena;             /* of the texts */
    review_find find;
    void *find_context;
    /* what was found */
    struct admit_findings mistyped; /* values of the wrong type: the object cannot be read */
    struct admit_findings denials, warnings;
    bool is_early; /* an object that it names was not read yet */
};

void admit_check(struct admit_check *check);

/* The rules as rows of a Markdown table. */
void admit_rules_describe(struct buf *out);

/* ---- for the files of rules ---- */

void admit_deny(struct admit_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void admit_warn(struct admit_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* spec.<member>, of the new and of the old object */
const struct json *admit_spec(const struct admit_check *check, const char *member);
const struct json *admit_old_spec(const struct admit_check *check, const char *member);

/* ---- the checks that rows of spec_tables.c name: of a value that is given ---- */

void admit_config_files(struct admit_check *check, const struct json *value);
void admit_lifetime(struct admit_check *check, const struct json *value);
void admit_max_unavailable(struct admit_check *check, const struct json *value);
void admit_start_time(struct admit_check *check, const struct json *value);
void admit_reservation_duration(struct admit_check *check, const struct json *value);
void admit_ssh(struct admit_check *check, const struct json *value);
void admit_extra_conf(struct admit_check *check, const struct json *value);

void admit_hostname(struct admit_check *check);

#endif
