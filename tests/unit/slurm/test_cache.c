/* test_cache.c - reads in any order leave the newest in the cache, and every change is told once.
 */
#include "slurm/cache.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static const struct slurm_owner c1 = { .cluster = { "c1", 2 }, .release = { "r", 1 } };

struct bench {
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *cache;
    struct map mirror; /* what the changes add up to */
    struct buf log;    /* "key:old>next " per change, by the job's name */
};

static void free_object(void *object)
{
    slurm_object_unref(object);
}

static const char *word(const struct slurm_object *object)
{
    if (!object)
        return "-";
    return object->kind == &slurm_job_kind ? slurm_job_of(object)->name
                                           : slurm_node_of(object)->comment;
}

static void on_change(void *context, const struct slurm_object *old,
                      const struct slurm_object *next)
{
    struct bench *bench = context;
    const struct slurm_object *any = next ? next : old;

    assert_non_null(any);
    assert_ptr_not_equal(old, next);
    assert_ptr_equal(map_get(&bench->mirror, str_of(any->key)), old);
    buf_printf(&bench->log, "%s:%s>%s ", any->key, word(old), word(next));
    if (next)
        assert_int_equal(
            map_put(&bench->mirror, str_of(next->key), (void *)slurm_object_ref(next), NULL), 0);
    else
        assert_true(map_remove(&bench->mirror, str_of(old->key)));
}

static void use_kind(struct bench *bench, const struct slurm_kind *kind)
{
    slurm_cache_free(bench->cache);
    bench->cache = slurm_cache_new(kind, bench->loop, &c1);
    slurm_cache_listen(bench->cache, on_change, bench);
}

static int set_up(void **state)
{
    struct map_options options = { .max = 100000, .free_value = free_object };
    struct bench *bench = mem_alloc(sizeof(*bench));

    clock_init_virtual(&bench->clock, INT64_C(1700000000) * 1000000);
    bench->loop = loop_new_virtual(&bench->clock);
    map_init(&bench->mirror, &options);
    buf_init(&bench->log, 1 << 24);
    use_kind(bench, &slurm_job_kind);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    slurm_cache_free(bench->cache);
    map_done(&bench->mirror);
    buf_done(&bench->log);
    loop_free(bench->loop);
    mem_free(bench);
    return 0;
}

#define assert_told(bench, want)                                                                   \
    do {                                                                                           \
        loop_run((bench)->loop);                                                                   \
        assert_string_equal(buf_text(&(bench)->log), want);                                        \
        buf_clear(&(bench)->log);                                                                  \
    } while (0)

static const struct slurm_object *decode(const struct slurm_kind *kind, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object = NULL;

    assert_int_equal(json_parse(str_of(text), 1 << 20, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(kind, json_root(doc), &object, NULL), 0);
    return object;
}

/* "7=x": job 7, called x. */
static const struct slurm_object *job(int id, const char *name, const char *more)
{
    auto_buf struct buf text = { .max = 4000 };

    buf_printf(&text, "{\"job_id\":%d,\"name\":\"%s\"%s}", id, name, more);
    return decode(&slurm_job_kind, buf_text(&text));
}

static void put(struct bench *bench, const struct slurm_object *object, int64_t started_us)
{
    slurm_cache_seen(bench->cache, object, started_us);
    slurm_object_unref(object);
}

static bool all_may_go(void *context, const struct slurm_object *object)
{
    (void)context, (void)object;
    return true;
}

static bool none_may_go(void *context, const struct slurm_object *object)
{
    (void)context, (void)object;
    return false;
}

/* names: one letter per job, from id 1 on; '-' for one that is not in the list. */
static struct slurm_merge *merge_of(struct bench *bench, const char *names, int64_t started_us)
{
    struct slurm_merge *merge = slurm_merge_new(bench->cache, started_us);

    for (int i = 0; names[i]; i++)
        if (names[i] != '-')
            slurm_merge_add(merge, job(i + 1, (char[]){ names[i], '\0' }, ""));
    return merge;
}

/* What of the list was not believed. */
static size_t list_jobs(struct bench *bench, const char *names, int64_t started_us)
{
    struct slurm_merge *merge = merge_of(bench, names, started_us);
    size_t ignored;

    while (!slurm_merge_commit(merge, all_may_go, NULL))
        ;
    ignored = slurm_merge_ignored(merge);
    slurm_merge_free(merge);
    return ignored;
}

static const char *name_of(struct bench *bench, const char *key)
{
    return word(slurm_cache_get(bench->cache, key));
}

/* ---- one rule each ---- */

static void a_list_adds_changes_and_removes_in_order(void **state)
{
    struct bench *bench = *state;

    assert_int_equal(list_jobs(bench, "abc", 10), 0);
    assert_told(bench, "1:->a 2:->b 3:->c ");
    assert_int_equal(list_jobs(bench, "ax", 20), 0);
    assert_told(bench, "2:b>x 3:c>- ");
    assert_int_equal(slurm_cache_count(bench->cache), 2);
    assert_int_equal(list_jobs(bench, "ax", 30), 0);
    assert_told(bench, "");
    assert_int_equal(slurm_cache_listed_us(bench->cache), 30);
}

static void nothing_is_shown_or_told_before_the_first_list(void **state)
{
    struct bench *bench = *state;

    put(bench, job(1, "a", ""), 10);
    assert_null(slurm_cache_get(bench->cache, "1"));
    assert_int_equal(slurm_cache_count(bench->cache), 0);
    assert_told(bench, "");
    list_jobs(bench, "-b", 5);
    assert_told(bench, "1:->a 2:->b ");
    assert_string_equal(name_of(bench, "1"), "a");
}

static void an_older_list_neither_rolls_back_nor_removes(void **state)
{
    struct bench *bench = *state;

    list_jobs(bench, "a", 10);
    put(bench, job(1, "x", ""), 30);
    put(bench, job(2, "y", ""), 30);
    assert_told(bench, "1:->a 1:a>x 2:->y ");
    assert_int_equal(list_jobs(bench, "a", 20), 2); /* so that its time is not built upon */
    assert_told(bench, "");
    assert_int_equal(list_jobs(bench, "a", 40), 0);
    assert_told(bench, "1:x>a 2:y>- ");
}

static void an_older_read_does_not_bring_back_what_has_gone(void **state)
{
    struct bench *bench = *state;
    const struct slurm_object *object = job(1, "a", "");

    list_jobs(bench, "a", 10);
    assert_true(slurm_cache_seen_gone(bench->cache, "1", 30));
    assert_false(slurm_cache_seen(bench->cache, object, 20));
    assert_int_equal(list_jobs(bench, "a", 20), 1);
    assert_told(bench, "1:->a 1:a>- ");
    slurm_object_unref(object);
}

static void a_write_makes_reads_that_started_before_it_worthless(void **state)
{
    struct bench *bench = *state;
    const struct slurm_object *object = job(1, "x", "");

    list_jobs(bench, "a", 10);
    slurm_cache_wrote(bench->cache, "1", 30);
    slurm_cache_wrote(bench->cache, "2", 30);
    assert_false(slurm_cache_seen(bench->cache, object, 20));
    assert_false(slurm_cache_seen_gone(bench->cache, "1", 20));
    assert_int_equal(list_jobs(bench, "-b", 20), 2);
    assert_int_equal(slurm_cache_known_us(bench->cache, "1"), 10);
    assert_true(slurm_cache_seen(bench->cache, object, 30));
    assert_int_equal(slurm_cache_known_us(bench->cache, "1"), 30);
    assert_told(bench, "1:->a 1:a>x ");
    slurm_object_unref(object);
}

static void an_unchanged_list_confirms_and_removes_nothing(void **state)
{
    struct bench *bench = *state;

    assert_int_equal(slurm_cache_known_us(bench->cache, "1"), INT64_MIN);
    list_jobs(bench, "a", 10);
    slurm_cache_unchanged(bench->cache, 50);
    assert_int_equal(slurm_cache_known_us(bench->cache, "1"), 50);
    assert_int_equal(slurm_cache_known_us(bench->cache, "2"), 50);
    assert_told(bench, "1:->a ");
}

static void what_may_not_go_stays_and_is_not_taken_for_confirmed(void **state)
{
    struct bench *bench = *state;
    struct slurm_merge *merge;

    list_jobs(bench, "ab", 10);
    merge = merge_of(bench, "a", 20);
    assert_true(slurm_merge_commit(merge, none_may_go, NULL));
    assert_int_equal(slurm_merge_ignored(merge), 1);
    slurm_merge_free(merge);
    assert_told(bench, "1:->a 2:->b ");
    assert_int_equal(slurm_cache_known_us(bench->cache, "1"), 20);
    assert_int_equal(slurm_cache_known_us(bench->cache, "2"), 10);
}

static void a_merge_shows_nothing_before_its_commit(void **state)
{
    struct bench *bench = *state;
    struct slurm_merge *merge;
    uint64_t generation;

    list_jobs(bench, "ab", 10);
    generation = slurm_cache_generation(bench->cache);
    merge = merge_of(bench, "xyz", 20);
    assert_string_equal(name_of(bench, "1"), "a");
    assert_null(slurm_cache_get(bench->cache, "3"));
    assert_int_equal(slurm_cache_generation(bench->cache), generation);
    assert_true(slurm_merge_commit(merge, all_may_go, NULL));
    slurm_merge_free(merge);
    assert_string_equal(name_of(bench, "1"), "x");
    assert_int_equal(slurm_cache_count(bench->cache), 3);
    assert_true(slurm_cache_generation(bench->cache) > generation);
}

/* The list found it as it was, and that counts from then on, not from the commit. */
static void a_read_older_than_a_merge_under_way_does_not_slip_in(void **state)
{
    struct bench *bench = *state;
    struct slurm_merge *merge;

    list_jobs(bench, "a", 10);
    merge = merge_of(bench, "a", 30);
    put(bench, job(1, "x", ""), 20);
    assert_true(slurm_merge_commit(merge, all_may_go, NULL));
    slurm_merge_free(merge);
    assert_told(bench, "1:->a ");
}

static void a_first_fill_is_in_slices_and_shown_as_a_whole(void **state)
{
    struct bench *bench = *state;
    struct slurm_merge *merge = slurm_merge_new(bench->cache, 10);
    unsigned slices = 1;

    for (int i = 1; i <= 2500; i++)
        slurm_merge_add(merge, job(i, "a", ""));
    while (!slurm_merge_commit(merge, all_may_go, NULL)) {
        slices++;
        assert_int_equal(slurm_cache_count(bench->cache), 0);
        loop_run(bench->loop);
        assert_int_equal(bench->mirror.count, 0);
    }
    slurm_merge_free(merge);
    assert_int_equal(slices, 3);
    assert_int_equal(slurm_cache_count(bench->cache), 2500);
    assert_true(loop_step(bench->loop));
    assert_in_range(bench->mirror.count, 1, 2499); /* told in slices too */
    loop_run(bench->loop);
    assert_int_equal(bench->mirror.count, 2500);
}

static void a_snapshot_stays_while_the_cache_goes_on(void **state)
{
    struct bench *bench = *state;
    struct slurm_list list;

    list_jobs(bench, "ab", 10);
    list = slurm_cache_snapshot(bench->cache);
    list_jobs(bench, "x", 20);
    loop_run(bench->loop);
    assert_int_equal(list.count, 2);
    assert_string_equal(word(list.at[0]), "a");
    assert_string_equal(word(list.at[1]), "b");
    slurm_list_done(&list);
}

static void pass_seconds(struct bench *bench, int64_t seconds)
{
    struct loop_timer timer = { 0 };

    loop_timer_start(bench->loop, &timer, seconds * 1000000, mem_free, NULL);
    loop_run(bench->loop);
}

/* A whole list may take five minutes. */
static void ghosts_are_forgotten_when_no_read_is_as_old(void **state)
{
    struct bench *bench = *state;
    const struct slurm_object *object = job(2, "z", "");

    list_jobs(bench, "a", 10);
    slurm_cache_seen_gone(bench->cache, "2", 30);
    assert_false(slurm_cache_seen(bench->cache, object, 20));
    pass_seconds(bench, 300);
    list_jobs(bench, "a", 15);
    assert_false(slurm_cache_seen(bench->cache, object, 20));
    pass_seconds(bench, 100);
    list_jobs(bench, "a", 15);
    assert_true(slurm_cache_seen(bench->cache, object, 20));
    slurm_object_unref(object);
}

/* ---- indexes ---- */

static const char *found(struct bench *bench, enum slurm_index index, const char *key)
{
    static char text[200];
    struct slurm_index_walk walk = slurm_cache_by(bench->cache, index, str_of(key));
    const struct slurm_object *object;
    size_t length = 0;

    text[0] = '\0';
    while ((object = slurm_index_next(&walk)))
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s ", object->key);
    return text;
}

#define EXTERNAL ",\"flags\":[\"EXTERNAL_JOB\"]"

static void jobs_are_found_by_key_and_by_node(void **state)
{
    struct bench *bench = *state;

    list_jobs(bench, "", 1);
    put(bench,
        job(1, "a",
            EXTERNAL
            ",\"admin_comment\":\"{\\\"cluster\\\":\\\"c1\\\",\\\"release\\\":\\\"r\\\","
            "\\\"unit\\\":\\\"u1.1\\\"}\",\"nodes\":\"n[1-2],n1\",\"job_state\":[\"RUNNING\"]"),
        10);
    put(bench,
        job(2, "b",
            EXTERNAL ",\"admin_comment\":\"{\\\"cluster\\\":\\\"c1\\\",\\\"release\\\":\\\"r\\\","
                     "\\\"unit\\\":\\\"u1.2\\\"}\""
                     ",\"nodes\":\"n2\",\"job_state\":[\"RUNNING\"]"),
        10);
    put(bench,
        job(3, "c",
            EXTERNAL ",\"admin_comment\":\"{\\\"cluster\\\":\\\"c2\\\",\\\"release\\\":\\\"r\\\","
                     "\\\"unit\\\":\\\"u1.2\\\"}\""),
        10);
    assert_string_equal(found(bench, SLURM_JOBS_BY_KEY, "u1"), "1 2 ");
    assert_string_equal(found(bench, SLURM_JOBS_BY_NODE, "n1"), "1 ");
    assert_string_equal(found(bench, SLURM_JOBS_BY_NODE, "n2"), "1 2 ");
    put(bench,
        job(1, "a",
            EXTERNAL
            ",\"admin_comment\":\"{\\\"cluster\\\":\\\"c1\\\",\\\"release\\\":\\\"r\\\","
            "\\\"unit\\\":\\\"u1.1\\\"}\",\"nodes\":\"n[1-2]\",\"job_state\":[\"COMPLETED\"]"),
        20);
    assert_string_equal(found(bench, SLURM_JOBS_BY_NODE, "n1"), "");
    assert_string_equal(found(bench, SLURM_JOBS_BY_NODE, "n2"), "2 ");
    assert_string_equal(found(bench, SLURM_JOBS_BY_KEY, "u1"), "1 2 ");
    put(bench,
        job(3, "a",
            EXTERNAL ",\"admin_comment\":\"{\\\"cluster\\\":\\\"c1\\\",\\\"release\\\":\\\"r\\\","
                     "\\\"unit\\\":\\\"ns/u3.1\\\"}\""),
        20);
    assert_string_equal(found(bench, SLURM_JOBS_BY_NAMESPACE, "ns"), "3 ");
    put(bench,
        job(3, "a",
            EXTERNAL ",\"admin_comment\":\"{\\\"cluster\\\":\\\"c1\\\",\\\"release\\\":\\\"r\\\","
                     "\\\"unit\\\":\\\"ns/u3.1\\\"}\",\"job_state\":[\"COMPLETED\"]"),
        21);
    assert_string_equal(found(bench, SLURM_JOBS_BY_NAMESPACE, "ns"), "");
    slurm_cache_seen_gone(bench->cache, "1", 30);
    assert_string_equal(found(bench, SLURM_JOBS_BY_KEY, "u1"), "2 ");
}

static void nodes_are_in_no_index_of_jobs(void **state)
{
    struct bench *bench = *state;
    struct slurm_merge *merge;

    use_kind(bench, &slurm_node_kind);
    merge = slurm_merge_new(bench->cache, 10);
    slurm_merge_add(merge, decode(&slurm_node_kind, "{\"name\":\"n1\",\"extra\":\"u1.1 c1\"}"));
    assert_true(slurm_merge_commit(merge, all_may_go, NULL));
    slurm_merge_free(merge);
    assert_string_equal(found(bench, SLURM_JOBS_BY_KEY, "u1"), "");
}

/* Slurm stamps every node that works, again and again: that is no news for anybody. */
static void a_node_that_is_still_busy_is_no_change(void **state)
{
    struct bench *bench = *state;

    use_kind(bench, &slurm_node_kind);
    for (int i = 0; i < 2; i++) {
        struct slurm_merge *merge = slurm_merge_new(bench->cache, 10 + i);
        char text[100];

        snprintf(text, sizeof(text), "{\"name\":\"n1\",\"last_busy\":%d,\"tres_used\":\"cpu=%d\"}",
                 i, i);
        slurm_merge_add(merge, decode(&slurm_node_kind, text));
        assert_true(slurm_merge_commit(merge, all_may_go, NULL));
        slurm_merge_free(merge);
    }
    assert_told(bench, "n1:-> ");
}

/* ---- expected starts ---- */

#define WAITS           "\"submit_time\":5,\"job_state\":[\"PENDING\"]"
#define HOUR_US         (INT64_C(3600) * 1000000)
#define STARTS_AT(time) ",\"start_time\":" #time

static int64_t expected(struct bench *bench)
{
    loop_run(bench->loop);
    return slurm_job_expected_start(slurm_job_of(slurm_cache_get(bench->cache, "7")));
}

static void list_of(struct bench *bench, const struct slurm_object *object, int64_t started_us)
{
    struct slurm_merge *merge = slurm_merge_new(bench->cache, started_us);

    slurm_merge_add(merge, object);
    assert_true(slurm_merge_commit(merge, all_may_go, NULL));
    slurm_merge_free(merge);
}

/* slurmctld sets the expected starts to nothing when a backfill cycle begins. */
static void an_expected_start_stays_while_backfill_thinks_again(void **state)
{
    struct bench *bench = *state;

    list_of(bench, job(7, "x", "," WAITS STARTS_AT(900)), HOUR_US + 10);
    loop_run(bench->loop);
    buf_clear(&bench->log);
    list_of(bench, job(7, "x", "," WAITS STARTS_AT(0)), HOUR_US + 20);
    assert_int_equal(expected(bench), 900);
    put(bench, job(7, "x", "," WAITS STARTS_AT(0)), HOUR_US + 30);
    assert_int_equal(expected(bench), 900);
    assert_told(bench, ""); /* nothing has changed for anybody */
    list_of(bench, job(7, "x", "," WAITS STARTS_AT(950)), HOUR_US + 40);
    assert_int_equal(expected(bench), 950);
}

static void an_expected_start_that_slurm_no_longer_says_goes_in_the_end(void **state)
{
    struct bench *bench = *state;

    list_of(bench, job(7, "x", "," WAITS STARTS_AT(900)), HOUR_US + 10);
    list_of(bench, job(7, "x", "," WAITS STARTS_AT(0)), HOUR_US + 10 + SLURM_START_KEPT_US);
    assert_int_equal(expected(bench), 900);
    list_of(bench, job(7, "x", "," WAITS STARTS_AT(0)), HOUR_US + 11 + SLURM_START_KEPT_US);
    assert_int_equal(expected(bench), 0);
}

static void a_job_that_is_held_or_another_one_expects_no_start(void **state)
{
    struct bench *bench = *state;

    list_of(bench, job(7, "x", "," WAITS STARTS_AT(900)), HOUR_US + 10);
    list_of(bench, job(7, "x", "," WAITS ",\"hold\":true" STARTS_AT(0)), HOUR_US + 20);
    assert_int_equal(expected(bench), 0);
    list_of(bench, job(7, "x", "," WAITS STARTS_AT(900)), HOUR_US + 30);
    list_of(bench, job(7, "x", ",\"submit_time\":6,\"job_state\":[\"PENDING\"]"), HOUR_US + 40);
    assert_int_equal(expected(bench), 0);
}

/* ---- the model: histories of a few jobs, read at random, delivered in any order ---- */

enum { KEYS = 6, STEPS = 4000 };

static void mirror_equals_cache(struct bench *bench)
{
    struct slurm_cache_walk walk = slurm_cache_walk(bench->cache);
    const struct slurm_object *object;
    size_t count = 0;

    loop_run(bench->loop);
    while ((object = slurm_cache_next(&walk))) {
        count++;
        assert_ptr_equal(map_get(&bench->mirror, str_of(object->key)), object);
    }
    assert_int_equal(count, bench->mirror.count);
    assert_int_equal(count, slurm_cache_count(bench->cache));
}

struct letter { /* a read on its way: what the truth was at its start */
    int64_t started_us;
    char truth[KEYS + 1];
    int key; /* -1: a list */
};

static void deliver(struct bench *bench, const struct letter *letter, int64_t newest[KEYS],
                    char expected[KEYS])
{
    char key[16];

    snprintf(key, sizeof(key), "%d", letter->key + 1);
    if (letter->key < 0)
        list_jobs(bench, letter->truth, letter->started_us);
    else if (letter->truth[letter->key] == '-')
        slurm_cache_seen_gone(bench->cache, key, letter->started_us);
    else
        put(bench, job(letter->key + 1, (char[]){ letter->truth[letter->key], '\0' }, ""),
            letter->started_us);
    for (int i = 0; i < KEYS; i++) {
        if ((letter->key >= 0 && letter->key != i) || letter->started_us < newest[i])
            continue;
        newest[i] = letter->started_us;
        expected[i] = letter->truth[i];
    }
}

static void reads_in_any_order_leave_the_newest(void **state)
{
    struct bench *bench = *state;
    int64_t newest[KEYS] = { 0 };
    char expected[KEYS + 1] = "------", truth[KEYS + 1] = "------";
    struct letter letters[8];
    struct rand rand;

    rand_init(&rand, 7);
    for (size_t i = 0; i < 8; i++)
        letters[i] = (struct letter){ .started_us = 1, .truth = "------", .key = -1 };
    list_jobs(bench, truth, 1);
    for (int64_t now_us = 2; now_us < STEPS; now_us++) {
        struct letter *letter = &letters[rand_below(&rand, 8)];

        truth[rand_below(&rand, KEYS)] =
            rand_chance(&rand, 300) ? '-' : (char)('a' + (int)rand_below(&rand, 26));
        if (letter->started_us > 1)
            deliver(bench, letter, newest, expected);
        letter->started_us = now_us;
        memcpy(letter->truth, truth, sizeof(truth));
        letter->key = rand_chance(&rand, 500) ? -1 : (int)rand_below(&rand, KEYS);
        for (int i = 0; i < KEYS; i++) {
            char key[16], want[2] = { expected[i], '\0' };

            snprintf(key, sizeof(key), "%d", i + 1);
            assert_string_equal(name_of(bench, key), want);
        }
        mirror_equals_cache(bench);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_list_adds_changes_and_removes_in_order),
        TEST(nothing_is_shown_or_told_before_the_first_list),
        TEST(an_older_list_neither_rolls_back_nor_removes),
        TEST(an_older_read_does_not_bring_back_what_has_gone),
        TEST(a_write_makes_reads_that_started_before_it_worthless),
        TEST(an_unchanged_list_confirms_and_removes_nothing),
        TEST(what_may_not_go_stays_and_is_not_taken_for_confirmed),
        TEST(a_merge_shows_nothing_before_its_commit),
        TEST(a_read_older_than_a_merge_under_way_does_not_slip_in),
        TEST(a_first_fill_is_in_slices_and_shown_as_a_whole),
        TEST(a_snapshot_stays_while_the_cache_goes_on),
        TEST(ghosts_are_forgotten_when_no_read_is_as_old),
        TEST(jobs_are_found_by_key_and_by_node),
        TEST(nodes_are_in_no_index_of_jobs),
        TEST(a_node_that_is_still_busy_is_no_change),
        TEST(an_expected_start_stays_while_backfill_thinks_again),
        TEST(an_expected_start_that_slurm_no_longer_says_goes_in_the_end),
        TEST(a_job_that_is_held_or_another_one_expects_no_start),
        TEST(reads_in_any_order_leave_the_newest),
    };

    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
