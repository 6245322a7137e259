/* test_configcopy.c - the plan of the example controller: a small world in, actions out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "configcopy.h"

#define SOURCE "\"labels\":{\"" CONFIGCOPY_COPY "\":\"true\"}"
#define TARGET "\"labels\":{\"" CONFIGCOPY_TARGET "\":\"true\"}"
#define OURS                                                                                       \
    "\"labels\":{\"" CONFIGCOPY_MANAGED "\":\"true\"},"                                            \
    "\"annotations\":{\"" CONFIGCOPY_SOURCE "\":\"src/a\"}"
#define ONLY_LABEL "\"labels\":{\"" CONFIGCOPY_MANAGED "\":\"true\"}"
#define OTHERS_MARK                                                                                \
    "\"labels\":{\"" CONFIGCOPY_MANAGED "\":\"true\"},"                                            \
    "\"annotations\":{\"" CONFIGCOPY_SOURCE "\":\"other/a\"}"
#define GOING "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""

struct given {
    const char *ns, *name; /* ns "" for a namespace */
    const char *metadata, *data;
};

static const struct {
    const char *sentence;
    struct given given[4];  /* up to a row without a name */
    const char *actions[3]; /* their `what`, in order */
    const char *waits;
} cases[] = {
    { "a source is copied to a target",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET, NULL } },
      { "create configmap t/a" },
      NULL },
    { "it is copied to every target",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET, NULL }, { "", "u", TARGET, NULL } },
      { "create configmap t/a", "create configmap u/a" },
      NULL },
    { "a namespace without the label gets none",
      { { "src", "a", SOURCE, "1" }, { "", "t", NULL, NULL } },
      { NULL },
      NULL },
    { "the source namespace is no target, whatever its labels",
      { { "src", "a", SOURCE, "1" }, { "", "src", TARGET, NULL } },
      { NULL },
      NULL },
    { "a ConfigMap without the label is no source",
      { { "src", "a", NULL, "1" }, { "", "t", TARGET, NULL } },
      { NULL },
      NULL },
    { "a source that is being deleted is no source",
      { { "src", "a", SOURCE "," GOING, "1" }, { "", "t", TARGET, NULL }, { "t", "a", OURS, "1" } },
      { "delete configmap t/a" },
      NULL },
    { "an equal copy is left alone",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET, NULL }, { "t", "a", OURS, "1" } },
      { NULL },
      NULL },
    { "a copy that differs is made equal",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET, NULL }, { "t", "a", OURS, "2" } },
      { "patch configmap t/a" },
      NULL },
    { "a copy goes with its source",
      { { "", "t", TARGET, NULL }, { "t", "a", OURS, "1" } },
      { "delete configmap t/a" },
      NULL },
    { "a copy goes with the label of its namespace",
      { { "src", "a", SOURCE, "1" }, { "", "t", NULL, NULL }, { "t", "a", OURS, "1" } },
      { "delete configmap t/a" },
      NULL },
    { "somebody else's is not touched",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET, NULL }, { "t", "a", NULL, "2" } },
      { NULL },
      "namespace t has one of its own" },
    { "one mark alone does not make it ours",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET, NULL }, { "t", "a", ONLY_LABEL, "2" } },
      { NULL },
      "namespace t has one of its own" },
    { "a copy of another source is not ours",
      { { "", "t", TARGET, NULL }, { "t", "a", OTHERS_MARK, "1" } },
      { NULL },
      NULL },
    { "a namespace that is going is left alone",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET "," GOING, NULL } },
      { NULL },
      NULL },
    { "a copy that is going is left alone",
      { { "src", "a", SOURCE, "1" }, { "", "t", TARGET, NULL }, { "t", "a", OURS "," GOING, "2" } },
      { NULL },
      NULL },
};

static void put(struct kube_cache *cache, const struct given *given)
{
    auto_buf struct buf text;
    auto_json_doc struct json_doc *doc = NULL;
    const struct kube_object *object = NULL;
    struct err err = { .class = 0 };

    buf_init(&text, 10000);
    buf_printf(&text, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"5\"",
               given->name);
    if (*given->ns)
        buf_printf(&text, ",\"namespace\":\"%s\"", given->ns);
    if (given->metadata)
        buf_printf(&text, ",%s", given->metadata);
    buf_add_text(&text, "}");
    if (given->data)
        buf_printf(&text, ",\"data\":{\"k\":\"%s\"}", given->data);
    buf_add_text(&text, "}");
    assert_int_equal(json_parse(buf_str(&text), 10000, &doc, &err), 0);
    assert_int_equal(kube_object_decode(kube_cache_kind(cache), json_root(doc), &object, &err), 0);
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static void check_case(size_t number)
{
    struct clock clock;
    struct arena arena;
    struct plan plan;
    struct configcopy copy;
    struct err err = { .class = 0 };
    unsigned count = 0;

    clock_init_virtual(&clock, 0);
    arena_init(&arena, 1u << 20);
    plan_init(&plan, &arena);

    struct kube_cache *configmaps = kube_cache_new(&configcopy_configmap_kind, &clock);
    struct kube_cache *namespaces = kube_cache_new(&configcopy_namespace_kind, &clock);

    configcopy_init(&copy, "src", configmaps, namespaces);
    for (const struct given *given = cases[number].given; given->name; given++)
        put(*given->ns ? configmaps : namespaces, given);
    assert_int_equal(configcopy_plan(&copy, STR("a"), &plan, &err), 0);
    list_each (const struct action, action, &plan.actions, link) {
        assert_non_null(cases[number].actions[count]);
        assert_string_equal(action->what, cases[number].actions[count]);
        count++;
    }
    assert_null(cases[number].actions[count]);
    if (cases[number].waits)
        assert_string_equal(plan.waits, cases[number].waits);
    else
        assert_null(plan.waits);
    kube_cache_free(configmaps);
    kube_cache_free(namespaces);
    arena_done(&arena);
}

static void the_plan_says_what_to_do_in_each_situation(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("# %s\n", cases[i].sentence);
        check_case(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_says_what_to_do_in_each_situation),
    };

    return cmocka_run_group_tests_name("configcopy", tests, NULL, NULL);
}
