/* checks.h - what is wrong with a site, looked for again and again while a program runs.
 *
 * A program has a table of checks: a name, and a pure function from its facts to a finding. A
 * finding is told once, and again when its result changes; one that is bad says what mends it. */
#ifndef SLINC_ENGINE_CHECKS_H
#define SLINC_ENGINE_CHECKS_H

#include "io/http_server.h"
#include "io/loop.h"

#include <stddef.h>

enum check_result { CHECK_UNKNOWN, CHECK_GOOD, CHECK_WARNS, CHECK_BAD };

struct check_finding {
    enum check_result result;
    char what[256]; /* what was found */
    char fix[320];  /* what to do about it; "" when good */
};

struct check_facts; /* the program's own */

struct check {
    const char *name;
    void (*run)(const struct check_facts *facts, struct check_finding *ret_finding);
};

/* fix: what to do about it; "" when it is good. */
__attribute__((format(printf, 4, 5))) void check_find(struct check_finding *finding,
                                                      enum check_result result, const char *fix,
                                                      const char *format, ...);

struct checks;

/* `look` gathers the facts and hands them to checks_run. The table is borrowed. */
struct checks *checks_new(struct loop *loop, const struct check *table, size_t count,
                          void (*look)(void *context, struct checks *checks), void *context);
void checks_run(struct checks *checks, const struct check_facts *facts);
void checks_start(struct checks *checks);
void checks_free(struct checks *checks); /* before the context */

/* What was found last, as the part "checks" of /debug/state: for `slinc doctor`. */
struct health;
void checks_add_health(struct checks *checks, struct health *health);

/* GET /debug/checks: the same alone, {"checks": [...]}; context is the checks. */
void checks_serve(void *context, const struct http_view *view, struct http_responder *responder);

#endif
