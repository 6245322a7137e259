/* test_calls.c - each named call asks for what it says, and no text from outside can add to it. */
#include "world.h"

static struct slurm_call *call_named(struct world *world, const char *name)
{
    struct slurm_client *client = world->client;
    static const int64_t ids[] = { 4, 5 };
    struct slurm_node_ask node = { .names = "n[1-2]", .address = "10.0.0.1", .cpus = 4 };

#define IS(text) (strcmp(name, text) == 0)
    if (IS("ping"))
        return slurm_ping_all(client, world_done, world);
    if (IS("conf"))
        return slurm_conf_get(client, world_done, world);
    if (IS("jobs"))
        return slurm_jobs_list(client, 0, world_done, world);
    if (IS("jobs since"))
        return slurm_jobs_list(client, 77, world_done, world);
    if (IS("jobs state"))
        return slurm_jobs_state(client, NULL, 0, world_done, world);
    if (IS("job"))
        return slurm_job_get(client, 4, world_done, world);
    if (IS("resources"))
        return slurm_resources_get(client, 4, world_done, world);
    if (IS("nodes"))
        return slurm_nodes_list(client, 77, world_done, world);
    if (IS("node"))
        return slurm_node_get(client, "n1", world_done, world);
    if (IS("partition"))
        return slurm_partition_get(client, "p", world_done, world);
    if (IS("reservations"))
        return slurm_reservations_list(client, 0, world_done, world);
    if (IS("reservation"))
        return slurm_reservation_get(client, "r", world_done, world);
    if (IS("diag"))
        return slurm_diag_get(client, world_done, world);
    if (IS("licenses"))
        return slurm_licenses_list(client, world_done, world);
    if (IS("qos"))
        return slurm_db_list(client, SLURM_DB_QOS, NULL, 0, world_done, world);
    if (IS("allocate"))
        return slurm_job_allocate(client, STR("{\"x\":1}"), world_done, world);
    if (IS("update"))
        return slurm_job_update(client, 4, STR("{\"x\":1}"), world_done, world);
    if (IS("cancel"))
        return slurm_job_cancel(client, 4, world_done, world);
    if (IS("cancel many"))
        return slurm_jobs_cancel(client, ids, 2, world_done, world);
    if (IS("node create"))
        return slurm_node_create(client, &node, world_done, world);
    if (IS("node update"))
        return slurm_node_update(client, "n1", STR("{\"x\":1}"), world_done, world);
    if (IS("nodes update"))
        return slurm_nodes_update(client, STR("{\"x\":1}"), world_done, world);
    if (IS("node delete"))
        return slurm_node_delete(client, "n1", world_done, world);
    if (IS("reservation put"))
        return slurm_reservation_put(client, STR("{\"x\":1}"), world_done, world);
    if (IS("reservation delete"))
        return slurm_reservation_delete(client, "r", world_done, world);
    assert_true(IS("reconfigure"));
    return slurm_reconfigure(client, world_done, world);
#undef IS
}

static const struct {
    const char *name, *method, *path, *body;
} calls[] = {
    { "ping", "GET", V45 "/ping/", "" },
    { "conf", "GET", V45 "/conf", "" },
    { "jobs", "GET", V45 "/jobs/?flags=LOCAL", "" },
    { "jobs since", "GET", V45 "/jobs/?flags=LOCAL&update_time=77", "" },
    { "jobs state", "GET", V45 "/jobs/state/", "" },
    { "job", "GET", V45 "/job/4?flags=LOCAL", "" },
    { "resources", "GET", V45 "/resources/4", "" },
    { "nodes", "GET", V45 "/nodes/?update_time=77", "" },
    { "node", "GET", V45 "/node/n1", "" },
    { "partition", "GET", V45 "/partition/p", "" },
    { "reservations", "GET", V45 "/reservations/", "" },
    { "reservation", "GET", V45 "/reservation/r", "" },
    { "diag", "GET", V45 "/diag/", "" },
    { "licenses", "GET", V45 "/licenses/", "" },
    { "qos", "GET", "/slurmdb/v0.0.45/qos/", "" },
    { "allocate", "POST", V45 "/job/allocate", "{\"x\":1}" },
    { "update", "POST", V45 "/job/4", "{\"x\":1}" },
    { "cancel", "DELETE", V45 "/job/4", "" },
    { "cancel many", "DELETE", V45 "/jobs/", "{\"jobs\":[\"4\",\"5\"]}" },
    { "node create", "POST", V45 "/new/node/",
      "{\"node_conf\":\"NodeName=n[1-2] NodeAddr=10.0.0.1 CPUs=4 State=EXTERNAL\"}" },
    { "node update", "POST", V45 "/node/n1", "{\"x\":1}" },
    { "nodes update", "POST", V45 "/nodes/", "{\"x\":1}" },
    { "node delete", "DELETE", V45 "/node/n1", "" },
    { "reservation put", "POST", V45 "/reservation", "{\"x\":1}" },
    { "reservation delete", "DELETE", V45 "/reservation/r", "" },
    { "reconfigure", "GET", V45 "/reconfigure/", "" },
};

static void every_call_asks_for_what_it_says(void **state)
{
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const struct fake_sent *sent;

        world_answers(world, calls[i].method, calls[i].path, 422,
                      "{\"errors\":[{\"error_number\":2010}]}");
        call_named(world, calls[i].name);
        assert_int_equal(world_ends(world), SLURM_FORBIDDEN);
        sent = fake_last_sent(world->fake);
        assert_string_equal(sent->method, calls[i].method);
        assert_string_equal(sent->path, calls[i].path);
        assert_string_equal(sent->body ? sent->body : "", calls[i].body);
    }
}

static int line_of(const struct slurm_node_ask *ask, char *ret_line, size_t size, struct err *err)
{
    auto_buf struct buf line;
    int result;

    buf_init(&line, 1 << 20);
    result = slurm_node_line(ask, &line, err);
    snprintf(ret_line, size, "%s", buf_text(&line));
    return result;
}

static void a_node_line_has_all_that_was_asked_for(void **state)
{
    struct slurm_node_ask ask = { .names = "g1",
                                  .address = "10.1.2.3",
                                  .cpus = 64,
                                  .sockets = 2,
                                  .cores_per_socket = 16,
                                  .threads_per_core = 2,
                                  .memory = 128000,
                                  .features = "a,b",
                                  .topology = "default:s1",
                                  .gres = "gpu:h100:8",
                                  .gres_conf = "count=8,name=gpu,type=h100",
                                  .weight = 5 };
    char line[1024];

    assert_int_equal(line_of(&ask, line, sizeof(line), NULL), 0);
    assert_string_equal(line, "NodeName=g1 NodeAddr=10.1.2.3 Sockets=2 CoresPerSocket=16 "
                              "ThreadsPerCore=2 CPUs=64 RealMemory=128000 Weight=5 State=EXTERNAL "
                              "Feature=a,b Topology=default:s1 Gres=gpu:h100:8 "
                              "GresConf=count=8,name=gpu,type=h100");
}

static void nothing_can_be_smuggled_into_a_node_line(void **state)
{
    static const struct slurm_node_ask asks[] = {
        { .names = NULL, .address = "1.2.3.4" },
        { .names = "", .address = "1.2.3.4" },
        { .names = "n1" },
        { .names = "n1", .address = "" },
        { .names = "n1 State=DOWN", .address = "1.2.3.4" },
        { .names = "n1\nPartitionName=x", .address = "1.2.3.4" },
        { .names = "n[1-", .address = "1.2.3.4" },
        { .names = "ALL", .address = "1.2.3.4" },
        { .names = "n1", .address = "1.2.3.4\nx=y" },
        { .names = "n1", .address = "1.2.3.4,1.2.3.5" }, /* slurmctld would end itself */
        { .names = "n[1-3]", .address = "1.2.3.4,1.2.3.5" },
        { .names = "n[1-2]", .address = "1.2.3.[4-5]" },
        { .names = "n[1-2]", .address = "1.2.3.4," },
        { .names = "n1", .address = "1.2.3.4", .features = "a b" },
        { .names = "n1", .address = "1.2.3.4", .topology = "a\nb" },
        { .names = "n1", .address = "1.2.3.4", .topology = "\"a b" },
        { .names = "n1", .address = "1.2.3.4", .gres = "gpu:1" },
        { .names = "n[1-2]", .address = "1.2.3.4", .gres = "gpu:1", .gres_conf = "count=1" },
        { .names = "n[1-99999]", .address = "1.2.3.4" },
    };
    struct world *world = *state;
    char line[256];

    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        struct err err = { 0 };

        if (line_of(&asks[i], line, sizeof(line), &err) >= 0)
            fail_msg("ask %zu was taken: %s", i, line);
        assert_true(err.text[0]);
        slurm_node_create(world->client, &asks[i], world_done, world);
        assert_int_equal(world_ends(world), SLURM_INVALID);
    }
    assert_int_equal(fake_sent_count(world->fake), 0);
}

static void too_many_ids_are_refused(void **state)
{
    struct world *world = *state;
    int64_t *ids = mem_alloc_array(SLURM_MAX_IDS + 1, sizeof(*ids));

    slurm_jobs_state(world->client, ids, SLURM_MAX_IDS + 1, world_done, world);
    assert_int_equal(world_ends(world), SLURM_INVALID);
    slurm_jobs_cancel(world->client, ids, SLURM_MAX_IDS + 1, world_done, world);
    assert_int_equal(world_ends(world), SLURM_INVALID);
    slurm_jobs_cancel(world->client, ids, 1, world_done, world); /* id 0 */
    assert_int_equal(world_ends(world), SLURM_INVALID);
    slurm_jobs_state(world->client, ids, 1, world_done, world);
    assert_int_equal(world_ends(world), SLURM_INVALID);
    for (size_t i = 0; i < SLURM_MAX_IDS; i++)
        ids[i] = 67043328; /* the highest that Slurm gives */
    world_answers(world, "GET", V45 "/jobs/state/", 200, "{\"jobs\":[],\"errors\":[]}");
    slurm_jobs_state(world->client, ids, SLURM_MAX_IDS, world_done, world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    mem_free(ids);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_call_asks_for_what_it_says),
        TEST(a_node_line_has_all_that_was_asked_for),
        TEST(nothing_can_be_smuggled_into_a_node_line),
        TEST(too_many_ids_are_refused),
    };

    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
