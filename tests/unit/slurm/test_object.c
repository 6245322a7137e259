/* test_object.c - recorded objects of the oldest and the newest version become the same structs. */
#include "slurm/object.h"

#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct slurm_list decode(const char *name, const struct slurm_kind *kind)
{
    struct recording recording = recording_of(name);
    struct slurm_list list;
    struct err err = { 0 };

    if (slurm_list_decode(kind, json_root(recording.doc), &list, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    recording_done(&recording);
    return list;
}

static int decode_text(const char *text, const struct slurm_kind *kind, struct slurm_list *ret_list,
                       struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;

    assert_int_equal(json_parse(str_of(text), 1 << 20, &doc, NULL), 0);
    return slurm_list_decode(kind, json_root(doc), ret_list, err);
}

static void a_job_is_read_by_name(void **state)
{
    struct slurm_list list = decode("job_get", &slurm_job_kind);
    const struct slurm_job *job = slurm_job_of(list.at[0]);

    assert_int_equal(list.count, 1);
    assert_int_equal(job->id, 9);
    assert_string_equal(job->object.key, "9");
    assert_int_equal(strlen(job->sluid), 14);
    assert_string_equal(job->name, "a");
    assert_string_equal(job->partition, "slurm-bridge");
    assert_string_equal(job->user, "slurm");
    assert_int_equal(job->user_id, 401);
    assert_string_equal(job->reason, "None");
    assert_string_equal(job->nodes, "n1");
    assert_int_equal(job->node_count, 1);
    assert_int_equal(job->cpus, 1);
    assert_string_equal(job->extra, "u-1/1");
    assert_non_null(strstr(job->admin_comment, "\"c0ffee\""));
    assert_true(slurm_words_has(&job->state, SLURM_JOB_RUNNING));
    assert_true(slurm_words_has(&job->flags, SLURM_JOB_EXTERNAL));
    assert_string_equal(job->flags.other, "");
    assert_true(job->priority.set && job->priority.number == 1);
    assert_true(job->time_limit.set && job->time_limit.number == 525600);
    assert_true(job->exit_code.set && job->exit_code.number == 0);
    assert_true(job->submit_time > 1700000000 && job->start_time >= job->submit_time);
    assert_true(job->end_time > job->start_time);
    assert_false(job->hold);
    assert_int_equal(slurm_job_expected_start(job), 0);
    slurm_list_done(&list);
}

static void the_oldest_version_gives_the_same_job_but_for_its_sluid(void **state)
{
    struct slurm_list newest = decode("job_get", &slurm_job_kind);
    struct slurm_list oldest = decode("job_get_v42", &slurm_job_kind);
    const struct slurm_job *job = slurm_job_of(oldest.at[0]);
    struct slurm_job copy = *job;

    assert_string_equal(job->sluid, "");
    assert_false(slurm_object_equal(oldest.at[0], newest.at[0]));
    copy.sluid = slurm_job_of(newest.at[0])->sluid;
    copy.flags = slurm_job_of(newest.at[0])->flags; /* EXTERNAL_JOB has no name in v0.0.42 */
    assert_true(slurm_object_equal(&copy.object, newest.at[0]));
    slurm_list_done(&newest);
    slurm_list_done(&oldest);
}

static void a_node_is_the_same_in_the_oldest_and_the_newest_version(void **state)
{
    struct slurm_list newest = decode("node_get", &slurm_node_kind);
    struct slurm_list oldest = decode("node_get_v42", &slurm_node_kind);
    const struct slurm_node *node = slurm_node_of(newest.at[0]);

    assert_string_equal(node->name, "k1");
    assert_string_equal(node->address, "127.0.0.1");
    assert_string_equal(node->features, "kk");
    assert_string_equal(node->partitions, "all");
    assert_string_equal(node->gres, "gpu:t4:2");
    assert_int_equal(node->cpus, 4);
    assert_int_equal(node->cores, 2);
    assert_int_equal(node->threads, 2);
    assert_int_equal(node->real_memory, 8000);
    assert_false(node->free_memory.set);
    assert_true(slurm_words_has(&node->state, SLURM_NODE_IDLE));
    assert_true(slurm_words_has(&node->state, SLURM_NODE_EXTERNAL));
    assert_true(slurm_words_has(&node->state, SLURM_NODE_DYNAMIC_NORM));
    assert_int_equal(slurm_node_of(oldest.at[0])->cpus, 4);
    assert_string_equal(slurm_node_of(oldest.at[0])->gres, "gpu:t4:2");
    slurm_list_done(&newest);
    slurm_list_done(&oldest);
}

static void lists_hold_every_object_and_the_time_to_ask_from(void **state)
{
    struct slurm_list nodes = decode("nodes_list", &slurm_node_kind);
    struct slurm_list partitions = decode("partitions_list", &slurm_partition_kind);
    struct slurm_list reservations = decode("reservations_list", &slurm_reservation_kind);
    struct slurm_list pings = decode("ping_v42", &slurm_ping_kind);
    const struct slurm_partition *partition = slurm_partition_of(partitions.at[1]);
    const struct slurm_reservation *reservation = slurm_reservation_of(reservations.at[0]);

    assert_int_equal(nodes.count, 4);
    assert_true(nodes.last_update > 1700000000);
    assert_string_equal(nodes.at[3]->key, "k1");
    assert_int_equal(partitions.count, 2);
    assert_string_equal(partition->name, "slurm-bridge");
    assert_string_equal(partition->nodes, "n[1-3]");
    assert_true(slurm_words_has(&partition->state, SLURM_PARTITION_UP));
    assert_true(partition->max_time.infinite);
    assert_int_equal(reservations.count, 1);
    assert_string_equal(reservation->nodes, "n3");
    assert_string_equal(reservation->users, "slurm");
    assert_true(reservation->end_time > reservation->start_time);
    assert_int_equal(pings.count, 1);
    assert_true(slurm_ping_of(pings.at[0])->responding);
    assert_int_equal(pings.last_update, 0);
    slurm_list_done(&nodes);
    slurm_list_done(&partitions);
    slurm_list_done(&reservations);
    slurm_list_done(&pings);
}

static void what_is_absent_is_unset_and_never_null(void **state)
{
    struct slurm_list list;
    const struct slurm_job *job;

    assert_int_equal(decode_text("{\"jobs\":[{\"job_id\":7}]}", &slurm_job_kind, &list, NULL), 0);
    job = slurm_job_of(list.at[0]);
    assert_string_equal(job->sluid, "");
    assert_string_equal(job->nodes, "");
    assert_string_equal(job->state.other, "");
    assert_int_equal(job->state.known, 0);
    assert_false(job->time_limit.set || job->time_limit.infinite);
    assert_int_equal(job->start_time, 0);
    slurm_list_done(&list);
}

static void values_of_the_wrong_type_are_unset(void **state)
{
    struct slurm_list list;
    const struct slurm_job *job;

    assert_int_equal(
        decode_text("{\"jobs\":[{\"job_id\":7,\"name\":5,\"job_state\":{\"a\":1},\"nodes\":true,"
                    "\"step_id\":\"batch\",\"exit_code\":5,\"hold\":\"yes\",\"cpus\":\"x\","
                    "\"flags\":\"NEW\"}]}",
                    &slurm_job_kind, &list, NULL),
        0);
    job = slurm_job_of(list.at[0]);
    assert_string_equal(job->name, "");
    assert_string_equal(job->nodes, "");
    assert_false(job->hold);
    assert_int_equal(job->cpus, 0);
    assert_string_equal(job->flags.other, "NEW");
    slurm_list_done(&list);
}

static void an_object_without_its_key_fails_the_whole_list(void **state)
{
    static const struct {
        const char *text;
        const struct slurm_kind *kind;
    } rows[] = {
        { "{\"jobs\":[{\"job_id\":7},{\"name\":\"x\"}]}", &slurm_job_kind },
        { "{\"jobs\":[{\"job_id\":0}]}", &slurm_job_kind },
        { "{\"jobs\":[{\"job_id\":-1}]}", &slurm_job_kind },
        { "{\"jobs\":[7]}", &slurm_job_kind },
        { "{\"nodes\":[{\"name\":\"\"}]}", &slurm_node_kind },
        { "{\"nodes\":[{\"name\":\"a\\u0000b\"}]}", &slurm_node_kind },
        { "{\"nodes\":{}}", &slurm_node_kind },
        { "{}", &slurm_node_kind },
        { "null", &slurm_node_kind },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_list list;
        struct err err = { 0 };

        if (decode_text(rows[i].text, rows[i].kind, &list, &err) != -ERR_INVALID)
            fail_msg("%s", rows[i].text);
        assert_true(err.text[0]);
    }
}

static void objects_live_as_long_as_somebody_holds_them(void **state)
{
    struct slurm_list list = decode("node_get", &slurm_node_kind);
    const struct slurm_object *node = slurm_object_ref(list.at[0]);

    slurm_list_done(&list);
    assert_int_equal(list.count, 0);
    assert_string_equal(node->key, "k1");
    slurm_object_unref(node);
    slurm_object_unref(NULL);
}

static void equal_objects_are_equal_and_any_field_makes_a_difference(void **state)
{
    struct slurm_list one, other;

    static const char *const bodies[] = {
        "{\"jobs\":[{\"job_id\":7,\"name\":\"a\",\"hold\":false}]}",
        "{\"jobs\":[{\"job_id\":7,\"name\":\"b\",\"hold\":false}]}",
        "{\"jobs\":[{\"job_id\":7,\"name\":\"a\",\"hold\":true}]}",
        "{\"jobs\":[{\"job_id\":7,\"name\":\"a\",\"job_state\":[\"RUNNING\"]}]}",
        "{\"jobs\":[{\"job_id\":7,\"name\":\"a\",\"job_state\":[\"NEW\"]}]}",
        "{\"jobs\":[{\"job_id\":7,\"name\":\"a\",\"priority\":5}]}",
        "{\"jobs\":[{\"job_id\":7,\"name\":\"a\",\"start_time\":5}]}",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_int_equal(decode_text(bodies[0], &slurm_job_kind, &one, NULL), 0);
        assert_int_equal(decode_text(bodies[i], &slurm_job_kind, &other, NULL), 0);
        assert_int_equal(slurm_object_equal(one.at[0], other.at[0]), i == 0);
        slurm_list_done(&one);
        slurm_list_done(&other);
    }
}

static void a_pending_job_tells_when_it_is_expected_to_start(void **state)
{
    struct slurm_list list;

    assert_int_equal(decode_text("{\"jobs\":[{\"job_id\":7,\"job_state\":[\"PENDING\"],"
                                 "\"start_time\":{\"set\":true,\"number\":99}}]}",
                                 &slurm_job_kind, &list, NULL),
                     0);
    assert_int_equal(slurm_job_expected_start(slurm_job_of(list.at[0])), 99);
    slurm_list_done(&list);
}

static void a_brief_is_an_id_and_a_state(void **state)
{
    struct recording recording = recording_of("jobs_state");
    const struct json *jobs = json_get(json_root(recording.doc), "jobs");
    auto_json_doc struct json_doc *odd = NULL;
    struct slurm_brief brief;

    assert_true(json_len(jobs) > 3);
    assert_int_equal(slurm_brief_of(json_item(jobs, 0), &brief, NULL), 0);
    assert_int_equal(brief.number, 1);
    assert_int_equal(brief.state, 1 << SLURM_JOB_CANCELLED);
    assert_int_equal(json_parse(STR("{\"job_id\":\"5_[1-3]\",\"state\":[\"PENDING\",\"ODD\"]}"),
                                100, &odd, NULL),
                     0);
    assert_int_equal(slurm_brief_of(json_root(odd), &brief, NULL), 0);
    assert_int_equal(brief.number, 0);
    assert_true(str_is(brief.id, "5_[1-3]"));
    assert_int_equal(slurm_brief_of(NULL, &brief, NULL), -ERR_INVALID);
    recording_done(&recording);
}

static void a_layout_names_cores_memory_and_devices_of_each_node(void **state)
{
    struct recording recording = recording_of("resources");
    auto_arena struct arena arena;
    auto_json_doc struct json_doc *doc = NULL;
    auto_bitmap struct bitmap cores = { 0 };
    struct slurm_layout layout;

    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    assert_int_equal(slurm_layout_decode(&arena, json_root(recording.doc), &layout, NULL), 0);
    assert_int_equal(layout.count, 1);
    assert_string_equal(layout.nodes[0].name, "n1");
    assert_int_equal(layout.nodes[0].memory, 100);
    assert_int_equal(slurm_layout_cores(&layout.nodes[0], &cores, NULL), 0);
    assert_int_equal(cores.bits, 4);
    assert_true(bitmap_test(&cores, 1));
    assert_int_equal(bitmap_count(&cores), 1);
    recording_done(&recording);
    assert_int_equal(
        json_parse(STR("{\"nodes\":[{\"node\":\"g\",\"sockets_per_node\":2,\"cores_per_socket\":0,"
                       "\"gres\":[{\"name\":\"gpu\",\"type\":\"h100\",\"count\":2,"
                       "\"index\":\"0-1\"}]}]}"),
                   1000, &doc, NULL),
        0);
    assert_int_equal(slurm_layout_decode(&arena, json_root(doc), &layout, NULL), 0);
    assert_int_equal(layout.nodes[0].gres_count, 1);
    assert_string_equal(layout.nodes[0].gres[0].type, "h100");
    assert_string_equal(layout.nodes[0].gres[0].index, "0-1");
    assert_int_equal(layout.nodes[0].gres[0].count, 2);
    bitmap_done(&cores);
    cores = (struct bitmap){ 0 };
    assert_int_equal(slurm_layout_cores(&layout.nodes[0], &cores, NULL), -ERR_INVALID);
}

static void a_layout_that_breaks_a_bound_is_refused(void **state)
{
    auto_arena struct arena arena;
    struct slurm_layout layout;
    struct err err = { 0 };

    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    for (unsigned what = 0; what < 3; what++) {
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *root = json_new_object(build);
        struct json_mut *nodes = json_put_array(build, root, "nodes"), *gres = NULL;
        unsigned count = what == 0   ? SLURM_MAX_LAYOUT_NODES + 1
                         : what == 1 ? SLURM_MAX_LAYOUT_GRES + 1
                                     : SLURM_MAX_OBJECT_TEXT / 1024;
        static char text[1100];
        struct json_doc *doc;

        memset(text, 'a', sizeof(text) - 1);
        for (unsigned i = 0; i < count; i++) {
            if (what == 1 && gres) {
                json_push(gres, json_new_object(build));
                continue;
            }
            struct json_mut *node = json_new_object(build);

            json_put_text(build, node, "node", what == 2 ? text : "n");
            gres = what == 1 ? json_put_array(build, node, "gres") : NULL;
            json_push(nodes, node);
        }
        if (what == 1)
            json_push(gres, json_new_object(build));
        doc = json_freeze(root);
        assert_int_equal(slurm_layout_decode(&arena, json_root(doc), &layout, &err), -ERR_TOO_BIG);
        json_doc_free(doc);
        arena_reset(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_read_by_name),
        cmocka_unit_test(the_oldest_version_gives_the_same_job_but_for_its_sluid),
        cmocka_unit_test(a_node_is_the_same_in_the_oldest_and_the_newest_version),
        cmocka_unit_test(lists_hold_every_object_and_the_time_to_ask_from),
        cmocka_unit_test(what_is_absent_is_unset_and_never_null),
        cmocka_unit_test(values_of_the_wrong_type_are_unset),
        cmocka_unit_test(an_object_without_its_key_fails_the_whole_list),
        cmocka_unit_test(objects_live_as_long_as_somebody_holds_them),
        cmocka_unit_test(equal_objects_are_equal_and_any_field_makes_a_difference),
        cmocka_unit_test(a_pending_job_tells_when_it_is_expected_to_start),
        cmocka_unit_test(a_brief_is_an_id_and_a_state),
        cmocka_unit_test(a_layout_names_cores_memory_and_devices_of_each_node),
        cmocka_unit_test(a_layout_that_breaks_a_bound_is_refused),
    };

    return cmocka_run_group_tests_name("object", tests, NULL, NULL);
}
