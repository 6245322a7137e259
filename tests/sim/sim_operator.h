/* sim_operator.h - the scene of the operator scenario: shared by its people, the controllers of its
 * workloads and its promises.
 */
#ifndef SLINC_SIM_OPERATOR_H
#define SLINC_SIM_OPERATOR_H

#include "course.h"
#include "crash_cases.h"
#include "operator/operator.h"

enum {
    OPERATOR_REPLICAS = COURSE_REPLICAS,
    OPERATOR_NAMESPACES = 2,
    OPERATOR_RESOURCES = 6,       /* kinds of custom resources */
    OPERATOR_QUIET_US = 60000000, /* when all is right nothing is written for so long */
};

/* A custom resource as the people of the scenario make it. */
struct operator_resource {
    const char *plural, *kind;
    const char *names[2]; /* that people use; the same in every namespace */
};
extern const struct operator_resource operator_resources[OPERATOR_RESOURCES];
extern const char *const operator_namespaces[OPERATOR_NAMESPACES];

struct operator_replica {
    struct operator_scene *scene;
    struct process process;
    struct http_transport *api, *lease_api;
    struct slurm_operator *program; /* NULL while dead */
};

/* Scheduler and kubelets of the pods of NodeSets: sim_operator_workers.c. */
struct operator_workers {
    struct world *world;
    const bool *is_calm; /* then no pod fails */
    /* Of a pod that runs, now and then, and of one that ends; may be NULL. */
    void (*runs)(void *context, const struct json *pod);
    void (*ends)(void *context, const struct json *pod);
    void *context;
    struct loop_timer timer;
};
void operator_workers_start(struct operator_workers *workers);
void operator_workers_end(struct operator_workers *workers);

struct operator_scene {
    struct world *world;
    struct operator_replica replicas[OPERATOR_REPLICAS];
    struct course course;
    struct crash_case crash; /* without a suite: chance rules */
    struct loop_timer people, workloads;
    struct operator_workers workers;
    struct workers_scene *slurm; /* sim_workers.c; NULL: the operator does not speak to Slurm */
    unsigned page;               /* objects per page of a list */
    uint64_t changes;            /* by people and by other controllers */
    uint64_t sent;               /* writes that our processes sent, leases and Events aside */
    uint64_t settled_sent;       /* of these, until all had to be right */
};

/* ---- sim_operator.c ---- */
void operator_add_kinds(struct world *world);
struct operator_scene *operator_scene_new(struct world *world, const struct course_type *type);
void operator_scene_free(void *scene);
void operator_scene_check(void *scene);
bool operator_scene_is_over(const void *scene);
void operator_on_settled(void *scene);
void operator_on_crash(void *context, const char *user);

/* ---- sim_operator_crashes.c: what its cases and those of workers share ---- */
extern const struct sim_hooks operator_crash_hooks;
const char *operator_crash_site(uint64_t site);
void operator_crash_end(void *scene);

/* ---- sim_operator_people.c ---- */
void operator_people_prepare(struct operator_scene *scene);
void operator_people_start(struct operator_scene *scene);
void operator_people_end(struct operator_scene *scene); /* with a last burst */

enum operator_deed {
    DEED_MAKE,
    DEED_EDIT,
    DEED_ANNOTATE,
    DEED_DELETE,
    DEED_REMAKE,
    DEED_MAKE_SECRET,
    DEED_EDIT_SECRET,
    DEED_DELETE_SECRET,
    DEED_MAKE_FILES,
    DEED_EDIT_FILES,
    DEED_DELETE_FILES,
    DEED_EDIT_CHILD,
    DEED_DELETE_CHILD,
    DEED_ADD_FOREIGN,
    DEED_DISOWN_CHILD,
    DEED_MAKE_OWN,
    DEED_REPLACE_CHILD,
    DEED_FORGET_HISTORY,
    OPERATOR_DEEDS,
};

/* One deed in the first namespace. What value and yes mean is the deed's. */
void operator_people_do(struct operator_scene *scene, enum operator_deed what, const char *plural,
                        const char *name, unsigned value, bool yes);

/* ---- sim_operator_workloads.c ---- */
/* The controllers of Deployments and StatefulSets, and the defaults that the server fills in. */
void operator_workloads_start(struct operator_scene *scene);

/* ---- sim_operator_promises.c ---- */
void operator_promises_on_change(void *context, const struct api_change *change);
void operator_promises_on_send(struct operator_scene *scene, const char *user, const char *method,
                               const char *path);
void operator_promises_after_step(struct operator_scene *scene);
void operator_promises_when_settled(struct operator_scene *scene);
void operator_promises_at_the_end(struct operator_scene *scene);

#endif
