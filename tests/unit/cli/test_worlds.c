/* test_worlds.c - documents of the APIs in, what a person reads out.
 *
 * A world has `show` (queue, nodes, why, doctor, takeover, drain or resume), `jobs` and `nodes` as
 * documents of view.slinky.slurm.net, `pod`, `nodeset`, `pods`, `events`, `decision` (of the
 * bridge), `job` (an id), `missing` (why Slurm's part could not be read), `partition`, `user`,
 * `now` (RFC 3339), and `expect`: the whole text, or `fails`: the error. Of `why` also `json`:
 * texts of its JSON. Of takeover: `before` and `after`, releases as Helm prints them. Of drain and
 * resume: `node`, `reason`, and `patch`: what is sent. Of doctor: `facts` by the names of
 * fact_names below, those that are not there are missing, and `only`; `worst` is the result. */
#include "../worlds_read.h"
#include "cli/doctor.h"
#include "cli/mark.h"
#include "cli/show.h"
#include "cli/takeover.h"
#include "cli/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct written_worlds all;

static const char *text_or_empty(const struct json *root, const char *key)
{
    return json_str(json_get(root, key)).at;
}

static const struct json *part(const struct json *root, const char *key)
{
    return json_exists(json_get(root, key)) ? json_get(root, key) : NULL;
}

static void check_json(const struct json *root, const struct story *story)
{
    struct json_iter iter = json_iter(json_get(root, "json"));
    const struct json *text;
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    story_write_json(story, &out);
    while (json_next_item(&iter, &text))
        if (!strstr(buf_text(&out), json_str(text).at))
            fail_msg("the JSON has no %s: %s", json_str(text).at, buf_text(&out));
}

static int tell_why(const struct json *root, const struct show_options *options,
                    struct arena *arena, struct buf *out, struct err *err)
{
    const char *missing = text_or_empty(root, "missing");
    const struct why_facts facts = {
        .pod = part(root, "pod"),
        .nodeset = part(root, "nodeset"),
        .job_id = json_i64_or(json_get(root, "job"), 0),
        .events = part(root, "events"),
        .pods = part(root, "pods"),
        .jobs = part(root, "jobs"),
        .nodes = part(root, "nodes"),
        .decision = part(root, "decision"),
        .no_jobs = missing,
        .no_nodes = missing,
        .no_decision = missing,
        .no_pods = missing,
    };
    struct story story = { .arena = arena, .summary = "" };
    int result = why_tell(&facts, options, &story, err);

    if (result < 0)
        return result;
    check_json(root, &story);
    story_write_text(&story, json_bool_or(json_get(root, "colours"), false), out);
    return 0;
}

static int tell_mark(const struct json *root, bool drains, struct arena *arena, struct buf *out,
                     struct err *err)
{
    struct mark mark = { .name = text_or_empty(root, "of"),
                         .reason = text_or_empty(root, "reason"),
                         .drains = drains,
                         .arena = arena };
    int result = mark_plan(&mark, part(root, "node"), part(root, "pod"), err);

    if (result < 0)
        return result;
    assert_string_equal(mark.patch, text_or_empty(root, "patch"));
    buf_printf(out, "%s\n", mark.said);
    return 0;
}

static const char *const fact_names[DOCTOR_FACTS] = {
    [FACT_VERSION] = "version",     [FACT_CRDS] = "crds",
    [FACT_PODS] = "pods",           [FACT_NODES] = "nodes",
    [FACT_LEASES] = "leases",       [FACT_WEBHOOKS] = "webhooks",
    [FACT_ENDPOINTS] = "endpoints", [FACT_APISERVICES] = "apiservices",
    [FACT_HPAS] = "hpas",           [FACT_NODESETS] = "nodesets",
    [FACT_VIEW_JOBS] = "view_jobs", [FACT_VIEW_NODES] = "view_nodes",
    [FACT_BRIDGE] = "bridge",       [FACT_EXPORTER] = "exporter",
    [FACT_ACCESS] = "access",       [FACT_KUBELETS] = "kubelets",
    [FACT_DISKS] = "disks",         [FACT_TOKENS] = "tokens",
};

static int examine(const struct json *root, struct arena *arena, struct buf *out, struct err *err)
{
    static const char *const results[] = { "ok", "warns", "fails", "skipped" };
    struct doctor_facts facts = { .now_s = text_seconds(json_str(json_get(root, "now"))) };
    const struct doctor doctor = { .facts = &facts, .arena = arena };
    struct doctor_options options = { .only = text_or_empty(root, "only") };
    auto_buf struct buf as_json;
    enum doctor_result worst;

    buf_init(&as_json, 1 << 20);
    if (doctor_check_only(options.only, err) < 0)
        return -err->class;
    for (unsigned i = 0; i < DOCTOR_FACTS; i++) {
        const struct json *fact = part(json_get(root, "facts"), fact_names[i]);

        facts.of[i].missing = arena_printf(arena, "needs the right to list %s", fact_names[i]);
        if (json_is_string(fact))
            facts.of[i].text = json_str(fact);
        else
            facts.of[i].doc = fact;
    }
    worst = doctor_report(&doctor, &options, out);
    assert_string_equal(results[worst], text_or_empty(root, "worst"));
    options.is_json = true;
    assert_int_equal(doctor_report(&doctor, &options, &as_json), worst);
    return 0;
}

static int read_release(const struct json *root, const char *key,
                        struct takeover_release *ret_release, struct err *err)
{
    auto_buf struct buf text;

    buf_init(&text, 1 << 20);
    json_write(json_get(root, key), &text);
    return takeover_read(buf_str(&text), ret_release, err);
}

static int tell_takeover(const struct json *root, struct arena *arena, struct buf *out,
                         struct err *err)
{
    struct takeover_release before = { .doc = NULL }, after = { .doc = NULL };
    struct takeover_report report = { .arena = arena };
    auto_buf struct buf as_json = { .max = 1 << 20 };
    int result = read_release(root, "before", &before, err);

    if (result == 0 && (result = read_release(root, "after", &after, err)) == 0) {
        takeover_compare(&before, &after, &report);
        takeover_write(&report, false, out);
        takeover_write(&report, true, &as_json);
        assert_true(str_starts(buf_str(&as_json), STR("{\n  \"summary\": \"release ")));
    }
    takeover_done(&before);
    takeover_done(&after);
    return result;
}

static int show(const struct json *root, struct arena *arena, struct buf *out, struct err *err)
{
    const struct show_options options = {
        .partition = text_or_empty(root, "partition"),
        .user = text_or_empty(root, "user"),
        .now_s = text_seconds(json_str(json_get(root, "now"))),
        .without_head = json_bool_or(json_get(root, "no_headers"), false),
    };
    struct str what = json_str(json_get(root, "show"));

    if (str_is(what, "why"))
        return tell_why(root, &options, arena, out, err);
    if (str_is(what, "drain") || str_is(what, "resume"))
        return tell_mark(root, str_is(what, "drain"), arena, out, err);
    if (str_is(what, "takeover"))
        return tell_takeover(root, arena, out, err);
    if (str_is(what, "doctor"))
        return examine(root, arena, out, err);
    if (str_is(what, "queue"))
        show_queue(json_get(root, "jobs"), &options, arena, out);
    else
        show_nodes(json_get(root, "nodes"), &options, arena, out);
    return 0;
}

static void the_text_is_as_expected(void **state)
{
    const struct json *root = ((const struct written_world *)*state)->root;
    struct err err = { .class = 0 };
    auto_arena struct arena arena;
    auto_buf struct buf out;

    arena_init(&arena, 16 << 20);
    buf_init(&out, 1 << 20);
    if (show(root, &arena, &out, &err) < 0)
        assert_string_equal(err.text, text_or_empty(root, "fails"));
    else
        assert_string_equal(buf_text(&out), text_or_empty(root, "expect"));
}

int main(int argc, char **argv)
{
    return worlds_main(&all, argc, argv, the_text_is_as_expected);
}
