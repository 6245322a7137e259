/* test_poller_arrays.c - tasks of arrays and components of heterogeneous jobs are followed as any
 * job is: by their own ids, without whole lists, whatever else goes on. */
#include "ctld_rig.h"

enum { RECORDS = 400, NAMES = 4 };

struct record {
    int64_t id, base; /* 0: a free place; base 0: of no array */
    const char *state;
    const char *names[NAMES]; /* as states name it; NULL: by its id */
    const char *states[NAMES];
};

struct arrays {
    struct ctld *ctld;
    struct record records[RECORDS];
    size_t filler;             /* bytes of text that each list has too many */
    int64_t unreadable;        /* this one is not to be had */
    const char *list, *states; /* instead of the records */
    struct buf body;
};

/* ---- slurmrestd ---- */

static void write_states(struct arrays *arrays)
{
    const char *between = "";

    for (size_t i = 0; i < RECORDS; i++) {
        const struct record *record = &arrays->records[i];

        for (unsigned part = 0; record->id != 0 && part < NAMES; part++) {
            const char *state = record->states[part] ? record->states[part] : record->state;

            if (record->names[part])
                buf_printf(&arrays->body, "%s{\"job_id\":\"%s\",\"state\":[\"%s\"]}", between,
                           record->names[part], state);
            else if (part == 0)
                buf_printf(&arrays->body, "%s{\"job_id\":\"%" PRId64 "\",\"state\":[\"%s\"]}",
                           between, record->id, state);
            else
                break;
            between = ",";
        }
    }
}

/* All, or the one with this id and those of the array with this id. */
static unsigned write_records(struct arrays *arrays, int64_t id)
{
    unsigned count = 0;

    for (size_t i = 0; i < RECORDS; i++) {
        const struct record *record = &arrays->records[i];

        if (record->id == 0 || (id != 0 && record->id != id && record->base != id))
            continue;
        buf_printf(&arrays->body,
                   "%s{\"job_id\":%" PRId64 ",\"step_id\":{\"sluid\":\"t%" PRId64 "\"},"
                   "\"job_state\":[\"%s\"],\"array_job_id\":{\"set\":true,\"number\":%" PRId64 "}",
                   count++ > 0 ? "," : "", record->id, record->id, record->state, record->base);
        if (count == 1 && id == 0 && arrays->filler > 0)
            buf_printf(&arrays->body, ",\"nobody_reads_this\":\"%*s\"", (int)arrays->filler, "x");
        buf_add_char(&arrays->body, '}');
    }
    return count;
}

static int respond(struct arrays *arrays, const char *path)
{
    const char *one = strstr(path, "/job/");
    int64_t id = one ? (int64_t)strtoll(one + 5, NULL, 10) : 0;
    const char *whole = strstr(path, "/state/") ? arrays->states : one ? NULL : arrays->list;
    unsigned count = 1;

    if (id != 0 && id == arrays->unreadable)
        return 500;
    if (whole) {
        buf_add_text(&arrays->body, whole);
        return 200;
    }
    buf_add_text(&arrays->body, "{\"jobs\":[");
    if (strstr(path, "/state/"))
        write_states(arrays);
    else
        count = write_records(arrays, id);
    buf_printf(&arrays->body, "],\"errors\":[%s],\"last_update\":{\"set\":true,\"number\":9}}",
               count == 0 && one ? "{\"error_number\":2017}" : "");
    return count == 0 && one ? 404 : 200;
}

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct arrays *arrays = context;
    struct fake_answer answer = { .delay_us = MS_US, .ends = true };

    if (!strstr(sent->path, "/job"))
        return ctld_serve(arrays->ctld, sent);
    buf_clear(&arrays->body);
    answer.status = respond(arrays, sent->path);
    answer.body = buf_text(&arrays->body);
    return answer;
}

static int set_up(void **state)
{
    struct arrays *arrays = mem_alloc(sizeof(*arrays));
    void *ctld;

    ctld_up(&ctld);
    arrays->ctld = ctld;
    arrays->ctld->next_id = 1000;
    buf_init(&arrays->body, 16 << 20);
    fake_serve(arrays->ctld->world->fake, serve, arrays);
    *state = arrays;
    return 0;
}

static int tear_down(void **state)
{
    struct arrays *arrays = *state;
    void *ctld = arrays->ctld;

    buf_done(&arrays->body);
    mem_free(arrays);
    return ctld_down(&ctld);
}

static void put(struct arrays *arrays, struct record record)
{
    size_t at = 0;

    while (arrays->records[at].id != 0 && arrays->records[at].id != record.id)
        assert_true(++at < RECORDS);
    arrays->records[at] = record;
}

static void drop(struct arrays *arrays, int64_t id)
{
    for (size_t i = 0; i < RECORDS; i++)
        if (arrays->records[i].id == id)
            arrays->records[i].id = 0;
}

static void assert_calm(struct arrays *arrays)
{
    assert_int_equal(slurm_poller_suspicions(arrays->ctld->poller), 0);
    assert_int_equal(ctld_sent(arrays->ctld, "/jobs/?"), 0);
}

/* ---- tasks ---- */

static void a_task_that_starts_is_read_by_its_own_id(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    put(arrays, (struct record){ 7, 7, "PENDING", { "7_1", "7_2", "7_3" }, { 0 } });
    ctld_begin(ctld);
    ctld_run(ctld, 3000);
    assert_told(ctld, "");
    put(arrays, (struct record){ 7, 7, "PENDING", { "7_2", "7_3" }, { 0 } });
    put(arrays, (struct record){ 8, 7, "RUNNING", { "8_1" }, { 0 } });
    ctld_run(ctld, 10000);
    assert_told(ctld, "8:->R ");
    assert_int_equal(ctld_sent(ctld, "/job/8"), 1);
    assert_int_equal(ctld_sent(ctld, "/job/7"), 0);
    put(arrays, (struct record){ 8, 7, "COMPLETED", { "8_1" }, { 0 } });
    ctld_run(ctld, 3000);
    assert_told(ctld, "8:R>C ");
    assert_calm(arrays);
}

static void an_array_that_is_new_is_read_once_however_many_tasks_it_has(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    ctld_begin(ctld);
    put(arrays, (struct record){ 7, 7, "PENDING", { "7_1", "7_2", "7_[3-9]" }, { 0 } });
    ctld_run(ctld, 10000);
    assert_told(ctld, "7:->P ");
    assert_int_equal(ctld_sent(ctld, "/job/7"), 1);
    assert_calm(arrays);
}

static void other_jobs_are_followed_while_arrays_change_all_the_time(void **state)
{
    static const char *const states[] = { "PENDING", "RUNNING", "COMPLETING", "COMPLETED" };
    static const char *const names[] = { "7_[1-9]", "8_1", "9_2", "10_3" };
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    put(arrays, (struct record){ .id = 1, .state = states[0] });
    put(arrays, (struct record){ 7, 7, "PENDING", { names[0] }, { 0 } });
    ctld_begin(ctld);
    for (int64_t i = 1; i <= 3; i++) {
        put(arrays, (struct record){ .id = 1, .state = states[i] });
        put(arrays, (struct record){ 7 + i, 7, "RUNNING", { names[i] }, { 0 } });
        ctld_run(ctld, 2100);
        assert_true(ctld_sent(ctld, "/job/1?") == i);
    }
    assert_told(ctld, "1:P>R 8:->R 1:R>? 9:->R 1:?>C 10:->R ");
    assert_calm(arrays);
}

static void tasks_that_were_purged_have_gone(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    put(arrays, (struct record){ 7, 7, "PENDING", { "7_2" }, { 0 } });
    put(arrays, (struct record){ 8, 7, "COMPLETED", { "8_1" }, { 0 } });
    ctld_begin(ctld);
    ctld_run(ctld, 3000);
    drop(arrays, 8);
    ctld_run(ctld, 3000);
    assert_told(ctld, "8:C>- ");
    put(arrays, (struct record){ 7, 7, "CANCELLED", { "7_2" }, { 0 } });
    ctld_run(ctld, 3000);
    assert_told(ctld, "7:P>X ");
    drop(arrays, 7);
    ctld_run(ctld, 3000);
    assert_told(ctld, "7:X>- ");
    assert_calm(arrays);
}

static void a_running_task_that_disappears_is_a_sign(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    put(arrays, (struct record){ 7, 7, "PENDING", { "7_2" }, { 0 } });
    put(arrays, (struct record){ 8, 7, "RUNNING", { "8_1" }, { 0 } });
    ctld_begin(ctld);
    ctld_run(ctld, 3000);
    drop(arrays, 8);
    ctld_run(ctld, 5000);
    assert_string_equal(slurm_poller_why(ctld->poller), "a job that had not ended is missing");
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 1);
    assert_told(ctld, "8:R>- ");
}

static void components_of_a_heterogeneous_job_are_jobs(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    put(arrays, (struct record){ 8, 0, "PENDING", { "8+0" }, { 0 } });
    put(arrays, (struct record){ 9, 0, "PENDING", { "9+1" }, { 0 } });
    ctld_begin(ctld);
    ctld_run(ctld, 10000);
    assert_told(ctld, "");
    put(arrays, (struct record){ 9, 0, "RUNNING", { "9+1" }, { 0 } });
    ctld_run(ctld, 3000);
    assert_told(ctld, "9:P>R ");
    assert_calm(arrays);
}

/* What a real one says: three tasks wait as 18, others have ended and run as 19 and 20. */
static void a_recorded_array_needs_no_reads_when_its_records_are_known(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;
    struct recording list = recording_of("job_get_array"),
                     states = recording_of("jobs_state_array");

    arrays->list = list.text;
    arrays->states = states.text;
    ctld_begin(ctld);
    assert_string_equal(ctld_state_of(&ctld_shown(ctld, "18")->object), "P");
    assert_string_equal(ctld_state_of(&ctld_shown(ctld, "19")->object), "C");
    assert_string_equal(ctld_state_of(&ctld_shown(ctld, "20")->object), "R");
    ctld_run(ctld, 2000);
    assert_int_equal(ctld_sent(ctld, "/job/21"), 1); /* the list has not these */
    assert_int_equal(ctld_sent(ctld, "/job/22"), 1);
    assert_int_equal(ctld_sent(ctld, "/job/"), 2);
    assert_calm(arrays);
    recording_done(&list);
    recording_done(&states);
}

/* ---- should a server name all records of an array by its one id ---- */

static void put_mixed(struct arrays *arrays, const char *first)
{
    put(arrays, (struct record){ 7, 7, "PENDING", { "7_1", "7_[2-3]" }, { first, "PENDING" } });
}

static void an_array_that_is_named_in_several_states_is_read_when_they_change(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;
    struct record silent = { 8, 7, "RUNNING", { "7_[2-3]" }, { "PENDING" } };

    put_mixed(arrays, "RUNNING");
    put(arrays, silent);
    ctld_begin(ctld);
    ctld_run(ctld, 10000);
    assert_told(ctld, "");
    assert_int_equal(ctld_sent(ctld, "/job/7"), 1); /* it was new to us */
    put_mixed(arrays, "COMPLETED");
    silent.state = "COMPLETED";
    put(arrays, silent);
    ctld_run(ctld, 10000);
    assert_told(ctld, "8:R>C ");
    assert_int_equal(ctld_sent(ctld, "/job/7"), 2);
    assert_calm(arrays);
}

static void such_a_read_that_fails_is_repeated(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    put_mixed(arrays, "RUNNING");
    arrays->unreadable = 7;
    ctld_begin(ctld);
    ctld_run(ctld, 10000);
    assert_true(ctld_sent(ctld, "/job/7") > 1);
    arrays->unreadable = 0;
    ctld_run(ctld, 30000);
    fake_forget_sent(ctld->world->fake);
    ctld_run(ctld, 10000);
    assert_int_equal(ctld_sent(ctld, "/job/7"), 0);
    assert_calm(arrays);
}

static void what_went_with_such_an_array_is_told_by_a_list(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;
    struct record silent = { 8, 7, "COMPLETED", { "7_[2-3]" }, { "CANCELLED" } };

    put(arrays, (struct record){ 7, 7, "CANCELLED", { "7_1", "7_4" }, { "COMPLETED" } });
    put(arrays, silent);
    ctld_begin(ctld);
    ctld_run(ctld, 5000);
    drop(arrays, 7);
    drop(arrays, 8);
    ctld_run(ctld, 10000);
    assert_told(ctld, "7:X>- 8:C>- ");
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
}

static void a_name_of_no_known_kind_leads_to_a_list(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    ctld_begin(ctld);
    put(arrays, (struct record){ 9, 0, "PENDING", { "nine" }, { 0 } });
    ctld_run(ctld, 2500);
    assert_told(ctld, "9:->P ");
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
}

/* ---- when a list has to wait ---- */

static void put_many(struct arrays *arrays, int64_t from, int64_t count)
{
    for (int64_t id = from; id < from + count; id++)
        put(arrays, (struct record){ .id = id, .state = "PENDING" });
}

static void states_and_reads_go_on_until_the_list_may_come(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;
    const unsigned few = 256;

    put_many(arrays, 1, 1);
    arrays->filler = 6000000; /* six seconds' worth */
    ctld_begin(ctld);
    put_many(arrays, 2, 300); /* more than are read one by one */
    ctld_run(ctld, 2500);
    assert_int_equal(ctld_sent(ctld, "/job/"), few);
    assert_int_equal(slurm_cache_count(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS)), few + 1);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);
    put(arrays, (struct record){ .id = 1, .state = "RUNNING" });
    ctld_run(ctld, 2500);
    assert_string_equal(ctld_state_of(&ctld_shown(ctld, "1")->object), "R");
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 0);
    ctld_run(ctld, 3000);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_int_equal(slurm_cache_count(slurm_poller_cache(ctld->poller, SLURM_FEED_JOBS)), 301);
    assert_int_equal(slurm_poller_suspicions(ctld->poller), 0);
}

static void a_suspicion_does_not_wait_for_the_bytes_of_the_last_list(void **state)
{
    struct arrays *arrays = *state;
    struct ctld *ctld = arrays->ctld;

    put_many(arrays, 1, 1);
    arrays->filler = 6000000;
    ctld_begin(ctld);
    slurm_poller_suspect(ctld->poller, "test");
    ctld_run(ctld, 500);
    assert_int_equal(ctld_sent(ctld, "/jobs/?"), 1);
    assert_false(slurm_poller_is_suspicious(ctld->poller));
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_that_starts_is_read_by_its_own_id),
        TEST(an_array_that_is_new_is_read_once_however_many_tasks_it_has),
        TEST(other_jobs_are_followed_while_arrays_change_all_the_time),
        TEST(tasks_that_were_purged_have_gone),
        TEST(a_running_task_that_disappears_is_a_sign),
        TEST(components_of_a_heterogeneous_job_are_jobs),
        TEST(a_recorded_array_needs_no_reads_when_its_records_are_known),
        TEST(an_array_that_is_named_in_several_states_is_read_when_they_change),
        TEST(such_a_read_that_fails_is_repeated),
        TEST(what_went_with_such_an_array_is_told_by_a_list),
        TEST(a_name_of_no_known_kind_leads_to_a_list),
        TEST(states_and_reads_go_on_until_the_list_may_come),
        TEST(a_suspicion_does_not_wait_for_the_bytes_of_the_last_list),
    };

    return cmocka_run_group_tests_name("poller arrays", tests, NULL, NULL);
}
