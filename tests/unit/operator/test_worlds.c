/* test_worlds.c - plans of custom resources: every document of worlds/ is a world and its plan.
 *
 *     name: a RestApi gets its Service          the sentence that it proves
 *     given: [objects]                          see desk.h
 *     slurm: {slurm: {active: 1}}               what Slurm said last; see desk.h
 *     refused: {restapi-controller: no}         the writes for it that are refused, by their plan
 *     monitoring: true                          the API server has ServiceMonitors
 *     propagated: DiskPressure                  conditions of Nodes that explain drains
 *     keys: true                                the first Secret with slurm.jwks is compared, too
 *     unregistered: 2                           workers that may exist and not be registered
 *     plan: RestApi slurm                       what is planned
 *     about: [pod, node]                        compares only actions with this second word
 *     expect:                                   all that is written, in this order
 *     - do: create service site/slurm-restapi
 *       has: {spec: {type: ClusterIP}}          covered by what is written
 *       lacks: [spec.externalIPs]               paths that are not written
 *       stage: 1                                behind which others; not checked without it
 *       alone: true                             no later stage needs it; not checked without it
 *     waits: ...                                why nothing more is done; not checked without it
 *     look_again: 2000                          milliseconds; not checked without it
 *     fails: 'Deployment: ...'                  the steps that fail; none without it
 *
 *     test_operator_worlds FOLDER [NAME]        all, or the world of this name */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../worlds_read.h"
#include "codec/covers.h"
#include "desk.h"

#include <stdio.h>

enum { MAX_TEXT = 1 << 20 };

static struct written_worlds all;

/* ---- well-written worlds ---- */

static int check_world(const struct json *root, struct err *err)
{
    static const char *const of_world[] = { "name",    "given",        "slurm",
                                            "plan",    "about",        "expect",
                                            "fails",   "waits",        "look_again",
                                            "refused", "monitoring",   "propagated",
                                            "keys",    "unregistered", NULL };
    static const char *const of_action[] = { "do", "has", "lacks", "stage", "alone", NULL };
    struct json_iter iter = json_iter(json_get(root, "expect"));
    const struct json *action;

    if (worlds_check_keys(root, of_world, err) < 0)
        return -ERR_INVALID;
    if (!json_is_array(json_get(root, "expect")))
        return err_set(err, ERR_INVALID, "expect is no list");
    while (json_next_item(&iter, &action)) {
        struct str what = json_str(json_get(action, "do"));

        if (worlds_check_keys(action, of_action, err) < 0)
            return -ERR_INVALID;
        if (str_starts(what, STR("patch")) && !json_get(action, "has"))
            return err_set(err, ERR_INVALID, "'" STR_FMT "' does not say what is written",
                           STR_ARG(what));
    }
    return 0;
}

/* ---- what is written ---- */

/* The end of a path may be a key with dots in it. */
static bool is_written(const struct json *body, struct str path)
{
    struct str part;

    while (body && !json_exists(json_get_str(body, path)) && str_next(&path, '.', &part))
        body = json_get_str(body, part);
    return body && json_exists(json_get_str(body, path));
}

static void check_action(const struct json *row, const struct action *action)
{
    auto_json_doc struct json_doc *body = NULL;
    struct json_iter lacks = json_iter(json_get(row, "lacks"));
    auto_buf struct buf wanted = { .max = MAX_TEXT }, detail = { .max = MAX_TEXT };
    struct str text = action->request.body;
    const struct json *path, *root;

    assert_string_equal(action->what, json_str(json_get(row, "do")).at);
    if (action->type->write) {
        action->type->write(action, &detail);
        text = buf_str(&detail);
    }
    if (json_exists(json_get(row, "stage")))
        assert_int_equal(action->stage, json_i64_or(json_get(row, "stage"), 0));
    if (json_exists(json_get(row, "alone")))
        assert_int_equal(action->is_independent, json_bool_or(json_get(row, "alone"), false));
    if (text.len > 0)
        assert_int_equal(json_parse(text, MAX_TEXT, &body, NULL), 0);
    root = json_root(body);
    if (action->type->write && json_exists(json_get(root, "fields")))
        root = json_get(root, "fields"); /* what Slurm is sent */
    json_write(json_get(row, "has"), &wanted);
    if (!json_covers(root, json_get(row, "has")))
        fail_msg("'%s' lacks some of %s:\n" STR_FMT, action->what, buf_text(&wanted),
                 STR_ARG(text));
    while (json_next_item(&lacks, &path))
        if (is_written(root, json_str(path)))
            fail_msg("'%s' has %s: " STR_FMT, action->what, json_str(path).at, STR_ARG(text));
}

/* Whether the world is about this: "create pod site/w-0" is about a pod. */
static bool is_compared(const struct json *root, const struct action *action)
{
    struct json_iter about = json_iter(json_get(root, "about"));
    struct str rest = str_of(action->what), word;
    const struct json *subject;

    if (!json_bool_or(json_get(root, "keys"), false) && str_starts(rest, STR("create secret ")) &&
        str_ends(rest, STR("-jwks")))
        return false;
    if (!json_exists(json_get(root, "about")))
        return true;
    (void)str_next(&rest, ' ', &word);
    (void)str_next(&rest, ' ', &word);
    while (json_next_item(&about, &subject))
        if (str_eq(json_str(subject), word))
            return true;
    return false;
}

static void check_plan(const struct json *root, const struct plan *plan)
{
    struct json_iter rows = json_iter(json_get(root, "expect"));
    const struct json *row;

    assert_string_equal(plan->failure ? plan->failure : "", json_str(json_get(root, "fails")).at);
    if (json_exists(json_get(root, "waits")))
        assert_string_equal(plan->waits ? plan->waits : "", json_str(json_get(root, "waits")).at);
    if (json_exists(json_get(root, "look_again")))
        assert_int_equal(plan->look_again_us / 1000, json_i64_or(json_get(root, "look_again"), 0));
    list_each (const struct action, action, &plan->actions, link) {
        if (!is_compared(root, action))
            continue;
        if (!json_next_item(&rows, &row))
            fail_msg("'%s' is not expected: " STR_FMT, action->what, STR_ARG(action->request.body));
        check_action(row, action);
    }
    if (json_next_item(&rows, &row))
        fail_msg("'%s' is not done", json_str(json_get(row, "do")).at);
}

static void the_plan_is_as_expected(void **state)
{
    const struct json *root = ((const struct written_world *)*state)->root;
    struct json_iter given = json_iter(json_get(root, "given"));
    struct json_iter refused = json_iter(json_get(root, "refused"));
    const struct json *object, *text;
    struct err err = { .class = 0 };
    struct str kind, name, controller;
    struct desk desk;

    desk_init(&desk);
    while (json_next_item(&given, &object))
        if (desk_add(&desk, object, &err) < 0)
            fail_msg("%s", err.text);
    if (desk_slurm(&desk, json_get(root, "slurm"), &err) < 0)
        fail_msg("%s", err.text);
    assert_true(str_cut(json_str(json_get(root, "plan")), ' ', &kind, &name));
    while (json_next_member(&refused, &controller, &text))
        operator_world_refuse(
            &desk.world, arena_strndup(&desk.arena, controller.at, controller.len),
            str_of(arena_printf(&desk.arena, "site/" STR_FMT, STR_ARG(name))), json_str(text).at);
    if (json_get(root, "propagated"))
        desk.world.propagated_conditions = json_str(json_get(root, "propagated")).at;
    desk.world.max_unregistered =
        json_i64_or(json_get(root, "unregistered"), desk.world.max_unregistered);
    if (json_get(root, "monitoring"))
        desk_has_all(desk.world.service_monitors);
    if (desk_plan(&desk, kind, name, &err) < 0)
        fail_msg("%s", err.text);
    check_plan(root, &desk.plan);
    desk_done(&desk);
}

int main(int argc, char **argv)
{
    all.check = check_world;
    return worlds_main(&all, argc, argv, the_plan_is_as_expected);
}
