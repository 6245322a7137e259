/* test_worlds.c - plans of units: every document of the files of worlds/ is a world and what its
 * plan must be.
 *
 * The name of a world is the sentence that it proves. See worlds.h for how they are written.
 *
 *     test_bridge_worlds FOLDER [NAME]    # all, or the world of this name */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worlds.h"
#include "worlds_read.h"

#include "bridge/place.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PLAN = 1 << 20 };

static struct written_worlds all;

static const char *plan_text(const struct plan *plan, struct buf *out)
{
    buf_init(out, MAX_PLAN);
    plan_write(plan, out);
    return buf_text(out);
}

static void check_action(const struct json *expected, const struct json *action, const char *text)
{
    struct str what =
        json_is_string(expected) ? json_str(expected) : json_str(json_get(expected, "do"));
    struct json_iter iter = json_iter(json_get(expected, "has"));
    const struct json *part;
    auto_buf struct buf out;

    if (!action)
        fail_msg("'" STR_FMT "' is not done; the plan: %s", STR_ARG(what), text);
    if (!str_eq(json_str(json_get(action, "what")), what))
        fail_msg("'" STR_FMT "' is expected, and '" STR_FMT "' done; the plan: %s", STR_ARG(what),
                 STR_ARG(json_str(json_get(action, "what"))), text);
    buf_init(&out, MAX_PLAN);
    json_write(action, &out);
    while (json_next_item(&iter, &part))
        if (!memmem(buf_text(&out), out.len, json_str(part).at, json_str(part).len))
            fail_msg("'" STR_FMT "' has no " STR_FMT ": %s", STR_ARG(what), STR_ARG(json_str(part)),
                     buf_text(&out));
    iter = json_iter(json_get(expected, "lacks"));
    while (json_next_item(&iter, &part))
        if (memmem(buf_text(&out), out.len, json_str(part).at, json_str(part).len))
            fail_msg("'" STR_FMT "' has " STR_FMT ": %s", STR_ARG(what), STR_ARG(json_str(part)),
                     buf_text(&out));
}

static void check_plan(const struct json *root, const struct plan *plan)
{
    auto_buf struct buf text;
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { .class = 0 };
    struct json_iter actions, expected;
    const struct json *action, *row;

    plan_text(plan, &text);
    assert_int_equal(json_parse(buf_str(&text), MAX_PLAN, &doc, &err), 0);
    actions = json_iter(json_get(json_root(doc), "actions"));
    expected = json_iter(json_get(root, "expect"));
    while (json_next_item(&expected, &row))
        check_action(row, json_next_item(&actions, &action) ? action : NULL, buf_text(&text));
    if (json_next_item(&actions, &action))
        fail_msg("'" STR_FMT "' is done and not expected; the plan: %s",
                 STR_ARG(json_str(json_get(action, "what"))), buf_text(&text));
    if (json_get(root, "waits") &&
        (!plan->waits || !strstr(plan->waits, json_str(json_get(root, "waits")).at)))
        fail_msg("it waits for '%s', not for '" STR_FMT "'", plan->waits ? plan->waits : "nothing",
                 STR_ARG(json_str(json_get(root, "waits"))));
    if (json_get(root, "stages"))
        assert_int_equal(plan->stage + 1, json_i64_or(json_get(root, "stages"), 1));
    if (json_get(root, "again"))
        assert_int_equal(plan->look_again_us > 0, json_bool_or(json_get(root, "again"), false));
}

static void check_world(const struct json *root)
{
    const struct json *given = json_get(root, "given");
    struct str pod =
        json_str_or(json_get(root, "plan"),
                    json_str_or(json_get(json_item(json_get(given, "pods"), 0), "name"), STR("a")));
    struct small_world small;
    struct arena arena;
    struct plan plan;
    struct err err = { .class = 0 };

    small_world_init(&small, given);
    arena_init(&arena, 1u << 24);
    plan_init(&plan, &arena);
    if (place_plan(&small.world, str_of(small_world_key(&small, pod.at)), &plan, &err) < 0)
        fail_msg("no plan: %s", err.text);
    check_plan(root, &plan);
    arena_done(&arena);
    small_world_done(&small);
}

static void the_plan_is_as_expected(void **state)
{
    const struct written_world *world = *state;

    check_world(world->root);
}

/* All worlds, or the one of this name. */
static size_t choose(struct CMUnitTest *tests, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < all.count; i++)
        if (!name || strcmp(all.worlds[i].name, name) == 0)
            tests[count++] = (struct CMUnitTest){ .name = all.worlds[i].name,
                                                  .test_func = the_plan_is_as_expected,
                                                  .initial_state = &all.worlds[i] };
    return count;
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[MAX_WORLDS];
    const char *folder = argc > 1 ? argv[1] : "tests/unit/bridge/worlds";
    const char *name = argc > 2 ? argv[2] : NULL;
    struct err err = { .class = 0 };
    size_t count = 0;
    int rc = worlds_read_folder(&all, folder, &err);

    if (rc == 0)
        count = choose(tests, name);
    if (rc < 0)
        (void)fprintf(stderr, "%s\n", err.text);
    else if (count == 0)
        (void)fprintf(stderr, "%s has no world '%s'\n", folder, name ? name : "");
    rc = count == 0 ? 1 : _cmocka_run_group_tests("worlds", tests, count, NULL, NULL);
    worlds_read_done(&all);
    return rc;
}
