/* test_overlay_model.c - a long random run of the cache: a server that keeps its own books, a watch
 * that lags, writes whose answers are late, lost or refused, reads and relists in between.
 *
 * After every step what readers see must be the newest of all that the client was told, worked out
 * by looking through all of it; and listeners, walks and indexes must agree with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kube/cache_private.h"
#include "mirror.h"

#include <stdio.h>

struct world {
    struct clock clock;
    struct kube_cache *cache;
    struct mirror mirror;
    int by_node;
};

static void world_init(struct world *world)
{
    clock_init_virtual(&world->clock, 0);
    world->cache = kube_cache_new(&kube_pod_kind, &world->clock);
    world->by_node = kube_cache_add_index(world->cache, keys_by_node);
    mirror_init(&world->mirror, world->cache);
}

static void world_done(struct world *world)
{
    mirror_check(&world->mirror, world->by_node);
    kube_cache_free(world->cache);
    mirror_done(&world->mirror);
}

enum { NAMES = 4, MAX_OPS = 8, MAX_FACTS = 512, MAX_EVENTS = 4096, STEPS = 20000 };

struct fact { /* an object at one version; uid 0 = nothing there */
    unsigned uid;
    uint64_t version;
    char word[16];
};

struct event {
    unsigned name;
    struct fact fact; /* for an end: uid of what ended */
    bool ended;
};

enum op_state { OP_FREE, OP_SENT, OP_ANSWERED, OP_LOST, OP_TAKEN };

struct op { /* a write of ours, on its way */
    enum op_state state;
    enum { OP_CREATE, OP_PATCH, OP_DELETE } kind;
    unsigned name;
    struct kube_overlay *overlay;
    bool refused, gone; /* how it was answered */
    struct fact result; /* the object, or the version of the end */
    /* what a prediction is about */
    unsigned order, was_uid;
    uint64_t was_version;
    bool creates, covers, asked;
    char word[16], was_word[16], before_word[16];
};

struct read_op { /* one direct read, on its way */
    bool open, executed;
    unsigned name;
    struct fact found;
};

struct place {
    struct fact server; /* the truth */
    /* What the client was told, all of it: the naive model looks at everything every time. */
    struct fact told[MAX_FACTS];
    unsigned told_count, asked_count; /* asked: how many were told when it was asked about */
    unsigned gone[MAX_FACTS];         /* uids */
    unsigned gone_count;
    uint64_t ended; /* as of this version there was nothing: what is older does not count */
};

struct run {
    struct world world;
    struct rand rand;
    struct place places[NAMES];
    struct event events[MAX_EVENTS]; /* a ring: what the watch has not delivered yet */
    size_t event_first, event_count;
    struct op ops[MAX_OPS];
    struct read_op read;
    uint64_t version, delivered;
    unsigned next_uid, next_order, next_word;
};

static const char *name_of(unsigned name)
{
    static const char *const names[NAMES] = { "p", "q", "r", "s" };

    return names[name];
}

static const char *uid_text(unsigned uid)
{
    static char text[16];

    snprintf(text, sizeof(text), "u%u", uid);
    return uid ? text : NULL;
}

static void new_word(struct run *run, char first, char word[16])
{
    snprintf(word, 16, "%c%u", first, ++run->next_word);
}

static const struct kube_object *object_of(unsigned name, const struct fact *fact)
{
    return make_pod(name_of(name), uid_text(fact->uid), fact->version, fact->word);
}

/* ---- the server ---- */

static void server_tells(struct run *run, unsigned name, const struct fact *fact, bool ended)
{
    struct event event = { .name = name, .fact = *fact, .ended = ended };

    assert_true(run->event_count < MAX_EVENTS);
    run->events[(run->event_first + run->event_count++) % MAX_EVENTS] = event;
}

static void server_writes(struct run *run, unsigned name)
{
    struct fact *fact = &run->places[name].server;

    if (fact->uid == 0)
        fact->uid = ++run->next_uid;
    fact->version = ++run->version;
    new_word(run, (char)('a' + rand_below(&run->rand, 5)), fact->word);
    server_tells(run, name, fact, false);
}

static void server_deletes(struct run *run, unsigned name)
{
    struct fact *fact = &run->places[name].server;

    fact->version = ++run->version;
    server_tells(run, name, fact, true);
    *fact = (struct fact){ .version = run->version };
}

static void server_executes(struct run *run, struct op *op)
{
    struct fact *fact = &run->places[op->name].server;

    op->state = OP_ANSWERED;
    op->refused = op->kind == OP_CREATE ? fact->uid != 0 : fact->uid != op->was_uid;
    if (op->refused || rand_chance(&run->rand, 100)) {
        op->refused = true;
        return;
    }
    if (op->kind == OP_DELETE)
        server_deletes(run, op->name);
    else
        server_writes(run, op->name);
    op->gone = op->kind == OP_DELETE;
    op->result = *fact;
    if (rand_chance(&run->rand, 150))
        op->state = OP_LOST;
}

/* ---- the naive model ---- */

static bool is_gone(const struct place *place, unsigned uid)
{
    for (unsigned i = 0; i < place->gone_count; i++)
        if (place->gone[i] == uid)
            return true;
    return false;
}

static void learn_gone(struct place *place, unsigned uid)
{
    if (uid == 0 || is_gone(place, uid))
        return;
    assert_true(place->gone_count < MAX_FACTS);
    place->gone[place->gone_count++] = uid;
}

static void learn(struct place *place, const struct fact *fact)
{
    assert_true(place->told_count < MAX_FACTS);
    place->told[place->told_count++] = *fact;
}

/* The newest of all that was told. */
static const struct fact *newest(const struct place *place, bool gone_too)
{
    const struct fact *found = NULL;

    for (unsigned i = place->told_count; i-- > 0;) {
        const struct fact *fact = &place->told[i];

        if (found && fact->version <= found->version)
            continue;
        if (gone_too || (fact->version > place->ended && !is_gone(place, fact->uid)))
            found = fact;
    }
    return found;
}

/* The next prediction in their order. */
static const struct op *prediction_after(const struct run *run, unsigned name, unsigned order)
{
    const struct op *found = NULL;

    for (unsigned i = 0; i < MAX_OPS; i++) {
        const struct op *op = &run->ops[i];

        if (op->state != OP_FREE && op->name == name && op->covers && op->order > order &&
            (!found || op->order < found->order))
            found = op;
    }
    return found;
}

static bool is_about_another(const struct op *op, const struct fact *fact)
{
    return op->was_uid == 0 || (op->was_uid != fact->uid && fact->version > op->was_version);
}

/* The node, a word's first letter, tells; if the write left that alone, the word does. */
static bool is_shown(const char *before, const char *next, const char *seen)
{
    return before[0] != next[0] ? before[0] != seen[0] : strcmp(before, seen) != 0;
}

static bool shows(const struct fact *fact, const struct op *op)
{
    return op->kind == OP_PATCH && is_shown(op->before_word, op->word, fact->word) &&
           (op->was_uid == 0 || is_shown(op->was_word, op->word, fact->word));
}

static bool is_over(const struct run *run, const struct op *op)
{
    const struct fact *fact = newest(&run->places[op->name], false);

    if (!op->covers)
        return true;
    if (!fact)
        return !op->creates;
    return is_about_another(op, fact) || shows(fact, op);
}

/* A read came after it was asked for this write: can it be that the write comes yet? */
static bool may_come_yet(const struct op *op, const struct fact *found)
{
    if (op->state == OP_TAKEN)
        return false;
    if (found->uid == 0)
        return op->creates;
    return !is_about_another(op, found) && !shows(found, op);
}

static void end_taken(struct run *run)
{
    for (unsigned i = 0; i < MAX_OPS; i++)
        if (run->ops[i].state == OP_TAKEN && is_over(run, &run->ops[i]))
            run->ops[i] = (struct op){ 0 };
}

static void watch_told_object(struct run *run, unsigned name, const struct fact *fact)
{
    struct place *place = &run->places[name];

    learn(place, fact);
    if (is_gone(place, fact->uid))
        return;
    for (unsigned i = 0; i < MAX_OPS; i++) {
        struct op *op = &run->ops[i];

        if (op->state != OP_FREE && op->name == name && is_about_another(op, fact))
            op->covers = false;
    }
}

static void watch_told_end(struct run *run, unsigned name, uint64_t version)
{
    struct place *place = &run->places[name];

    for (unsigned i = 0; i < place->told_count; i++)
        if (place->told[i].version <= version)
            learn_gone(place, place->told[i].uid);
    place->ended = version;
    for (unsigned i = 0; i < MAX_OPS; i++) {
        struct op *op = &run->ops[i];

        if (op->state != OP_FREE && op->name == name && !op->creates && op->was_uid != 0 &&
            version >= op->was_version)
            op->covers = false;
    }
}

/* The newest fact, and each prediction over it: a create where there is nothing, a patch where its
 * own object is. */
static const char *wanted_view(const struct run *run, unsigned name)
{
    const struct fact *fact = newest(&run->places[name], false);
    const char *word = fact ? fact->word : NULL;

    for (const struct op *op = prediction_after(run, name, 0); op;
         op = prediction_after(run, name, op->order)) {
        bool about_another = fact && word && op->was_uid != 0 && is_about_another(op, fact);

        if (op->kind == OP_DELETE)
            word = NULL;
        else if (op->kind == OP_CREATE ? !word : word && !about_another)
            word = op->word;
    }
    return word ? word : "-";
}

static void check(struct run *run)
{
    end_taken(run);
    for (unsigned name = 0; name < NAMES; name++) {
        const struct kube_object *upper = kube_cache_get(run->world.cache, "n", name_of(name));
        const char *want = wanted_view(run, name);

        if (strcmp(word_of(upper), want) != 0)
            fail_msg("%s: readers see %s, not %s", name_of(name), word_of(upper), want);
    }
    mirror_check(&run->world.mirror, run->world.by_node);
}

/* ---- the steps ---- */

static void step_somebody_writes(struct run *run)
{
    unsigned name = (unsigned)rand_below(&run->rand, NAMES);

    if (run->places[name].server.uid && rand_chance(&run->rand, 400))
        server_deletes(run, name);
    else
        server_writes(run, name);
}

static void step_watch_delivers(struct run *run)
{
    struct event event;

    if (run->event_count == 0)
        return;
    event = run->events[run->event_first];
    run->event_first = (run->event_first + 1) % MAX_EVENTS;
    run->event_count--;
    run->delivered = event.fact.version;
    if (event.ended) {
        learn_gone(&run->places[event.name], event.fact.uid);
        watch_told_end(run, event.name, event.fact.version);
        kube_cache_seen_gone(run->world.cache, "n", name_of(event.name), event.fact.version);
    } else {
        const struct kube_object *object = object_of(event.name, &event.fact);

        watch_told_object(run, event.name, &event.fact);
        kube_cache_seen(run->world.cache, object);
        kube_object_unref(object);
    }
}

static void step_bookmark(struct run *run)
{
    if (run->event_count == 0)
        run->delivered = run->version;
    kube_cache_progress(run->world.cache, run->delivered);
}

static void step_relist(struct run *run)
{
    kube_cache_relist_begin(run->world.cache);
    for (unsigned name = 0; name < NAMES; name++) {
        const struct fact *fact = &run->places[name].server;

        if (fact->uid) {
            const struct kube_object *object = object_of(name, fact);
            const struct fact copy = *fact;

            for (unsigned i = 0; i < run->places[name].told_count; i++)
                if (run->places[name].told[i].uid != fact->uid)
                    learn_gone(&run->places[name], run->places[name].told[i].uid);
            watch_told_object(run, name, &copy);
            kube_cache_seen(run->world.cache, object);
            kube_object_unref(object);
        }
    }
    for (unsigned name = 0; name < NAMES; name++)
        if (run->places[name].server.uid == 0)
            watch_told_end(run, name, run->version);
    kube_cache_relist_end(run->world.cache, run->version);
    run->event_count = 0; /* the new watch begins here */
    run->delivered = run->version;
}

static struct op *free_op(struct run *run)
{
    for (unsigned i = 0; i < MAX_OPS; i++)
        if (run->ops[i].state == OP_FREE)
            return &run->ops[i];
    return NULL;
}

static void step_lay(struct run *run)
{
    unsigned name = (unsigned)rand_below(&run->rand, NAMES);
    const struct kube_object *upper = kube_cache_get(run->world.cache, "n", name_of(name));
    const struct fact *was = newest(&run->places[name], true);
    struct op *op = free_op(run);
    struct fact predicted = { 0 };
    const struct kube_object *next = NULL;

    if (!op || (upper && !upper->uid[0]))
        return; /* what has no uid yet cannot be written to */
    *op = (struct op){ .state = OP_SENT, .name = name, .order = ++run->next_order };
    op->kind = !upper ? OP_CREATE : rand_chance(&run->rand, 400) ? OP_DELETE : OP_PATCH;
    op->creates = !upper;
    op->covers = true;
    op->was_uid = was ? was->uid : 0;
    op->was_version = was ? was->version : 0;
    if (was)
        memcpy(op->was_word, was->word, sizeof(op->was_word));
    snprintf(op->before_word, sizeof(op->before_word), "%s", word_of(upper));
    new_word(run, (char)('v' + rand_below(&run->rand, 4)), op->word);
    if (op->kind == OP_PATCH) {
        op->overlay =
            kube_overlay_patch(run->world.cache, "n", name_of(name), make_patch(op->word));
        return;
    }
    if (op->kind == OP_CREATE) {
        memcpy(predicted.word, op->word, sizeof(predicted.word));
        next = object_of(name, &predicted);
    }
    op->overlay = kube_overlay_lay(run->world.cache, "n", name_of(name), next);
    kube_object_unref(next);
}

static void answer(struct run *run, struct op *op)
{
    struct op ended = *op;

    *op = (struct op){ 0 };
    if (ended.refused) {
        kube_overlay_failed(ended.overlay);
    } else if (ended.gone) {
        learn_gone(&run->places[ended.name], ended.was_uid);
        kube_overlay_done(ended.overlay, NULL,
                          rand_chance(&run->rand, 500) ? ended.result.version : 0);
    } else {
        const struct kube_object *object = object_of(ended.name, &ended.result);

        learn(&run->places[ended.name], &ended.result);
        kube_overlay_done(ended.overlay, object, ended.result.version);
        kube_object_unref(object);
    }
}

/* Done, and the answer shows nothing: the model keeps the prediction too. */
static void take(struct op *op)
{
    op->state = OP_TAKEN;
    op->asked = false;
    kube_overlay_taken(op->overlay);
}

static void step_op(struct run *run)
{
    struct op *op = &run->ops[rand_below(&run->rand, MAX_OPS)];

    if (op->state == OP_SENT)
        server_executes(run, op);
    else if (op->state == OP_ANSWERED && !op->refused && rand_chance(&run->rand, 400))
        take(op);
    else if (op->state == OP_ANSWERED)
        answer(run, op);
}

static void step_doubt(struct run *run)
{
    const char *ns, *name;

    clock_advance_us(&run->world.clock, (int64_t)rand_below(&run->rand, KUBE_OVERLAY_DOUBT_US));
    if (run->read.open || !kube_cache_doubt(run->world.cache, &ns, &name))
        return;
    run->read = (struct read_op){ .open = true, .name = (unsigned)(name[0] - 'p') };
    run->places[run->read.name].asked_count = run->places[run->read.name].told_count;
    for (unsigned i = 0; i < MAX_OPS; i++)
        run->ops[i].asked = run->ops[i].state != OP_FREE && run->ops[i].name == run->read.name;
}

/* With the object, that those of other uids went before it. */
static void learn_found(struct place *place, const struct fact *found)
{
    for (unsigned i = 0; i < place->told_count; i++)
        if (place->told[i].uid != found->uid && place->told[i].version < found->version)
            learn_gone(place, place->told[i].uid);
    learn(place, found);
}

static const struct kube_cover *cover_of(const struct run *run, unsigned name)
{
    const struct kube_entry *entry = kube_entry_find(run->world.cache, "n", name_of(name));

    return entry ? entry->cover : NULL;
}

/* Whether anything that the read was for is still in doubt; else what it finds missing is left to
 * the watch. */
static bool is_still_asked(const struct run *run, unsigned name)
{
    const struct kube_cover *cover = cover_of(run, name);

    for (unsigned i = 0; i < MAX_OPS; i++)
        if (run->ops[i].state != OP_FREE && run->ops[i].name == name && run->ops[i].asked &&
            run->ops[i].covers)
            return true;
    return cover && cover->doubt.asked;
}

static void settle_read(struct run *run)
{
    struct place *place = &run->places[run->read.name];
    const struct kube_object *found = NULL;

    if (run->read.found.uid) {
        if (cover_of(run, run->read.name)) /* else nothing of ours is there: the watch tells */
            learn_found(place, &run->read.found);
        found = object_of(run->read.name, &run->read.found);
    } else if (is_still_asked(run, run->read.name)) {
        for (unsigned i = 0; i < place->asked_count; i++)
            learn_gone(place, place->told[i].uid);
    }
    for (unsigned i = 0; i < MAX_OPS; i++)
        if (run->ops[i].asked && run->ops[i].state != OP_FREE &&
            !may_come_yet(&run->ops[i], &run->read.found))
            run->ops[i].covers = false;
    kube_cache_settle_read(run->world.cache, "n", name_of(run->read.name), found, INT64_MAX);
    kube_object_unref(found);
    for (unsigned i = 0; i < MAX_OPS; i++)
        if (run->ops[i].asked && run->ops[i].state == OP_LOST) {
            struct kube_overlay *overlay = run->ops[i].overlay;

            run->ops[i] = (struct op){ 0 };
            kube_overlay_failed(overlay);
        }
    run->read.open = false;
}

static void step_read(struct run *run)
{
    if (!run->read.open)
        return;
    if (run->read.executed) {
        settle_read(run);
        return;
    }
    run->read.executed = true;
    run->read.found = run->places[run->read.name].server;
}

static void step(struct run *run)
{
    static const struct {
        unsigned weight;
        void (*go)(struct run *run);
    } steps[] = {
        { 150, step_somebody_writes },
        { 300, step_watch_delivers },
        { 60, step_bookmark },
        { 8, step_relist },
        { 150, step_lay },
        { 260, step_op },
        { 30, step_doubt },
        { 42, step_read },
    };
    uint64_t drawn = rand_below(&run->rand, 1000);

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (drawn < steps[i].weight) {
            steps[i].go(run);
            return;
        }
        drawn -= steps[i].weight;
    }
}

/* Books that nobody will look at again: the older half of what was told. */
static void forget_old(struct run *run)
{
    const unsigned half = MAX_FACTS / 2;

    for (unsigned name = 0; name < NAMES; name++) {
        struct place *place = &run->places[name];

        if (place->told_count > MAX_FACTS - 10) {
            place->told_count -= half;
            memmove(place->told, place->told + half, place->told_count * sizeof(place->told[0]));
            place->asked_count = place->asked_count > half ? place->asked_count - half : 0;
        }
        if (place->gone_count > MAX_FACTS - 10) {
            place->gone_count -= half;
            memmove(place->gone, place->gone + half, place->gone_count * sizeof(place->gone[0]));
        }
    }
}

static void drain(struct run *run)
{
    const char *ns, *name;

    for (unsigned i = 0; i < MAX_OPS; i++) {
        struct op *op = &run->ops[i];

        if (op->state == OP_SENT)
            server_executes(run, op);
        if (op->state == OP_LOST)
            op->state = OP_ANSWERED;
        if (op->state == OP_ANSWERED)
            answer(run, op);
    }
    while (run->event_count > 0)
        step_watch_delivers(run);
    check(run);
    for (unsigned i = 0; i < 200; i++) { /* what was taken and never shown is read */
        step_doubt(run);
        step_read(run);
        check(run);
    }
    step_relist(run);
    for (unsigned i = 0; i < NAMES; i++)
        assert_string_equal(word_of(kube_cache_get(run->world.cache, "n", name_of(i))),
                            run->places[i].server.uid ? run->places[i].server.word : "-");
    clock_advance_us(&run->world.clock, INT64_C(10) * KUBE_OVERLAY_DOUBT_US);
    assert_false(kube_cache_doubt(run->world.cache, &ns, &name));
}

static void a_long_random_run_agrees_with_a_naive_model(void **state)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct run *run = mem_alloc(sizeof(*run));

        world_init(&run->world);
        rand_init(&run->rand, seed);
        for (unsigned i = 0; i < STEPS; i++) {
            step(run);
            check(run);
            forget_old(run);
            buf_clear(&run->world.mirror.log);
        }
        drain(run);
        world_done(&run->world);
        mem_free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_random_run_agrees_with_a_naive_model),
    };

    return cmocka_run_group_tests_name("overlay_model", tests, NULL, NULL);
}
