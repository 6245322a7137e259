/* test_exclude.c - the plan of a pod that excludes many nodes keeps little more than their names:
 * as many plans as pods may wait at once for their submits. */
#include "base/rand.h"
#include "bridge/place.h"
#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    NODES = 1200, /* the pod may use every second one */
    NAME = 21,
    MOST_BYTES = 3 * (NODES / 2) * NAME, /* the list, in the description and in the action */
};

/* Names that do not fold: a letter at the end. */
static void write_world(struct buf *out)
{
    struct rand rand;

    rand_init(&rand, 1);
    buf_add_text(out, "{\"pods\":[{\"name\":\"a\",\"created\":50,\"selector\":{\"zone\":\"z0\"}}]");
    for (unsigned list = 0; list < 2; list++) {
        rand_init(&rand, 1);
        buf_printf(out, ",\"%s\":[", list == 0 ? "nodes" : "slurm_nodes");
        for (unsigned i = 0; i < NODES; i++) {
            buf_printf(out, "%s{\"name\":\"n%018llxz\"", i > 0 ? "," : "",
                       (unsigned long long)rand_u64(&rand));
            if (list == 0)
                buf_printf(out, ",\"lent\":true,\"labels\":{\"zone\":\"z%u\"}", i % 2);
            buf_add_char(out, '}');
        }
        buf_add_char(out, ']');
    }
    buf_add_char(out, '}');
}

static void a_plan_keeps_little_more_than_the_names_of_excluded_nodes(void **state)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text = { .max = 1 << 20 };
    auto_arena struct arena arena;
    struct small_world small;
    struct err err = { .class = 0 };
    struct plan plan;

    write_world(&text);
    assert_int_equal(json_parse(buf_str(&text), 1 << 20, &doc, NULL), 0);
    small_world_init(&small, json_root(doc));
    arena_init(&arena, 64 << 20);
    plan_init(&plan, &arena);
    assert_int_equal(
        place_plan(&small.world, str_of(small_world_key(&small, "a")), &plan, NULL, &err), 0);
    assert_false(list_is_empty(&plan.actions));
    assert_in_range(arena.used, (NODES / 2) * NAME, MOST_BYTES);
    small_world_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_keeps_little_more_than_the_names_of_excluded_nodes),
    };

    return cmocka_run_group_tests_name("exclude", tests, NULL, NULL);
}
