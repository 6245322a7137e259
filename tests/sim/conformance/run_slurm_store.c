/* run_slurm_store.c - plays the conformance script for Slurm against the slurmctld model: one line
 * of JSON per row, {"name", "status", "never_came", "body"}, and a last one with the values that
 * were saved.
 *
 *     run_slurm_store slurm_script.json
 *
 * The counterpart that plays it against a real slurmrestd, and the comparison of the two, are in
 * tests/e2e/test_slurm_conformance.py. Time is virtual: it passes between calls, while a row waits
 * for what it asks to see, and where the script says so. */
#include "base/mem.h"
#include "codec/jwt.h"
#include "conformance/script.h"
#include "slurm_store.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    BETWEEN_US = 10000, /* calls */
    LOOK_US = 50000,    /* again, while something has not come */
    PATIENCE = 2400,    /* looks */
    START_S = 2,        /* from a start of slurmctld to its first answer */
};

static const char key[] = "the key of the conformance test";

struct result {
    const char *name; /* the script's */
    int status;
    struct buf body;
    bool is_call, answered, never_came;
};

struct player {
    struct clock clock;
    struct slurm_store *store;
    struct map values; /* name -> char *: what earlier calls have saved */
    struct result *results;
    size_t count;
};

static void pass_time(struct player *player, int64_t by_us)
{
    int64_t until = clock_now_us(&player->clock) + by_us;

    for (;;) {
        int64_t next = slurm_store_next_us(player->store);

        if (next > until)
            break;
        if (next > clock_now_us(&player->clock))
            clock_advance_to_us(&player->clock, next);
        slurm_store_step(player->store);
    }
    clock_advance_to_us(&player->clock, until);
}

/* ---- values ---- */

/* The row as it is now: with the time, and what has been saved. */
static struct json_doc *fill_in_row(struct player *player, const struct json *row)
{
    auto_buf struct buf text, filled;
    struct json_doc *doc = NULL;
    char now[24];

    (void)snprintf(now, sizeof(now), "%" PRId64, clock_wall_us(&player->clock) / SECOND_US);
    script_save(&player->values, STR("NOW"), str_of(now));
    buf_init(&text, SCRIPT_MAX_TEXT);
    buf_init(&filled, SCRIPT_MAX_TEXT);
    json_write(row, &text);
    script_fill_in(&player->values, buf_str(&text), &filled);
    if (json_parse(buf_str(&filled), SCRIPT_MAX_TEXT, &doc, NULL) < 0)
        script_die("a value that does not fit", buf_text(&filled));
    return doc;
}

/* The first item whose member is this text. */
static const struct json *item_with(const struct json *array, struct str name, struct str wanted)
{
    struct json_iter iter = json_iter(array);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (str_eq(json_str(json_get_str(item, name)), wanted))
            return item;
    return NULL;
}

/* By dots; in an array a number is an index, and "key=text" an item with that member. */
static const struct json *at_dotted(const struct json *value, struct str path)
{
    struct str part, name, wanted;
    uint64_t index;

    while (str_next(&path, '.', &part)) {
        if (json_is_array(value) && str_cut(part, '=', &name, &wanted))
            value = item_with(value, name, wanted);
        else if (json_is_array(value) && str_to_u64(part, 0, SIZE_MAX, &index, NULL) == 0)
            value = json_item(value, (size_t)index);
        else
            value = json_get_str(value, part);
    }
    return value;
}

static void keep_values(struct player *player, const struct json *row, const struct json *body)
{
    struct json_iter iter = json_iter(json_get(row, "save"));
    const struct json *path;
    struct str name;

    while (json_next_member(&iter, &name, &path)) {
        const struct json *value = at_dotted(body, json_str(path));
        auto_buf struct buf text;

        buf_init(&text, SCRIPT_MAX_TEXT);
        json_write(value, &text);
        script_save(&player->values, name,
                    json_is_string(value) ? json_str(value) : buf_str(&text));
    }
}

/* ---- calls ---- */

/* How long each kind of token lives; the rest are good for an hour. */
static const struct {
    const char *kind;
    int64_t lives_s;
} tokens[] = { { "good", 3600 }, { "bad", 3600 }, { "expired", -60 }, { "short", 5 } };

static void make_token(const struct player *player, struct str kind, struct str user,
                       struct buf *out)
{
    int64_t now = clock_wall_us(&player->clock) / SECOND_US;
    struct jwt_claims claims = { .exp = 0 };

    (void)snprintf(claims.sun, sizeof(claims.sun), STR_FMT, STR_ARG(user));
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
        if (str_is(kind, tokens[i].kind))
            claims.exp = now + tokens[i].lives_s;
    if (claims.exp == 0)
        return; /* none */
    claims.iat = claims.exp - 3600;
    if (jwt_sign(str_is(kind, "bad") ? STR("another key") : str_of(key), &claims, out, NULL) < 0)
        script_die("no token", kind.at);
}

static void on_answer(void *context, const struct slurm_store_answer *answer)
{
    struct result *result = context;

    result->status = answer->status;
    result->answered = true;
    buf_truncate(&result->body, 0);
    buf_add_str(&result->body, buf_str(&answer->body));
}

static void send(struct player *player, const struct json *row, struct result *result)
{
    auto_buf struct buf token, body;
    struct str kind = json_str_or(json_get(row, "token"), STR("good"));
    struct str user = json_str_or(json_get(row, "user"), STR("slurm"));
    struct str method, target;

    buf_init(&token, JWT_TOKEN_MAX);
    buf_init(&body, SCRIPT_MAX_TEXT);
    make_token(player, kind, user, &token);
    if (!str_cut(json_str(json_get(row, "call")), ' ', &method, &target))
        script_die("no method", result->name);
    if (json_exists(json_get(row, "body")))
        json_write(json_get(row, "body"), &body);
    else
        buf_add_str(&body, json_str(json_get(row, "raw")));

    auto_free char *verb = mem_strndup(method.at, method.len);
    struct slurm_store_request request = {
        .method = verb,
        .target = target,
        .content_type = json_str_or(json_get(row, "type"), STR("application/json")),
        .body = buf_str(&body),
        .token = buf_str(&token),
        .user = str_is(kind, "none") ? NULL : user.at,
    };

    result->answered = false;
    (void)slurm_store_ask(player->store, &request, on_answer, result);
}

static void wait_for_answer(struct player *player, const struct result *result)
{
    for (unsigned look = 0; !result->answered; look++) {
        if (look == PATIENCE)
            script_die("no answer", result->name);
        pass_time(player, LOOK_US);
    }
}

/* "until": a status, or what must be found at the paths. */
static bool has_come(const struct json *until, int status, const struct json *body)
{
    struct json_iter iter = json_iter(until);
    const struct json *wanted;
    struct str path;

    if (json_is_number(until))
        return json_i64_or(until, 0) == status;
    while (json_is_object(until) && json_next_member(&iter, &path, &wanted))
        if (!json_equal(at_dotted(body, path), wanted))
            return false;
    return true;
}

static bool try_call(struct player *player, const struct json *template, struct result *result)
{
    auto_json_doc struct json_doc *doc = fill_in_row(player, template);
    auto_json_doc struct json_doc *body = NULL;
    const struct json *row = json_root(doc);

    send(player, row, result);
    if (json_bool_or(json_get(row, "later"), false))
        return true;
    wait_for_answer(player, result);
    (void)json_parse(buf_str(&result->body), SCRIPT_MAX_TEXT, &body, NULL);
    if (!has_come(json_get(row, "until"), result->status, json_root(body)))
        return false;
    keep_values(player, row, json_root(body));
    return true;
}

static void call(struct player *player, const struct json *row, struct result *result)
{
    result->is_call = true;
    pass_time(player, BETWEEN_US);
    for (unsigned look = 0; !try_call(player, row, result); look++) {
        result->never_came = look == PATIENCE;
        if (result->never_came)
            return;
        pass_time(player, LOOK_US);
    }
}

/* ---- what is done to slurmctld ---- */

static void collect(struct player *player)
{
    for (size_t i = 0; i < player->count; i++)
        if (player->results[i].is_call)
            wait_for_answer(player, &player->results[i]);
}

static void start(struct player *player)
{
    slurm_store_start(player->store);
    pass_time(player, START_S * SECOND_US);
}

static void stop(struct player *player)
{
    slurm_store_stop(player->store);
}

static void go_on(struct player *player)
{
    slurm_store_continue(player->store);
}

static void kill_it(struct player *player)
{
    slurm_store_kill(player->store);
}

static void shut_down(struct player *player)
{
    slurm_store_shut_down(player->store);
}

/* The row before has waited for it, and no machine is too busy for a clock that is set. */
static void is_saved(struct player *player)
{
    (void)player;
}

static const struct {
    const char *word;
    void (*act)(struct player *player);
} verbs[] = { { "stop", stop },           { "continue", go_on }, { "kill", kill_it },
              { "shut down", shut_down }, { "start", start },    { "answers", collect },
              { "saved", is_saved } };

static void act(struct player *player, struct str what)
{
    struct str word, seconds;
    uint64_t count = 0;

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (str_is(what, verbs[i].word)) {
            verbs[i].act(player);
            return;
        }
    if (!str_cut(what, ' ', &word, &seconds) || !str_is(word, "wait") ||
        str_to_u64(seconds, 0, 3600, &count, NULL) < 0)
        script_die("unknown", what.at);
    pass_time(player, (int64_t)count * SECOND_US);
}

/* ---- what came of it ---- */

static void print_tree(const struct json_mut *tree)
{
    auto_buf struct buf line;

    buf_init(&line, 2 * SCRIPT_MAX_TEXT);
    json_mut_write(tree, &line);
    (void)puts(buf_text(&line));
}

static void print_result(const struct result *result)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *body = NULL;
    struct json_mut *root = json_new_object(build);

    json_put_text(build, root, "name", result->name);
    if (result->is_call) {
        (void)json_parse(buf_str(&result->body), SCRIPT_MAX_TEXT, &body, NULL);
        json_put_i64(build, root, "status", result->status);
        json_put_bool(build, root, "never_came", result->never_came);
        json_put(build, root, "body",
                 body ? json_copy(build, json_root(body))
                      : json_new_str(build, buf_str(&result->body)));
    }
    print_tree(root);
}

static void print_values(const struct player *player)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    uint64_t number;

    map_each (item, &player->values) {
        struct str text = str_of(item->value);

        json_put_key(build, root, item->key,
                     str_to_u64(text, 0, UINT64_MAX, &number, NULL) == 0
                         ? json_new_u64(build, number)
                         : json_new_str(build, text));
    }
    print_tree(root);
}

/* ---- the whole ---- */

/* A Slurm like that of dev/parts/slurm. */
static void set_up(struct player *player, size_t rows)
{
    struct slurm_store_options options = {
        .seed = 1, .cluster = "slinc", .jwt_key = str_of(key), .backfill_interval_s = 5
    };
    struct slurm_people_partition partition = { .name = "slurm-bridge", .feature = "slurm-bridge" };
    struct err why = { .class = 0 };

    clock_init_virtual(&player->clock, INT64_C(1767225600000000));
    player->store = slurm_store_new(&player->clock, &options);
    if (slurm_people_add_partition(player->store, &partition, &why) < 0)
        script_die(partition.name, why.text);
    script_values_init(&player->values);
    script_save(&player->values, STR("V"), STR("v0.0.45"));
    script_save(&player->values, STR("RUN"), STR("model"));
    player->results = mem_alloc_array(rows + 1, sizeof(*player->results));
    pass_time(player, 10 * (int64_t)SECOND_US);
}

static void tear_down(struct player *player)
{
    for (size_t i = 0; i < player->count; i++)
        buf_done(&player->results[i].body);
    mem_free(player->results);
    map_done(&player->values);
    slurm_store_free(player->store);
}

int main(int argc, char **argv)
{
    struct player player = { .count = 0 };

    if (argc != 2)
        script_die("usage", "run_slurm_store slurm_script.json");

    auto_json_doc struct json_doc *script = script_read(argv[1]);
    struct json_iter iter = json_iter(json_root(script));
    const struct json *row;

    set_up(&player, json_len(json_root(script)));
    while (json_next_item(&iter, &row)) {
        struct result *result = &player.results[player.count++];

        result->name = json_str(json_get(row, "name")).at;
        buf_init(&result->body, SCRIPT_MAX_TEXT);
        if (json_exists(json_get(row, "do")))
            act(&player, json_str(json_get(row, "do")));
        else
            call(&player, row, result);
    }
    for (size_t i = 0; i < player.count; i++)
        print_result(&player.results[i]);
    print_values(&player);
    tear_down(&player);
    return 0;
}
