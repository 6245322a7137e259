/* test_gang_size.c - plans of large gangs: a gang of 4,000 pods on 4,000 nodes whose names do not
 * fold is planned within the arena of a plan, and the time of a plan grows with the gang about
 * linearly, wherever the gang is in its life. */
#include "base/rand.h"
#include "bridge/place.h"
#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum {
    SMALL = 500,
    LARGE = 4000,
    MOST_GROWTH = 20, /* of the time, for 8 times the pods; 64 would be quadratic */
    RUNS = 3,
    NAME = 41,
    MAX_WORLD = 64 << 20,
    PLAN_ARENA = 64 << 20, /* as the engine's */
};

/* Where the gang is in its life. */
enum scene {
    WAITS,      /* no job yet */
    FOLLOWS,    /* its job waits, and excludes as many nodes as it wants */
    ALLOCATED,  /* its job runs, no pod is bound */
    ON_PORTS,   /* its job runs, and all pods want the same port of their node */
    HALF_BOUND, /* every second pod is bound */
    BOUND,      /* all pods are bound */
    REBOUND,    /* all pods are bound, by a job whose place another one has taken */
    MISFIT,     /* its job runs, and every tenth of its nodes is cordoned */
    LEFT_OVER,  /* its job runs on half of the nodes that the pods need */
    INHERITED,  /* all pods are bound, by a job of a bridge before ours */
    LOST,       /* all pods are bound, and Slurm has lost the job */
    PINNED,     /* all pods are bound, and the job that is to cover them waits */
    ENDS,       /* all pods are bound, and Slurm has ended the job */
    OVER,       /* all pods have succeeded, and the job runs */
    SCENES
};

static const char *const scene_names[SCENES] = {
    [WAITS] = "waits",
    [FOLLOWS] = "follows",
    [ALLOCATED] = "allocated",
    [ON_PORTS] = "on ports",
    [HALF_BOUND] = "half bound",
    [BOUND] = "bound",
    [REBOUND] = "bound by another job",
    [MISFIT] = "misfit",
    [LEFT_OVER] = "left over",
    [INHERITED] = "inherited",
    [LOST] = "lost",
    [PINNED] = "pinned",
    [ENDS] = "ends",
    [OVER] = "over",
};

static bool is_bound(enum scene scene, unsigned pod)
{
    return scene == BOUND || scene == INHERITED || scene == REBOUND || scene == LOST ||
           scene == PINNED || scene == ENDS || scene == OVER ||
           (scene == HALF_BOUND && pod % 2 == 0);
}

/* ---- the world ---- */

/* As clouds name nodes: 40 hexadecimal digits. A letter at the end, because Slurm folds digits. */
static void name_node(struct rand *rand, char name[NAME])
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i + 1 < NAME; i++)
        name[i] = digits[i + 2 < NAME ? rand_below(rand, 16) : 10 + rand_below(rand, 6)];
    name[0] = 'n';
    name[NAME - 1] = '\0';
}

static void write_pods(struct buf *out, enum scene scene, unsigned size, char (*names)[NAME])
{
    buf_printf(out, "{\"groups\":[{\"kind\":\"podgroup\",\"name\":\"g\",\"size\":%u}],\"pods\":[",
               scene == LEFT_OVER ? size / 2 : size);
    for (unsigned i = 0; i < size; i++) {
        buf_printf(out, "%s{\"name\":\"p%u\",\"podgroup\":\"g\",\"created\":50", i ? "," : "", i);
        if (is_bound(scene, i))
            buf_printf(out, ",\"node\":\"%s\",\"job\":%u,\"running\":%d", names[i],
                       scene == REBOUND || scene == LOST || scene == PINNED ? 6 : 7, scene != OVER);
        if (scene == ON_PORTS)
            buf_add_text(out, ",\"ports\":[8080]");
        if (scene == OVER)
            buf_add_text(out, ",\"phase\":\"Succeeded\",\"terminated\":1");
        buf_add_text(out, "}");
    }
}

static void write_list(struct buf *out, const char *field, char (*names)[NAME], unsigned count)
{
    buf_printf(out, ",\"%s\":\"", field);
    for (unsigned i = 0; i < count; i++)
        buf_printf(out, "%s%s", i ? "," : "", names[i]);
    buf_add_text(out, "\"");
}

static void write_job(struct buf *out, enum scene scene, unsigned size, char (*names)[NAME])
{
    bool waits = scene == FOLLOWS || scene == PINNED;

    if (scene == WAITS || scene == LOST)
        return;
    buf_printf(out, "{\"id\":7,\"pod\":\"podgroup/g\",\"pods\":%u,\"state\":\"%s\"", size,
               waits           ? "PENDING"
               : scene == ENDS ? "RUNNING+COMPLETING"
                               : "RUNNING");
    if (scene == INHERITED) {
        buf_add_text(out, ",\"foreign\":true,\"admin_comment\":\"{\\\"pods\\\":[");
        for (unsigned i = 0; i < size; i++)
            buf_printf(out, "%s\\\"default/p%u\\\"", i ? "," : "", i);
        buf_add_text(out, "]}\"");
    }
    if (scene == FOLLOWS)
        write_list(out, "excluded_nodes", names + size, size);
    if (scene == PINNED)
        write_list(out, "required_nodes", names, size);
    if (!waits)
        write_list(out, "nodes", names, scene == LEFT_OVER ? size / 2 : size);
    buf_printf(out, ",\"tres_alloc_str\":\"cpu=%u,node=%u\",\"cpus\":%u,\"node_count\":%u}", size,
               size, size, size);
}

static void write_world(struct buf *out, enum scene scene, unsigned size, char (*names)[NAME])
{
    unsigned nodes = scene == FOLLOWS ? 2 * size : size;

    write_pods(out, scene, size, names);
    buf_add_text(out, "],\"nodes\":[");
    for (unsigned i = 0; i < nodes; i++)
        buf_printf(out,
                   "%s{\"name\":\"%s\",\"lent\":true,\"labels\":{\"host\":\"%s\"},\"cordoned\":%s}",
                   i ? "," : "", names[i], names[i],
                   (scene == MISFIT && i % 10 == 0) || i >= size ? "true" : "false");
    buf_add_text(out, "],\"slurm_nodes\":[");
    for (unsigned i = 0; i < nodes; i++)
        buf_printf(out, "%s{\"name\":\"%s\"}", i ? "," : "", names[i]);
    buf_add_text(out, "],\"jobs\":[");
    write_job(out, scene, size, names);
    buf_add_text(out, "]}");
}

static void read_world(struct small_world *ret_small, enum scene scene, unsigned size)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text = { .max = MAX_WORLD };
    char(*names)[NAME] = test_malloc((size_t)2 * size * NAME);
    struct err err = { .class = 0 };
    struct rand rand;

    rand_init(&rand, 7);
    for (unsigned i = 0; i < 2 * size; i++)
        name_node(&rand, names[i]);
    write_world(&text, scene, size, names);
    if (json_parse(buf_str(&text), MAX_WORLD, &doc, &err) < 0)
        fail_msg("%s", err.text);
    small_world_init(ret_small, json_root(doc));
    test_free(names);
}

/* ---- planning ---- */

static double now_ms(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

struct cost {
    double ms; /* of the processor, the least of several runs: noise only ever adds */
    size_t bytes, actions;
};

static struct cost plan_once(struct small_world *small, const char *unit)
{
    double begun = now_ms();
    struct err err = { .class = 0 };
    struct cost cost = { .actions = 0 };
    struct arena arena;
    struct plan plan;

    arena_init(&arena, PLAN_ARENA);
    plan_init(&plan, &arena);
    if (place_plan(&small->world, str_of(small_world_key(small, unit)), &plan, NULL, &err) < 0)
        fail_msg("%s", err.text);
    cost.ms = now_ms() - begun;
    cost.bytes = arena.used;
    list_each (const struct action, action, &plan.actions, link)
        cost.actions += action->what != NULL;
    arena_done(&arena);
    return cost;
}

static struct cost cost_of(enum scene scene, unsigned size, const char *unit)
{
    struct cost least = { .ms = 1e9 };
    struct small_world small;

    read_world(&small, scene, size);
    for (unsigned i = 0; i < RUNS; i++) {
        struct cost cost = plan_once(&small, unit);

        if (cost.ms < least.ms)
            least = cost;
    }
    small_world_done(&small);
    return least;
}

static bool is_about_linear(enum scene scene, const char *unit)
{
    struct cost small = cost_of(scene, SMALL, unit), large = cost_of(scene, LARGE, unit);

    print_message("# %s, %s: %.1f ms for %d pods, %.1f ms for %d; %zu kB, %zu actions\n",
                  scene_names[scene], unit, small.ms, SMALL, large.ms, LARGE, large.bytes >> 10,
                  large.actions);
    return large.ms <= MOST_GROWTH * small.ms;
}

static void the_time_of_a_plan_grows_with_the_gang(void **state)
{
    unsigned steep = 0;

    for (enum scene scene = 0; scene < SCENES; scene++)
        steep += !is_about_linear(scene, "podgroup/g");
    assert_int_equal(steep, 0);
}

/* ---- bounds ---- */

static unsigned count_actions(const struct plan *plan, const char *what)
{
    unsigned count = 0;

    list_each (const struct action, action, &plan->actions, link)
        count += strncmp(action->what, what, strlen(what)) == 0;
    return count;
}

static void plan_with(struct small_world *small, struct arena *arena, struct plan *ret_plan)
{
    struct err err = { .class = 0 };

    plan_init(ret_plan, arena);
    if (place_plan(&small->world, str_of(small_world_key(small, "podgroup/g")), ret_plan, NULL,
                   &err) < 0)
        fail_msg("%s", err.text);
}

static void a_gang_that_takes_too_much_memory_says_so_on_its_pods(void **state)
{
    auto_arena struct arena arena;
    const struct action *first;
    struct small_world small;
    struct plan plan;

    read_world(&small, ALLOCATED, LARGE);
    arena_init_budget(&arena, 2 << 20, PLAN_ARENA); /* it takes about 4 MiB */
    plan_with(&small, &arena, &plan);
    assert_int_equal(count_actions(&plan, "bind"), 0);
    first = list_item(plan.actions.next, struct action, link);
    assert_non_null(strstr(first->request.body.at, "TooBig"));
    assert_non_null(strstr(first->request.body.at, "4000 pods"));
    assert_false(arena_is_over_budget(&arena));
    assert_true(plan.look_again_us > 0);
    small_world_done(&small);
}

static void a_plan_has_no_more_actions_than_it_may(void **state)
{
    static const struct {
        enum scene scene;
        const char *what;
        unsigned most;
    } cases[] = {
        { ALLOCATED, "bind", PLAN_MAX_ACTIONS / 2 }, { FOLLOWS, "patch", PLAN_MAX_ACTIONS },
        { REBOUND, "patch", PLAN_MAX_ACTIONS },      { ENDS, "patch", PLAN_MAX_ACTIONS / 2 + 1 },
        { OVER, "patch", PLAN_MAX_ACTIONS },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_arena struct arena arena;
        struct small_world small;
        struct plan plan;

        read_world(&small, cases[i].scene, PLAN_MAX_ACTIONS + 500);
        arena_init(&arena, PLAN_ARENA);
        plan_with(&small, &arena, &plan);
        assert_in_range(count_actions(&plan, cases[i].what), cases[i].most - 1, cases[i].most);
        assert_in_range(plan.look_again_us, 1, 1);
        small_world_done(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_of_a_plan_grows_with_the_gang),
        cmocka_unit_test(a_gang_that_takes_too_much_memory_says_so_on_its_pods),
        cmocka_unit_test(a_plan_has_no_more_actions_than_it_may),
    };

    return cmocka_run_group_tests_name("gang_size", tests, NULL, NULL);
}
