/* checks.c - runs a program's table of checks, and tells what changed. */
#include "engine/checks.h"

#include "base/log.h"
#include "base/mem.h"
#include "codec/json.h"
#include "engine/health.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    FIRST_US = 5 * SECOND_US, /* and while something is not known */
    PERIOD_US = 30 * SECOND_US,
    MAX_ALL = 64 << 10,
};

struct checks {
    struct loop *loop;
    const struct check *table;
    size_t count;
    void (*look)(void *context, struct checks *checks);
    void *context;
    struct loop_timer timer;
    bool all_known;
    struct check_finding *last;
};

void check_find(struct check_finding *finding, enum check_result result, const char *fix,
                const char *format, ...)
{
    va_list args;

    finding->result = result;
    (void)snprintf(finding->fix, sizeof(finding->fix), "%s", fix);
    va_start(args, format);
    (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
    va_end(args);
}

struct checks *checks_new(struct loop *loop, const struct check *table, size_t count,
                          void (*look)(void *context, struct checks *checks), void *context)
{
    struct checks *checks = mem_alloc(sizeof(*checks));

    *checks = (struct checks){ .loop = loop,
                               .table = table,
                               .count = count,
                               .look = look,
                               .context = context,
                               .last = mem_alloc_array(count, sizeof(*checks->last)) };
    return checks;
}

static void tell(const char *name, const struct check_finding *finding)
{
    if (finding->result == CHECK_GOOD)
        log_info("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what));
    else if (finding->result == CHECK_WARNS)
        log_warn("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what),
                 LOG_TEXT("fix", finding->fix));
    else if (finding->result == CHECK_BAD)
        log_error("check", LOG_TEXT("of", name), LOG_TEXT("found", finding->what),
                  LOG_TEXT("fix", finding->fix));
}

void checks_run(struct checks *checks, const struct check_facts *facts)
{
    checks->all_known = true;
    for (size_t i = 0; i < checks->count; i++) {
        struct check_finding finding = { .result = CHECK_UNKNOWN };

        checks->table[i].run(facts, &finding);
        if (finding.result != checks->last[i].result)
            tell(checks->table[i].name, &finding);
        checks->last[i] = finding;
        checks->all_known = checks->all_known && finding.result != CHECK_UNKNOWN;
    }
}

static void look(void *context)
{
    struct checks *checks = context;

    checks->look(checks->context, checks);
    loop_timer_start(checks->loop, &checks->timer, checks->all_known ? PERIOD_US : FIRST_US, look,
                     checks);
}

void checks_start(struct checks *checks)
{
    loop_timer_start(checks->loop, &checks->timer, FIRST_US, look, checks);
}

static void write_all(void *context, struct buf *out)
{
    static const char *const results[] = { [CHECK_UNKNOWN] = "unknown",
                                           [CHECK_GOOD] = "good",
                                           [CHECK_WARNS] = "warns",
                                           [CHECK_BAD] = "bad" };
    const struct checks *checks = context;

    for (size_t i = 0; i < checks->count; i++) {
        buf_printf(out, "%s{\"name\":", i == 0 ? "[" : ",");
        json_escape(out, str_of(checks->table[i].name));
        buf_printf(out, ",\"result\":\"%s\",\"what\":", results[checks->last[i].result]);
        json_escape(out, str_of(checks->last[i].what));
        buf_add_text(out, ",\"fix\":");
        json_escape(out, str_of(checks->last[i].fix));
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

void checks_add_health(struct checks *checks, struct health *health)
{
    health_show(health, "checks", write_all, checks);
}

void checks_serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    auto_buf struct buf out = { .max = MAX_ALL };

    (void)view;
    buf_add_text(&out, "{\"checks\":");
    write_all(context, &out);
    buf_add_char(&out, '}');
    http_respond_json(responder, 200, buf_str(&out));
}

void checks_free(struct checks *checks)
{
    if (!checks)
        return;
    loop_timer_stop(&checks->timer);
    mem_free(checks->last);
    mem_free(checks);
}
