/* test_assign.c - which pods of a gang are dealt a node when they may use different ones: random
 * gangs beside a search through all deals. */
#include "base/rand.h"
#include "bridge/run/assign.h"
#include "bridge/unit/describe.h"
#include "worlds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST_PODS = 7, MOST_NODES = 6, GANGS = 400 };

struct gang {
    unsigned pods, nodes, per_node;
    bool may_use[MOST_PODS][MOST_NODES];
};

static struct gang random_gang(struct rand *rand)
{
    struct gang gang = { .pods = 1 + (unsigned)rand_below(rand, MOST_PODS),
                         .nodes = 1 + (unsigned)rand_below(rand, MOST_NODES),
                         .per_node = 1 + (unsigned)rand_below(rand, 2) };

    for (unsigned pod = 0; pod < gang.pods; pod++)
        for (unsigned node = 0; node < gang.nodes; node++)
            gang.may_use[pod][node] = rand_below(rand, 3) == 0;
    return gang;
}

/* Of two pods one may use all nodes that the other may use: as a leader that needs a GPU, and
 * workers that do not. */
static struct gang nested_gang(struct rand *rand)
{
    struct gang gang = random_gang(rand);
    unsigned shift = (unsigned)rand_below(rand, gang.nodes);

    for (unsigned pod = 0; pod < gang.pods; pod++) {
        unsigned fit = (unsigned)rand_below(rand, gang.nodes + 1);

        for (unsigned node = 0; node < gang.nodes; node++)
            gang.may_use[pod][(node + shift) % gang.nodes] = node < fit;
    }
    return gang;
}

/* ---- the same as a world ---- */

static void write_pod(const struct gang *gang, unsigned pod, struct buf *out)
{
    buf_printf(out,
               "%s{\"name\":\"p%u\",\"podgroup\":\"g\",\"created\":90,\"affinity\":{"
               "\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
               "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"host\",\"operator\":"
               "\"In\",\"values\":[\"none\"",
               pod > 0 ? "," : "", pod);
    for (unsigned node = 0; node < gang->nodes; node++)
        if (gang->may_use[pod][node])
            buf_printf(out, ",\"n%u\"", node);
    buf_add_text(out, "]}]}]}}}}");
}

static void write_world(const struct gang *gang, struct buf *out)
{
    buf_printf(out, "{\"groups\":[{\"kind\":\"podgroup\",\"name\":\"g\",\"size\":%u}],\"pods\":[",
               gang->pods);
    for (unsigned pod = 0; pod < gang->pods; pod++)
        write_pod(gang, pod, out);
    buf_add_text(out, "],\"nodes\":[");
    for (unsigned node = 0; node < gang->nodes; node++)
        buf_printf(out, "%s{\"name\":\"n%u\",\"lent\":true,\"labels\":{\"host\":\"n%u\"}}",
                   node > 0 ? "," : "", node, node);
    buf_add_text(out, "],\"slurm_nodes\":[");
    for (unsigned node = 0; node < gang->nodes; node++)
        buf_printf(out, "%s{\"name\":\"n%u\"}", node > 0 ? "," : "", node);
    buf_printf(out,
               "],\"jobs\":[{\"id\":7,\"pod\":\"podgroup/g\",\"pods\":%u,\"state\":\"RUNNING\","
               "\"nodes\":\"n[0-%u]\"}]}",
               gang->pods, gang->nodes - 1);
}

static void read_world(const struct gang *gang, struct small_world *ret_small)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf text = { .max = 1 << 16 };

    write_world(gang, &text);
    assert_int_equal(json_parse(buf_str(&text), 1 << 16, &doc, NULL), 0);
    small_world_init(ret_small, json_root(doc));
}

/* ---- the most that can be ---- */

static unsigned most_from(const struct gang *gang, unsigned pod, unsigned *held)
{
    unsigned most;

    if (pod == gang->pods)
        return 0;
    most = most_from(gang, pod + 1, held);
    for (unsigned node = 0; node < gang->nodes; node++) {
        unsigned dealt;

        if (!gang->may_use[pod][node] || held[node] == gang->per_node)
            continue;
        held[node]++;
        dealt = 1 + most_from(gang, pod + 1, held);
        held[node]--;
        most = dealt > most ? dealt : most;
    }
    return most;
}

/* ---- */

static void check_deals(const struct gang *gang, const struct unit *unit,
                        const struct assignments *assigned)
{
    bool has_node[MOST_PODS] = { false };
    unsigned held[MOST_NODES] = { 0 };

    for (unsigned i = 0; i < assigned->count; i++) {
        unsigned pod = (unsigned)(unit->members[assigned->at[i].member].pod->object.name[1] - '0');
        unsigned node = (unsigned)(assigned->at[i].node->object.name[1] - '0');

        assert_true(gang->may_use[pod][node]);
        assert_true(++held[node] <= gang->per_node);
        assert_false(has_node[pod]);
        has_node[pod] = true;
    }
    assert_int_equal(assigned->left, gang->pods - assigned->count);
    for (unsigned pod = 0; pod < gang->pods; pod++)
        for (unsigned node = 0; node < gang->nodes; node++)
            assert_true(has_node[pod] || !gang->may_use[pod][node] || held[node] == gang->per_node);
}

/* How many pods get a node, of the running job and of all nodes alike. */
static unsigned assign_to(const struct gang *gang)
{
    struct err err = { .class = 0 };
    struct small_world small;
    struct job_desc desc;
    struct assignments assigned;
    struct preselection preselection;
    struct unit unit;

    read_world(gang, &small);
    unit_gather(&small.world, str_of(small_world_key(&small, "podgroup/g")), &small.arena, &unit);
    assert_int_equal(unit_describe(&small.world, &unit, DESCRIBE_BOTH, &small.arena, &desc, &err),
                     0);
    desc.exclusive = false;
    desc.tasks_per_node = gang->per_node;
    assert_int_equal(assign_nodes(&small.world, &unit, &desc, &small.arena, &assigned, &err), 0);
    check_deals(gang, &unit, &assigned);
    desc.min_nodes = 1;
    desc.max_nodes = gang->nodes;
    assert_true(preselect_nodes(&small.world, &unit, &desc, &small.arena, &preselection));
    if (assigned.left == 0)
        assert_true(preselection.is_enough);
    small_world_done(&small);
    return assigned.count;
}

static void no_pod_is_left_while_a_node_is_free_that_it_may_use(void **state)
{
    struct rand rand;

    rand_init(&rand, 7);
    for (unsigned i = 0; i < GANGS; i++) {
        struct gang gang = random_gang(&rand);

        (void)assign_to(&gang);
    }
}

static void pods_that_may_use_few_nodes_choose_before_those_that_may_use_more(void **state)
{
    struct rand rand;

    rand_init(&rand, 8);
    for (unsigned i = 0; i < GANGS; i++) {
        struct gang gang = nested_gang(&rand);

        assert_int_equal(assign_to(&gang), most_from(&gang, 0, (unsigned[MOST_NODES]){ 0 }));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_pod_is_left_while_a_node_is_free_that_it_may_use),
        cmocka_unit_test(pods_that_may_use_few_nodes_choose_before_those_that_may_use_more),
    };

    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
