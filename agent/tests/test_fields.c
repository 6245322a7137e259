/* test_fields.c - a job description's JSON becomes the structure of libslurm, or nothing.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent_test.h"
#include "job_fields.h"

struct read {
    struct json_doc *doc;
    struct arena texts;
    job_desc_msg_t desc;
    struct err err;
    int result;
};

static void read_text(struct read *read, const char *text)
{
    *read = (struct read){ .doc = NULL };
    arena_init(&read->texts, 1 << 20);
    slurm_init_job_desc_msg(&read->desc);
    assert_int_equal(json_parse(str_of(text), 1 << 20, &read->doc, NULL), 0);
    read->result = job_fields_read(json_root(read->doc), &read->desc, &read->texts, &read->err);
}

static void done(struct read *read)
{
    json_doc_free(read->doc);
    arena_done(&read->texts);
}

static void every_kind_of_field_lands_in_its_member(void **state)
{
    struct read read;

    (void)state;
    read_text(
        &read,
        "{\"name\":\"a\",\"excluded_nodes\":[\"n1\",\"n[2-3]\"],\"required_nodes\":\"n4\","
        "\"cpus_per_task\":3,\"memory_per_node\":{\"set\":true,\"number\":0},"
        "\"time_limit\":{\"set\":true,\"infinite\":true},\"priority\":{\"set\":true,"
        "\"number\":4294967293},\"begin_time\":{\"set\":true,\"number\":1900000000},"
        "\"nice\":-7,\"immediate\":true,\"nodes\":\"2-4\",\"flags\":[\"EXTERNAL_JOB\"],"
        "\"shared\":[\"none\"],\"user_id\":\"1000\",\"tasks\":8,\"segment_size\":{\"set\":true,"
        "\"infinite\":false,\"number\":2}}");
    assert_int_equal(read.result, 0);
    assert_string_equal(read.desc.name, "a");
    assert_string_equal(read.desc.exc_nodes, "n1,n[2-3]");
    assert_string_equal(read.desc.req_nodes, "n4");
    assert_int_equal(read.desc.cpus_per_task, 3);
    assert_int_equal(read.desc.pn_min_memory, 0);
    assert_int_equal(read.desc.time_limit, INFINITE);
    assert_int_equal(read.desc.priority, 4294967293);
    assert_int_equal(read.desc.begin_time, 1900000000);
    assert_int_equal(read.desc.nice, NICE_OFFSET - 7);
    assert_int_equal(read.desc.immediate, 1);
    assert_int_equal(read.desc.min_nodes, 2);
    assert_int_equal(read.desc.max_nodes, 4);
    assert_int_equal(read.desc.bitflags, EXTERNAL_JOB | JOB_NTASKS_SET);
    assert_int_equal(read.desc.shared, JOB_SHARED_NONE);
    assert_int_equal(read.desc.user_id, 1000);
    assert_int_equal(read.desc.num_tasks, 8);
    assert_int_equal(read.desc.segment_size, 2);
    done(&read);
}

static void what_is_not_said_stays_as_libslurm_leaves_it(void **state)
{
    struct read read;

    (void)state;
    read_text(&read, "{\"shared\":[],\"nodes\":\"3\",\"flags\":[]}");
    assert_int_equal(read.result, 0);
    assert_int_equal(read.desc.shared, NO_VAL16);
    assert_int_equal(read.desc.time_limit, NO_VAL);
    assert_int_equal(read.desc.min_nodes, 3);
    assert_int_equal(read.desc.max_nodes, 3);
    assert_int_equal(read.desc.bitflags, 0);
    assert_null(read.desc.name);
    done(&read);
}

static void what_is_unknown_or_out_of_range_is_refused_by_its_name(void **state)
{
    static const struct {
        const char *text, *named;
    } cases[] = {
        { "{\"script\":\"x\"}", "script" },
        { "{\"name\":\"a\",\"environment\":[]}", "environment" },
        { "{\"name\":5}", "name" },
        { "{\"name\":null}", "name" },
        { "{\"name\":\"a\\u0000b\"}", "name" },
        { "{\"excluded_nodes\":[\"a\",5]}", "excluded_nodes" },
        { "{\"excluded_nodes\":[\"\"]}", "excluded_nodes" },
        { "{\"cpus_per_task\":-1}", "cpus_per_task" },
        { "{\"cpus_per_task\":65534}", "cpus_per_task" },
        { "{\"cpus_per_task\":\"1\"}", "cpus_per_task" },
        { "{\"tasks\":4294967294}", "tasks" },
        { "{\"time_limit\":{\"set\":false}}", "time_limit" },
        { "{\"time_limit\":{\"set\":true}}", "time_limit" },
        { "{\"time_limit\":{\"set\":true,\"number\":4294967295}}", "time_limit" },
        /* Above 2^63 the number would mean memory per CPU. */
        { "{\"memory_per_node\":{\"set\":true,\"number\":9223372036854775809}}",
          "memory_per_node" },
        { "{\"begin_time\":{\"set\":false}}", "begin_time" },
        { "{\"begin_time\":{\"infinite\":true}}", "begin_time" },
        { "{\"nice\":2147483648}", "nice" },
        { "{\"nice\":\"5\"}", "nice" },
        { "{\"immediate\":1}", "immediate" },
        { "{\"nodes\":\"0\"}", "nodes" },
        { "{\"nodes\":\"4-2\"}", "nodes" },
        { "{\"nodes\":\"1-2-3\"}", "nodes" },
        { "{\"nodes\":\"1,2\"}", "nodes" },
        { "{\"nodes\":2}", "nodes" },
        { "{\"flags\":[\"CRON_JOB\"]}", "flags" },
        { "{\"flags\":\"EXTERNAL_JOB\"}", "flags" },
        { "{\"shared\":[\"none\",\"user\"]}", "shared" },
        { "{\"shared\":[\"all\"]}", "shared" },
        { "{\"user_id\":\"slurm\"}", "user_id" },
        { "{\"user_id\":1000}", "user_id" },
        { "{\"group_id\":\"-1\"}", "group_id" },
        { "[]", "description" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct read read;

        read_text(&read, cases[i].text);
        if (read.result != -ERR_INVALID || !strstr(read.err.text, cases[i].named))
            fail_msg("%s: %d, %s", cases[i].text, read.result, read.err.text);
        done(&read);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_field_lands_in_its_member),
        cmocka_unit_test(what_is_not_said_stays_as_libslurm_leaves_it),
        cmocka_unit_test(what_is_unknown_or_out_of_range_is_refused_by_its_name),
    };

    return cmocka_run_group_tests_name("agent/fields", tests, NULL, NULL);
}
