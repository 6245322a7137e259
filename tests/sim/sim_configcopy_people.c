/* sim_configcopy_people.c - the people of the configcopy scenario: they make, change and delete
 * sources, namespaces and labels, have ConfigMaps of their own under colliding names, and meddle
 * with the copies. */
#include "sim_configcopy.h"

const char scene_source_ns[] = "source";

void scene_target_name(char name[16], uint64_t number)
{
    (void)snprintf(name, 16, "t%u", 1 + (unsigned)(number % TARGETS));
}

void scene_source_name(char name[16], uint64_t number)
{
    (void)snprintf(name, 16, "%c", (char)('a' + number % SOURCES));
}

/* One deed: names are drawn before, so that every deed reads as a sentence. */
struct deed {
    struct scene *scene;
    char target[16], source[16];
    unsigned value;
    bool yes;
    char path[200], body[400];
};

static void call(struct deed *deed, const char *method)
{
    (void)world_call(deed->scene->world, "people", method, deed->path,
                     *deed->body ? deed->body : NULL);
}

#define AT(...)    (void)snprintf(deed->path, sizeof(deed->path), __VA_ARGS__)
#define WITH(...)  (void)snprintf(deed->body, sizeof(deed->body), __VA_ARGS__)
#define CONFIGMAPS "/api/v1/namespaces/%s/configmaps"

static void make_source(struct deed *deed)
{
    AT(CONFIGMAPS, scene_source_ns);
    WITH("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" CONFIGCOPY_COPY
         "\":\"%s\"}},\"data\":{\"v\":\"%u\",\"k%u\":\"x\"}}",
         deed->source, deed->yes ? "true" : "false", deed->value, deed->value % 4);
    call(deed, "POST");
}

static void edit_source(struct deed *deed)
{
    AT(CONFIGMAPS "/%s", scene_source_ns, deed->source);
    WITH("{\"data\":{\"v\":\"%u\",\"k%u\":%s}}", deed->value, deed->value % 4,
         deed->yes ? "\"y\"" : "null");
    call(deed, "PATCH");
}

static void label_source(struct deed *deed)
{
    AT(CONFIGMAPS "/%s", scene_source_ns, deed->source);
    WITH("{\"metadata\":{\"labels\":{\"" CONFIGCOPY_COPY "\":%s}}}",
         deed->yes ? "\"true\"" : "null");
    call(deed, "PATCH");
}

static void delete_source(struct deed *deed)
{
    AT(CONFIGMAPS "/%s", scene_source_ns, deed->source);
    call(deed, "DELETE");
}

static void make_namespace(struct deed *deed)
{
    AT("/api/v1/namespaces");
    WITH("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" CONFIGCOPY_TARGET "\":\"%s\"}}}",
         deed->target, deed->yes ? "true" : "no");
    call(deed, "POST");
}

static void label_namespace(struct deed *deed)
{
    AT("/api/v1/namespaces/%s", deed->target);
    WITH("{\"metadata\":{\"labels\":{\"" CONFIGCOPY_TARGET "\":%s}}}",
         deed->yes ? "\"true\"" : "null");
    call(deed, "PATCH");
}

static void delete_namespace(struct deed *deed)
{
    AT("/api/v1/namespaces/%s", deed->target);
    call(deed, "DELETE");
}

static void make_own(struct deed *deed)
{
    AT(CONFIGMAPS, deed->target);
    WITH("{\"metadata\":{\"name\":\"%s\"},\"data\":{\"own\":\"%u\"}}", deed->source, deed->value);
    call(deed, "POST");
}

/* It may be theirs, or one of our copies. */
static void delete_there(struct deed *deed)
{
    AT(CONFIGMAPS "/%s", deed->target, deed->source);
    call(deed, "DELETE");
}

static void meddle_with_copy(struct deed *deed)
{
    AT(CONFIGMAPS "/%s", deed->target, deed->source);
    WITH("{\"data\":{\"v\":\"meddled %u\",\"more\":%s}}", deed->value,
         deed->yes ? "\"1\"" : "null");
    call(deed, "PATCH");
}

/* Without one of the marks it is theirs from now on. */
static void take_over_copy(struct deed *deed)
{
    AT(CONFIGMAPS "/%s", deed->target, deed->source);
    if (deed->yes)
        WITH("{\"metadata\":{\"labels\":{\"" CONFIGCOPY_MANAGED "\":null}}}");
    else
        WITH("{\"metadata\":{\"annotations\":{\"" CONFIGCOPY_SOURCE "\":null}}}");
    call(deed, "PATCH");
}

static void forget_history(struct deed *deed)
{
    world_forget_history(deed->scene->world);
}

static const struct {
    void (*act)(struct deed *deed);
    unsigned weight;
} deeds[] = {
    { make_source, 15 },    { edit_source, 20 },     { label_source, 8 },     { delete_source, 6 },
    { make_namespace, 12 }, { label_namespace, 8 },  { delete_namespace, 5 }, { make_own, 8 },
    { delete_there, 8 },    { meddle_with_copy, 8 }, { take_over_copy, 6 },   { forget_history, 3 },
};

enum { DEEDS = sizeof(deeds) / sizeof(deeds[0]) };

static void act(struct scene *scene)
{
    struct rand *rand = &scene->world->rand;
    struct deed deed = { .scene = scene };
    size_t chosen = world_choose(scene->world, &deeds[0].weight, sizeof(deeds[0]), DEEDS);

    scene_target_name(deed.target, rand_u64(rand));
    scene_source_name(deed.source, rand_u64(rand));
    deed.value = (unsigned)rand_below(rand, 100);
    deed.yes = rand_chance(rand, 700);
    deeds[chosen].act(&deed);
}

/* They come in bursts: what is done while our process is busy with the same thing is what it could
 * miss. */
static void on_people(void *context)
{
    struct scene *scene = context;
    struct rand *rand = &scene->world->rand;

    act(scene);
    loop_timer_start(scene->world->loop, &scene->people,
                     rand_chance(rand, 600) ? rand_range(rand, 0, 15000)
                                            : rand_range(rand, 20000, 4000000),
                     on_people, scene);
}

static void on_last_burst(void *context)
{
    struct scene *scene = context;
    struct rand *rand = &scene->world->rand;

    act(scene);
    if (rand_chance(rand, 900))
        loop_timer_start(scene->world->loop, &scene->people, rand_range(rand, 0, 15000),
                         on_last_burst, scene);
}

void people_end(struct scene *scene)
{
    loop_timer_start(scene->world->loop, &scene->people, 0, on_last_burst, scene);
}

void people_prepare(struct scene *scene)
{
    struct world *world = scene->world;

    (void)world_call(world, "people", "POST", "/api/v1/namespaces",
                     "{\"metadata\":{\"name\":\"source\"}}");
    (void)world_call(world, "people", "POST", "/api/v1/namespaces",
                     "{\"metadata\":{\"name\":\"system\"}}");
    for (unsigned i = 0; i < 40; i++)
        act(scene);
}

void people_start(struct scene *scene)
{
    loop_timer_start(scene->world->loop, &scene->people, 1000000, on_people, scene);
}
