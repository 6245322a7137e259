/* world.h - a client on virtual time in front of scripted answers; shared by the tests of calls. */
#ifndef SLINC_TESTS_SLURM_WORLD_H
#define SLINC_TESTS_SLURM_WORLD_H

#include "base/mem.h"
#include "fake_transport.h"
#include "recording.h"
#include "slurm/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define V45        "/slurm/v0.0.45"
#define WORLD_KEY  STR("0123456789abcdef0123456789abcdef")
#define EMPTY_BODY "{\"errors\":[],\"warnings\":[]}"
#define PING_BODY  "{\"pings\":[{\"hostname\":\"c\"}],\"errors\":[]}"
#define NODES_BODY "{\"nodes\":[{\"name\":\"n1\"}],\"errors\":[]}"

enum { SECOND_US = 1000000 };

struct world {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct slurm_token *token;
    struct slurm_client *client;

    unsigned ends;
    struct slurm_answer answer; /* of the last call; its body is doc's */
    struct json_doc *doc;
    struct slurm_call *other; /* cancelled by the callback */
    bool frees_client;
};

static inline void world_client(struct world *world, const struct slurm_client_options *options)
{
    struct slurm_client_options with = options ? *options : (struct slurm_client_options){ 0 };

    with.seed = 1;
    slurm_client_free(world->client);
    world->client = slurm_client_new(world->loop, fake_http(world->fake), world->token, &with);
}

/* The version is pinned: most tests are not about finding it. */
static inline int world_up(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));
    struct slurm_client_options options = { .version = 45 };

    clock_init_virtual(&world->clock, INT64_C(1700000000) * SECOND_US);
    world->loop = loop_new_virtual(&world->clock);
    world->fake = fake_transport_new(world->loop);
    assert_int_equal(
        slurm_token_new_minted(&world->clock, WORLD_KEY, "slurm", 900, &world->token, NULL), 0);
    world_client(world, &options);
    *state = world;
    return 0;
}

static inline int world_down(void **state)
{
    struct world *world = *state;

    slurm_client_free(world->client);
    slurm_token_free(world->token);
    fake_transport_free(world->fake);
    loop_free(world->loop);
    json_doc_free(world->doc);
    mem_free(world);
    return 0;
}

static inline void world_done(void *context, const struct slurm_answer *answer)
{
    struct world *world = context;

    world->ends++;
    json_doc_free(world->doc);
    world->doc = answer->body ? json_clone(answer->body) : NULL;
    world->answer = *answer;
    world->answer.body = json_root(world->doc);
    slurm_call_cancel(world->other);
    world->other = NULL;
    if (world->frees_client) {
        slurm_client_free(world->client);
        world->client = NULL;
    }
}

/* Runs until the call has ended, once. */
static inline enum slurm_class world_ends(struct world *world)
{
    assert_int_equal(world->ends, 0);
    loop_run(world->loop);
    assert_int_equal(world->ends, 1);
    world->ends = 0;
    return world->answer.error.class;
}

static inline void world_answers(struct world *world, const char *method, const char *path,
                                 int status, const char *body)
{
    fake_answer(world->fake, method, path, (struct fake_answer){ .status = status, .body = body });
}

static inline void world_plays(struct world *world, const char *method, const char *path,
                               const char *name)
{
    struct recording recording = recording_of(name);
    const char *type =
        strcmp(recording.content_type, "application/json") == 0 ? "application/json" : "text/plain";

    fake_answer(world->fake, method, path,
                (struct fake_answer){
                    .status = recording.status, .body = recording.text, .content_type = type });
    recording_done(&recording);
}

#endif
