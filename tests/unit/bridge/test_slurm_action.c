/* test_slurm_action.c - what plans want of Slurm is plain data, shown in full by plan_write. */
#include "bridge/slurm/slurm_action.h"

#include "base/mem.h"
#include "fake_transport.h"
#include "kube/kinds.h"
#include "slurm/submit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct bench {
    struct arena arena;
    struct plan plan;
    struct json_build *build;
};

static int up(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));

    arena_init(&bench->arena, 16 << 20);
    plan_init(&bench->plan, &bench->arena);
    bench->build = json_build_new();
    *state = bench;
    return 0;
}

static int down(void **state)
{
    struct bench *bench = *state;

    json_build_free(bench->build);
    arena_done(&bench->arena);
    mem_free(bench);
    return 0;
}

/* The detail and the name of the only action. */
static void shows(const struct bench *bench, const char *what, const char *type, const char *detail)
{
    auto_buf struct buf text = { .max = 1 << 20 };
    auto_buf struct buf own = { .max = 1 << 20 };
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *action;

    plan_write(&bench->plan, &text);
    assert_int_equal(json_parse(buf_str(&text), 1 << 20, &doc, NULL), 0);
    assert_int_equal(json_len(json_get(json_root(doc), "actions")), 1);
    action = json_item(json_get(json_root(doc), "actions"), 0);
    json_write_canonical(json_get(action, "detail"), &own);
    assert_string_equal(json_str(json_get(action, "what")).at, what);
    assert_string_equal(json_str(json_get(action, "type")).at, type);
    assert_string_equal(buf_text(&own), detail);
}

static const struct slurm_object *decode(const struct slurm_kind *kind, const char *text)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct slurm_object *object;

    assert_int_equal(json_parse(str_of(text), 1 << 20, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(kind, json_root(doc), &object, NULL), 0);
    return object;
}

static void an_ask_shows_the_whole_job_and_is_a_copy(void **state)
{
    struct bench *bench = *state;
    char name[] = "train", gres[] = "gres/gpu=1", key[] = "ns/uid", pod[] = "ns/pod-0";
    struct str pods[] = { str_of(pod), STR("ns/pod-1") };
    struct job_desc job;

    job_desc_init(&job);
    job.name = name;
    job.partition = "gpu";
    job.gres_per_task = gres;
    plan_slurm_submit(&bench->plan, &(struct submit_request){ .key = str_of(key),
                                                              .attempt = 3,
                                                              .job = &job,
                                                              .pods = pods,
                                                              .pod_count = 2,
                                                              .at_once = true });
    name[0] = gres[0] = key[0] = pod[0] = '#';

    auto_buf struct buf text = { .max = 1 << 20 };

    plan_write(&bench->plan, &text);
    assert_non_null(strstr(buf_text(&text), "\"what\":\"submit ns/pod-0\""));
    assert_non_null(strstr(buf_text(&text), "\"key\":\"ns/uid\""));
    assert_non_null(strstr(buf_text(&text), "\"attempt\":3"));
    assert_non_null(strstr(buf_text(&text), "\"atOnce\":true"));
    assert_non_null(strstr(buf_text(&text), "\"pods\":[\"ns/pod-0\",\"ns/pod-1\"]"));
    assert_non_null(strstr(buf_text(&text), "\"name\":\"train\""));
    assert_non_null(strstr(buf_text(&text), "\"partition\":\"gpu\""));
    assert_non_null(strstr(buf_text(&text), "\"tres_per_task\":\"gres/gpu=1\""));
}

static void a_cancel_names_the_job_in_every_way(void **state)
{
    struct bench *bench = *state;
    const struct slurm_object *job =
        decode(&slurm_job_kind, "{\"job_id\":7,\"step_id\":{\"sluid\":\"s7\"},\"extra\":\"x\","
                                "\"admin_comment\":\"{\\\"cluster\\\":\\\"c\\\",\\\"unit\\\":"
                                "\\\"ns/uid.2\\\"}\"}");
    struct action_unless unless = {
        .resource = &kube_pods, .ns = "ns", .name = "pod", .uid = "uid"
    };

    plan_slurm_cancel(&bench->plan, slurm_job_of(job), &unless, "the pod is gone");
    slurm_object_unref(job);
    shows(bench, "cancel job 7", "slurm-cancel",
          "{\"job\":7,\"key\":\"ns/uid.2\",\"sluid\":\"s7\",\"unless\":{\"path\":"
          "\"/api/v1/namespaces/ns/pods/pod\",\"uid\":\"uid\"},\"why\":\"the pod is gone\"}");
}

static void a_job_without_a_comment_is_known_by_extra(void **state)
{
    struct bench *bench = *state;
    const struct slurm_object *job =
        decode(&slurm_job_kind, "{\"job_id\":8,\"extra\":\"k.1 c\",\"admin_comment\":\"{broken\"}");

    plan_slurm_look(&bench->plan, slurm_job_of(job));
    slurm_object_unref(job);
    shows(bench, "look at job 8", "slurm", "{\"job\":8,\"key\":\"k.1\"}");
}

static void an_update_of_a_job_shows_its_fields(void **state)
{
    struct bench *bench = *state;
    struct json_mut *fields = json_new_object(bench->build);
    const struct slurm_object *job = decode(&slurm_job_kind, "{\"job_id\":8,\"extra\":\"k.1\"}");

    json_put_text(bench->build, fields, "excluded_nodes", "n1");
    plan_slurm_update_job(&bench->plan, slurm_job_of(job), fields);
    slurm_object_unref(job);
    shows(bench, "update job 8", "slurm",
          "{\"fields\":{\"excluded_nodes\":\"n1\"},\"job\":8,\"key\":\"k.1\"}");
}

/* ---- events ---- */

static const struct kube_object *a_pod(void)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object;

    json_parse(STR("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"pod\",\"uid\":\"u\","
                   "\"resourceVersion\":\"1\"}}"),
               1000, &doc, NULL);
    assert_int_equal(kube_object_decode(&kube_pod_kind, json_root(doc), &object, NULL), 0);
    return object;
}

static void an_event_shows_its_words(void **state)
{
    struct bench *bench = *state;
    const struct kube_object *pod = a_pod();

    plan_event(&bench->plan, pod, KUBE_EVENT_WARNING, "SlurmJobEnded", "job %d was %s", 7,
               "cancelled");
    kube_object_unref(pod);
    shows(bench, "event Warning SlurmJobEnded ns/pod", "event",
          "{\"note\":\"job 7 was cancelled\",\"reason\":\"SlurmJobEnded\",\"type\":\"Warning\","
          "\"uid\":\"u\"}");
}

static void event_recorded(void *context, const struct kube_answer *answer)
{
    unsigned *ends = context;

    assert_int_equal(answer->outcome, KUBE_DONE);
    (*ends)++;
}

static void an_event_is_done_from_the_loop_whatever_becomes_of_it(void **state)
{
    struct bench *bench = *state;
    const struct kube_object *pod = a_pod();
    struct action *action =
        plan_event(&bench->plan, pod, KUBE_EVENT_NORMAL, "Bound", "to %s", "n1");
    struct clock clock;
    unsigned ends = 0;

    clock_init_virtual(&clock, INT64_C(1700000000000000));

    struct loop *loop = loop_new_virtual(&clock);
    struct fake_transport *fake = fake_transport_new(loop);
    struct kube_client *client = kube_client_new(loop, fake_http(fake));
    struct kube_recorder *recorder =
        kube_recorder_new(client, &(struct kube_recorder_options){ "slinc/test", "me", 0, 0 });
    void *handle;

    fake_answer(fake, "POST", "/apis/events.k8s.io/v1/namespaces/ns/events",
                (struct fake_answer){ .status = 500, .body = "{}", .times = FAKE_ALWAYS });
    assert_non_null(action->type->start(recorder, action, event_recorded, &ends));
    assert_int_equal(ends, 0);
    fake_run_for(fake, 1000);
    assert_int_equal(ends, 1);
    assert_true(fake_sent_count(fake) >= 1);
    assert_non_null(strstr(fake_sent(fake, 0)->body, "to n1"));

    handle = action->type->start(recorder, action, event_recorded, &ends);
    action->type->cancel(recorder, handle);
    fake_run_for(fake, 1000);
    assert_int_equal(ends, 1);
    kube_recorder_free(recorder);
    kube_client_free(client);
    fake_transport_free(fake);
    loop_free(loop);
    kube_object_unref(pod);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_ask_shows_the_whole_job_and_is_a_copy),
        TEST(a_cancel_names_the_job_in_every_way),
        TEST(a_job_without_a_comment_is_known_by_extra),
        TEST(an_update_of_a_job_shows_its_fields),
        TEST(an_event_shows_its_words),
        TEST(an_event_is_done_from_the_loop_whatever_becomes_of_it),
    };

    return cmocka_run_group_tests_name("bridge act_plan", tests, NULL, NULL);
}
