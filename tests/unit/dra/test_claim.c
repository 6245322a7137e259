/* test_claim.c - allocations in, prepared claims or refusals out; and slices of a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../codec/parsed.h"
#include "dra/claim.h"
#include "dra/kinds.h"
#include "dra/names.h"
#include "dra/slices.h"

#define META "'metadata':{'namespace':'a','name':'c','uid':'u1'}"
#define RESULT                                                                                     \
    "{'request':'cores/first','driver':'" DRA_DRIVER                                               \
    "','pool':'n1','device':'socket0-numa0','shareID':'s1'}"
#define OTHER_DRIVER "{'request':'gpu','driver':'gpu.example.com','pool':'n1','device':'gpu-0'}"
#define SIZES        "'sockets':2,'coresPerSocket':2,'threadsPerCore':2"
#define PARAMETERS(cores, sizes)                                                                   \
    "{'apiVersion':'" DRA_DRIVER "/v1','kind':'SlurmCores','cores':'" cores "'," sizes ",'job':'"  \
    "7'}"
#define ENTRY(source, cores, sizes)                                                                \
    "{'source':'" source "','opaque':{'driver':'" DRA_DRIVER                                       \
    "','parameters':" PARAMETERS(cores, sizes) "}}"
#define CLAIM(results, config)                                                                     \
    "{" META ",'status':{'allocation':{'devices':{'results':[" results "],'config':[" config "]}}" \
    "}}"

/* Two sockets, each with a NUMA node of two cores with two threads. */
static struct topology_core cores[] = {
    { 0, 0, 0, { 0, 4 }, 2 },
    { 0, 0, 0, { 1, 5 }, 2 },
    { 1, 1, 2, { 2, 6 }, 2 },
    { 1, 1, 3, { 3, 7 }, 2 },
};
static const struct topology machine = { cores, 4, 2, 2, 2 };

static int read_claim(const char *text, struct prepared_claim **ret_claim, struct err *err)
{
    auto_json_doc struct json_doc *doc = parsed(text);

    return claim_read(json_root(doc), STR("u1"), "n1", &machine, ret_claim, err);
}

static void an_allocation_becomes_cpus_and_devices(void **state)
{
    struct prepared_claim *claim = NULL;
    struct err err = { 0 };
    auto_buf struct buf text;

    if (read_claim(CLAIM(OTHER_DRIVER "," RESULT, ENTRY("FromClass", "1", SIZES)), &claim, &err) <
        0)
        fail_msg("%s", err.text);
    buf_init(&text, 4096);
    json_write_canonical(json_root(claim->doc), &text);
    assert_string_equal(buf_text(&text),
                        "{\"cores\":\"1\",\"cpus\":\"1,5\",\"devices\":[{\"device\":"
                        "\"socket0-numa0\",\"pool\":\"n1\",\"shareID\":\"s1\"}"
                        "],\"job\":\"7\",\"name\":\"c\",\"namespace\":\"a\",\"uid\":\"u1\"}");
    assert_int_equal(bitmap_count(&claim->cpus), 2);
    prepared_claim_free(claim);
}

static void what_cannot_be_kept_is_refused(void **state)
{
    static const struct {
        const char *claim;
        int class;
        const char *words;
    } rows[] = {
        { "{'metadata':{'uid':'u2'}}", ERR_CONFLICT, "another claim" },
        { "{" META "}", ERR_UNAVAILABLE, "not allocated" },
        { CLAIM(RESULT, ""), ERR_INVALID, "names no cores chosen by Slurm" },
        { CLAIM(RESULT, "{'source':'FromClass','opaque':{'driver':'gpu.example.com'}}"),
          ERR_INVALID, "names no cores" },
        { CLAIM(RESULT, ENTRY("FromClaim", "1", SIZES)), ERR_INVALID, "only Slurm chooses cores" },
        { CLAIM(RESULT, ENTRY("FromClass", "1", SIZES) "," ENTRY("FromClass", "0", SIZES)),
          ERR_INVALID, "two entries" },
        { CLAIM(RESULT, "{'source':'FromClass','opaque':{'driver':'" DRA_DRIVER
                        "','parameters':{'kind':'Other'}}}"),
          ERR_INVALID, "wants SlurmCores" },
        { CLAIM(RESULT, ENTRY("FromClass", "1", "'sockets':2")), ERR_INVALID, "coresPerSocket" },
        { CLAIM(RESULT,
                ENTRY("FromClass", "1", "'sockets':1,'coresPerSocket':8,'threadsPerCore':1")),
          ERR_INVALID, "Slurm counts 1 sockets x 8 cores x 1 threads" },
        { CLAIM(RESULT, ENTRY("FromClass", "9", SIZES)), ERR_TOO_BIG, "cores '9'" },
        { CLAIM(RESULT, ENTRY("FromClass", "2", SIZES)), ERR_INVALID, "not all on the devices" },
        { CLAIM(OTHER_DRIVER, ENTRY("FromClass", "1", SIZES)), ERR_INVALID, "no device of" },
        { CLAIM("{'driver':'" DRA_DRIVER "','pool':'n2','device':'socket0-numa0'}",
                ENTRY("FromClass", "1", SIZES)),
          ERR_INVALID, "is of node n2" },
        { CLAIM("{'driver':'" DRA_DRIVER "','pool':'n1','device':'cpu7'}",
                ENTRY("FromClass", "1", SIZES)),
          ERR_INVALID, "no device cpu7" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct prepared_claim *claim = NULL;
        struct err err = { 0 };

        if (read_claim(rows[i].claim, &claim, &err) != -rows[i].class ||
            !strstr(err.text, rows[i].words))
            fail_msg("row %zu: %s", i, err.text);
    }
}

/* Nodes that Slurm registered as one socket count their cores alike. */
static void one_socket_of_all_cores_is_the_same_machine(void **state)
{
    struct prepared_claim *claim = NULL;
    struct err err = { 0 };

    if (read_claim(CLAIM(RESULT, ENTRY("FromClass", "0-1",
                                       "'sockets':1,'coresPerSocket':4,'threadsPerCore':2")),
                   &claim, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(bitmap_count(&claim->cpus), 4);
    prepared_claim_free(claim);
}

/* ---- slices ---- */

#define NODE "{'metadata':{'name':'n1','uid':'u-n1','resourceVersion':'1'}}"
#define SLICE(name, hash)                                                                          \
    "{'metadata':{'name':'" name "','uid':'u-s','resourceVersion':'5','annotations':{"             \
    "'slinc.slurm.net/last-applied':'" hash "'}},'spec':{'driver':'" DRA_DRIVER                    \
    "','nodeName':'n1','pool':{'name':'n1','generation':4,'resourceSliceCount':1}}}"

struct desk {
    struct clock clock;
    struct arena arena;
    struct plan plan;
    struct kube_cache *nodes, *slice_cache;
    struct slices slices;
};

static void see(struct kube_cache *cache, const char *text)
{
    auto_json_doc struct json_doc *doc = parsed(text);
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    if (kube_object_decode(kube_cache_kind(cache), json_root(doc), &object, &err) < 0)
        fail_msg("%s", err.text);
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static void set_up(struct desk *desk)
{
    clock_init_virtual(&desk->clock, 0);
    arena_init(&desk->arena, 8 << 20);
    plan_init(&desk->plan, &desk->arena);
    desk->nodes = kube_cache_new(&dra_node_kind, &desk->clock);
    desk->slice_cache = kube_cache_new(&dra_slice_kind, &desk->clock);
    slices_init(&desk->slices, "n1", desk->nodes, desk->slice_cache);
    desk->slices.topology = &machine;
    desk->slices.problem = NULL;
}

static void tear_down(struct desk *desk)
{
    kube_cache_free(desk->slice_cache);
    kube_cache_free(desk->nodes);
    arena_done(&desk->arena);
}

static const struct action *only_action(struct desk *desk)
{
    assert_int_equal(slices_plan(&desk->slices, &desk->plan, NULL), 0);
    assert_int_equal(desk->plan.action_count, 1);
    return list_item(list_first(&desk->plan.actions), struct action, link);
}

static void a_slice_with_a_device_per_numa_node_is_created(void **state)
{
    struct desk desk;
    const struct action *action;
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *device;

    set_up(&desk);
    see(desk.nodes, NODE);
    action = only_action(&desk);
    assert_int_equal(action->request.verb, KUBE_CREATE);
    assert_int_equal(json_parse(action->request.body, 1 << 20, &doc, NULL), 0);
    assert_int_equal(json_len(json_at(json_root(doc), "spec", "devices")), 2);
    device = json_item(json_at(json_root(doc), "spec", "devices"), 1);
    assert_true(str_is(json_str(json_get(device, "name")), "socket1-numa1"));
    assert_true(str_is(json_str(json_at(device, "attributes", "cores", "string")), "2-3"));
    assert_int_equal(json_i64_or(json_at(device, "attributes", "l3Caches", "int"), 0), 2);
    assert_true(json_bool_or(json_at(device, "attributes", "smt", "bool"), false));
    assert_true(str_is(json_str(json_at(device, "capacity", "cores", "value")), "2"));
    assert_true(
        str_is(json_str(json_get(
                   json_item(json_at(json_root(doc), "metadata", "ownerReferences"), 0), "uid")),
               "u-n1"));
    tear_down(&desk);
}

static void without_its_node_nothing_is_published(void **state)
{
    struct desk desk;

    set_up(&desk);
    assert_int_equal(slices_plan(&desk.slices, &desk.plan, NULL), 0);
    assert_int_equal(desk.plan.action_count, 0);
    assert_non_null(strstr(desk.plan.waits, "no Node n1"));
    tear_down(&desk);
}

static void a_slice_that_says_something_else_is_changed_with_a_new_generation(void **state)
{
    struct desk desk;
    const struct action *action;

    set_up(&desk);
    see(desk.nodes, NODE);
    see(desk.slice_cache, SLICE("n1-" DRA_DRIVER, "other"));
    desk.slices.topology = NULL;
    desk.slices.problem = "cpu manager: static";
    action = only_action(&desk);
    assert_int_equal(action->request.verb, KUBE_MERGE_PATCH);
    assert_non_null(strstr(action->request.body.at, "\"generation\":5"));
    assert_non_null(strstr(action->request.body.at, "\"devices\":[]"));
    assert_non_null(
        strstr(action->request.body.at, "\"slinc.slurm.net/no-cores\":\"cpu manager: static\""));
    tear_down(&desk);
}

static void a_slice_that_says_what_it_should_is_left_alone(void **state)
{
    struct desk desk;
    const struct action *action;
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf slice;

    set_up(&desk);
    see(desk.nodes, NODE);
    action = only_action(&desk);
    assert_int_equal(json_parse(action->request.body, 1 << 20, &doc, NULL), 0);
    buf_init(&slice, 4096);
    buf_printf(
        &slice, SLICE("n1-" DRA_DRIVER, "%s"),
        json_str(json_at(json_root(doc), "metadata", "annotations", "slinc.slurm.net/last-applied"))
            .at);
    see(desk.slice_cache, buf_text(&slice));
    plan_clear(&desk.plan);
    assert_int_equal(slices_plan(&desk.slices, &desk.plan, NULL), 0);
    assert_int_equal(desk.plan.action_count, 0);
    tear_down(&desk);
}

static void a_slice_of_another_name_is_deleted(void **state)
{
    struct desk desk;

    set_up(&desk);
    see(desk.slice_cache, SLICE("old", "x"));
    assert_int_equal(only_action(&desk)->request.verb, KUBE_DELETE);
    tear_down(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_becomes_cpus_and_devices),
        cmocka_unit_test(what_cannot_be_kept_is_refused),
        cmocka_unit_test(one_socket_of_all_cores_is_the_same_machine),
        cmocka_unit_test(a_slice_with_a_device_per_numa_node_is_created),
        cmocka_unit_test(without_its_node_nothing_is_published),
        cmocka_unit_test(a_slice_that_says_something_else_is_changed_with_a_new_generation),
        cmocka_unit_test(a_slice_that_says_what_it_should_is_left_alone),
        cmocka_unit_test(a_slice_of_another_name_is_deleted),
    };

    return cmocka_run_group_tests_name("claim", tests, NULL, NULL);
}
