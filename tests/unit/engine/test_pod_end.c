/* test_pod_end.c - what became of a pod is one line of its status, and one wait status for Slurm.
 */
#include "engine/pod_end.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ENDED(code, time)                                                                          \
    "{\"state\":{\"terminated\":{\"exitCode\":" #code ",\"finishedAt\":\"2026-01-01T00:00:" time   \
    "Z\"}}}"
#define OOM                                                                                        \
    "{\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\","                       \
    "\"finishedAt\":\"2026-01-01T00:00:05Z\"}}}"
#define DISRUPTED(reason)                                                                          \
    "\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"" reason "\"" \
    "}]"

enum { NOBODY = -1 };

struct line {
    const char *phase;
    const char *status; /* the rest of it */
    int deleted_s;      /* when somebody asked for its deletion; NOBODY */
    int grace_s;
    enum pod_end_kind kind;
    uint32_t wait_status;
    const char *reason;
};

static const struct line lines[] = {
    { "Succeeded", "\"containerStatuses\":[" ENDED(0, "05") "]", NOBODY, 0, POD_END_COMPLETED, 0,
      "" },
    { "Failed", "\"containerStatuses\":[" ENDED(2, "05") "]", NOBODY, 0, POD_END_FAILED, 2 << 8,
      "" },
    /* by time, not by name */
    { "Failed", "\"containerStatuses\":[" ENDED(2, "05") "," ENDED(3, "04") "]", NOBODY, 0,
      POD_END_FAILED, 3 << 8, "" },
    { "Failed", "\"containerStatuses\":[" ENDED(0, "01") "," ENDED(4, "09") "]", NOBODY, 0,
      POD_END_FAILED, 4 << 8, "" },
    { "Failed",
      "\"initContainerStatuses\":[" ENDED(7, "02") "],\"containerStatuses\":["
                                                   "{\"state\":{\"waiting\":{}}}]",
      NOBODY, 0, POD_END_FAILED, 7 << 8, "" },
    /* signals, and what is none */
    { "Failed", "\"containerStatuses\":[" ENDED(139, "05") "]", NOBODY, 0, POD_END_FAILED, 11, "" },
    { "Failed", "\"containerStatuses\":[" ENDED(128, "05") "]", NOBODY, 0, POD_END_FAILED, 128 << 8,
      "" },
    { "Failed", "\"containerStatuses\":[" ENDED(255, "05") "]", NOBODY, 0, POD_END_FAILED, 255 << 8,
      "" },
    { "Failed", "\"containerStatuses\":[" ENDED(256, "05") "]", NOBODY, 0, POD_END_FAILED, 1 << 8,
      "" },
    { "Failed", "\"containerStatuses\":[" ENDED(-1, "05") "]", NOBODY, 0, POD_END_FAILED, 1 << 8,
      "" },
    { "Failed", "\"reason\":\"UnexpectedAdmissionError\"", NOBODY, 0, POD_END_FAILED, 1 << 8, "" },
    { "Failed", "\"containerStatuses\":[" OOM "]", NOBODY, 0, POD_END_OUT_OF_MEMORY, 253, "" },
    { "Failed", "\"containerStatuses\":[" OOM "," ENDED(1, "04") "]", NOBODY, 0, POD_END_FAILED,
      1 << 8, "" },
    /* somebody deleted it */
    { "Running", "\"containerStatuses\":[" ENDED(0, "05") "]", 3, 30, POD_END_CANCELLED, 0, "" },
    { "Failed", "\"containerStatuses\":[" ENDED(143, "05") "]", 3, 30, POD_END_CANCELLED, 0, "" },
    { "Succeeded", "\"containerStatuses\":[" ENDED(0, "05") "]", 5, 30, POD_END_CANCELLED, 0, "" },
    { "Pending", "\"reason\":\"\"", 3, 0, POD_END_CANCELLED, 0, "" },
    /* after it had ended */
    { "Succeeded", "\"containerStatuses\":[" ENDED(0, "05") "]", 6, 0, POD_END_COMPLETED, 0, "" },
    { "Failed", "\"containerStatuses\":[" ENDED(2, "05") "]", 6, 0, POD_END_FAILED, 2 << 8, "" },
    /* its node, or an eviction */
    { "Failed", "\"reason\":\"Evicted\"", NOBODY, 0, POD_END_DISRUPTED, 9, "Evicted" },
    { "Failed", "\"containerStatuses\":[" ENDED(137, "05") "]," DISRUPTED("TerminationByKubelet"),
      NOBODY, 0, POD_END_DISRUPTED, 9, "TerminationByKubelet" },
    { "Failed", "\"containerStatuses\":[" ENDED(3, "05") "]," DISRUPTED("EvictionByEvictionAPI"), 3,
      30, POD_END_DISRUPTED, 3 << 8, "EvictionByEvictionAPI" },
    { "Running", DISRUPTED("DeletionByTaintManager"), 3, 30, POD_END_DISRUPTED, 9,
      "DeletionByTaintManager" },
    { "Succeeded", "\"containerStatuses\":[" ENDED(0, "05") "]," DISRUPTED("EvictionByEvictionAPI"),
      6, 0, POD_END_COMPLETED, 0, "" },
};

static const struct kube_object *pod_of(const struct line *line)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    auto_buf struct buf text = { .max = 4096 };

    buf_add_text(&text, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\","
                        "\"resourceVersion\":\"1\"");
    if (line->deleted_s != NOBODY)
        buf_printf(&text,
                   ",\"deletionTimestamp\":\"2026-01-01T00:00:%02dZ\","
                   "\"deletionGracePeriodSeconds\":%d",
                   line->deleted_s + line->grace_s, line->grace_s);
    buf_printf(&text, "},\"status\":{\"phase\":\"%s\",%s}}", line->phase, line->status);
    assert_int_equal(json_parse(buf_str(&text), 4096, &doc, NULL), 0);
    assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &object, NULL), 0);
    return object;
}

static void each_line_is_one_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const struct line *line = &lines[i];
        const struct kube_object *object = pod_of(line);
        struct pod_end end = pod_end_of(kube_pod_of(object));

        if (end.kind != line->kind || end.wait_status != line->wait_status ||
            strcmp(end.reason, line->reason) != 0)
            fail_msg("%s, %s: %d, %u, %s", line->phase, line->status, (int)end.kind,
                     end.wait_status, end.reason);
        kube_object_unref(object);
    }
}

static void a_change_of_something_else_keeps_the_end(void **state)
{
    const struct kube_object *object = pod_of(&lines[1]), *patched = NULL;
    auto_json_doc struct json_doc *doc = NULL;

    (void)state;
    assert_int_equal(json_parse(STR("{\"metadata\":{\"finalizers\":[]},\"status\":{"
                                    "\"conditions\":null}}"),
                                4096, &doc, NULL),
                     0);
    assert_int_equal(kube_object_patched(object, json_root(doc), &patched, NULL), 0);
    assert_int_equal(pod_end_of(kube_pod_of(patched)).wait_status, 2 << 8);
    kube_object_unref(patched);
    kube_object_unref(object);
}

static void a_pod_that_runs_carries_no_end(void **state)
{
    const struct line line = {
        "Running", "\"containerStatuses\":[" ENDED(2, "05") "]", NOBODY, 0, 0, 0, ""
    };
    const struct kube_object *object = pod_of(&line);

    (void)state;
    assert_null(kube_pod_of(object)->end);
    kube_object_unref(object);
}

static void of_a_group_the_worst_end_counts(void **state)
{
    const struct pod_end ends[] = {
        { POD_END_COMPLETED, 0, "" },       { POD_END_CANCELLED, 0, "" },
        { POD_END_FAILED, 1 << 8, "" },     { POD_END_FAILED, 2 << 8, "" },
        { POD_END_FAILED, 15, "" },         { POD_END_FAILED, 160 << 8, "" },
        { POD_END_OUT_OF_MEMORY, 253, "" }, { POD_END_DISRUPTED, 9, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        for (size_t k = 0; k < sizeof(ends) / sizeof(ends[0]); k++)
            assert_int_equal(pod_end_is_worse(&ends[i], &ends[k]), i > k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_one_end),
        cmocka_unit_test(a_change_of_something_else_keeps_the_end),
        cmocka_unit_test(a_pod_that_runs_carries_no_end),
        cmocka_unit_test(of_a_group_the_worst_end_counts),
    };

    return cmocka_run_group_tests_name("pod_end", tests, NULL, NULL);
}
