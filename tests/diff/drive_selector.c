/* drive_selector.c - answers one question about a selector per line of input, for test_selector.py.
 *
 * A question is {"kind", "selector", "subjects" or "nodes"}; the kinds are text and object (label
 * selectors), nodes (a NodeSelector) and pod (a pod's spec). The answer says whether the
 * selector was taken, how it prints, and what it matches; the same as selectorref. */
#include "codec/nodeselector.h"
#include "codec/selector.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA = 256 * 1024 * 1024, MAX_LINE = 1024 * 1024 };

/* One question being answered. */
struct work {
    struct arena arena;
    const struct json *question;
    struct json_build *build;
    struct json_mut *answer;
};

static void push_bool(struct work *work, struct json_mut *array, bool value)
{
    json_push(array, json_new_bool(work->build, value));
}

static void put_label_matches(struct work *work, const struct selector *selector)
{
    struct json_mut *matches = json_put_array(work->build, work->answer, "matches");
    struct json_iter iter = json_iter(json_get(work->question, "subjects"));
    const struct json *subject;
    auto_buf struct buf text;

    buf_init(&text, MAX_LINE);
    if (selector_print(selector, &text, NULL) == 0)
        json_put_str(work->build, work->answer, "text", buf_str(&text));
    while (json_next_item(&iter, &subject))
        push_bool(work, matches, selector_matches(selector, selector_labels(subject)));
}

static int answer_text(struct work *work, const struct json *value, struct err *err)
{
    const struct selector *selector;
    int status = selector_parse(&work->arena, json_str(value), &selector, err);

    if (status == 0)
        put_label_matches(work, selector);
    return status;
}

static int answer_object(struct work *work, const struct json *value, struct err *err)
{
    const struct selector *selector;
    int status =
        selector_from_json(&work->arena, value, SELECTOR_ABSENT_MATCHES_NOTHING, &selector, err);

    if (status == 0)
        put_label_matches(work, selector);
    return status;
}

static struct nodeselector_node node_of(const struct json *node)
{
    return (struct nodeselector_node){ json_str(json_get(node, "name")),
                                       selector_labels(json_get(node, "labels")) };
}

static int answer_nodes(struct work *work, const struct json *value, struct err *err)
{
    struct json_iter iter = json_iter(json_get(work->question, "nodes"));
    const struct nodeselector *selector;
    const struct json *item;
    int status = nodeselector_from_json(&work->arena, value, &selector, err);

    if (status < 0)
        return status;

    struct json_mut *matches = json_put_array(work->build, work->answer, "matches");

    while (json_next_item(&iter, &item)) {
        struct nodeselector_node node = node_of(item);

        push_bool(work, matches, nodeselector_matches(selector, &node));
    }
    return 0;
}

static int answer_pod(struct work *work, const struct json *value, struct err *err)
{
    struct json_iter iter = json_iter(json_get(work->question, "nodes"));
    const struct nodeselector_pod *pod;
    const struct json *item;
    int status = nodeselector_from_pod_spec(&work->arena, value, &pod, err);

    if (status < 0)
        return status;

    struct json_mut *matches = json_put_array(work->build, work->answer, "matches");

    while (json_next_item(&iter, &item)) {
        struct nodeselector_node node = node_of(item);

        push_bool(work, matches, nodeselector_pod_matches(pod, &node));
    }
    return 0;
}

static const struct {
    const char *kind;
    int (*answer)(struct work *work, const struct json *value, struct err *err);
} kinds[] = {
    { "text", answer_text },
    { "object", answer_object },
    { "nodes", answer_nodes },
    { "pod", answer_pod },
};

static void answer(struct work *work)
{
    struct str kind = json_str(json_get(work->question, "kind"));
    const struct json *value = json_get(work->question, "selector");
    struct err err = { 0 };
    int status = -ERR_INVALID;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_is(kind, kinds[i].kind))
            status = kinds[i].answer(work, value, &err);
    json_put_bool(work->build, work->answer, "ok", status == 0);
    if (status < 0)
        json_put_text(work->build, work->answer, "error", err.text);
}

static void answer_line(struct str line)
{
    struct work work = { 0 };
    struct json_doc *doc = NULL;
    struct err err = { 0 };
    auto_buf struct buf out;

    buf_init(&out, 16 * MAX_LINE);
    if (json_parse(line, MAX_LINE, &doc, &err) < 0) {
        fprintf(stderr, "question: %s\n", err.text);
        exit(1);
    }
    arena_init(&work.arena, ARENA);
    work.build = json_build_new();
    work.question = json_root(doc);
    work.answer = json_new_object(work.build);
    answer(&work);
    json_mut_write(work.answer, &out);
    puts(buf_text(&out));
    json_build_free(work.build);
    json_doc_free(doc);
    arena_done(&work.arena);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    while ((length = getline(&line, &room, stdin)) > 0)
        answer_line((struct str){ line, (size_t)length });
    free(line);
    return 0;
}
