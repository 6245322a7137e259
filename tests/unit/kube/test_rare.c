/* test_rare.c - the parts of a pod that few pods have. JSON is written with ' for ". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/kinds.h"

#include <inttypes.h>

enum { MAX = 1 << 22 };

#define REQUIRED  "'requiredDuringSchedulingIgnoredDuringExecution'"
#define PREFERRED "'preferredDuringSchedulingIgnoredDuringExecution'"

static void quote(const char *text, struct buf *out)
{
    for (const char *c = text; *c; c++)
        buf_add_char(out, *c == '\'' ? '"' : *c);
}

static struct json_doc *parsed(const char *text)
{
    struct json_doc *doc = NULL;
    struct err err = { 0 };
    auto_buf struct buf json;

    buf_init(&json, MAX);
    quote(text, &json);
    if (json_parse(buf_str(&json), MAX, &doc, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return doc;
}

static int decode(const char *spec, const struct kube_object **ret_object, struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text;

    buf_init(&text, MAX);
    buf_printf(&text,
               "{'metadata':{'name':'a','namespace':'d','uid':'u','resourceVersion':'1'},'spec':{"
               "'containers':[{}],%s}}",
               spec);
    doc = parsed(buf_text(&text));
    return kube_object_decode(&kube_pod_kind, json_root(doc), ret_object, err);
}

static const struct kube_object *decoded(const char *spec)
{
    const struct kube_object *object = NULL;
    struct err err = { 0 };

    if (decode(spec, &object, &err) < 0)
        fail_msg("%s: %s", spec, err.text);
    return object;
}

static void add(struct buf *out, const char *name, const char *text)
{
    if (text[0])
        buf_printf(out, "%s=%s ", name, text);
}

static void describe(const struct kube_rare *rare, struct buf *out)
{
    if (!rare)
        return;
    add(out, "node", rare->node_affinity);
    add(out, "rather", rare->node_preference);
    add(out, "near", rare->pod_affinity);
    add(out, "away", rare->pod_anti_affinity);
    add(out, "spread", rare->spread);
    for (unsigned i = 0; i < rare->port_count; i++)
        buf_printf(out, "port=%s/%s/%u ", rare->ports[i].ip, rare->ports[i].protocol,
                   rare->ports[i].port);
    for (unsigned i = 0; i < rare->volume_claim_count; i++)
        add(out, "claim", rare->volume_claims[i]);
    for (unsigned i = 0; i < rare->claim_count; i++)
        buf_printf(out, "%s=%s/%s ", rare->claims[i].name, rare->claims[i].claim,
                   rare->claims[i].template);
    for (unsigned i = 0; i < rare->device_ask_count; i++) {
        const struct kube_device_ask *ask = &rare->device_asks[i];

        buf_printf(out, "%s:%" PRId64 "@%u/%s%s ", ask->resource, ask->amount, ask->order,
                   ask->container, ask->is_init ? "(init)" : "");
    }
    if (rare->active_deadline > 0)
        buf_printf(out, "deadline=%" PRId64 " ", rare->active_deadline);
}

static void expect(const char *what, const struct kube_object *object, const char *want)
{
    auto_buf struct buf wanted, found;

    buf_init(&wanted, MAX);
    buf_init(&found, MAX);
    quote(want, &wanted);
    describe(kube_pod_of(object)->rare, &found);
    if (strcmp(buf_text(&wanted), buf_text(&found)) != 0)
        fail_msg("%s: %s", what, buf_text(&found));
}

static void rules_are_kept_as_text(void **state)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        { "'affinity':{'nodeAffinity':{" REQUIRED ":{'nodeSelectorTerms':[{}]}}}",
          "node={'nodeSelectorTerms':[{}]} " },
        { "'affinity':{'nodeAffinity':{" PREFERRED ":[{'weight':1}]},'podAffinity':{" PREFERRED
          ":[{'weight':2}]}}",
          "rather=[{'weight':1}] " },
        { "'affinity':{'podAffinity':{" REQUIRED
          ":[{'topologyKey':'z'}]},'podAntiAffinity':{" REQUIRED ":[{'topologyKey':'h'}]}}",
          "near=[{'topologyKey':'z'}] away=[{'topologyKey':'h'}] " },
        { "'topologySpreadConstraints':[{'topologyKey':'a','whenUnsatisfiable':'ScheduleAnyway'},{"
          "'topologyKey':'b','whenUnsatisfiable':'DoNotSchedule'},{'topologyKey':'c',"
          "'whenUnsatisfiable':'DoNotSchedule'}]",
          "spread=[{'topologyKey':'b','whenUnsatisfiable':'DoNotSchedule'},{'topologyKey':'c',"
          "'whenUnsatisfiable':'DoNotSchedule'}] " },
        { "'volumes':[{'name':'v','emptyDir':{}},{'name':'w','persistentVolumeClaim':{'claimName':"
          "'c'}},{'name':'x','ephemeral':{}}]",
          "claim=c claim=a-x " },
        { "'activeDeadlineSeconds':60", "deadline=60 " },
        { "'resourceClaims':[{'name':'a','resourceClaimName':'c'},{'name':'b',"
          "'resourceClaimTemplateName':'t'}]",
          "a=c/ b=/t " },
        { "'initContainers':[{'name':'i','resources':{'requests':{'x.io/gpu':'2'}}},{'name':'s',"
          "'restartPolicy':'Always','resources':{'requests':{'cpu':'1','x.io/gpu':'1'}}}],"
          "'containers':[{'name':'m','resources':{'requests':{'memory':'1','x.io/gpu':'3'}}}]",
          "x.io/gpu:2@0/i(init) x.io/gpu:1@1/s x.io/gpu:3@2/m " },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *object = decoded(cases[i].spec);

        expect(cases[i].spec, object, cases[i].want);
        kube_object_unref(object);
    }
}

static void ports_of_the_node_are_kept(void **state)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        { "'containers':[{'ports':[{'containerPort':80}]}]", "" },
        { "'containers':[{'ports':[{'containerPort':80,'hostPort':8080},{'hostPort':53,'protocol':"
          "'UDP','hostIP':'10.0.0.1'}]},{'ports':[{'hostPort':81}]}]",
          "port=/TCP/8080 port=10.0.0.1/UDP/53 port=/TCP/81 " },
        { "'hostNetwork':true,'containers':[{'ports':[{'containerPort':80}]}]", "port=/TCP/80 " },
        { "'initContainers':[{'ports':[{'hostPort':1}]},{'restartPolicy':'Always','ports':[{"
          "'hostPort':2}]}]",
          "port=/TCP/2 " },
        { "'containers':[{'ports':[{'hostPort':-1},{'hostPort':70000},{'hostPort':'x'}]}]", "" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *object = decoded(cases[i].spec);

        expect(cases[i].spec, object, cases[i].want);
        kube_object_unref(object);
    }
}

static void a_pod_that_says_nothing_of_it_takes_no_memory_for_it(void **state)
{
    static const char *const specs[] = {
        "'x':1",
        "'affinity':{'podAffinity':{" REQUIRED ":[]},'nodeAffinity':{" PREFERRED
        ":[]},'podAntiAffinity':{" PREFERRED ":[{'weight':1}]}}",
        "'topologySpreadConstraints':[{'whenUnsatisfiable':'ScheduleAnyway'}]",
        "'volumes':[{'name':'t','projected':{}}],'affinity':null,'activeDeadlineSeconds':null",
    };

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        const struct kube_object *object = decoded(specs[i]);

        assert_null(kube_pod_of(object)->rare);
        kube_object_unref(object);
    }
}

static void a_patch_leaves_what_it_does_not_name(void **state)
{
    static const struct {
        const char *patch, *want;
    } cases[] = {
        { "{'spec':{'nodeName':'n'}}", "away=[{'topologyKey':'h'}] port=/TCP/1 deadline=60 " },
        { "{'metadata':{'labels':{'a':'b'}}}",
          "away=[{'topologyKey':'h'}] port=/TCP/1 deadline=60 " },
        { "{'spec':{'activeDeadlineSeconds':5}}",
          "away=[{'topologyKey':'h'}] port=/TCP/1 deadline=5 " },
        { "{'spec':{'affinity':null,'activeDeadlineSeconds':null}}", "port=/TCP/1 " },
        { "{'spec':{'volumes':[{'name':'x','ephemeral':{}}]}}",
          "away=[{'topologyKey':'h'}] port=/TCP/1 claim=a-x deadline=60 " },
        { "{'spec':{'containers':[{}],'affinity':null,'activeDeadlineSeconds':null}}", "" },
    };
    const struct kube_object *object =
        decoded("'containers':[{'ports':[{'hostPort':1}]}],'activeDeadlineSeconds':60,'affinity':{"
                "'podAntiAffinity':{" REQUIRED ":[{'topologyKey':'h'}]}}");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_json_doc struct json_doc *patch = parsed(cases[i].patch);
        const struct kube_object *next = NULL;

        assert_int_equal(kube_object_patched(object, json_root(patch), &next, NULL), 0);
        expect(cases[i].patch, next, cases[i].want);
        kube_object_unref(next);
    }
    kube_object_unref(object);
}

static void lists_without_end_are_refused(void **state)
{
    static const struct {
        const char *begin, *item, *end;
    } cases[] = {
        { "'containers':[{'ports':[", "{'hostPort':1}", "]}]" },
        { "'volumes':[", "{}", "]" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kube_object *object = NULL;
        struct err err = { 0 };
        auto_buf struct buf spec;

        buf_init(&spec, MAX);
        buf_add_text(&spec, cases[i].begin);
        for (unsigned k = 0; k <= KUBE_MAX_ITEMS; k++)
            buf_printf(&spec, "%s%s", k > 0 ? "," : "", cases[i].item);
        buf_add_text(&spec, cases[i].end);
        assert_int_equal(decode(buf_text(&spec), &object, &err), -ERR_TOO_BIG);
        assert_non_null(strstr(err.text, "spec."));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_kept_as_text),
        cmocka_unit_test(ports_of_the_node_are_kept),
        cmocka_unit_test(a_pod_that_says_nothing_of_it_takes_no_memory_for_it),
        cmocka_unit_test(a_patch_leaves_what_it_does_not_name),
        cmocka_unit_test(lists_without_end_are_refused),
    };

    return cmocka_run_group_tests_name("rare", tests, NULL, NULL);
}
