/* test_slurm_clusters.c - clients of slurmrestd follow Controllers, RestApis and keys; what Slurm
 * answers becomes facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json_format.h"
#include "desk.h"
#include "fake_transport.h"
#include "operator/slurm_actions.h"
#include "operator/slurm_clusters.h"
#include "slurm/cache.h"

#include <stdio.h>

enum { SECOND = 1000000 };

struct rig {
    struct desk desk;
    struct loop *loop;
    struct slurm_clusters *clusters;
    struct fake_transport *fake; /* to the slurmrestd that was connected last */
    char url[256];               /* of it */
    unsigned connects, changes;
    int responding; /* ordinal of the first slurmctld that responds; -1: none */
    bool is_down;
    uint32_t conf_hash;
    unsigned pings, reconfigures, database_questions;
    bool is_database_down, is_database_cut; /* cut: no answer to this question alone */
    const char *node_state;                 /* of the nodes that Slurm has; NULL: it has none */
    unsigned nodes;                         /* w-0 and so on */
    const char *comment;                    /* of each */
    const char *job_state;                  /* of job 7; NULL: there is none */
    const char *job_nodes;
    const char *reservations; /* objects with commas between them */
    unsigned nodesets_told;   /* that something changed which their plans read */
    unsigned node_reads;      /* of one node alone */
    bool lists_fail;          /* 502 for every list */
    bool jobs_fail;           /* 500 for every question about jobs */
    char body[32 << 10];
};

/* ---- slurmrestd ---- */

/* One node, or the list of all; and lists of nothing else. Of a node that Slurm does not have it
 * says "no error", without an array. */
static struct fake_answer answer_with_nodes(struct rig *rig, bool is_one)
{
    auto_buf struct buf text = { .max = sizeof(rig->body) - 1 };

    if (is_one && !rig->node_state) {
        buf_add_text(&text, "{\"errors\":[{\"error_number\":0,\"error\":\"No error\"}],"
                            "\"warnings\":[]}");
    } else {
        buf_add_text(&text, "{\"nodes\":[");
        for (unsigned i = 0; rig->node_state && i < (is_one ? 1 : rig->nodes); i++)
            buf_printf(&text, "%s{\"name\":\"w-%u\",\"comment\":\"%s\",\"state\":[%s]}",
                       i > 0 ? "," : "", i, rig->comment, rig->node_state);
        buf_printf(&text,
                   "],\"jobs\":[],\"partitions\":[],\"reservations\":[%s],"
                   "\"last_update\":{\"set\":true,\"number\":5},"
                   "\"errors\":[],\"warnings\":[]}",
                   rig->reservations);
    }
    (void)snprintf(rig->body, sizeof(rig->body), "%s", buf_text(&text));
    return (struct fake_answer){ .status = rig->lists_fail && !is_one ? 502 : 200,
                                 .body = rig->body,
                                 .ends = true };
}

/* The list of jobs, one of them, and the list of their states. */
static struct fake_answer answer_with_job(struct rig *rig, bool is_state)
{
    (void)snprintf(rig->body, sizeof(rig->body),
                   "{\"jobs\":[{\"job_id\":%s,\"nodes\":\"%s\",\"%s\":[%s]}],"
                   "\"last_update\":{\"set\":true,\"number\":5},\"errors\":[],\"warnings\":[]}",
                   is_state ? "\"7\"" : "7", rig->job_nodes, is_state ? "state" : "job_state",
                   rig->job_state);
    return (struct fake_answer){ .status = 200, .body = rig->body, .ends = true };
}

static struct fake_answer answer(void *context, const struct fake_sent *sent)
{
    struct rig *rig = context;

    if (rig->is_down)
        return (struct fake_answer){ .class = ERR_UNAVAILABLE };
    if (rig->jobs_fail && strstr(sent->path, "/job"))
        return (struct fake_answer){ .status = 500, .body = "{\"errors\":[]}" };
    if (rig->job_state && strstr(sent->path, "/job"))
        return answer_with_job(rig, strstr(sent->path, "/state") != NULL);
    rig->node_reads += strstr(sent->path, "/node/") != NULL;
    if (strstr(sent->path, "/nodes") || strstr(sent->path, "/jobs") ||
        strstr(sent->path, "/partitions") || strstr(sent->path, "/reservations"))
        return answer_with_nodes(rig, false);
    if (strstr(sent->path, "/node/"))
        return answer_with_nodes(rig, true);
    if (strstr(sent->path, "/ping")) {
        rig->pings++;
        (void)snprintf(rig->body, sizeof(rig->body),
                       "{\"pings\":[{\"hostname\":\"a\",\"responding\":%s},"
                       "{\"hostname\":\"b\",\"responding\":%s}],\"errors\":[],\"warnings\":[]}",
                       rig->responding == 0 ? "true" : "false",
                       rig->responding >= 0 ? "true" : "false");
    } else if (strstr(sent->path, "/conf")) {
        (void)snprintf(rig->body, sizeof(rig->body),
                       "{\"slurm_conf\":{},\"slurm_conf_meta\":{\"HashValue\":%u},\"errors\":[],"
                       "\"warnings\":[]}",
                       rig->conf_hash);
    } else if (strstr(sent->path, "/qos")) {
        rig->database_questions++;
        if (rig->is_database_cut)
            return (struct fake_answer){ .class = ERR_UNAVAILABLE };
        (void)snprintf(rig->body, sizeof(rig->body),
                       rig->is_database_down
                           ? "{\"errors\":[{\"error_number\":7000,\"error\":\"Unable to connect to "
                             "database\"}],\"warnings\":[]}"
                           : "{\"qos\":[],\"errors\":[],\"warnings\":[]}");
        return (struct fake_answer){ .status = rig->is_database_down ? 500 : 200,
                                     .body = rig->body };
    } else {
        rig->reconfigures += strstr(sent->path, "/reconfigure") != NULL;
        (void)snprintf(rig->body, sizeof(rig->body), "{\"errors\":[],\"warnings\":[]}");
    }
    return (struct fake_answer){ .status = 200, .body = rig->body };
}

static struct http_transport *connect(void *context, const char *url, struct err *err)
{
    struct rig *rig = context;

    (void)err;
    rig->connects++;
    (void)snprintf(rig->url, sizeof(rig->url), "%s", url);
    rig->fake = fake_transport_new(rig->loop);
    fake_serve(rig->fake, answer, rig);
    return fake_http(rig->fake);
}

static void changed(void *context, struct str key)
{
    struct rig *rig = context;

    assert_true(str_is(key, "site/slurm"));
    rig->changes++;
}

static void nodes_changed(void *context, struct str key)
{
    struct rig *rig = context;

    assert_true(str_is(key, "site/slurm"));
    rig->nodesets_told++;
}

/* ---- the world ---- */

#define ADD(rig, ...)                                                                              \
    do {                                                                                           \
        struct json_build *build_ = json_build_new();                                              \
        struct json_doc *doc_ = json_freeze(json_format(build_, __VA_ARGS__));                     \
        assert_int_equal(desk_add(&(rig)->desk, json_root(doc_), NULL), 0);                        \
        json_doc_free(doc_);                                                                       \
        json_build_free(build_);                                                                   \
    } while (0)

static void add_service(struct rig *rig, const char *name, const char *ip, int port,
                        const char *version)
{
    ADD(rig,
        "{'kind':'Service','metadata':{'name':%s,'resourceVersion':%s},"
        "'spec':{'clusterIP':%s,'ports':[{'name':'slurmrestd','port':%d}]}}",
        name, version, ip, port);
}

static void add_key(struct rig *rig, const char *value, const char *version)
{
    ADD(rig, "{'kind':'Secret','metadata':{'name':'keys','resourceVersion':%s},'data':{'jwt':%s}}",
        version, value);
}

static void add_controller(struct rig *rig, int has_backups)
{
    ADD(rig,
        "{'kind':'Controller','metadata':{'name':'slurm'},"
        "'spec':{'jwtKeyRef':{'name':'keys','key':'jwt'},'ha':{'enabled':%b}}}",
        has_backups);
}

static void add_restapi(struct rig *rig, const char *name, const char *created)
{
    ADD(rig,
        "{'kind':'RestApi','metadata':{'name':%s,'creationTimestamp':%s},"
        "'spec':{'controllerRef':{'name':'slurm'}}}",
        name, created);
}

static void add_all(struct rig *rig, int has_backups)
{
    add_controller(rig, has_backups);
    add_restapi(rig, "api", "2025-01-01T00:00:00Z");
    add_service(rig, "api-restapi", "10.0.0.7", 7820, "1");
    add_key(rig, "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5", "1");
}

static void end_list(struct kube_cache *cache)
{
    kube_cache_relist_begin(cache);
    kube_cache_relist_end(cache, 1);
}

static int setup(void **state)
{
    struct rig *rig = test_calloc(1, sizeof(*rig));

    desk_init(&rig->desk);
    rig->nodes = 1;
    rig->comment = "";
    rig->job_nodes = "w-0";
    rig->reservations = "";
    rig->loop = loop_new_virtual(&rig->desk.clock);
    rig->clusters =
        slurm_clusters_new(&(struct slurm_clusters_options){ .loop = rig->loop,
                                                             .world = &rig->desk.world,
                                                             .connect = connect,
                                                             .connect_context = rig,
                                                             .changed = changed,
                                                             .nodes_changed = nodes_changed,
                                                             .changed_context = rig,
                                                             .seed = 1 });
    slurm_clusters_start(rig->clusters);
    end_list(rig->desk.world.controllers);
    end_list(rig->desk.world.services);
    end_list(rig->desk.world.secrets);
    if (!*state) /* else the test does it */
        end_list(rig->desk.world.restapis);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;

    slurm_clusters_free(rig->clusters);
    loop_free(rig->loop);
    desk_done(&rig->desk);
    test_free(rig);
    return 0;
}

static void stop(void *context)
{
    loop_stop(context);
}

static void run(struct rig *rig, int64_t us)
{
    struct loop_timer end = { 0 };

    loop_timer_start(rig->loop, &end, us, stop, rig->loop);
    loop_run(rig->loop);
}

static const struct slurm_facts *facts(const struct rig *rig)
{
    return map_get(&rig->desk.world.slurm, STR("site/slurm"));
}

/* ---- tests ---- */

static void without_a_restapi_nobody_is_asked(void **state)
{
    struct rig *rig = *state;

    add_controller(rig, 0);
    run(rig, 30 * SECOND);
    assert_non_null(facts(rig));
    assert_false(facts(rig)->has_restapi);
    assert_int_equal(rig->connects, 0);
    assert_int_equal(rig->changes, 1);
}

static void before_all_is_listed_nothing_is_said(void **state)
{
    struct rig *rig = *state;

    add_controller(rig, 0);
    run(rig, 5 * SECOND);
    assert_null(facts(rig));
    end_list(rig->desk.world.restapis);
    run(rig, 2 * SECOND);
    assert_non_null(facts(rig));
}

static void the_first_that_responds_is_active(void **state)
{
    struct rig *rig = *state;

    add_all(rig, 1);
    rig->conf_hash = 99;
    run(rig, SECOND);
    assert_string_equal(rig->url, "http://10.0.0.7:7820");
    assert_true(facts(rig)->is_reachable);
    assert_int_equal(facts(rig)->active, 0);
    assert_int_equal(facts(rig)->conf_hash, 99);
    rig->responding = 1;
    run(rig, 3 * SECOND);
    assert_int_equal(facts(rig)->active, 1);
}

static void slurmrestd_is_spoken_to_at_its_own_port(void **state)
{
    struct rig *rig = *state;

    add_all(rig, 0);
    ADD(rig, "{'kind':'Service','metadata':{'name':'api-restapi','resourceVersion':'2'},"
             "'spec':{'clusterIP':'10.0.0.7','ports':[{'name':'mine','port':80},"
             "{'name':'slurmrestd','port':7821}]}}");
    run(rig, SECOND);
    assert_string_equal(rig->url, "http://10.0.0.7:7821");
    ADD(rig, "{'kind':'Service','metadata':{'name':'api-restapi','resourceVersion':'3'},"
             "'spec':{'clusterIP':'None','ports':[{'name':'mine','port':80},"
             "{'name':'slurmrestd','port':7821}]}}");
    run(rig, 2 * SECOND);
    assert_string_equal(rig->url, "http://api-restapi.site:6820"); /* to the pod itself */
}

static unsigned pings_in_a_minute(struct rig *rig, int has_backups)
{
    add_all(rig, has_backups);
    run(rig, 5 * SECOND);
    rig->pings = 0;
    run(rig, 60 * SECOND);
    return rig->pings;
}

static void slurm_is_asked_every_10_s(void **state)
{
    struct rig *rig = *state;
    unsigned changes;

    assert_int_equal(pings_in_a_minute(rig, 0), 6);
    changes = rig->changes;
    run(rig, 60 * SECOND);
    assert_int_equal(rig->changes, changes); /* the same answer is no news */
}

static void with_backups_slurm_is_asked_every_2_s(void **state)
{
    assert_int_equal(pings_in_a_minute(*state, 1), 30);
}

static void the_first_failure_is_the_one_that_is_told(void **state)
{
    struct rig *rig = *state;
    int64_t since_us;
    unsigned changes;

    add_all(rig, 0);
    run(rig, SECOND);
    rig->responding = -1;
    run(rig, 15 * SECOND);
    assert_false(facts(rig)->is_reachable);
    assert_string_equal(facts(rig)->reason, "no slurmctld responds");
    since_us = facts(rig)->since_us;
    changes = rig->changes;
    rig->is_down = true;
    run(rig, 60 * SECOND);
    assert_string_equal(facts(rig)->reason, "no slurmctld responds");
    assert_true(facts(rig)->since_us == since_us);
    assert_int_equal(rig->changes, changes);
    rig->is_down = false;
    rig->responding = 0;
    run(rig, 3 * SECOND);
    assert_true(facts(rig)->is_reachable);
}

static void add_accounting(struct rig *rig)
{
    ADD(rig, "{'kind':'Controller','metadata':{'name':'slurm','resourceVersion':'2'},"
             "'spec':{'jwtKeyRef':{'name':'keys','key':'jwt'},'accountingRef':{'name':'acct'}}}");
    ADD(rig, "{'kind':'Accounting','metadata':{'name':'acct'}}");
}

static void the_database_is_asked_for_where_there_is_an_accounting(void **state)
{
    struct rig *rig = *state;
    const struct slurm_facts *known;

    add_all(rig, false);
    run(rig, 11 * SECOND);
    known = facts(rig);
    assert_int_equal(rig->database_questions, 0);
    assert_int_equal(known->accounting, ACCOUNTING_NOT_KNOWN);
    add_accounting(rig);
    run(rig, 2 * SECOND);
    assert_int_equal(rig->database_questions, 1);
    assert_int_equal(known->accounting, ACCOUNTING_ANSWERS);
    run(rig, 20 * SECOND);
    assert_int_equal(rig->database_questions, 3);
}

static void a_lost_database_is_told_once_with_its_first_reason(void **state)
{
    struct rig *rig = *state;
    const struct slurm_facts *known;
    unsigned changes;

    add_all(rig, false);
    add_accounting(rig);
    run(rig, 3 * SECOND);
    known = facts(rig);
    changes = rig->changes;
    rig->is_database_down = true;
    run(rig, 30 * SECOND);
    assert_int_equal(known->accounting, ACCOUNTING_LOST);
    assert_true(known->is_reachable);
    assert_non_null(strstr(known->accounting_reason, "Unable to connect to database"));
    assert_int_equal(rig->changes, changes + 1);
    rig->is_database_down = false;
    run(rig, 3 * SECOND);
    assert_int_equal(known->accounting, ACCOUNTING_ANSWERS);
    assert_int_equal(rig->changes, changes + 2);
    rig->is_database_cut = true; /* slurmrestd went away: that says nothing of the database */
    run(rig, 30 * SECOND);
    assert_int_equal(known->accounting, ACCOUNTING_ANSWERS);
}

static void the_oldest_restapi_counts(void **state)
{
    struct rig *rig = *state;

    add_all(rig, 0);
    run(rig, SECOND);
    add_restapi(rig, "older", "2024-01-01T00:00:00Z");
    run(rig, 2 * SECOND);
    assert_false(facts(rig)->is_reachable); /* its Service is not there yet */
    assert_string_equal(facts(rig)->reason, "Service older-restapi does not exist");
    rig->responding = -1;
    add_service(rig, "older-restapi", "None", 6820, "2");
    run(rig, 2 * SECOND);
    assert_string_equal(facts(rig)->reason, "no slurmctld responds"); /* no longer the Service */
    rig->responding = 0;
    run(rig, 3 * SECOND);
    assert_string_equal(rig->url, "http://older-restapi.site:6820");
    assert_true(facts(rig)->is_reachable);
}

static void another_key_makes_another_client(void **state)
{
    struct rig *rig = *state;

    add_all(rig, 0);
    run(rig, 20 * SECOND);
    assert_int_equal(rig->connects, 1);
    add_key(rig, "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyb3RoZXI=", "2");
    run(rig, 2 * SECOND);
    assert_int_equal(rig->connects, 2);
    assert_non_null(fake_sent_header(fake_last_sent(rig->fake), "X-SLURM-USER-TOKEN"));
}

static void the_client_ends_with_its_controller(void **state)
{
    struct rig *rig = *state;

    add_all(rig, 0);
    run(rig, SECOND);
    kube_cache_seen_gone(rig->desk.world.controllers, "site", "slurm", 99);
    run(rig, 2 * SECOND);
    assert_null(facts(rig));
    rig->pings = 0;
    run(rig, 60 * SECOND);
    assert_int_equal(rig->pings, 0);
}

/* ---- actions ---- */

struct finished {
    unsigned count;
    enum kube_outcome outcome;
};

static void finish(void *context, const struct kube_answer *answer)
{
    struct finished *finished = context;

    finished->count++;
    finished->outcome = answer->outcome;
}

static void begin(struct rig *rig, struct finished *finished)
{
    const struct kube_object *controller =
        kube_cache_get(rig->desk.world.controllers, "site", "slurm");
    const struct action *action;

    plan_slurm_reconfigure(&rig->desk.plan, controller, "v1");
    action = list_item(list_first(&rig->desk.plan.actions), const struct action, link);
    assert_string_equal(action->what, "reconfigure site/slurm");
    (void)action_slurm_cluster.start(rig->clusters, action, finish, finished);
}

static void a_reconfigure_becomes_a_fact_and_slurmctld_is_asked_at_once(void **state)
{
    struct rig *rig = *state;
    struct finished finished = { .count = 0 };

    add_all(rig, 0);
    run(rig, SECOND);
    rig->conf_hash = 7;
    begin(rig, &finished);
    run(rig, SECOND / 2);
    assert_int_equal(finished.count, 1);
    assert_int_equal(finished.outcome, KUBE_DONE);
    assert_int_equal(rig->reconfigures, 1);
    assert_string_equal(facts(rig)->reconfigured, "v1");
    assert_int_equal(facts(rig)->conf_hash, 7);
}

static void a_call_whose_client_ends_is_finished(void **state)
{
    struct rig *rig = *state;
    struct finished finished = { .count = 0 };

    add_all(rig, 0);
    run(rig, SECOND);
    fake_answer(rig->fake, "GET", "/slurm/v0.0.45/reconfigure/",
                (struct fake_answer){ .status = 0 });
    begin(rig, &finished);
    run(rig, SECOND / 2);
    assert_int_equal(finished.count, 0);
    add_service(rig, "api-restapi", "10.0.0.8", 7820, "2");
    run(rig, 2 * SECOND);
    assert_int_equal(finished.count, 1);
    assert_int_equal(finished.outcome, KUBE_UNAVAILABLE);
    assert_string_equal(facts(rig)->reconfigured, "");
}

static void a_call_without_a_client_is_finished(void **state)
{
    struct rig *rig = *state;
    struct finished finished = { .count = 0 };

    add_controller(rig, 0);
    run(rig, SECOND);
    begin(rig, &finished);
    assert_int_equal(finished.count, 0);
    run(rig, SECOND);
    assert_int_equal(finished.count, 1);
    assert_int_equal(finished.outcome, KUBE_UNAVAILABLE);
}

/* ---- nodes ---- */

static void add_nodeset(struct rig *rig)
{
    ADD(rig, "{'kind':'NodeSet','metadata':{'name':'w'},'spec':{'controllerRef':{'name':%s}}}",
        "slurm");
}

static void nodes_are_read_while_a_nodeset_refers_to_the_controller(void **state)
{
    struct rig *rig = *state;

    rig->node_state = "\"IDLE\"";
    add_all(rig, 0);
    run(rig, 3 * SECOND);
    assert_null(facts(rig)->nodes);
    add_nodeset(rig);
    run(rig, 3 * SECOND);
    assert_non_null(facts(rig)->nodes);
    assert_non_null(slurm_cache_get(facts(rig)->nodes, "w-0"));
    kube_cache_seen_gone(rig->desk.world.nodesets, "site", "w", 99);
    run(rig, 2 * SECOND);
    assert_null(facts(rig)->nodes);
    assert_null(facts(rig)->jobs);
}

static void what_was_read_goes_with_the_client(void **state)
{
    struct rig *rig = *state;

    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 3 * SECOND);
    assert_non_null(facts(rig)->nodes);
    kube_cache_seen_gone(rig->desk.world.restapis, "site", "api", 99);
    run(rig, 2 * SECOND);
    assert_null(facts(rig)->nodes);
    assert_false(facts(rig)->has_restapi);
    assert_true(facts(rig)->since_us > 0);
}

static enum kube_outcome confirm(struct rig *rig)
{
    const struct kube_object *controller =
        kube_cache_get(rig->desk.world.controllers, "site", "slurm");
    struct finished finished = { .count = 0 };
    const struct action *action;

    plan_clear(&rig->desk.plan);
    plan_slurm_node_is_drained(&rig->desk.plan, controller, "w-0");
    action = list_item(list_first(&rig->desk.plan.actions), const struct action, link);
    (void)action_slurm_cluster.start(rig->clusters, action, finish, &finished);
    run(rig, SECOND / 2);
    assert_int_equal(finished.count, 1);
    return finished.outcome;
}

static void only_a_node_without_jobs_counts_as_drained(void **state)
{
    static const struct {
        const char *state;
        enum kube_outcome outcome;
    } rows[] = {
        { "\"IDLE\",\"DRAIN\"", KUBE_DONE },
        { "\"DOWN\",\"DRAIN\"", KUBE_DONE },
        { NULL, KUBE_DONE }, /* Slurm has no such node */
        { "\"IDLE\"", KUBE_CONFLICT },
        { "\"ALLOCATED\",\"DRAIN\"", KUBE_CONFLICT },
        { "\"MIXED\",\"DRAIN\"", KUBE_CONFLICT },
        { "\"IDLE\",\"DRAIN\",\"COMPLETING\"", KUBE_CONFLICT },
        { "\"IDLE\",\"DRAIN\",\"UNDRAIN\"", KUBE_CONFLICT },
    };
    struct rig *rig = *state;

    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 3 * SECOND);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig->node_state = rows[i].state;
        if (confirm(rig) != rows[i].outcome)
            fail_msg("%s", rows[i].state ? rows[i].state : "no node");
    }
}

static void a_node_with_a_suspended_job_is_not_drained(void **state)
{
    struct rig *rig = *state;
    unsigned told;

    rig->node_state = "\"IDLE\",\"DRAIN\"";
    rig->job_state = "\"SUSPENDED\"";
    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 3 * SECOND);
    assert_int_equal(confirm(rig), KUBE_CONFLICT);
    told = rig->nodesets_told;
    rig->job_state = "\"COMPLETED\"";
    run(rig, 3 * SECOND / 2);
    assert_true(rig->nodesets_told > told);
    assert_int_equal(confirm(rig), KUBE_DONE);
}

static void nobody_is_drained_while_the_jobs_are_not_known(void **state)
{
    struct rig *rig = *state;

    rig->node_state = "\"IDLE\",\"DRAIN\"";
    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 3 * SECOND);
    assert_int_equal(confirm(rig), KUBE_DONE);
    rig->jobs_fail = true;
    run(rig, 16 * SECOND);
    assert_false(facts(rig)->is_suspicious);
    assert_int_equal(confirm(rig), KUBE_UNAVAILABLE);
}

static void nobody_is_drained_while_slurmctld_may_have_lost_records(void **state)
{
    struct rig *rig = *state;

    rig->node_state = "\"IDLE\",\"DRAIN\"";
    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 3 * SECOND);
    assert_int_equal(confirm(rig), KUBE_DONE);
    rig->lists_fail = true;
    run(rig, 3 * SECOND);
    assert_true(facts(rig)->is_suspicious);
    assert_int_equal(confirm(rig), KUBE_UNAVAILABLE);
}

/* How often nodes are read alone in the second and a half after their job has ended. */
static unsigned reads_after_job(struct rig *rig, const char *node_state)
{
    rig->node_state = node_state;
    rig->job_state = "\"RUNNING\"";
    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 5 * SECOND);
    assert_non_null(slurm_cache_get(facts(rig)->jobs, "7"));
    assert_int_equal(rig->node_reads, 0);
    rig->job_state = "\"COMPLETED\"";
    run(rig, 3 * SECOND / 2);
    return rig->node_reads;
}

static void a_node_that_drains_is_read_when_its_job_ends(void **state)
{
    assert_int_equal(reads_after_job(*state, "\"ALLOCATED\",\"DRAIN\""), 1);
}

static void another_node_is_read_with_the_list(void **state)
{
    assert_int_equal(reads_after_job(*state, "\"ALLOCATED\""), 0);
}

static void a_worker_among_many_is_read_when_its_job_starts_and_when_it_ends(void **state)
{
    struct rig *rig = *state;

    rig->nodes = 300;
    rig->comment = "{'nodeSetUID':'u'}";
    rig->node_state = "\"IDLE\"";
    rig->job_state = "\"PENDING\"";
    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 5 * SECOND);
    assert_int_equal(rig->node_reads, 0);
    rig->job_state = "\"RUNNING\"";
    run(rig, 3 * SECOND / 2);
    assert_int_equal(rig->node_reads, 1);
    rig->job_state = "\"COMPLETED\"";
    run(rig, 3 * SECOND / 2);
    assert_int_equal(rig->node_reads, 2);
}

static void of_many_nodes_one_that_is_no_worker_is_not_read_alone(void **state)
{
    struct rig *rig = *state;

    rig->nodes = 300;
    assert_int_equal(reads_after_job(rig, "\"ALLOCATED\""), 0);
}

static void no_more_nodes_are_read_alone_in_a_second_than_a_list_costs(void **state)
{
    struct rig *rig = *state;

    rig->nodes = 300;
    rig->comment = "{'nodeSetUID':'u'}";
    rig->job_nodes = "w-[0-199]";
    assert_int_equal(reads_after_job(rig, "\"ALLOCATED\""), 128);
}

static void nodesets_are_told_of_a_reservation_that_comes_and_goes(void **state)
{
    struct rig *rig = *state;
    unsigned told;

    rig->node_state = "\"IDLE\"";
    add_all(rig, 0);
    add_nodeset(rig);
    run(rig, 5 * SECOND);
    told = rig->nodesets_told;
    rig->reservations = "{\"name\":\"SlurmOperatorMaint-w\"}";
    run(rig, 30 * SECOND);
    assert_int_equal(rig->nodesets_told, told + 1);
    rig->reservations = "";
    run(rig, 30 * SECOND);
    assert_int_equal(rig->nodesets_told, told + 2);
}

static void without_a_poller_nobody_is_drained(void **state)
{
    struct rig *rig = *state;

    rig->node_state = "\"IDLE\",\"DRAIN\"";
    add_all(rig, 0);
    run(rig, 3 * SECOND);
    assert_int_equal(confirm(rig), KUBE_UNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_restapi_nobody_is_asked),
        cmocka_unit_test_prestate_setup_teardown(before_all_is_listed_nothing_is_said, setup,
                                                 teardown, (void *)"not listed"),
        TEST(the_first_that_responds_is_active),
        TEST(slurmrestd_is_spoken_to_at_its_own_port),
        TEST(slurm_is_asked_every_10_s),
        TEST(with_backups_slurm_is_asked_every_2_s),
        TEST(the_first_failure_is_the_one_that_is_told),
        TEST(the_database_is_asked_for_where_there_is_an_accounting),
        TEST(a_lost_database_is_told_once_with_its_first_reason),
        TEST(the_oldest_restapi_counts),
        TEST(another_key_makes_another_client),
        TEST(the_client_ends_with_its_controller),
        TEST(a_reconfigure_becomes_a_fact_and_slurmctld_is_asked_at_once),
        TEST(a_call_whose_client_ends_is_finished),
        TEST(a_call_without_a_client_is_finished),
        TEST(nodes_are_read_while_a_nodeset_refers_to_the_controller),
        TEST(what_was_read_goes_with_the_client),
        TEST(only_a_node_without_jobs_counts_as_drained),
        TEST(a_node_with_a_suspended_job_is_not_drained),
        TEST(nobody_is_drained_while_the_jobs_are_not_known),
        TEST(nobody_is_drained_while_slurmctld_may_have_lost_records),
        TEST(a_node_that_drains_is_read_when_its_job_ends),
        TEST(another_node_is_read_with_the_list),
        TEST(a_worker_among_many_is_read_when_its_job_starts_and_when_it_ends),
        TEST(of_many_nodes_one_that_is_no_worker_is_not_read_alone),
        TEST(no_more_nodes_are_read_alone_in_a_second_than_a_list_costs),
        TEST(nodesets_are_told_of_a_reservation_that_comes_and_goes),
        TEST(without_a_poller_nobody_is_drained),
    };

    return cmocka_run_group_tests_name("slurm_clusters", tests, NULL, NULL);
}
