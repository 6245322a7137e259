/* test_worlds.c - a small Slurm in, a page out.
 *
 * A world has `jobs`, `nodes`, `reservations` as Slurm writes them, `diag` and `licenses` as the
 * answers' bodies, `now` in seconds since 1970, and `page` (metrics, nodes or slinky). `names` is
 * how many accounts, users and QOS are shown; `hides` what the user may not see; `users: false`
 * that no user is shown. `expect` has whole lines of the page, `absent` beginnings of lines that
 * it does not have. Every page must pass the rules of promtool. */
#include "../worlds_read.h"
#include "base/mem.h"
#include "exporter/families.h"
#include "exporter/legacy.h"
#include "exporter/native.h"
#include "exporter/top.h"
#include "lint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { DEFAULT_NAMES = 200 };

static struct written_worlds all;

struct slurm {
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *jobs, *nodes, *partitions, *reservations;
};

static struct slurm_cache *fill(struct loop *loop, const struct slurm_kind *kind,
                                const struct json *items)
{
    struct slurm_cache *cache = slurm_cache_new(kind, loop, NULL);
    struct slurm_merge *merge = slurm_merge_new(cache, 1);
    struct json_iter iter = json_iter(items);
    const struct slurm_object *object;
    struct err err = { .class = 0 };
    const struct json *item;

    while (json_next_item(&iter, &item)) {
        if (slurm_object_decode(kind, item, &object, &err) < 0)
            fail_msg("%s", err.text);
        slurm_merge_add(merge, object);
    }
    while (!slurm_merge_commit(merge, NULL, NULL))
        (void)loop_step(loop);
    slurm_merge_free(merge);
    return cache;
}

static void slurm_up(struct slurm *slurm, const struct json *root)
{
    clock_init_virtual(&slurm->clock, 0);
    slurm->loop = loop_new_virtual(&slurm->clock);
    slurm->jobs = fill(slurm->loop, &slurm_job_kind, json_get(root, "jobs"));
    slurm->nodes = fill(slurm->loop, &slurm_node_kind, json_get(root, "nodes"));
    slurm->partitions = fill(slurm->loop, &slurm_partition_kind, json_get(root, "partitions"));
    slurm->reservations =
        fill(slurm->loop, &slurm_reservation_kind, json_get(root, "reservations"));
}

static void slurm_down(struct slurm *slurm)
{
    slurm_cache_free(slurm->jobs);
    slurm_cache_free(slurm->nodes);
    slurm_cache_free(slurm->partitions);
    slurm_cache_free(slurm->reservations);
    loop_free(slurm->loop);
}

static bool is_given(const struct json *root, const char *key)
{
    return json_exists(json_get(root, key));
}

static void write_page(const struct slurm *slurm, const struct json *root, struct buf *out)
{
    struct str page = json_str(json_get(root, "page"));
    size_t names = (size_t)json_i64_or(json_get(root, "names"), DEFAULT_NAMES);
    struct tally_health health = { .knows_hidden = true };
    struct tally_view view = {
        .jobs = is_given(root, "jobs") ? slurm->jobs : NULL,
        .nodes = is_given(root, "nodes") ? slurm->nodes : NULL,
        .partitions = is_given(root, "partitions") ? slurm->partitions : NULL,
        .reservations = is_given(root, "reservations") ? slurm->reservations : NULL,
        .diag = json_get(root, "diag"),
        .licenses = json_get(root, "licenses"),
        .health = &health,
        .now_s = json_i64_or(json_get(root, "now"), 1000000),
        .shows_users = json_bool_or(json_get(root, "users"), true),
    };
    auto_arena struct arena arena;
    struct tally tally;

    arena_init(&arena, 64 << 20);
    tally_init(&tally, &view, &arena);
    if (view.nodes)
        tally_nodes(&tally);
    if (view.jobs)
        tally_jobs(&tally);
    for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++) {
        struct top top;

        top_init(&top);
        top_choose(&top, &tally, (enum tally_owner_kind)i, names, &health.folded[i]);
        top_done(&top);
    }
    if (str_is(page, "slinky"))
        legacy_write(&view, &tally, out);
    else if (str_is(page, "native"))
        native_write(&tally, out);
    else
        families_write(&tally, str_is(page, "nodes") ? FAMILY_NODES : FAMILY_CLUSTER, out);
    tally_done(&tally);
}

static bool has_line(struct str text, struct str wanted, bool whole)
{
    struct str rest = text, line;

    while (rest.len > 0 && str_next(&rest, '\n', &line))
        if (whole ? str_eq(line, wanted) : str_starts(line, wanted))
            return true;
    return false;
}

static void the_page_is_as_expected(void **state)
{
    const struct json *root = ((const struct written_world *)*state)->root, *line;
    struct json_iter expect = json_iter(json_get(root, "expect"));
    struct json_iter absent = json_iter(json_get(root, "absent"));
    struct str page_name = json_str(json_get(root, "page"));
    auto_buf struct buf page;
    struct err err = { .class = 0 };
    struct slurm slurm;

    buf_init(&page, 16 << 20);
    slurm_up(&slurm, root);
    write_page(&slurm, root, &page);
    slurm_down(&slurm);
    if (lint_page(buf_str(&page), str_is(page_name, "slinky") || str_is(page_name, "native"),
                  &err) < 0)
        fail_msg("%s", err.text);
    while (json_next_item(&expect, &line))
        if (!has_line(buf_str(&page), json_str(line), true))
            fail_msg("lacks %s:\n%s", json_str(line).at, buf_text(&page));
    while (json_next_item(&absent, &line))
        if (has_line(buf_str(&page), json_str(line), false))
            fail_msg("has %s:\n%s", json_str(line).at, buf_text(&page));
}

static int check_world(const struct json *root, struct err *err)
{
    static const char *const known[] = { "name",         "now",      "page",      "jobs",  "nodes",
                                         "reservations", "diag",     "names",     "users", "expect",
                                         "absent",       "licenses", "partitions" };
    struct json_iter iter = json_iter(root);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        bool is_known = false;

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            is_known |= str_is(key, known[i]);
        if (!is_known)
            return err_set(err, ERR_INVALID, "what is '" STR_FMT "'?", STR_ARG(key));
    }
    if (json_len(json_get(root, "expect")) + json_len(json_get(root, "absent")) == 0)
        return err_set(err, ERR_INVALID, "nothing is expected");
    return 0;
}

int main(int argc, char **argv)
{
    all.check = check_world;
    return worlds_main(&all, argc, argv, the_page_is_as_expected);
}
