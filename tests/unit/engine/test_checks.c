/* test_checks.c - a table of checks is run again and again, and what was found last is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/json.h"
#include "engine/checks.h"
#include "engine/health.h"
#include "engine/metrics.h"

#include <string.h>

enum { SECOND = 1000000 };

struct check_facts {
    int degrees; /* 0: not known */
};

static void check_weather(const struct check_facts *facts, struct check_finding *finding)
{
    if (facts->degrees > 30)
        check_find(finding, CHECK_BAD, "open a \"window\"", "%d degrees", facts->degrees);
    else if (facts->degrees > 0)
        check_find(finding, CHECK_GOOD, "", "%d degrees", facts->degrees);
}

static const struct check table[] = { { "weather", check_weather } };

struct site {
    struct clock clock;
    struct loop *loop;
    struct checks *checks;
    struct check_facts facts;
    int looks;
};

static void look(void *context, struct checks *checks)
{
    struct site *site = context;

    site->looks++;
    checks_run(checks, &site->facts);
}

static void set_up(struct site *site, int degrees)
{
    *site = (struct site){ .facts = { .degrees = degrees } };
    clock_init_virtual(&site->clock, INT64_C(1700000000000000));
    site->loop = loop_new_virtual(&site->clock);
    site->checks = checks_new(site->loop, table, 1, look, site);
    checks_start(site->checks);
}

static void tear_down(struct site *site)
{
    checks_free(site->checks);
    loop_free(site->loop);
}

static void pass(struct site *site, int64_t seconds)
{
    int64_t until_us = loop_now_us(site->loop) + seconds * SECOND;

    while (loop_now_us(site->loop) < until_us && loop_step(site->loop))
        ;
}

static void what_is_not_known_is_looked_at_again_soon(void **state)
{
    struct site site;

    (void)state;
    set_up(&site, 0);
    pass(&site, 15);
    assert_int_equal(site.looks, 3);
    site.facts.degrees = 20;
    pass(&site, 5);
    assert_int_equal(site.looks, 4);
    pass(&site, 30);
    assert_int_equal(site.looks, 5);
    tear_down(&site);
}

static const struct json *shown(struct health *health, struct buf *text, struct json_doc **ret_doc)
{
    buf_clear(text);
    health_write_state(health, text);
    assert_int_equal(json_parse(buf_str(text), 100000, ret_doc, NULL), 0);
    return json_item(json_get(json_root(*ret_doc), "checks"), 0);
}

static void the_last_finding_is_shown_with_what_mends_it(void **state)
{
    struct site site;
    struct metrics *metrics;
    struct health *health;
    auto_buf struct buf text;
    auto_json_doc struct json_doc *before = NULL, *after = NULL;
    const struct json *one;

    (void)state;
    set_up(&site, 0);
    buf_init(&text, 100000);
    metrics = metrics_new();
    health = health_new(site.loop, metrics, NULL);
    checks_add_health(site.checks, health);
    one = shown(health, &text, &before);
    assert_true(str_is(json_str(json_get(one, "name")), "weather"));
    assert_true(str_is(json_str(json_get(one, "result")), "unknown"));
    site.facts.degrees = 35;
    pass(&site, 5);
    one = shown(health, &text, &after);
    assert_true(str_is(json_str(json_get(one, "result")), "bad"));
    assert_true(str_is(json_str(json_get(one, "what")), "35 degrees"));
    assert_true(str_is(json_str(json_get(one, "fix")), "open a \"window\""));
    health_free(health);
    metrics_free(metrics);
    tear_down(&site);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_is_looked_at_again_soon),
        cmocka_unit_test(the_last_finding_is_shown_with_what_mends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
