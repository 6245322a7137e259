/* run_store.c - plays the conformance script against the API server model: one line of JSON per
 * call, {"name", "status", "body"}, as the model gave it.
 *
 *     run_store script.json
 *
 * The counterpart that plays it against a real server, and the comparison of the two, are in
 * tests/e2e/test_conformance.py. */
#include "api_store.h"
#include "base/mem.h"
#include "conformance/script.h"

#include <stdio.h>

enum { MAX_STEPS = 1000 };

static const struct api_kind gadgets = { "conformance.slinc.dev", "v1", "gadgets", "Gadget",
                                         API_NAMESPACED | API_HAS_STATUS | API_HAS_GENERATION |
                                             API_NEEDS_VERSION | API_CUSTOM };
static const struct api_kind claims = { "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim",
                                        API_NAMESPACED | API_HAS_STATUS };

struct player {
    struct clock clock;
    struct api_store *store;
    struct map values; /* name -> char *: what earlier calls have saved */
};

static const struct json *at_dotted(const struct json *value, struct str path)
{
    struct str key;

    while (str_next(&path, '.', &key))
        value = json_get_str(value, key);
    return value;
}

/* ---- one call ---- */

static void watch(struct player *player, const struct api_request *request,
                  struct api_answer *answer)
{
    struct api_watch *stream = NULL;
    bool first = true;

    if (api_watch_open(player->store, request, answer, &stream) < 0)
        return;
    buf_add_text(&answer->body, "{\"events\":[");
    for (;;) {
        size_t before = answer->body.len;

        if (!first)
            buf_add_char(&answer->body, ',');
        if (!api_watch_next(stream, &answer->body)) {
            buf_truncate(&answer->body, before);
            break;
        }
        first = false;
    }
    buf_add_text(&answer->body, "]}");
    api_watch_free(stream);
}

static void send(struct player *player, const struct json *row, struct api_answer *answer)
{
    auto_buf struct buf call, body;
    struct str method, target;

    buf_init(&call, SCRIPT_MAX_TEXT);
    buf_init(&body, SCRIPT_MAX_TEXT);
    script_fill_in(&player->values, json_str(json_get(row, "call")), &call);
    if (!str_cut(buf_str(&call), ' ', &method, &target))
        script_die("no method", buf_text(&call));
    if (json_exists(json_get(row, "body"))) {
        auto_buf struct buf text;

        buf_init(&text, SCRIPT_MAX_TEXT);
        json_write(json_get(row, "body"), &text);
        script_fill_in(&player->values, buf_str(&text), &body);
    }
    buf_add_str(&body, json_str(json_get(row, "raw")));

    auto_free char *verb = mem_strndup(method.at, method.len);
    struct api_request request = { verb, target,
                                   json_str_or(json_get(row, "type"), STR("application/json")),
                                   buf_str(&body), "script" };

    clock_advance_us(&player->clock, 10000);
    if (strcmp(verb, "WATCH") == 0) {
        request.method = "GET";
        watch(player, &request, answer);
    } else {
        api_serve(player->store, &request, answer);
    }
}

/* "until": a status, or a path that must be there. */
static bool has_come(const struct json *until, const struct api_answer *answer,
                     const struct json *body)
{
    if (!json_exists(until))
        return true;
    if (json_is_number(until))
        return json_i64_or(until, 0) == answer->status;
    return json_exists(at_dotted(body, json_str(until)));
}

static void keep_values(struct player *player, const struct json *row, const struct json *body)
{
    struct json_iter iter = json_iter(json_get(row, "save"));
    const struct json *path;
    struct str name;

    while (json_next_member(&iter, &name, &path))
        script_save(&player->values, name, json_str(at_dotted(body, json_str(path))));
}

static void print(const struct json *row, const struct api_answer *answer, const struct json *body)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf line;
    struct json_mut *root = json_new_object(build);

    json_put_str(build, root, "name", json_str(json_get(row, "name")));
    json_put_i64(build, root, "status", answer->status);
    json_put(build, root, "body",
             body ? json_copy(build, body) : json_new_str(build, buf_str(&answer->body)));
    buf_init(&line, SCRIPT_MAX_TEXT);
    json_mut_write(root, &line);
    (void)puts(buf_text(&line));
}

static void play(struct player *player, const struct json *row)
{
    for (unsigned step = 0;; step++) {
        auto_json_doc struct json_doc *body = NULL;
        struct api_answer answer;

        api_answer_init(&answer);
        send(player, row, &answer);
        (void)json_parse(buf_str(&answer.body), SCRIPT_MAX_TEXT, &body, NULL);

        bool done = has_come(json_get(row, "until"), &answer, json_root(body));

        if (done) {
            keep_values(player, row, json_root(body));
            print(row, &answer, json_root(body));
        }
        api_answer_done(&answer);
        if (done)
            return;
        if (step == MAX_STEPS)
            script_die("never came", json_str(json_get(row, "name")).at);
        (void)api_store_step(player->store);
    }
}

int main(int argc, char **argv)
{
    struct player player;

    if (argc != 2)
        script_die("usage", "run_store script.json");

    auto_json_doc struct json_doc *script = script_read(argv[1]);
    struct json_iter iter = json_iter(json_root(script));
    const struct json *row;

    clock_init_virtual(&player.clock, INT64_C(1767225600000000));
    player.store = api_store_new(&player.clock, 1);
    script_values_init(&player.values);
    api_store_add_kind(player.store, &gadgets);
    api_store_add_kind(player.store, &claims);
    script_save(&player.values, STR("NS"), STR("conformance"));

    struct api_answer answer;

    api_answer_init(&answer);
    api_serve(player.store,
              &(struct api_request){ "POST", STR("/api/v1/namespaces"), STR("application/json"),
                                     STR("{\"metadata\":{\"name\":\"conformance\"}}"), "script" },
              &answer);
    api_answer_done(&answer);
    while (json_next_item(&iter, &row))
        play(&player, row);
    map_done(&player.values);
    api_store_free(player.store);
    return 0;
}
