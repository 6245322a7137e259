/* sim_configcopy.h - the scene of the configcopy scenario: shared by its people and its promises.
 */
#ifndef SLINC_SIM_CONFIGCOPY_H
#define SLINC_SIM_CONFIGCOPY_H

#include "app.h"
#include "course.h"

enum { REPLICAS = COURSE_REPLICAS, TARGETS = 5, SOURCES = 3 };

struct replica {
    struct scene *scene;
    struct process process;
    struct http_transport *api, *lease_api;
    struct app *app; /* NULL while dead */
};

struct scene {
    struct world *world;
    struct replica replicas[REPLICAS];
    struct course course;
    struct loop_timer people;
    unsigned in_flight, page; /* of replicas: calls at once, objects per page of a list */
    uint64_t changes;         /* by people */
    uint64_t sent;            /* writes that our processes sent, leases aside */
    uint64_t settled_sent;    /* of these, until all had to be right */
};

extern const char scene_source_ns[];
void scene_target_name(char name[16], uint64_t number); /* "t1" */
void scene_source_name(char name[16], uint64_t number); /* "a" */

/* ---- sim_configcopy_people.c ---- */
void people_prepare(struct scene *scene);
void people_start(struct scene *scene);
void people_end(struct scene *scene); /* with a last burst */

/* ---- sim_configcopy_promises.c ---- */
void promises_on_change(void *context, const struct api_change *change);
void promises_on_send(struct scene *scene, const char *user, const char *method, const char *path);
void promises_after_step(struct scene *scene);
void promises_when_settled(struct scene *scene); /* copies are right */
void promises_at_the_end(struct scene *scene);

#endif
