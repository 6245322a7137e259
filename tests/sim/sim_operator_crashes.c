/* sim_operator_crashes.c - the operator: small fixed stories, and one blow at every write that it
 * makes in them (crash_cases.h). */
#include "sim_operator.h"

/* ---- stories ---- */

enum { STORY_STEPS = 8 };

/* A deed of people (sim_operator_people.c), or something that befalls the leader. */
struct story_step {
    int at_s; /* 0: there is no step */
    enum operator_deed deed;
    const char *plural, *name;
    unsigned value;
    bool yes;
    void (*befall)(struct operator_scene *scene); /* instead of the deed */
};

struct operator_story {
    const char *name;
    struct story_step steps[STORY_STEPS];
};

static struct process *leader_of(struct operator_scene *scene)
{
    for (unsigned i = 0; i < OPERATOR_REPLICAS; i++)
        if (scene->replicas[i].program && operator_is_leader(scene->replicas[i].program))
            return &scene->replicas[i].process;
    return NULL;
}

/* The leader is told to stop: the other replica takes over. */
static void roll_out(struct operator_scene *scene)
{
    struct process *leader = leader_of(scene);

    if (leader)
        process_stop(leader);
}

/* It cannot renew its lease any more, and can still write: the other one leads when it has run
 * out. */
static void cut_off_lease(struct operator_scene *scene)
{
    const struct process *leader = leader_of(scene);

    if (leader)
        sim_net_cut(scene->world->net, leader->user, "/leases");
}

static void cut_off(struct operator_scene *scene)
{
    const struct process *leader = leader_of(scene);

    if (leader)
        sim_net_cut(scene->world->net, leader->user, NULL);
}

static void heal(struct operator_scene *scene)
{
    sim_net_cut(scene->world->net, NULL, NULL);
}

#define DO(deed, plural, value, yes) deed, plural, "a", value, yes, NULL
#define BEFALLS(what)                DEED_MAKE, NULL, NULL, 0, false, what

/* Of a Controller: value is a number in slurm.conf, 10 is external; yes: it has no backup.
 * Of a child: value is its row in the table of children. */
static const struct operator_story stories[] = {
    { "a Controller is made", { { 8, DO(DEED_MAKE, "controllers", 1, true) } } },
    { "a Controller with a backup is made", { { 8, DO(DEED_MAKE, "controllers", 1, false) } } },
    { "a Controller changes",
      { { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 14, DO(DEED_EDIT, "controllers", 2, true) },
        { 18, DO(DEED_ANNOTATE, "controllers", 1, true) } } },
    { "a Controller gets a backup and loses it",
      { { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 14, DO(DEED_EDIT, "controllers", 1, false) },
        { 24, DO(DEED_EDIT, "controllers", 1, true) } } },
    { "a Controller is external, and is not any more",
      { { 8, DO(DEED_MAKE, "controllers", 10, true) },
        { 14, DO(DEED_EDIT, "controllers", 1, true) } } },
    { "a Controller is deleted before its pods are ready",
      { { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 9, DO(DEED_DELETE, "controllers", 1, true) } } },
    { "a Controller is made again",
      { { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 14, DO(DEED_REMAKE, "controllers", 2, true) } } },
    { "a RestApi comes before its Controller",
      { { 8, DO(DEED_MAKE, "restapis", 1, true) },
        { 14, DO(DEED_MAKE, "controllers", 1, true) } } },
    { "a RestApi changes",
      { { 7, DO(DEED_MAKE, "controllers", 1, true) },
        { 8, DO(DEED_MAKE, "restapis", 1, true) },
        { 14, DO(DEED_EDIT, "restapis", 2, true) } } },
    { "an Accounting is made, and its password changes",
      { { 8, DO(DEED_MAKE, "accountings", 1, true) },
        { 14, DO(DEED_EDIT_SECRET, NULL, 2, true) } } },
    { "a LoginSet gets its host keys once",
      { { 7, DO(DEED_MAKE, "controllers", 1, true) },
        { 8, DO(DEED_MAKE, "loginsets", 1, true) },
        { 16, DO(DEED_DELETE_CHILD, NULL, 9, true) } } },
    { "a Token is signed, and again with another key",
      { { 8, DO(DEED_MAKE, "tokens", 1, true) }, { 14, DO(DEED_EDIT_SECRET, NULL, 1, true) } } },
    { "a Secret comes late",
      { { 7, DO(DEED_DELETE_SECRET, NULL, 0, true) },
        { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 14, DO(DEED_MAKE_SECRET, NULL, 0, true) } } },
    { "an object without a spec gets one",
      { { 8, DO(DEED_MAKE, "controllers", 77, true) },
        { 14, DO(DEED_EDIT, "controllers", 1, true) } } },
    { "children are changed and deleted",
      { { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 14, DO(DEED_EDIT_CHILD, NULL, 5, true) },
        { 14, DO(DEED_EDIT_CHILD, NULL, 12, true) },
        { 16, DO(DEED_DELETE_CHILD, NULL, 0, true) } } },
    { "somebody else's object has the name of a child, and goes",
      { { 7, DO(DEED_MAKE_OWN, NULL, 0, true) },
        { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 14, DO(DEED_DELETE_CHILD, NULL, 0, true) } } },
    { "the leader is replaced while it creates",
      { { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 8, BEFALLS(roll_out) },
        { 14, DO(DEED_EDIT, "controllers", 2, true) } } },
    { "the leader loses its lease while it writes",
      { { 8, BEFALLS(cut_off_lease) },
        { 9, DO(DEED_MAKE, "controllers", 1, true) },
        { 17, DO(DEED_EDIT, "controllers", 2, true) },
        { 24, DO(DEED_MAKE, "restapis", 1, true) },
        { 40, BEFALLS(heal) } } },
    { "the leader is cut off while it creates, and comes back",
      { { 8, DO(DEED_MAKE, "controllers", 1, true) },
        { 8, BEFALLS(cut_off) },
        { 40, BEFALLS(heal) },
        { 41, DO(DEED_EDIT, "controllers", 2, true) } } },
};

enum { STORIES = sizeof(stories) / sizeof(stories[0]) };

const char *operator_crash_site(uint64_t site)
{
    return "fair";
}

void operator_crash_end(void *scene)
{
    course_calm(&((struct operator_scene *)scene)->course);
}

static void on_sent(void *context, const char *user, const char *method, const char *path,
                    struct str body)
{
    struct operator_scene *scene = ((struct world *)context)->scene;
    uint64_t before = scene->sent;

    operator_promises_on_send(scene, user, method, path);
    if (scene->sent > before)
        crash_case_on_write(&scene->crash, scene->sent, path);
}

const struct sim_hooks operator_crash_hooks = { .sent = on_sent, .crash = operator_on_crash };

static const char *story_name(uint64_t story)
{
    return stories[story].name;
}

/* It writes to Kubernetes alone. */
static unsigned blows_at(uint64_t site)
{
    return BLOWS_UP_TO(BLOWS - 1);
}

static int step_at_s(uint64_t story, unsigned step)
{
    int at_s = step < STORY_STEPS ? stories[story].steps[step].at_s : 0;

    return at_s > 0 ? at_s : -1;
}

static void act(void *scene, uint64_t story, unsigned step)
{
    const struct story_step *what = &stories[story].steps[step];

    if (what->befall)
        what->befall(scene);
    else
        operator_people_do(scene, what->deed, what->plural, what->name, what->value, what->yes);
}

static const struct crash_suite suite = {
    .sites = 1,
    .stories = STORIES,
    .site_name = operator_crash_site,
    .story_name = story_name,
    .blows = blows_at,
    .step_at_s = step_at_s,
    .act = act,
    .end = operator_crash_end,
};

/* ---- as a scenario: the seed is the number of the case ---- */

static void on_calm(void *scene) {}

static const struct course_type course_type = { .calm = on_calm,
                                                .settled = operator_on_settled,
                                                .quiet_us = OPERATOR_QUIET_US };

/* What custom resources refer to is there from the first. */
static void make_references(struct operator_scene *scene)
{
    for (unsigned secret = 0; secret < 4; secret++)
        operator_people_do(scene, DEED_MAKE_SECRET, NULL, NULL, secret, true);
    operator_people_do(scene, DEED_MAKE_FILES, NULL, NULL, 0, true);
    operator_people_do(scene, DEED_MAKE_FILES, NULL, NULL, 0, false);
}

static void *start(struct world *world)
{
    struct crash_case one;
    struct operator_scene *scene;

    crash_case_init(&one, &suite, world);
    scene = operator_scene_new(world, &course_type);
    scene->crash = one;
    make_references(scene);
    crash_case_start(&scene->crash, scene);
    return scene;
}

static void finish(void *context)
{
    struct operator_scene *scene = context;

    operator_promises_at_the_end(scene);
    crash_case_finish(&scene->crash, scene->settled_sent);
}

const struct scenario scenario_operator_crashes = {
    .name = "operator-crashes",
    .what = "the operator: small stories, with a blow at every write",
    .start = start,
    .check = operator_scene_check,
    .is_over = operator_scene_is_over,
    .finish = finish,
    .free = operator_scene_free,
    .hooks = &operator_crash_hooks,
    .cases = &suite,
};
