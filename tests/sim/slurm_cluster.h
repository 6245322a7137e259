/* slurm_cluster.h - a slurmctld model with two external nodes, and how tests ask it; shared. */
#ifndef SLINC_SIM_SLURM_CLUSTER_H
#define SLINC_SIM_SLURM_CLUSTER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json.h"
#include "codec/jwt.h"
#include "slurm_store.h"

#include <stdio.h>

#define V "/slurm/v0.0.45/"

enum { SECOND = 1000000 };

static const char key[] = "0123456789abcdef0123456789abcdef";

struct cluster {
    struct clock clock;
    struct slurm_store *store;
    struct slurm_store_answer answer;
    struct json_doc *doc;
    const char *user; /* of the token; NULL: slurm */
    int64_t lifetime_s;
    unsigned events[SLURM_NODE_REMOVED + 1];
    unsigned answers;
    int late_status;
};

static inline void on_change(void *context, const struct slurm_store_change *change)
{
    ((struct cluster *)context)->events[change->event]++;
}

/* ---- asking ---- */

static inline struct str token(const struct cluster *cluster, struct buf *text)
{
    int64_t now = clock_wall_us(&cluster->clock) / SECOND;
    struct jwt_claims claims = { .iat = now,
                                 .exp = now + (cluster->lifetime_s ? cluster->lifetime_s : 600) };

    (void)snprintf(claims.sun, sizeof(claims.sun), "%s", cluster->user ? cluster->user : "slurm");
    buf_init(text, JWT_TOKEN_MAX);
    assert_int_equal(jwt_sign(str_of(key), &claims, text, NULL), 0);
    return buf_str(text);
}

static inline int call(struct cluster *cluster, const char *method, const char *path,
                       const char *body)
{
    auto_buf struct buf text;
    struct slurm_store_request request = { .method = method,
                                           .target = str_of(path),
                                           .content_type = STR("application/json"),
                                           .body = str_of(body),
                                           .token = token(cluster, &text) };

    json_doc_free(cluster->doc);
    cluster->doc = NULL;
    slurm_store_serve(cluster->store, &request, &cluster->answer);
    if (strcmp(cluster->answer.content_type, "application/json") == 0)
        assert_int_equal(json_parse(buf_str(&cluster->answer.body), 1u << 30, &cluster->doc, NULL),
                         0);
    return cluster->answer.status;
}

static inline const struct json *body(const struct cluster *cluster)
{
    return json_root(cluster->doc);
}

static inline int64_t number(const struct cluster *cluster)
{
    return json_i64_or(json_at(json_item(json_get(body(cluster), "errors"), 0), "error_number"),
                       -100);
}

/* As the network brings it. */
static inline void on_late(void *context, const struct slurm_store_answer *answer)
{
    struct cluster *cluster = context;

    cluster->answers++;
    cluster->late_status = answer->status;
}

static inline uint64_t ask(struct cluster *cluster, const char *method, const char *path,
                           const char *text_body)
{
    auto_buf struct buf text;
    struct slurm_store_request request = { .method = method,
                                           .target = str_of(path),
                                           .content_type = STR("application/json"),
                                           .body = str_of(text_body),
                                           .token = token(cluster, &text) };

    return slurm_store_ask(cluster->store, &request, on_late, cluster);
}

/* Until then, everything at its time. */
static inline void pass(struct cluster *cluster, int64_t us)
{
    int64_t until = clock_now_us(&cluster->clock) + us;

    for (;;) {
        int64_t next = slurm_store_next_us(cluster->store);

        if (next > until)
            break;
        if (next > clock_now_us(&cluster->clock))
            clock_advance_to_us(&cluster->clock, next);
        slurm_store_step(cluster->store);
    }
    clock_advance_to_us(&cluster->clock, until);
}

#define JOB(fields)                                                                                \
    "{\"job\":{\"name\":\"j\",\"partition\":\"bridge\",\"flags\":[\"EXTERNAL_JOB\"],"              \
    "\"memory_per_node\":{\"set\":true,\"number\":100}" fields "}}"

static inline int64_t submit(struct cluster *cluster, const char *job)
{
    assert_int_equal(call(cluster, "POST", V "job/submit", job), 200);
    return json_i64_or(json_get(body(cluster), "job_id"), 0);
}

static inline int64_t running(struct cluster *cluster, const char *job)
{
    int64_t id = submit(cluster, job);

    pass(cluster, SECOND + SECOND / 2);
    return id;
}

static inline int allocate(struct cluster *cluster, const char *job)
{
    return call(cluster, "POST", V "job/allocate", job);
}

static inline struct slurm_store_job job(const struct cluster *cluster, int64_t id)
{
    struct slurm_store_job view;

    assert_true(slurm_store_find_job(cluster->store, id, &view));
    return view;
}

static inline struct slurm_store_node node(const struct cluster *cluster, const char *name)
{
    struct slurm_store_node view;

    assert_true(slurm_store_find_node(cluster->store, name, &view));
    return view;
}

static inline int call_job(struct cluster *cluster, const char *method, int64_t id,
                           const char *text)
{
    char path[60];

    (void)snprintf(path, sizeof(path), V "job/%lld", (long long)id);
    return call(cluster, method, path, text);
}

/* ---- two external nodes of 4 cores in the partition "bridge" ---- */

static inline int set_up(void **state)
{
    static struct cluster cluster;

    cluster = (struct cluster){ .user = NULL };
    clock_init_virtual(&cluster.clock, INT64_C(1767225600) * SECOND);
    cluster.store = slurm_store_new(
        &cluster.clock, &(struct slurm_store_options){ .seed = 7, .jwt_key = str_of(key) });
    slurm_store_answer_init(&cluster.answer);
    slurm_store_listen(cluster.store, on_change, &cluster);
    assert_int_equal(slurm_people_add_partition(
                         cluster.store,
                         &(struct slurm_people_partition){ .name = "bridge", .feature = "bridged" },
                         NULL),
                     0);
    assert_int_equal(call(&cluster, "POST", V "new/node/",
                          "{\"node_conf\":\"NodeName=n[1-2] NodeAddr=127.0.0.1 CPUs=4 "
                          "RealMemory=8000 Feature=bridged State=EXTERNAL\"}"),
                     200);
    *state = &cluster;
    return 0;
}

static inline int tear_down(void **state)
{
    struct cluster *cluster = *state;

    slurm_store_free(cluster->store);
    slurm_store_answer_done(&cluster->answer);
    json_doc_free(cluster->doc);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
