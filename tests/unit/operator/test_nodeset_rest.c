/* test_nodeset_rest.c - how long a NodeSet is left alone after many of its pods were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json_format.h"
#include "desk.h"

static void add(struct desk *desk, struct json_mut *object)
{
    auto_json_doc struct json_doc *doc = json_freeze(object);

    assert_int_equal(desk_add(desk, json_root(doc), NULL), 0);
}

/* Of a NodeSet with so many workers, whose nodes all began to run a job: two writes for each. */
static int64_t rest_ms(unsigned workers)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *facts = NULL;
    struct json_mut *nodes = json_new_array(build);
    struct desk desk;
    int64_t rest_us;

    desk_init(&desk);
    add(&desk, json_format(build, "{'kind':'Controller','metadata':{'name':'slurm'},"
                                  "'spec':{'slurmKeyRef':{'name':'keys','key':'k'}}}"));
    add(&desk, json_format(build,
                           "{'kind':'NodeSet','metadata':{'name':'w','finalizers':["
                           "'slinc.slurm.net/drain']},'spec':{'controllerRef':{'name':'slurm'},"
                           "'replicas':%d,'slurmd':{'image':'s'}}}",
                           (int)workers));
    for (unsigned i = 0; i < workers; i++) {
        const char *name = arena_printf(&desk.arena, "w-%u", i);

        add(&desk,
            json_format(build, "{'kind':'Pod','worker':'w','metadata':{'name':%s},'runs':%s}", name,
                        arena_printf(&desk.arena, "n%u", i)));
        json_push(nodes, json_format(build, "{'name':%s,'state':['ALLOCATED']}", name));
    }
    facts = json_freeze(json_format(build, "{'slurm':{'nodes':%m}}", nodes));
    assert_int_equal(desk_slurm(&desk, json_root(facts), NULL), 0);
    assert_int_equal(desk_plan(&desk, STR("NodeSet"), STR("w"), NULL), 0);
    rest_us = desk.plan.rest_us;
    desk_done(&desk);
    return rest_us / 1000;
}

static void many_writes_of_pods_are_followed_by_a_rest(void **state)
{
    (void)state;
    assert_int_equal(rest_ms(1), 0);
    assert_int_equal(rest_ms(25), 0);
    assert_int_equal(rest_ms(26), 20); /* 52 writes: a hundred in a second, but for the first 50 */
    assert_int_equal(rest_ms(75), 1000);
    assert_int_equal(rest_ms(400), 2000); /* what Slurm says shows within some two seconds */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_writes_of_pods_are_followed_by_a_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
