/* test_reason.c - `slinc queue` and the page say the same of a job that waits, for every reason. */
#include "cli/show.h"
#include "exporter/page.h"
#include "exporter/ui_rows.h"
#include "exporter/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MAX_TEXT = 1 << 20, PAGE_TEXT = 13 };

struct said {
    struct buf terminal, page;
};

/* One job waits for this reason; what a terminal prints of it, and what the page is told. */
static void say(const char *word, bool is_held, struct arena *arena, struct said *said)
{
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *jobs;
    struct slurm_merge *merge;
    const struct slurm_object *job;
    const struct show_options options = { .partition = "", .user = "", .without_head = true };
    auto_json_doc struct json_doc *from = NULL;
    auto_json_doc struct json_doc *list = NULL;
    auto_buf struct buf text = { .max = MAX_TEXT };
    struct tally_view view = { .now_s = 1000 };
    struct tally tally;

    clock_init_virtual(&clock, 0);
    loop = loop_new_virtual(&clock);
    jobs = slurm_cache_new(&slurm_job_kind, loop, NULL);
    buf_printf(&text,
               "{\"job_id\":1,\"job_state\":[\"PENDING\"],\"state_reason\":\"%s\",\"hold\":%s}",
               word, is_held ? "true" : "false");
    assert_int_equal(json_parse(buf_str(&text), MAX_TEXT, &from, NULL), 0);
    assert_int_equal(slurm_object_decode(&slurm_job_kind, json_root(from), &job, NULL), 0);
    merge = slurm_merge_new(jobs, 1);
    slurm_merge_add(merge, job);
    while (!slurm_merge_commit(merge, NULL, NULL))
        (void)loop_step(loop);
    slurm_merge_free(merge);
    view.jobs = jobs;
    tally_init(&tally, &view, arena);
    buf_clear(&text);
    assert_int_equal(view_write(&tally, VIEW_IS_JOBS, &text, NULL), 0);
    ui_write_queue(&tally, &said->page);
    assert_int_equal(json_parse(buf_str(&text), MAX_TEXT, &list, NULL), 0);
    assert_true(
        str_is(json_str(json_get(json_item(json_get(json_root(list), "items"), 0), "actor")),
               slurm_reason_of(word, is_held).actor));
    show_queue(json_root(list), &options, arena, &said->terminal);
    tally_done(&tally);
    slurm_cache_free(jobs);
    loop_free(loop);
}

static void assert_both_say(const char *word, bool is_held)
{
    struct slurm_reason reason = slurm_reason_of(word, is_held);
    struct said said = { { .max = MAX_TEXT }, { .max = MAX_TEXT } };
    auto_json_doc struct json_doc *page = NULL;
    auto_arena struct arena arena;
    const char *cell;

    arena_init(&arena, 1 << 20);
    cell = reason.actor[0] ? arena_printf(&arena, " %s (%s) ", reason.text, word)
                           : arena_printf(&arena, " %s ", reason.text);
    say(word, is_held, &arena, &said);
    assert_int_equal(json_parse(buf_str(&said.page), MAX_TEXT, &page, NULL), 0);
    assert_string_equal(json_str(json_item(json_item(json_root(page), 0), PAGE_TEXT)).at,
                        reason.text);
    if (!strstr(buf_text(&said.terminal), cell))
        fail_msg("no \"%s\" in: %s", cell, buf_text(&said.terminal));
    buf_done(&said.terminal);
    buf_done(&said.page);
}

static void terminal_and_page_say_the_same_for_every_reason(void **state)
{
    const struct slurm_reason *row;

    for (size_t i = 0; (row = slurm_reason_row(i)); i++) {
        char word[64] = "";

        memcpy(word, row->word, strcspn(row->word, "*"));
        assert_both_say(word, false);
    }
    assert_both_say("QOSMaxJobsPerUserLimit", false);
    assert_both_say("SomethingNew", false);
    assert_both_say("Priority", true);
    assert_both_say("JobHeldAdmin", true);
    (void)state;
}

static void the_page_has_no_words_of_its_own_for_a_reason(void **state)
{
    const struct slurm_reason *row;
    auto_buf struct buf quoted = { .max = MAX_TEXT };

    for (size_t i = 0; (row = slurm_reason_row(i)); i++) {
        buf_clear(&quoted);
        buf_printf(&quoted, "\"%s", row->text);
        if (strstr(page_html, buf_text(&quoted)))
            fail_msg("the page has %s", buf_text(&quoted));
    }
    assert_non_null(strstr(page_html, "job.text"));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terminal_and_page_say_the_same_for_every_reason),
        cmocka_unit_test(the_page_has_no_words_of_its_own_for_a_reason),
    };

    return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
