/* test_ending.c - which pods still run on a node though Slurm has given their place to others. */
#include "bridge/ending.h"
#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NOW_S = 100, SECOND_US = 1000000 };

struct look {
    struct ending ending;
    unsigned reads; /* of jobs that were wanted */
};

static void count_read(void *context, const struct slurm_job *job)
{
    struct look *look = context;

    assert_non_null(job);
    look->reads++;
}

/* asked_s: of the world's clock; given: YAML of a world, as JSON. */
static struct look look_at(const char *given, const char *node, int64_t asked_s)
{
    struct look look = { .reads = 0 };
    struct small_world small;
    struct json_doc *doc;
    struct err err = { .class = 0 };
    int64_t now_us, since_us;

    if (json_parse(str_of(given), 1 << 16, &doc, &err) < 0)
        fail_msg("%s", err.text);
    small_world_init(&small, json_root(doc));
    now_us = small.world.facts.now_us;
    since_us = now_us - (NOW_S - asked_s) * SECOND_US;
    look.ending = ending_look(&small.world, str_of(node), since_us, count_read, &look);
    small_world_done(&small);
    json_doc_free(doc);
    return look;
}

#define POD(more) "{\"name\":\"a\",\"created\":90,\"node\":\"n1\",\"job\":7,\"running\":1" more "}"
#define WORLD(pod, jobs)                                                                           \
    "{\"pods\":[" pod "],\"nodes\":[{\"name\":\"n1\",\"slurm\":\"w-0\"}],\"jobs\":[" jobs "]}"

static void a_pod_whose_job_slurm_ended_stays_until_its_containers_have_stopped(void **state)
{
    static const struct {
        const char *given;
        unsigned stay;
    } cases[] = {
        { WORLD(POD(""), "{\"id\":7,\"pod\":\"a\",\"state\":\"PREEMPTED\"}"), 1 },
        { WORLD(POD(",\"deleted\":130"), "{\"id\":7,\"pod\":\"a\",\"state\":\"TIMEOUT\"}"), 1 },
        { WORLD(POD(""), "{\"id\":7,\"pod\":\"a\",\"state\":\"PREEMPTED+COMPLETING\"}"), 1 },
        { WORLD(POD(""), ""), 1 }, /* its job is lost: Slurm takes its place for free */
        { WORLD("{\"name\":\"a\",\"created\":90,\"node\":\"n1\",\"job\":7,\"deleted\":130,"
                "\"terminated\":1}",
                "{\"id\":7,\"pod\":\"a\",\"state\":\"PREEMPTED\"}"),
          0 },
        { WORLD(POD(",\"scheduler\":\"other\""), ""), 0 },
        { WORLD("", "{\"id\":7,\"pod\":\"a\",\"state\":\"PREEMPTED\"}"), 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct look look = look_at(cases[i].given, "w-0", 0);

        if (look.ending.stay != cases[i].stay || look.ending.unread != 0)
            fail_msg("case %zu: %u stay, %u unread", i, look.ending.stay, look.ending.unread);
    }
}

static void a_pod_keeps_its_place_only_by_what_was_read_after_the_question(void **state)
{
    static const char given[] = WORLD(
        POD(""), "{\"id\":7,\"pod\":\"a\",\"state\":\"RUNNING\",\"nodes\":\"w-0\",\"read\":95}");
    struct look before = look_at(given, "w-0", 96), after = look_at(given, "w-0", 94);

    (void)state;
    assert_int_equal(before.ending.unread, 1);
    assert_int_equal(before.ending.stay, 0);
    assert_int_equal(before.reads, 1);
    assert_int_equal(after.ending.unread, 0);
    assert_int_equal(after.ending.stay, 0);
    assert_int_equal(after.reads, 0);
}

static void a_job_that_runs_elsewhere_holds_no_place_here(void **state)
{
    static const char given[] = WORLD(
        POD(""), "{\"id\":7,\"pod\":\"a\",\"state\":\"RUNNING\",\"nodes\":\"w-1\",\"read\":99}");

    (void)state;
    assert_int_equal(look_at(given, "w-0", 95).ending.stay, 1);
}

static void a_node_that_is_none_of_ours_has_no_such_pods(void **state)
{
    static const char given[] = WORLD(POD(""), "");

    (void)state;
    assert_int_equal(look_at(given, "w-9", 0).ending.stay, 0);
    assert_int_equal(look_at(given, "", 0).ending.stay, 0);
}

/* A thousand questions while Slurm answers none of them. */
static void however_many_ask_slurm_is_asked_no_more_often(void **state)
{
    struct ending_allowance allowance = { .used = 0 };
    unsigned first = 0, later = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        first += ending_may_read(&allowance, SECOND_US);
    for (unsigned i = 0; i < 1000; i++)
        later += ending_may_read(&allowance, 2 * SECOND_US + i);
    assert_in_range(first, 1, 100);
    assert_int_equal(later, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_whose_job_slurm_ended_stays_until_its_containers_have_stopped),
        cmocka_unit_test(a_pod_keeps_its_place_only_by_what_was_read_after_the_question),
        cmocka_unit_test(a_job_that_runs_elsewhere_holds_no_place_here),
        cmocka_unit_test(a_node_that_is_none_of_ours_has_no_such_pods),
        cmocka_unit_test(however_many_ask_slurm_is_asked_no_more_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
