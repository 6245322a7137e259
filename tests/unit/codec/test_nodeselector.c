/* test_nodeselector.c - terms, operators, node names, and terms that are broken. */
#include "codec/nodeselector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ARENA = 32 * 1024 * 1024 };

/* JSON with ' for ". */
static struct json_doc *doc_of(const char *text)
{
    auto_buf struct buf copy;
    struct json_doc *doc = NULL;
    struct err err = { 0 };

    buf_init(&copy, 1 << 20);
    for (; *text; text++)
        buf_add_char(&copy, *text == '\'' ? '"' : *text);
    if (json_parse(buf_str(&copy), 1 << 20, &doc, &err) < 0)
        fail_msg("%s: %s", buf_text(&copy), err.text);
    return doc;
}

/* The node all tests ask about. */
static const char node_labels[] =
    "{'zone':'a','cpus':'8','disk':'ssd','empty':'','neg':'-3','kubernetes.io/hostname':'n1'}";

static const struct nodeselector_node *the_node(struct json_doc **labels)
{
    static struct nodeselector_node node;

    *labels = doc_of(node_labels);
    node = (struct nodeselector_node){ STR("n1"), selector_labels(json_root(*labels)) };
    return &node;
}

static bool selector_takes_the_node(const char *text)
{
    auto_arena struct arena arena;
    auto_json_doc struct json_doc *labels, *doc = doc_of(text);
    const struct nodeselector_node *node = the_node(&labels);
    const struct nodeselector *selector;
    struct err err = { 0 };

    arena_init(&arena, ARENA);
    if (nodeselector_from_json(&arena, json_root(doc), &selector, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(err.class, 0);
    return nodeselector_matches(selector, node);
}

#define TERM(body)       "{'nodeSelectorTerms':[{" body "}]}"
#define EXPRESSION(body) TERM("'matchExpressions':[{" body "}]")
#define FIELD(body)      TERM("'matchFields':[{'key':'metadata.name'," body "}]")

static void operators_compare_as_in_the_scheduler(void **state)
{
    static const struct {
        const char *selector;
        bool matches;
    } cases[] = {
        { EXPRESSION("'key':'zone','operator':'In','values':['a','b']"), true },
        { EXPRESSION("'key':'zone','operator':'In','values':['b']"), false },
        { EXPRESSION("'key':'gone','operator':'In','values':['']"), false },
        { EXPRESSION("'key':'empty','operator':'In','values':['']"), true },
        { EXPRESSION("'key':'zone','operator':'NotIn','values':['a']"), false },
        { EXPRESSION("'key':'zone','operator':'NotIn','values':['b']"), true },
        { EXPRESSION("'key':'gone','operator':'NotIn','values':['b']"), true },
        { EXPRESSION("'key':'zone','operator':'Exists'"), true },
        { EXPRESSION("'key':'gone','operator':'Exists'"), false },
        { EXPRESSION("'key':'zone','operator':'DoesNotExist'"), false },
        { EXPRESSION("'key':'gone','operator':'DoesNotExist'"), true },
        { EXPRESSION("'key':'cpus','operator':'Gt','values':['7']"), true },
        { EXPRESSION("'key':'cpus','operator':'Gt','values':['8']"), false },
        { EXPRESSION("'key':'cpus','operator':'Lt','values':['010']"), true },
        { EXPRESSION("'key':'cpus','operator':'Lt','values':['8']"), false },
        { EXPRESSION("'key':'neg','operator':'Lt','values':['0']"), true },
        { EXPRESSION("'key':'zone','operator':'Gt','values':['1']"), false },
        { EXPRESSION("'key':'empty','operator':'Lt','values':['1']"), false },
        { EXPRESSION("'key':'gone','operator':'Gt','values':['1']"), false },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        if (selector_takes_the_node(cases[i].selector) != cases[i].matches)
            fail_msg("%s", cases[i].selector);
}

static void node_names_are_matched_as_fields(void **state)
{
    assert_true(selector_takes_the_node(FIELD("'operator':'In','values':['n1']")));
    assert_false(selector_takes_the_node(FIELD("'operator':'In','values':['n2']")));
    assert_false(selector_takes_the_node(FIELD("'operator':'NotIn','values':['n1']")));
    assert_true(selector_takes_the_node(FIELD("'operator':'NotIn','values':['n2']")));
}

static void terms_are_ored_and_their_parts_anded(void **state)
{
    static const struct {
        const char *selector;
        bool matches;
    } cases[] = {
        { "null", true },
        { "{}", false },
        { "{'nodeSelectorTerms':null}", false },
        { "{'nodeSelectorTerms':[]}", false },
        { "{'nodeSelectorTerms':[{}]}", false },
        { "{'nodeSelectorTerms':[null]}", false },
        { "{'nodeSelectorTerms':[{'matchExpressions':[],'matchFields':[]}]}", false },
        { "{'nodeSelectorTerms':[{},{'matchExpressions':[{'key':'zone','operator':'Exists'}]}]}",
          true },
        { TERM("'matchExpressions':[{'key':'zone','operator':'Exists'},"
               "{'key':'disk','operator':'In','values':['ssd']}]"),
          true },
        { TERM("'matchExpressions':[{'key':'zone','operator':'Exists'},"
               "{'key':'disk','operator':'In','values':['hdd']}]"),
          false },
        { TERM("'matchExpressions':[{'key':'zone','operator':'Exists'}],"
               "'matchFields':[{'key':'metadata.name','operator':'In','values':['n2']}]"),
          false },
        { TERM("'matchExpressions':[{'key':'zone','operator':'Exists'}],"
               "'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]"),
          true },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        if (selector_takes_the_node(cases[i].selector) != cases[i].matches)
            fail_msg("%s", cases[i].selector);
}

static void a_broken_term_matches_no_node(void **state)
{
    static const char *const terms[] = {
        "1",
        "{'matchExpressions':{}}",
        "{'matchExpressions':[{'key':'zone','operator':'is'}]}",
        "{'matchExpressions':[{'key':'zone','operator':'In'}]}",
        "{'matchExpressions':[{'key':'zone','operator':'NotIn','values':['?']}]}",
        "{'matchExpressions':[{'key':'zone','operator':'Exists'},"
        "{'key':'?','operator':'DoesNotExist'}]}",
        "{'matchExpressions':[{'key':'cpus','operator':'Gt','values':['x']}]}",
        "{'matchExpressions':[{'key':'cpus','operator':'Gt','values':['1','2']}]}",
        "{'matchExpressions':[{'key':'cpus','operator':'Gt','values':['-1']}]}",
        "{'matchFields':[{'key':'spec.x','operator':'NotIn','values':['a']}]}",
        "{'matchFields':[{'key':'metadata.name','operator':'Exists'}]}",
        "{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':[]}]}",
        "{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['a','b']}]}",
        "{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':[1]}]}",
        "{'matchFields':[1]}",
        "{'matchFields':'n1'}",
    };

    for (size_t i = 0; i < COUNT(terms); i++) {
        auto_buf struct buf alone, with_another;

        buf_init(&alone, 4096);
        buf_init(&with_another, 4096);
        buf_printf(&alone, "{'nodeSelectorTerms':[%s]}", terms[i]);
        buf_printf(&with_another,
                   "{'nodeSelectorTerms':[%s,{'matchExpressions':"
                   "[{'key':'zone','operator':'Exists'}]}]}",
                   terms[i]);
        if (selector_takes_the_node(buf_text(&alone)) ||
            !selector_takes_the_node(buf_text(&with_another)))
            fail_msg("%s", terms[i]);
    }
}

static void what_is_no_selector_is_refused(void **state)
{
    static const char *const texts[] = { "[]", "'a'", "{'nodeSelectorTerms':{}}" };

    for (size_t i = 0; i < COUNT(texts); i++) {
        auto_arena struct arena arena;
        auto_json_doc struct json_doc *doc = doc_of(texts[i]);
        const struct nodeselector *selector = NULL;
        struct err err = { 0 };

        arena_init(&arena, ARENA);
        assert_int_equal(nodeselector_from_json(&arena, json_root(doc), &selector, &err),
                         -ERR_INVALID);
        assert_null(selector);
    }
}

static int compile_repeated(const char *before, const char *entry, int count, const char *after)
{
    auto_arena struct arena arena;
    auto_buf struct buf text;
    const struct nodeselector *selector;

    arena_init(&arena, ARENA);
    buf_init(&text, 1 << 20);
    buf_add_text(&text, before);
    for (int i = 0; i < count; i++)
        buf_printf(&text, "%s%s", i > 0 ? "," : "", entry);
    buf_add_text(&text, after);

    auto_json_doc struct json_doc *doc = doc_of(buf_text(&text));

    return nodeselector_from_json(&arena, json_root(doc), &selector, NULL);
}

static void terms_and_requirements_are_bounded(void **state)
{
    static const char one[] = "{'key':'a','operator':'Exists'}";
    static const char name[] = "{'key':'metadata.name','operator':'In','values':['n']}";
    static const char terms[] = "{'nodeSelectorTerms':[";
    static const char labels[] = "{'nodeSelectorTerms':[{'matchExpressions':[";
    static const char names[] = "{'nodeSelectorTerms':[{'matchFields':[";

    assert_int_equal(compile_repeated(terms, "{}", NODESELECTOR_MAX_TERMS, "]}"), 0);
    assert_int_equal(compile_repeated(terms, "{}", NODESELECTOR_MAX_TERMS + 1, "]}"), -ERR_TOO_BIG);
    assert_int_equal(compile_repeated(labels, one, SELECTOR_MAX_REQUIREMENTS, "]}]}"), 0);
    assert_int_equal(compile_repeated(labels, one, SELECTOR_MAX_REQUIREMENTS + 1, "]}]}"),
                     -ERR_TOO_BIG);
    assert_int_equal(compile_repeated(names, name, SELECTOR_MAX_REQUIREMENTS + 1, "]}]}"),
                     -ERR_TOO_BIG);
}

#define AFFINITY(body) "{'affinity':{'nodeAffinity':{" body "}}}"
#define REQUIRED       "'requiredDuringSchedulingIgnoredDuringExecution':"
#define ZONE(value)    "{'matchExpressions':[{'key':'zone','operator':'In','values':['" value "']}]}"

static void what_a_pod_requires_is_matched(void **state)
{
    static const struct {
        const char *spec;
        bool matches;
    } cases[] = {
        { "{}", true },
        { "null", true },
        { "{'nodeSelector':{},'affinity':null}", true },
        { "{'nodeSelector':{'zone':'a'}}", true },
        { "{'nodeSelector':{'zone':'a','disk':'hdd'}}", false },
        { "{'nodeSelector':{'zone':'?'}}", false },
        { AFFINITY(REQUIRED "{'nodeSelectorTerms':[" ZONE("a") "]}"), true },
        { AFFINITY(REQUIRED "{'nodeSelectorTerms':[" ZONE("b") "]}"), false },
        { AFFINITY(REQUIRED "{'nodeSelectorTerms':[" ZONE("?") "]}"), false },
        { "{'nodeSelector':{'zone':'a'},'affinity':{'nodeAffinity':{" REQUIRED
          "{'nodeSelectorTerms':[" ZONE("b") "]}}}}",
          false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_arena struct arena arena;
        auto_json_doc struct json_doc *labels, *doc = doc_of(cases[i].spec);
        const struct nodeselector_node *node = the_node(&labels);
        const struct nodeselector_pod *pod;
        struct err err = { 0 };

        arena_init(&arena, ARENA);
        if (nodeselector_from_pod_spec(&arena, json_root(doc), &pod, &err) < 0)
            fail_msg("%s: %s", cases[i].spec, err.text);
        assert_int_equal(err.class, 0);
        if (nodeselector_pod_matches(pod, node) != cases[i].matches)
            fail_msg("%s", cases[i].spec);
    }
}

static void a_spec_that_is_malformed_is_refused(void **state)
{
    static const char *const specs[] = {
        AFFINITY(REQUIRED "[]"),
        AFFINITY(REQUIRED "{'nodeSelectorTerms':1}"),
    };

    for (size_t i = 0; i < COUNT(specs); i++) {
        auto_arena struct arena arena;
        auto_json_doc struct json_doc *doc = doc_of(specs[i]);
        const struct nodeselector_pod *pod = NULL;

        arena_init(&arena, ARENA);
        assert_int_equal(nodeselector_from_pod_spec(&arena, json_root(doc), &pod, NULL),
                         -ERR_INVALID);
        assert_null(pod);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_compare_as_in_the_scheduler),
        cmocka_unit_test(node_names_are_matched_as_fields),
        cmocka_unit_test(terms_are_ored_and_their_parts_anded),
        cmocka_unit_test(a_broken_term_matches_no_node),
        cmocka_unit_test(what_is_no_selector_is_refused),
        cmocka_unit_test(terms_and_requirements_are_bounded),
        cmocka_unit_test(what_a_pod_requires_is_matched),
        cmocka_unit_test(a_spec_that_is_malformed_is_refused),
    };

    return cmocka_run_group_tests_name("nodeselector", tests, NULL, NULL);
}
