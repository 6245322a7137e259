/* test_ui_view.c - what the page is told: a snapshot, and then only what changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exporter/ui_view.h"

enum { MAX_TEXT = 1 << 20, NOW_S = 1000000 };

struct rig {
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *jobs, *nodes;
    struct layouts *layouts;
    struct ui_view *view;
    int64_t now_s, read_us;
    bool hides_users, hides_jobs, has_no_jobs; /* has_no_jobs: they are stale or hidden */
    struct json_doc *message;
};

static int setup(void **state)
{
    struct rig *rig = test_calloc(1, sizeof(*rig));

    clock_init_virtual(&rig->clock, 0);
    rig->loop = loop_new_virtual(&rig->clock);
    rig->jobs = slurm_cache_new(&slurm_job_kind, rig->loop, NULL);
    rig->nodes = slurm_cache_new(&slurm_node_kind, rig->loop, NULL);
    rig->layouts = layouts_new(rig->loop, NULL, rig->jobs, rig->nodes);
    rig->view = ui_view_new(rig->layouts);
    rig->now_s = NOW_S;
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;

    json_doc_free(rig->message);
    ui_view_free(rig->view);
    layouts_free(rig->layouts);
    slurm_cache_free(rig->jobs);
    slurm_cache_free(rig->nodes);
    loop_free(rig->loop);
    test_free(rig);
    return 0;
}

static bool may_go(void *context, const struct slurm_object *object)
{
    (void)context;
    (void)object;
    return true;
}

/* The cache now has exactly the objects of this list. */
static void list(struct rig *rig, struct slurm_cache *cache, const struct slurm_kind *kind,
                 const char *text)
{
    struct slurm_merge *merge = slurm_merge_new(cache, ++rig->read_us);
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object;
    struct err err = { .class = 0 };
    const struct json *item;
    struct json_iter iter;

    if (json_parse(str_of(text), MAX_TEXT, &doc, &err) < 0)
        fail_msg("%s", err.text);
    iter = json_iter(json_root(doc));
    while (json_next_item(&iter, &item)) {
        if (slurm_object_decode(kind, item, &object, &err) < 0)
            fail_msg("%s", err.text);
        slurm_merge_add(merge, object);
    }
    while (!slurm_merge_commit(merge, may_go, NULL))
        (void)loop_step(rig->loop);
    slurm_merge_free(merge);
}

static void list_nodes(struct rig *rig, const char *text)
{
    list(rig, rig->nodes, &slurm_node_kind, text);
}

static void list_jobs(struct rig *rig, const char *text)
{
    list(rig, rig->jobs, &slurm_job_kind, text);
}

/* Looks, and keeps the message that viewers would get. True: it is a snapshot. */
static bool look(struct rig *rig)
{
    struct tally_health health = { .cluster = "c1",
                                   .knows_hidden = true,
                                   .hides[HIDES_JOBS] = rig->hides_jobs };
    struct tally_view from = { .jobs = rig->has_no_jobs ? NULL : rig->jobs,
                               .nodes = rig->nodes,
                               .health = &health,
                               .now_s = rig->now_s,
                               .shows_users = !rig->hides_users };
    auto_buf struct buf text = { .max = MAX_TEXT };
    auto_arena struct arena arena;
    struct err err = { .class = 0 };
    struct tally tally;
    bool is_new;

    arena_init(&arena, 64 << 20);
    tally_init(&tally, &from, &arena);
    if (from.jobs)
        tally_jobs(&tally);
    tally_nodes(&tally);
    is_new = ui_view_look(rig->view, &tally);
    tally_done(&tally);
    if (is_new)
        ui_view_write_snapshot(rig->view, &text);
    else
        ui_view_write_delta(rig->view, &text);
    json_doc_free(rig->message);
    rig->message = NULL;
    if (json_parse(buf_str(&text), MAX_TEXT, &rig->message, &err) < 0)
        fail_msg("%s: %s", err.text, buf_text(&text));
    return is_new;
}

static void assert_member(const struct rig *rig, const char *name, const char *wanted)
{
    auto_buf struct buf text = { .max = MAX_TEXT };

    json_write(json_get(json_root(rig->message), name), &text);
    assert_string_equal(buf_text(&text), wanted);
}

static const char two_nodes[] =
    "[{\"name\":\"n2\",\"cpus\":8,\"alloc_cpus\":5,\"gres\":\"gpu:4\",\"state\":[\"MIXED\"],"
    "\"partitions\":[\"gpu\","
    "\"all\"]},"
    " {\"name\":\"n10\",\"cpus\":4,\"state\":[\"IDLE\",\"DRAIN\"],\"reason\":\"a \\\"bad\\\" "
    "disk\","
    "\"partitions\":[\"all\"]}]";

static const char job_and_pod[] =
    "[{\"job_id\":7,\"name\":\"cfd\",\"user_name\":\"bob\",\"job_state\":[\"RUNNING\"],"
    "  \"nodes\":\"n2\",\"node_count\":{\"set\":true,\"number\":1},"
    "  \"tres_alloc_str\":\"cpu=2,node=1\",\"submit_time\":{\"set\":true,\"number\":10},"
    "  \"start_time\":{\"set\":true,\"number\":20}},"
    " {\"job_id\":8,\"name\":\"pod\",\"user_name\":\"ann\",\"job_state\":[\"RUNNING\"],"
    "  \"flags\":[\"EXTERNAL_JOB\"],\"admin_comment\":\"{\\\"pods\\\":[\\\"lab/train\\\"]}\","
    "  \"nodes\":\"n2\",\"node_count\":{\"set\":true,\"number\":1},"
    "  \"tres_alloc_str\":\"cpu=3,node=1,gres/gpu=2\",\"submit_time\":{\"set\":true,\"number\":11},"
    "  \"start_time\":{\"set\":true,\"number\":21}}]";

static void a_snapshot_says_who_holds_which_cores(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    assert_true(look(rig));
    assert_member(rig, "cluster", "\"c1\"");
    assert_member(rig, "holders",
                  "[[\"j\",\"cfd\",7,\"bob\",10,20],[\"p\",\"lab/train\",8,\"ann\",11,21]]");
    assert_member(rig, "nodes",
                  "[[\"n2\",8,4,\"gpu\",\"m\",\"0-2:1,3-4:0\",\"0-1:1\",\"\",0],"
                  "[\"n10\",4,0,\"all\",\"d\",\"\",\"\",\"a \\\"bad\\\" disk\",1]]");
}

/* As Slurm answers about a job that has cores of n2: a hexadecimal map, and indexes of GPUs. */
static void tell_layout(struct rig *rig, const char *job, int cores_per_socket, const char *cores,
                        const char *gpus)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { .class = 0 };

    buf_printf(
        &text,
        "{\"nodes\":[{\"node\":\"n2\",\"sockets_per_node\":1,\"cores_per_socket\":%d,"
        "\"core_bitmap\":\"%s\",\"gres\":[{\"name\":\"gpu\",\"index\":\"%s\",\"count\":1}]}]}",
        cores_per_socket, cores, gpus);
    assert_int_equal(json_parse(buf_str(&text), MAX_TEXT, &doc, &err), 0);
    if (layouts_take(rig->layouts, slurm_job_of(slurm_cache_get(rig->jobs, job)), json_root(doc),
                     &err) < 0)
        fail_msg("%s", err.text);
}

static void cores_are_where_slurm_says(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    (void)look(rig);
    tell_layout(rig, "7", 8, "0x12", "");
    assert_false(look(rig));
    /* the pod has three of the others: Slurm has not said which yet */
    assert_member(rig, "n", "[[0,\"m\",\"0-0:1,1-1:0,2-3:1,4-4:0\",\"0-1:1\",\"\",0]]");
    tell_layout(rig, "8", 8, "0xE0", "1,3");
    assert_false(look(rig));
    assert_member(rig, "n", "[[0,\"m\",\"1-1:0,4-4:0,5-7:1\",\"1-1:1,3-3:1\",\"\",1]]");
}

static void a_core_with_two_threads_is_two_cells(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    tell_layout(rig, "7", 4, "0x8", "");
    (void)look(rig);
    assert_member(rig, "nodes",
                  "[[\"n2\",8,4,\"gpu\",\"m\",\"0-2:1,6-7:0\",\"0-1:1\",\"\",0],"
                  "[\"n10\",4,0,\"all\",\"d\",\"\",\"\",\"a \\\"bad\\\" disk\",1]]");
}

static void what_was_known_of_a_job_that_started_again_does_not_count(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    tell_layout(rig, "7", 8, "0xC0", "");
    list_jobs(rig, "[{\"job_id\":7,\"name\":\"cfd\",\"job_state\":[\"RUNNING\"],\"nodes\":\"n2\","
                   "\"node_count\":{\"set\":true,\"number\":1},\"tres_alloc_str\":\"cpu=2,node=1\","
                   "\"start_time\":{\"set\":true,\"number\":99}}]");
    (void)look(rig);
    assert_member(rig, "nodes",
                  "[[\"n2\",8,4,\"gpu\",\"m\",\"0-1:0\",\"\",\"\",0],"
                  "[\"n10\",4,0,\"all\",\"d\",\"\",\"\",\"a \\\"bad\\\" disk\",1]]");
}

static void an_unchanged_look_tells_only_the_ages(void **state)
{
    struct rig *rig = *state;
    struct tally_health health = { .kinds[KIND_JOBS] = { .is_up = true, .age_s = 3 } };
    struct tally_view from = { .jobs = rig->jobs, .nodes = rig->nodes, .health = &health };
    struct tally tally = { .view = &from };
    auto_buf struct buf text = { .max = MAX_TEXT };

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    (void)look(rig);
    ui_view_look_at_ages(rig->view, &tally);
    ui_view_write_delta(rig->view, &text);
    assert_string_equal(buf_text(&text),
                        "{\"h\":[],\"n\":[],\"ages\":{\"jobs\":3.0,\"nodes\":0.0}}");
}

static void a_second_look_says_only_what_changed(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    (void)look(rig);
    assert_false(look(rig));
    assert_member(rig, "n", "[]");
    assert_member(rig, "h", "[]");
    assert_null(json_get(json_root(rig->message), "queue"));
    assert_null(json_get(json_root(rig->message), "totals"));
    list_jobs(rig, "[{\"job_id\":9,\"name\":\"new\",\"job_state\":[\"RUNNING\"],\"nodes\":\"n2\","
                   "\"node_count\":{\"set\":true,\"number\":1},\"tres_alloc_str\":\"cpu=8,node=1\"}"
                   "]");
    assert_false(look(rig));
    assert_member(rig, "h", "[[2,\"j\",\"new\",9,\"\",0,0]]");
    assert_member(rig, "n", "[[0,\"m\",\"0-7:2\",\"\",\"\",1]]");
}

static void holders_of_long_ago_are_dropped(void **state)
{
    enum { AT_ONCE = 50, TIMES = 2 * UI_VIEW_OLD_HOLDERS / AT_ONCE };
    struct rig *rig = *state;
    auto_buf struct buf snapshot = { .max = MAX_TEXT };
    auto_json_doc struct json_doc *doc = NULL;
    unsigned begun_anew = 0;

    list_nodes(rig, two_nodes);
    for (unsigned i = 0; i < TIMES; i++) {
        auto_buf struct buf jobs = { .max = MAX_TEXT };

        for (unsigned k = 0; k < AT_ONCE; k++)
            buf_printf(&jobs,
                       "%c{\"job_id\":%u,\"job_state\":[\"RUNNING\"],\"nodes\":\"n2\","
                       "\"tres_alloc_str\":\"cpu=1,node=1\"}",
                       k > 0 ? ',' : '[', 1 + i * AT_ONCE + k);
        buf_add_char(&jobs, ']');
        list_jobs(rig, buf_text(&jobs));
        begun_anew += look(rig);
    }
    assert_int_equal(begun_anew, 2); /* the first one, and once for those that have ended */
    ui_view_write_snapshot(rig->view, &snapshot);
    assert_int_equal(json_parse(buf_str(&snapshot), MAX_TEXT, &doc, NULL), 0);
    assert_in_range(json_len(json_get(json_root(doc), "holders")), AT_ONCE,
                    UI_VIEW_OLD_HOLDERS + 3 * AT_ONCE);
}

static void nodes_that_come_or_go_need_a_snapshot(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    assert_true(look(rig));
    assert_false(look(rig));
    list_nodes(rig, "[{\"name\":\"n2\",\"cpus\":8,\"state\":[\"IDLE\"]}]");
    assert_true(look(rig));
    assert_member(rig, "nodes", "[[\"n2\",8,0,\"\",\"i\",\"\",\"\",\"\",1]]");
}

static void the_queue_is_in_the_order_of_priority_with_the_class_of_the_reason(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig,
              "[{\"job_id\":1,\"name\":\"low\",\"job_state\":[\"PENDING\"],\"partition\":\"all\","
              "  \"priority\":{\"set\":true,\"number\":5},\"state_reason\":\"Priority\","
              "  \"node_count\":{\"set\":true,\"number\":2},\"cpus\":{\"set\":true,\"number\":8},"
              "  \"tres_req_str\":\"cpu=8,node=2\",\"submit_time\":{\"set\":true,\"number\":5}},"
              " {\"job_id\":2,\"name\":\"high\",\"job_state\":[\"PENDING\"],\"partition\":\"all\","
              "  \"priority\":{\"set\":true,\"number\":9},\"state_reason\":\"PartitionTimeLimit\","
              "  \"node_count\":{\"set\":true,\"number\":1},\"cpus\":{\"set\":true,\"number\":1},"
              "  \"tres_req_str\":\"cpu=1,node=1\",\"submit_time\":{\"set\":true,\"number\":6}}]");
    assert_true(look(rig));
    assert_member(rig, "queue",
                  "[[2,\"j\",\"high\",\"\",\"\",\"all\",1,1,0,6,\"never\",\"PartitionTimeLimit\",0,"
                  "\"never: over the partition's time limit\"],"
                  "[1,\"j\",\"low\",\"\",\"\",\"all\",2,8,0,5,\"priority\",\"Priority\",0,"
                  "\"others come first\"]]");
}

static const char n2_drains[] = "[{\"name\":\"n2\",\"cpus\":8,\"alloc_cpus\":6,\"gres\":\"gpu:4\","
                                "\"gres_used\":\"gpu:3\",\"state\":[\"MIXED\",\"DRAIN\"],"
                                "\"partitions\":[\"gpu\",\"all\"]},"
                                " {\"name\":\"n10\",\"cpus\":4,\"state\":[\"IDLE\"],"
                                "\"partitions\":[\"all\"]}]";

static void while_jobs_are_stale_nodes_keep_their_holders_and_no_sample_is_taken(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    (void)look(rig);
    rig->has_no_jobs = true;
    rig->now_s += UI_VIEW_SAMPLE_S;
    assert_false(look(rig));
    assert_member(rig, "n", "[]");
    assert_null(json_get(json_root(rig->message), "sample"));
    list_nodes(rig, n2_drains);
    assert_false(look(rig));
    assert_member(rig, "n",
                  "[[0,\"g\",\"0-2:1,3-4:0\",\"0-1:1\",\"\",0],[1,\"i\",\"\",\"\",\"\",1]]");
}

static void while_jobs_are_hidden_what_is_in_use_has_a_holder_without_a_name(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, n2_drains);
    list_jobs(rig, job_and_pod);
    rig->hides_jobs = rig->has_no_jobs = true;
    assert_true(look(rig));
    assert_member(rig, "holders", "[[\"j\",\"not shown\",0,\"\",0,0]]");
    assert_member(rig, "nodes",
                  "[[\"n2\",8,4,\"gpu\",\"g\",\"0-5:0\",\"0-2:0\",\"\",0],"
                  "[\"n10\",4,0,\"all\",\"i\",\"\",\"\",\"\",0]]");
    assert_member(rig, "history", "[]");
    rig->hides_jobs = rig->has_no_jobs = false;
    assert_true(look(rig));
    rig->hides_jobs = rig->has_no_jobs = true;
    assert_true(look(rig)); /* holders that were shown before are not kept */
    assert_member(rig, "holders", "[[\"j\",\"not shown\",0,\"\",0,0]]");
    assert_null(json_get(json_root(rig->message), "queue"));
    assert_member(rig, "nodes",
                  "[[\"n2\",8,4,\"gpu\",\"g\",\"0-5:0\",\"0-2:0\",\"\",0],"
                  "[\"n10\",4,0,\"all\",\"i\",\"\",\"\",\"\",0]]");
}

static void users_that_are_not_to_be_shown_are_not(void **state)
{
    struct rig *rig = *state;

    rig->hides_users = true;
    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    (void)look(rig);
    assert_member(rig, "names", "false");
    assert_member(rig, "holders",
                  "[[\"j\",\"cfd\",7,\"\",10,20],[\"p\",\"lab/train\",8,\"\",11,21]]");
}

static void users_that_were_shown_and_are_hidden_now_are_told_no_more(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    (void)look(rig);
    rig->hides_users = true;
    assert_true(look(rig));
    assert_member(rig, "holders",
                  "[[\"j\",\"cfd\",7,\"\",10,20],[\"p\",\"lab/train\",8,\"\",11,21]]");
    rig->hides_users = false;
    assert_true(look(rig));
    assert_member(rig, "holders",
                  "[[\"j\",\"cfd\",7,\"bob\",10,20],[\"p\",\"lab/train\",8,\"ann\",11,21]]");
    rig->hides_users = rig->has_no_jobs = true; /* and nothing to write anew */
    assert_true(look(rig));
    assert_member(rig, "names", "false");
    assert_member(rig, "holders", "[[\"j\",\"not shown\",0,\"\",0,0]]");
    assert_null(json_get(json_root(rig->message), "queue"));
}

static void a_sample_is_taken_every_15_s(void **state)
{
    struct rig *rig = *state;

    list_nodes(rig, two_nodes);
    list_jobs(rig, job_and_pod);
    (void)look(rig);
    assert_member(rig, "history", "[[1000000,3,2,3,4]]");
    rig->now_s += 14;
    (void)look(rig);
    assert_null(json_get(json_root(rig->message), "sample"));
    rig->now_s += 1;
    (void)look(rig);
    assert_member(rig, "sample", "[1000015,3,2,3,4]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_snapshot_says_who_holds_which_cores),
        TEST(cores_are_where_slurm_says),
        TEST(a_core_with_two_threads_is_two_cells),
        TEST(what_was_known_of_a_job_that_started_again_does_not_count),
        TEST(an_unchanged_look_tells_only_the_ages),
        TEST(a_second_look_says_only_what_changed),
        TEST(holders_of_long_ago_are_dropped),
        TEST(nodes_that_come_or_go_need_a_snapshot),
        TEST(the_queue_is_in_the_order_of_priority_with_the_class_of_the_reason),
        TEST(while_jobs_are_stale_nodes_keep_their_holders_and_no_sample_is_taken),
        TEST(while_jobs_are_hidden_what_is_in_use_has_a_holder_without_a_name),
        TEST(users_that_are_not_to_be_shown_are_not),
        TEST(users_that_were_shown_and_are_hidden_now_are_told_no_more),
        TEST(a_sample_is_taken_every_15_s),
    };

    return cmocka_run_group_tests_name("exporter/ui_view", tests, NULL, NULL);
}
