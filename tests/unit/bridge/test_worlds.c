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

#include "../worlds_read.h"
#include "worlds.h"
#include "worlds_check.h"

#include "bridge/place.h"
#include "bridge/unit/unit.h"
#include "bridge/why.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PLAN = 1 << 20 };

static struct written_worlds all = { .check = world_check };

static const char *plan_text(const struct plan *plan, struct buf *out)
{
    buf_init(out, MAX_PLAN);
    plan_write(plan, out);
    return buf_text(out);
}

/* ---- one action ---- */

/* The stage of the action with these words; fails when there is none. */
static int64_t stage_of(const struct json *actions, struct str what)
{
    struct json_iter iter = json_iter(actions);
    const struct json *action;

    while (json_next_item(&iter, &action))
        if (str_eq(json_str(json_get(action, "what")), what))
            return json_i64_or(json_get(action, "stage"), -1);
    fail_msg("'" STR_FMT "' is not done", STR_ARG(what));
    return -1;
}

static void check_order(const struct json *expected, struct str what, const struct json *actions)
{
    const struct json *after = json_get(expected, "after");
    const struct json *beside = json_get(expected, "beside");

    if (after && stage_of(actions, what) <= stage_of(actions, json_str(after)))
        fail_msg("'" STR_FMT "' is not done after '" STR_FMT "'", STR_ARG(what),
                 STR_ARG(json_str(after)));
    if (beside && stage_of(actions, what) != stage_of(actions, json_str(beside)))
        fail_msg("'" STR_FMT "' is not done beside '" STR_FMT "'", STR_ARG(what),
                 STR_ARG(json_str(beside)));
}

/* What it writes: the body of a request, or the detail of another action. */
static void check_written(const struct json *expected, struct str what, const struct json *action)
{
    const struct json *body = json_get(action, "body");
    struct json_iter has = json_iter(json_get(expected, "has"));
    struct json_iter lacks = json_iter(json_get(expected, "lacks"));
    const struct json *part;
    auto_buf struct buf out;

    buf_init(&out, MAX_PLAN);
    json_write(body ? body : json_get(action, "detail"), &out);
    while (json_next_item(&has, &part))
        if (!memmem(buf_text(&out), out.len, json_str(part).at, json_str(part).len))
            fail_msg("'" STR_FMT "' has no " STR_FMT ": %s", STR_ARG(what), STR_ARG(json_str(part)),
                     buf_text(&out));
    while (json_next_item(&lacks, &part))
        if (memmem(buf_text(&out), out.len, json_str(part).at, json_str(part).len))
            fail_msg("'" STR_FMT "' has " STR_FMT ": %s", STR_ARG(what), STR_ARG(json_str(part)),
                     buf_text(&out));
}

static struct str words_of(const struct json *expected)
{
    return json_is_string(expected) ? json_str(expected) : json_str(json_get(expected, "do"));
}

/* ---- the plan ---- */

static void check_enqueues(const struct json *expected, const struct json *found)
{
    if (!expected)
        return;
    assert_int_equal(json_len(found), json_len(expected));
    for (size_t i = 0; i < json_len(expected); i++)
        assert_string_equal(json_str(json_item(found, i)).at, json_str(json_item(expected, i)).at);
}

/* The first action with these words that no row has named yet; NULL. */
static const struct json *find_action(const struct json *actions, struct str what,
                                      bool named[PLAN_MAX_ACTIONS])
{
    struct json_iter iter = json_iter(actions);
    const struct json *action;

    for (size_t i = 0; json_next_item(&iter, &action); i++)
        if (!named[i] && str_eq(json_str(json_get(action, "what")), what)) {
            named[i] = true;
            return action;
        }
    return NULL;
}

/* In any order: actions of one stage are carried out side by side. */
static void check_actions(const struct json *root, const struct plan *plan)
{
    auto_buf struct buf text;
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { .class = 0 };
    const struct json *actions, *action, *row;
    struct json_iter done, expected = json_iter(json_get(root, "expect"));
    bool named[PLAN_MAX_ACTIONS] = { false };

    plan_text(plan, &text);
    assert_int_equal(json_parse(buf_str(&text), MAX_PLAN, &doc, &err), 0);
    actions = json_get(json_root(doc), "actions");
    while (json_next_item(&expected, &row)) {
        struct str what = words_of(row);

        action = find_action(actions, what, named);
        if (!action)
            fail_msg("'" STR_FMT "' is not done; the plan: %s", STR_ARG(what), buf_text(&text));
        check_written(row, what, action);
        check_order(row, what, actions);
    }
    done = json_iter(actions);
    for (size_t i = 0; json_next_item(&done, &action); i++)
        if (!named[i])
            fail_msg("'" STR_FMT "' is done and not expected; the plan: %s",
                     STR_ARG(json_str(json_get(action, "what"))), buf_text(&text));
    check_enqueues(json_get(root, "enqueues"), json_get(json_root(doc), "enqueues"));
}

static void check_woken(const struct json *root, const struct placed *placed)
{
    auto_buf struct buf sources = { .max = 200 };
    struct json_iter iter = json_iter(json_get(root, "woken"));
    const struct json *source;

    wake_write(placed->woken_by, &sources);
    while (json_next_item(&iter, &source))
        if (!strstr(buf_text(&sources), json_str(source).at))
            fail_msg("it is woken by %s, not by '" STR_FMT "'", buf_text(&sources),
                     STR_ARG(json_str(source)));
}

static void check_wait(const struct json *root, const struct plan *plan)
{
    struct str waits = json_str(json_get(root, "waits"));

    if (waits.len > 0 && (!plan->waits || !strstr(plan->waits, waits.at)))
        fail_msg("it waits for '%s', not for '" STR_FMT "'", plan->waits ? plan->waits : "nothing",
                 STR_ARG(waits));
    if (json_get(root, "state") && waits.len == 0 && json_len(json_get(root, "expect")) == 0 &&
        plan->waits)
        fail_msg("it waits for '%s', which the world does not name", plan->waits);
    if (json_get(root, "again"))
        assert_int_equal(plan->look_again_us > 0, json_bool_or(json_get(root, "again"), false));
}

static void check_state(const struct json *root, const struct bridge_world *world, struct str key,
                        struct arena *arena)
{
    struct str expected = json_str(json_get(root, "state"));
    const char *state;
    struct unit unit;

    unit_gather(world, key, arena, &unit);
    state = unit_phase_name(unit_phase(world, &unit, arena));
    if (expected.len > 0 && !str_is(expected, state))
        fail_msg("the state is '%s', not '" STR_FMT "'", state, STR_ARG(expected));
}

/* What `slinc why` gets of the first pod: it is the decision of the plan. */
static void check_why(const struct json *root, const struct bridge_world *world,
                      struct arena *arena)
{
    struct json_iter iter = json_iter(json_get(root, "why"));
    struct kube_cache_walk walk = kube_cache_walk(world->pods);
    const struct kube_object *pod = kube_cache_next(&walk);
    const struct json *part;
    auto_buf struct buf out;

    buf_init(&out, MAX_PLAN);
    if (json_get(root, "why"))
        why_write(world, kube_pod_of(pod), NULL, NULL, false, arena, &out);
    while (json_next_item(&iter, &part))
        if (!strstr(buf_text(&out), json_str(part).at))
            fail_msg("why has no %s: %s", json_str(part).at, buf_text(&out));
}

/* The guard is asked once more when a submit is sent. */
static void check_guard(const struct json *root, const struct bridge_world *world, struct str key,
                        struct arena *arena)
{
    const char *objection;
    struct str expected = json_str(json_get(root, "guard"));

    if (!json_get(root, "guard"))
        return;
    objection = place_submit_objection(world, key, 0, arena);
    if (expected.len == 0 ? objection != NULL : !objection || !strstr(objection, expected.at))
        fail_msg("the guard says '%s', not '" STR_FMT "'", objection ? objection : "",
                 STR_ARG(expected));
}

static bool decided[UNIT_PHASES + 1]; /* by a plan of some world */

static void check_world(const struct json *root)
{
    const struct json *given = json_get(root, "given");
    struct str only = json_str(json_get(json_item(json_get(given, "pods"), 0), "name"));
    struct str pod = json_str_or(json_get(root, "plan"), only);
    struct small_world small;
    struct arena arena;
    struct str key;
    struct plan plan;
    struct placed placed;
    struct err err = { .class = 0 };

    small_world_init(&small, given);
    arena_init(&arena, 1u << 24);
    plan_init(&plan, &arena);
    key = str_of(small_world_key(&small, pod.at));
    if (place_plan(&small.world, key, &plan, &placed, &err) < 0)
        fail_msg("no plan: %s", err.text);
    decided[placed.phase] = decided[placed.late] = true;
    check_actions(root, &plan);
    check_wait(root, &plan);
    check_woken(root, &placed);
    check_state(root, &small.world, key, &arena);
    check_why(root, &small.world, &arena);
    check_guard(root, &small.world, key, &arena);
    arena_done(&arena);
    small_world_done(&small);
}

static void the_plan_is_as_expected(void **state)
{
    const struct written_world *world = *state;

    check_world(world->root);
}

/* A row that no world needs could be wrong, or be left out. */
static int report_rows_without_a_world(void)
{
    int missing = 0;

    for (unsigned i = 0; i < UNIT_PHASES; i++)
        if (!decided[i]) {
            print_error("no world is in the phase '%s'\n", unit_phase_name((enum unit_phase)i));
            missing++;
        }
    return missing;
}

int main(int argc, char **argv)
{
    int failed = worlds_main(&all, argc, argv, the_plan_is_as_expected);
    bool ran_all = argc == 2; /* not one world by its name */

    return failed + (ran_all ? report_rows_without_a_world() : 0);
}
