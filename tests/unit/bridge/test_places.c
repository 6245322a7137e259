/* test_places.c - as many pods of a gang are dealt a node as there could be, whichever nodes each
 * of them may use: random gangs beside a search through all deals. */
#include "base/rand.h"
#include "bridge/ask.h"
#include "bridge/places.h"
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

static void check_deals(const struct gang *gang, const struct unit *unit, const struct deals *deals)
{
    unsigned held[MOST_NODES] = { 0 };

    for (unsigned i = 0; i < deals->count; i++) {
        unsigned pod = (unsigned)(unit->members[deals->at[i].member].pod->object.name[1] - '0');
        unsigned node = (unsigned)(deals->at[i].node->object.name[1] - '0');

        assert_true(gang->may_use[pod][node]);
        assert_true(++held[node] <= gang->per_node);
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(deals->at[i].member, deals->at[k].member);
    }
    assert_int_equal(deals->count, most_from(gang, 0, (unsigned[MOST_NODES]){ 0 }));
    assert_int_equal(deals->left, gang->pods - deals->count);
}

static void a_deal_is_found_where_there_is_one(void **state)
{
    struct rand rand;

    rand_init(&rand, 7);
    for (unsigned i = 0; i < GANGS; i++) {
        struct gang gang = random_gang(&rand);
        struct err err = { .class = 0 };
        struct small_world small;
        struct job_ask ask;
        struct deals deals;
        struct draft draft;
        struct unit unit;

        read_world(&gang, &small);
        unit_gather(&small.world, str_of(small_world_key(&small, "podgroup/g")), &small.arena,
                    &unit);
        assert_int_equal(unit_describe(&small.world, &unit, &small.arena, &ask, &err), 0);
        ask.exclusive = false;
        ask.tasks_per_node = gang.per_node;
        assert_int_equal(places_deal(&small.world, &unit, &ask, &small.arena, &deals, &err), 0);
        check_deals(&gang, &unit, &deals);
        ask.min_nodes = 1;
        ask.max_nodes = gang.nodes;
        assert_true(places_draft(&small.world, &unit, &ask, &small.arena, &draft));
        assert_int_equal(draft.is_enough, deals.left == 0);
        small_world_done(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_deal_is_found_where_there_is_one) };

    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
