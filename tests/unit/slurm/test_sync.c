/* test_sync.c - the synchronous face, against a server that is not there and options that are
 * wrong. (Against a real one: tests/e2e/test_slurm_client.py.) */
#include "slurm/sync.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_server_that_is_not_there_is_unavailable(void **state)
{
    struct slurm_sync_options options = { .url = "http://127.0.0.1:1", .token = "abc" };
    struct slurm_sync *sync;
    struct slurm_error error;
    struct err err = { 0 };

    assert_int_equal(slurm_sync_new(&options, &sync, &err), 0);
    assert_int_equal(slurm_sync_wait(sync, &error, &err), -ERR_BUG); /* nothing was called */
    slurm_job_cancel(slurm_sync_client(sync), 7, slurm_sync_done, sync);
    assert_int_equal(slurm_sync_wait(sync, &error, &err), -ERR_UNAVAILABLE);
    assert_int_equal(error.class, SLURM_UNAVAILABLE);
    assert_true(error.unsent);
    assert_null(slurm_sync_body(sync));
    assert_int_equal(slurm_sync_answer(sync)->error.class, SLURM_UNAVAILABLE);
    slurm_sync_sleep(sync, 1000);
    slurm_sync_free(sync);
}

/* The document that it came with was the call's. */
static void the_answer_that_is_kept_has_nothing_to_be_taken(void **state)
{
    struct slurm_sync_options options = { .url = "http://127.0.0.1:1", .token = "abc" };
    auto_json_doc struct json_doc *doc = NULL;
    struct slurm_sync *sync;

    assert_int_equal(slurm_sync_new(&options, &sync, NULL), 0);
    assert_int_equal(json_parse(STR("{\"a\":1}"), 100, &doc, NULL), 0);
    slurm_sync_done(sync, &(struct slurm_answer){ .body = json_root(doc), .owner = &doc });
    assert_null(slurm_answer_take(slurm_sync_answer(sync)));
    assert_int_equal(json_i64_or(json_get(slurm_sync_body(sync), "a"), 0), 1);
    slurm_sync_free(sync);
}

static void wrong_options_are_told_at_once(void **state)
{
    static const struct slurm_sync_options wrong[] = {
        { .url = "http://127.0.0.1:1" },
        { .url = "http://127.0.0.1:1", .token = "  " },
        { .url = "http://127.0.0.1:1", .token_file = "/nonexistent/token" },
        { .url = "http://127.0.0.1:1", .key_file = "/nonexistent/key" },
        { .url = "nonsense", .token = "abc" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct slurm_sync *sync;
        struct err err = { 0 };

        assert_true(slurm_sync_new(&wrong[i], &sync, &err) < 0);
        assert_true(err.text[0]);
    }
    slurm_sync_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_not_there_is_unavailable),
        cmocka_unit_test(the_answer_that_is_kept_has_nothing_to_be_taken),
        cmocka_unit_test(wrong_options_are_told_at_once),
    };

    return cmocka_run_group_tests_name("sync", tests, NULL, NULL);
}
