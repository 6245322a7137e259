/* test_external.c - the documents of external.metrics.k8s.io, and the user whom the front proxy's
 * headers name. */
#include "base/mem.h"
#include "exporter/dashboard.h"
#include "exporter/external.h"
#include "exporter/families.h"
#include "exporter/rules.h"
#include "exporter/view.h"
#include "kube/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct rig {
    struct clock clock;
    struct loop *loop;
    struct slurm_cache *jobs, *nodes;
    struct arena arena;
    struct tally_view view;
    struct tally tally;
    struct buf out;
    struct err err;
};

static void add(struct slurm_cache *cache, const struct slurm_kind *kind, const char *text)
{
    const struct slurm_object *object;
    struct json_doc *doc;

    assert_int_equal(json_parse(str_of(text), 1 << 16, &doc, NULL), 0);
    assert_int_equal(slurm_object_decode(kind, json_root(doc), &object, NULL), 0);
    (void)slurm_cache_seen(cache, object, 10);
    slurm_object_unref(object);
    json_doc_free(doc);
}

static struct slurm_cache *new_cache(struct rig *rig, const struct slurm_kind *kind)
{
    struct slurm_cache *cache = slurm_cache_new(kind, rig->loop, NULL);
    struct slurm_merge *merge = slurm_merge_new(cache, 1);

    while (!slurm_merge_commit(merge, NULL, NULL))
        (void)loop_step(rig->loop);
    slurm_merge_free(merge);
    return cache;
}

/* Partition gpu: one node in use, one idle, one drained; three jobs of one node and one of two that
 * wait for nodes, one that is held. */
static int set_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));

    clock_init_virtual(&rig->clock, 0);
    rig->loop = loop_new_virtual(&rig->clock);
    rig->jobs = new_cache(rig, &slurm_job_kind);
    rig->nodes = new_cache(rig, &slurm_node_kind);
    add(rig->nodes, &slurm_node_kind,
        "{\"name\":\"n1\",\"state\":[\"ALLOCATED\"],\"cpus\":8,\"alloc_cpus\":8,\"real_memory\":"
        "1000,"
        "\"alloc_memory\":1000,\"partitions\":[\"gpu\"]}");
    add(rig->nodes, &slurm_node_kind,
        "{\"name\":\"n2\",\"state\":[\"IDLE\"],\"cpus\":8,\"real_memory\":1000,\"partitions\":["
        "\"gpu\"]}");
    add(rig->nodes, &slurm_node_kind,
        "{\"name\":\"n3\",\"state\":[\"IDLE\",\"DRAIN\"],\"cpus\":8,\"real_memory\":1000,"
        "\"partitions\":[\"gpu\"]}");
    for (unsigned i = 1; i <= 3; i++) {
        char text[256];

        (void)snprintf(text, sizeof(text),
                       "{\"job_id\":%u,\"job_state\":[\"PENDING\"],\"partition\":\"gpu\","
                       "\"state_reason\":\"Resources\",\"tres_req_str\":\"cpu=4,node=1\"}",
                       i);
        add(rig->jobs, &slurm_job_kind, text);
    }
    add(rig->jobs, &slurm_job_kind,
        "{\"job_id\":8,\"job_state\":[\"PENDING\"],\"partition\":\"gpu,\\\"odd\","
        "\"state_reason\":\"Priority\",\"tres_req_str\":\"cpu=16,node=2\"}");
    add(rig->jobs, &slurm_job_kind,
        "{\"job_id\":9,\"job_state\":[\"PENDING\"],\"partition\":\"gpu\",\"hold\":true,"
        "\"tres_req_str\":\"cpu=800,node=100\"}");
    arena_init(&rig->arena, 16 << 20);
    buf_init(&rig->out, EXTERNAL_MAX_ANSWER);
    rig->view = (struct tally_view){ .jobs = rig->jobs, .nodes = rig->nodes, .now_s = 1000 };
    tally_init(&rig->tally, &rig->view, &rig->arena);
    tally_nodes(&rig->tally);
    tally_jobs(&rig->tally);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    tally_done(&rig->tally);
    buf_done(&rig->out);
    arena_done(&rig->arena);
    slurm_cache_free(rig->jobs);
    slurm_cache_free(rig->nodes);
    loop_free(rig->loop);
    mem_free(rig);
    return 0;
}

static int value(struct rig *rig, const char *metric, const char *selector)
{
    buf_clear(&rig->out);
    return external_write_value(&rig->tally, str_of(metric), str_of(selector), &rig->out,
                                &rig->err);
}

static void an_autoscaler_reads_how_many_nodes_a_partition_wants(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(value(rig, "slinc_nodes_wanted", "partition=gpu"), 0);
    /* one in use; two more for three jobs of half a node; two for the wide one */
    assert_string_equal(
        buf_text(&rig->out),
        "{\"kind\":\"ExternalMetricValueList\",\"apiVersion\":\"external.metrics.k8s.io/v1beta1\","
        "\"metadata\":{},\"items\":[{\"metricName\":\"slinc_nodes_wanted\",\"metricLabels\":{"
        "\"partition\":\"gpu\"},\"timestamp\":\"1970-01-01T00:16:40Z\",\"value\":\"5\"}]}");
}

static void a_selector_chooses_by_labels(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(value(rig, "slinc_pending_nodes", "partition in (gpu),class=priority"), 0);
    assert_non_null(strstr(buf_text(&rig->out), "\"class\":\"priority\""));
    assert_non_null(strstr(buf_text(&rig->out), "\"value\":\"2\""));
    assert_null(strstr(buf_text(&rig->out), "\"class\":\"resources\""));
    assert_int_equal(value(rig, "slinc_pending_nodes", "partition=none"), 0);
    assert_non_null(strstr(buf_text(&rig->out), "\"items\":[]"));
    assert_int_equal(value(rig, "slinc_pending_nodes", "partition in ("), -ERR_INVALID);
}

static void what_is_written_is_json_whatever_the_names(void **state)
{
    struct rig *rig = *state;
    struct json_doc *doc;

    assert_int_equal(value(rig, "slinc_pending_jobs", ""), 0);
    assert_int_equal(json_parse(buf_str(&rig->out), EXTERNAL_MAX_ANSWER, &doc, NULL), 0);
    assert_int_equal(json_len(json_get(json_root(doc), "items")), 4);
    json_doc_free(doc);
    buf_clear(&rig->out);
    external_write_list(&rig->out);
    assert_int_equal(json_parse(buf_str(&rig->out), EXTERNAL_MAX_ANSWER, &doc, NULL), 0);
    assert_true(json_len(json_get(json_root(doc), "resources")) > 20);
    json_doc_free(doc);
}

static void what_is_stale_is_unavailable_and_what_is_unknown_not_found(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(value(rig, "slinc_user_cpus", ""), -ERR_NOT_FOUND);
    assert_int_equal(value(rig, "slinc_node_state", ""), -ERR_NOT_FOUND);
    rig->view.jobs = NULL;
    assert_int_equal(value(rig, "slinc_nodes_wanted", ""), -ERR_UNAVAILABLE);
    assert_int_equal(value(rig, "slinc_cluster_nodes", ""), 0);
}

static void jobs_and_nodes_are_shown_with_all_that_is_known(void **state)
{
    struct rig *rig = *state;
    const struct json *jobs, *nodes;
    struct json_doc *doc;

    assert_int_equal(view_write(&rig->tally, VIEW_IS_JOBS, &rig->out, &rig->err), 0);
    assert_int_equal(json_parse(buf_str(&rig->out), VIEW_MAX_ANSWER, &doc, NULL), 0);
    jobs = json_get(json_root(doc), "items");
    assert_int_equal(json_len(jobs), 5);
    assert_true(str_is(json_str(json_get(json_item(jobs, 0), "class")), "resources"));
    assert_int_equal(json_i64_or(json_get(json_item(jobs, 3), "nodes"), 0), 2);
    assert_false(json_exists(json_get(json_item(jobs, 0), "expectedStart")));
    json_doc_free(doc);
    buf_clear(&rig->out);
    assert_int_equal(view_write(&rig->tally, VIEW_IS_NODES, &rig->out, &rig->err), 0);
    assert_int_equal(json_parse(buf_str(&rig->out), VIEW_MAX_ANSWER, &doc, NULL), 0);
    nodes = json_get(json_root(doc), "items");
    assert_int_equal(json_len(nodes), 3);
    assert_int_equal(json_i64_or(json_at(json_item(nodes, 0), "cpus", "job"), 0), 8);
    assert_true(str_is(json_str(json_get(json_item(nodes, 2), "state")), "drained"));
    json_doc_free(doc);
    rig->view.jobs = NULL;
    assert_int_equal(view_write(&rig->tally, VIEW_IS_JOBS, &rig->out, &rig->err), -ERR_UNAVAILABLE);
}

/* Whether a name is a family of ours, a bucket of one too. */
static bool is_family(struct str name)
{
    if (str_ends(name, STR("_bucket")))
        name = str_sub(name, 0, name.len - strlen("_bucket"));
    for (size_t i = 0; i < family_count; i++)
        if (str_is(name, families[i].row.name))
            return true;
    return false;
}

/* Series of the bridge are another program's: tests/charts looks them up in its help. */
static size_t assert_families(const char *at)
{
    size_t names = 0;

    while ((at = strstr(at, "slinc_"))) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_");

        if (!is_family((struct str){ at, length }) &&
            !str_starts((struct str){ at, length }, STR("slinc_bridge_")))
            fail_msg("%.*s is no family", (int)length, at);
        at += length;
        names++;
    }
    return names;
}

static void every_query_of_the_dashboard_is_about_families_that_there_are(void **state)
{
    size_t names = 0;
    struct rig *rig = *state;
    struct json_doc *doc;

    for (size_t i = 0; dashboard_query(DASHBOARD_CLUSTER, i); i++)
        names += assert_families(dashboard_query(DASHBOARD_CLUSTER, i));
    assert_true(names > 20);
    dashboard_write(DASHBOARD_CLUSTER, &rig->out);
    assert_int_equal(json_parse(buf_str(&rig->out), EXTERNAL_MAX_ANSWER, &doc, NULL), 0);
    assert_int_equal(json_len(json_get(json_root(doc), "panels")), 16);
    json_doc_free(doc);
}

static void every_rule_is_about_families_that_there_are(void **state)
{
    size_t names = 0;
    struct rig *rig = *state;
    struct json_doc *doc;

    for (size_t i = 0; rules_query(i); i++)
        names += assert_families(rules_query(i));
    assert_true(names > 20);
    rules_write(&rig->out);
    assert_int_equal(json_parse(buf_str(&rig->out), EXTERNAL_MAX_ANSWER, &doc, NULL), 0);
    assert_int_equal(json_len(json_get(json_root(doc), "groups")), 2);
    json_doc_free(doc);
}

static void paths_are_the_group_its_version_and_values(void **state)
{
    struct external_question question;

    (void)state;
    assert_int_equal(external_parse(STR(EXTERNAL_PATH), &question, NULL), 0);
    assert_int_equal(question.kind, EXTERNAL_IS_GROUP);
    assert_int_equal(external_parse(STR(EXTERNAL_PATH "/v1beta1/"), &question, NULL), 0);
    assert_int_equal(question.kind, EXTERNAL_IS_LIST);
    assert_int_equal(external_parse(STR(EXTERNAL_PATH "/v1beta1/namespaces/a/m"), &question, NULL),
                     0);
    assert_int_equal(question.kind, EXTERNAL_IS_VALUE);
    assert_true(str_is(question.ns, "a") && str_is(question.metric, "m"));
    assert_int_equal(external_parse(STR(EXTERNAL_PATH "x"), &question, NULL), -ERR_NOT_FOUND);
    assert_int_equal(external_parse(STR(EXTERNAL_PATH "/v1"), &question, NULL), -ERR_NOT_FOUND);
    assert_int_equal(external_parse(STR(EXTERNAL_PATH "/v1beta1/namespaces//m"), &question, NULL),
                     -ERR_NOT_FOUND);
    assert_int_equal(
        external_parse(STR(EXTERNAL_PATH "/v1beta1/namespaces/a/m/x"), &question, NULL),
        -ERR_NOT_FOUND);
}

static void the_front_proxys_headers_name_a_user_with_groups_and_more(void **state)
{
    static const char data[] =
        "{\"requestheader-client-ca-file\":\"PEM\",\"requestheader-allowed-names\":\"[\\\"p\\\"]\","
        "\"requestheader-username-headers\":\"[\\\"X-Remote-User\\\"]\","
        "\"requestheader-group-headers\":\"[\\\"X-Remote-Group\\\"]\","
        "\"requestheader-uid-headers\":\"[\\\"X-Remote-Uid\\\"]\","
        "\"requestheader-extra-headers-prefix\":\"[\\\"X-Remote-Extra-\\\"]\"}";
    struct json_doc *doc, *docs[5] = { NULL };
    struct access_user user = { .name = NULL };
    struct access_proxy proxy;
    auto_arena struct arena arena;
    auto_buf struct buf extra;

    (void)state;
    arena_init(&arena, 1 << 20);
    buf_init(&extra, 1024);
    assert_int_equal(json_parse(str_of(data), 1 << 16, &doc, NULL), 0);
    assert_int_equal(access_read_proxy(json_root(doc), docs, &proxy, NULL), 0);
    access_take_header(&proxy, &user, &arena, "x-remote-user", "anna");
    access_take_header(&proxy, &user, &arena, "X-Remote-User", "root");
    access_take_header(&proxy, &user, &arena, "X-Remote-Group", "a");
    access_take_header(&proxy, &user, &arena, "X-Remote-Group", "b");
    access_take_header(&proxy, &user, &arena, "X-Remote-Uid", "7");
    access_take_header(&proxy, &user, &arena, "X-Remote-Extra-Acme.com%2FProject", "one");
    access_take_header(&proxy, &user, &arena, "X-Remote-Extra-Acme.com%2FProject", "two");
    access_take_header(&proxy, &user, &arena, "Authorization", "Bearer x");
    assert_string_equal(user.name, "anna"); /* the first counts */
    assert_string_equal(user.uid, "7");
    assert_int_equal(user.group_count, 2);
    json_mut_write(user.extra, &extra);
    assert_string_equal(buf_text(&extra), "{\"acme.com/project\":[\"one\",\"two\"]}");
    json_build_free(user.extra_build);
    for (unsigned i = 0; i < 5; i++)
        json_doc_free(docs[i]);
    json_doc_free(doc);
}

static void without_a_ca_nobody_is_the_front_proxy(void **state)
{
    struct json_doc *doc, *docs[5] = { NULL };
    struct access_proxy proxy;

    (void)state;
    assert_int_equal(json_parse(STR("{\"requestheader-username-headers\":\"[\\\"X\\\"]\"}"),
                                1 << 16, &doc, NULL),
                     0);
    assert_int_equal(access_read_proxy(json_root(doc), docs, &proxy, NULL), -ERR_INVALID);
    json_doc_free(docs[1]);
    json_doc_free(doc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_autoscaler_reads_how_many_nodes_a_partition_wants),
        TEST(a_selector_chooses_by_labels),
        TEST(what_is_written_is_json_whatever_the_names),
        TEST(what_is_stale_is_unavailable_and_what_is_unknown_not_found),
        TEST(jobs_and_nodes_are_shown_with_all_that_is_known),
        TEST(every_query_of_the_dashboard_is_about_families_that_there_are),
        TEST(every_rule_is_about_families_that_there_are),
        cmocka_unit_test(paths_are_the_group_its_version_and_values),
        cmocka_unit_test(the_front_proxys_headers_name_a_user_with_groups_and_more),
        cmocka_unit_test(without_a_ca_nobody_is_the_front_proxy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
