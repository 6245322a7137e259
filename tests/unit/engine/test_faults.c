/* test_faults.c - whatever the server does, one write at a time per key, and in the end all is as
 * wanted.
 *
 * A server with ConfigMaps, a watch that lags, and a seed that decides delays, refusals and lost
 * answers. The controller wants every map to hold "done". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "world.h"

enum { MAPS_COUNT = 8, MAX_EVENTS = 100000, SEEDS = 40 };

struct event { /* a change on its way to the watch */
    int map;
    unsigned version;
    bool gone;
    char value[16];
};

struct server {
    struct world world;
    struct rand dice;
    bool is_calm; /* no more faults */
    unsigned version;
    struct {
        unsigned version; /* 0: does not exist */
        char value[16];
        int64_t busy_until_us; /* a write of ours is not answered before this */
        bool unclear;          /* one ended without a clear answer, and was not read since */
    } maps[MAPS_COUNT];
    struct event *events;
    unsigned event_count, shown; /* events [shown, event_count) are on their way */
    struct loop_timer watch;
    unsigned writes; /* that took effect */
    unsigned unclear_ends, toggles;
    char body[600];
};

static const char *name_of(int map)
{
    static char name[16];

    snprintf(name, sizeof(name), "m%d", map);
    return name;
}

static int map_of(struct str name)
{
    return name.len == 2 && name.at[0] == 'm' ? name.at[1] - '0' : -1;
}

/* ---- the server ---- */

static void show_event(void *context);

static void set_watch(struct server *server)
{
    if (!loop_timer_is_armed(&server->watch) && server->shown < server->event_count)
        loop_timer_start(server->world.loop, &server->watch,
                         (int64_t)rand_below(&server->dice, 300 * MS), show_event, server);
}

static void show_event(void *context)
{
    struct server *server = context;
    const struct event *event = &server->events[server->shown++];

    if (event->gone)
        kube_cache_seen_gone(server->world.cache, "a", name_of(event->map), event->version);
    else
        world_see(&server->world, name_of(event->map), event->version, event->value);
    set_watch(server);
}

static void write_map(struct server *server, int map, const char *value)
{
    struct event *event = &server->events[server->event_count++];

    assert_true(server->event_count < MAX_EVENTS);
    *event = (struct event){ .map = map, .version = ++server->version, .gone = !value };
    server->maps[map].version = value ? server->version : 0;
    snprintf(server->maps[map].value, sizeof(server->maps[map].value), "%s", value ? value : "");
    snprintf(event->value, sizeof(event->value), "%s", value ? value : "");
    set_watch(server);
}

static struct fake_answer refuse(struct server *server, int status, const char *reason)
{
    snprintf(server->body, sizeof(server->body),
             "{\"kind\":\"Status\",\"reason\":\"%s\",\"message\":\"%s\"}", reason, reason);
    return (struct fake_answer){ .status = status, .body = server->body };
}

static struct fake_answer show_map(struct server *server, int map)
{
    snprintf(server->body, sizeof(server->body), "%s",
             world_map_text(name_of(map), server->maps[map].version, server->maps[map].value));
    return (struct fake_answer){ .status = 200, .body = server->body };
}

/* The map that a request is about; a create names it in its body. */
static int map_sent(const struct fake_sent *sent)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct str path = str_of(sent->path);

    if (strcmp(sent->method, "POST") != 0)
        return map_of(str_sub(path, path.len - 2, path.len));
    assert_int_equal(json_parse(str_of(sent->body), 10000, &doc, NULL), 0);
    return map_of(json_str(json_at(json_root(doc), "metadata", "name")));
}

static struct fake_answer do_request(struct server *server, const struct fake_sent *sent)
{
    auto_json_doc struct json_doc *doc = NULL;
    bool creates = strcmp(sent->method, "POST") == 0;
    int map = map_sent(sent);
    uint64_t wanted = 0;

    if (!creates && server->maps[map].version == 0)
        return refuse(server, 404, "NotFound");
    if (strcmp(sent->method, "GET") == 0)
        return show_map(server, map);
    if (creates && server->maps[map].version != 0)
        return refuse(server, 409, "AlreadyExists");

    assert_int_equal(json_parse(str_of(sent->body), 10000, &doc, NULL), 0);

    struct str version = json_str(json_at(json_root(doc), "metadata", "resourceVersion"));

    if (version.len > 0 && (str_to_u64(version, 0, UINT64_MAX, &wanted, NULL) < 0 ||
                            wanted != server->maps[map].version))
        return refuse(server, 409, "Conflict");
    write_map(server, map, json_str(json_at(json_root(doc), "data", "k")).at);
    server->writes++;
    return show_map(server, map);
}

static struct fake_answer fault(struct server *server, const struct fake_sent *sent)
{
    struct fake_answer answer;

    switch (rand_below(&server->dice, 7)) {
    case 0:
        do_request(server, sent); /* done, and the answer lost */
        return (struct fake_answer){ .class = ERR_UNKNOWN };
    case 1:
        return (struct fake_answer){ .class = ERR_UNKNOWN };
    case 2:
        answer = refuse(server, 429, "TooManyRequests");
        answer.retry_after_us = SECOND;
        return answer;
    case 3:
        return refuse(server, 503, "ServiceUnavailable");
    case 4:
        return refuse(server, 403, "Forbidden");
    case 5:
        return refuse(server, 500, "InternalError");
    default:
        return (struct fake_answer){ .status = 0 }; /* silence, until the deadline */
    }
}

static bool is_clear(const struct fake_answer *answer)
{
    return answer->class == 0 && answer->status != 0 && answer->status != 500;
}

/* A write of ours: only with leave, one at a time, and none after an unclear one but by a read. */
static void check_write(struct server *server, const struct fake_sent *sent,
                        const struct fake_answer *answer)
{
    int map = map_sent(sent);
    int64_t now_us = loop_now_us(server->world.loop);

    assert_true(server->world.may_act);
    assert_true(server->maps[map].busy_until_us <= now_us);
    assert_false(server->maps[map].unclear);
    server->maps[map].unclear = !is_clear(answer);
    server->unclear_ends += !is_clear(answer);
    server->maps[map].busy_until_us =
        answer->status == 0 && answer->class == 0 ? sent->deadline_us : now_us + answer->delay_us;
}

static struct fake_answer serve(void *context, const struct fake_sent *sent)
{
    struct server *server = context;
    struct fake_answer answer;

    if (!server->is_calm && rand_chance(&server->dice, 350))
        answer = fault(server, sent);
    else
        answer = do_request(server, sent);
    answer.delay_us = (int64_t)rand_below(&server->dice, 200 * MS);
    if (strcmp(sent->method, "GET") != 0)
        check_write(server, sent, &answer);
    else if (answer.status == 200 || answer.status == 404)
        server->maps[map_sent(sent)].unclear = false;
    return answer;
}

/* ---- the controller ---- */

static int plan_done(struct world *world, struct str key, struct plan *plan, struct err *err)
{
    const struct kube_object *map;
    char name[16];

    snprintf(name, sizeof(name), STR_FMT, STR_ARG(str_sub(key, 2, key.len)));
    map = kube_cache_get(world->cache, "a", name);
    if (!map)
        world_create(world, plan, name, "begun");
    else if (strcmp(world_value_of(world, name), "done") != 0 && map->version[0])
        plan_merge_patch(plan, world->cache, &kube_configmaps, "a", name, NULL, map->version,
                         world_value(world, "{\"data\":{\"k\":\"done\"}}"));
    return 0;
}

/* ---- the world around it ---- */

static void disturb(struct server *server)
{
    int map = (int)rand_below(&server->dice, MAPS_COUNT);

    switch (rand_below(&server->dice, 60)) {
    case 0:
    case 1: /* somebody else writes */
        if (server->maps[map].version != 0)
            write_map(server, map, "theirs");
        break;
    case 2:
    case 3: /* somebody deletes */
        if (server->maps[map].version != 0)
            write_map(server, map, NULL);
        break;
    case 4:
    case 5:
    case 6:
        server->world.may_act = !server->world.may_act;
        server->toggles++;
        break;
    default:
        break;
    }
}

static void check_end(struct server *server, uint64_t seed)
{
    auto_buf struct buf out;

    buf_init(&out, 1 << 20);
    for (int i = 0; i < MAPS_COUNT; i++)
        if (strcmp(server->maps[i].value, "done") != 0)
            fail_msg("seed %llu: map %d is %s", (unsigned long long)seed, i, server->maps[i].value);
    metrics_write(server->world.metrics, &out);
    assert_true(engine_is_idle(server->world.engine));
    assert_true(metrics_get(server->world.metrics, &engine_metrics[METRIC_OVERLAYS], NULL) == 0);
    assert_true(metrics_get(server->world.metrics, &engine_metrics[METRIC_IN_FLIGHT], NULL) == 0);
    assert_int_equal(server->world.troubles, server->world.recoveries);
    assert_int_equal(kube_client_in_flight(server->world.client), 0);
}

static void run_seed(uint64_t seed)
{
    struct server *server = mem_alloc(sizeof(*server));
    struct world *world = &server->world;
    char key[32];
    unsigned writes;

    world_set_up(world, &(struct engine_options){ .max_in_flight = 3 });
    rand_init(&server->dice, seed);
    server->events = mem_alloc_array(MAX_EVENTS, sizeof(*server->events));
    server->version = 10;
    fake_serve(world->fake, serve, server);
    world->plan = plan_done;
    world_sync(world);
    engine_start(world->engine);
    for (int i = 0; i < MAPS_COUNT; i++) {
        snprintf(key, sizeof(key), "a/%s", name_of(i));
        engine_enqueue(&world->controller, str_of(key));
    }
    for (int i = 0; i < 3000; i++) {
        world_run(world, 20 * MS);
        disturb(server);
    }
    assert_true(server->toggles > 20 && server->unclear_ends > 5); /* it was no calm day */
    server->is_calm = true;
    world->may_act = true;
    world_run(world, 120 * SECOND);
    check_end(server, seed);
    writes = server->writes;
    world_run(world, 120 * SECOND); /* and then nothing is written any more */
    assert_int_equal(server->writes, writes);
    loop_timer_stop(&server->watch);
    world_tear_down(world);
    mem_free(server->events);
    mem_free(server);
}

static void in_the_end_all_is_as_wanted_whatever_went_wrong(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        run_seed(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_end_all_is_as_wanted_whatever_went_wrong),
    };

    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
