/* test_worlds.c - documents of the APIs in, what a person reads out.
 *
 * A world has `show` (queue, nodes or why), `jobs` and `nodes` as documents of
 * view.slinky.slurm.net, `pod`, `events`, `job`, `missing`, `partition`, `user`, `now` (RFC 3339),
 * and `expect`: the whole text, or `fails`: the error. */
#include "../worlds_read.h"
#include "cli/show.h"
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

static int show(const struct json *root, struct arena *arena, struct buf *out, struct err *err)
{
    const struct show_options options = {
        .partition = text_or_empty(root, "partition"),
        .user = text_or_empty(root, "user"),
        .now_s = text_seconds(json_str(json_get(root, "now"))),
        .without_head = json_bool_or(json_get(root, "no_headers"), false),
    };
    const struct show_story story = {
        .pod = json_exists(json_get(root, "pod")) ? json_get(root, "pod") : NULL,
        .events = json_get(root, "events"),
        .jobs = json_get(root, "jobs"),
        .missing = text_or_empty(root, "missing"),
        .job_id = json_i64_or(json_get(root, "job"), 0),
    };
    struct str what = json_str(json_get(root, "show"));

    if (str_is(what, "why"))
        return show_why(&story, &options, arena, out, err);
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
