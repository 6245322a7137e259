/* test_ui_job.c - the life of one job, with and without its pod. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exporter/ui_job.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TEXT = 1 << 20 };

#define POD_JOB                                                                                    \
    "{\"job_id\":8,\"name\":\"pod\",\"user_name\":\"ann\",\"account\":\"lab\","                    \
    "\"job_state\":[\"%s\"],\"flags\":[\"EXTERNAL_JOB\"],\"partition\":\"gpu\","                   \
    "\"admin_comment\":\"{\\\"pods\\\":[\\\"lab/train\\\"]}\",\"nodes\":\"n2\","                   \
    "\"time_limit\":{\"set\":true,\"number\":10},\"submit_time\":{\"set\":true,\"number\":1002},"  \
    "\"start_time\":{\"set\":true,\"number\":1005},\"end_time\":{\"set\":true,\"number\":%d}}"

#define POD                                                                                        \
    "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:%s:00Z\"},\"status\":{\"conditions\":["  \
    "{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"PodScheduled\",\"status\":\"True\","     \
    "\"lastTransitionTime\":\"1970-01-01T00:16:46Z\"}],\"containerStatuses\":[{\"state\":{"        \
    "\"running\":{\"startedAt\":\"1970-01-01T00:16:48Z\"}}}]}}"

static struct json_doc *parse(const char *text)
{
    struct err err = { .class = 0 };
    struct json_doc *doc;

    if (json_parse(str_of(text), MAX_TEXT, &doc, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    return doc;
}

static const struct slurm_object *job_in_state(const char *state, int end)
{
    auto_buf struct buf text = { .max = MAX_TEXT };
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object;

    buf_printf(&text, POD_JOB, state, end);
    doc = parse(buf_text(&text));
    assert_int_equal(slurm_object_decode(&slurm_job_kind, json_root(doc), &object, NULL), 0);
    return object;
}

static void assert_steps(const struct slurm_object *job, const char *pod, const char *wanted)
{
    auto_json_doc struct json_doc *doc = NULL, *said = NULL;
    auto_buf struct buf text = { .max = MAX_TEXT }, steps = { .max = MAX_TEXT };

    if (pod)
        doc = parse(pod);
    ui_job_write(slurm_job_of(job), doc ? json_root(doc) : NULL, true, &text);
    said = parse(buf_text(&text));
    json_write(json_get(json_root(said), "steps"), &steps);
    assert_string_equal(buf_text(&steps), wanted);
    slurm_object_unref(job);
}

static char *pod_created_at(const char *minute, char *text, size_t size)
{
    (void)snprintf(text, size, POD, minute);
    return text;
}

static void a_pods_life_is_told_by_both_systems(void **state)
{
    char pod[1024];

    (void)state;
    assert_steps(job_in_state("RUNNING", 0), pod_created_at("16", pod, sizeof(pod)),
                 "[[\"created\",960],[\"submitted\",1002],[\"allocated\",1005],[\"bound\",1006],"
                 "[\"running\",1008],[\"ended\",0]]");
}

static void without_the_pod_slurms_part_is_told(void **state)
{
    (void)state;
    assert_steps(job_in_state("COMPLETED", 1100), NULL,
                 "[[\"submitted\",1002],[\"allocated\",1005],[\"ended\",1100]]");
    assert_steps(job_in_state("PENDING", 0), NULL,
                 "[[\"submitted\",1002],[\"allocated\",0],[\"ended\",0]]");
}

static void a_later_pod_of_the_same_name_is_another(void **state)
{
    char pod[1024];

    (void)state;
    assert_steps(job_in_state("RUNNING", 0), pod_created_at("20", pod, sizeof(pod)),
                 "[[\"submitted\",1002],[\"allocated\",1005],[\"ended\",0]]");
}

static void a_job_says_who_it_is(void **state)
{
    const struct slurm_object *job = job_in_state("RUNNING", 0);
    auto_buf struct buf text = { .max = MAX_TEXT }, ns = { .max = 64 }, name = { .max = 64 };

    (void)state;
    ui_job_write(slurm_job_of(job), NULL, false, &text);
    assert_non_null(strstr(buf_text(&text),
                           "{\"id\":8,\"kind\":\"p\",\"name\":\"lab/train\",\"state\":\"RUNNING\","
                           "\"partition\":\"gpu\",\"who\":\"lab\",\"limit\":600,"));
    buf_clear(&text);
    ui_job_write(slurm_job_of(job), NULL, true, &text);
    assert_non_null(strstr(buf_text(&text), "\"who\":\"ann/lab\""));
    assert_true(ui_job_pod(slurm_job_of(job), &ns, &name));
    assert_string_equal(buf_text(&ns), "lab");
    assert_string_equal(buf_text(&name), "train");
    slurm_object_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pods_life_is_told_by_both_systems),
        cmocka_unit_test(without_the_pod_slurms_part_is_told),
        cmocka_unit_test(a_later_pod_of_the_same_name_is_another),
        cmocka_unit_test(a_job_says_who_it_is),
    };

    return cmocka_run_group_tests_name("exporter/ui_job", tests, NULL, NULL);
}
