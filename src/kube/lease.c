/* lease.c - leader election by a Lease: look, wait until it may be taken, take, renew.
 *
 * One call is under way at a time. When the last answer told what the server has (`known`), the
 * next step writes with that resourceVersion; after any failure the next step looks first.
 *
 * Holds: we count as holding only from a write that the server confirmed, and only until the moment
 * that write was *sent* plus the renew deadline. Whoever wants the lease must have seen that write
 * unchanged for the whole, longer, duration on its own clock, so we have stopped before. A write
 * that may or may not have happened extends nothing. Every update carries the resourceVersion it is
 * based on, so a late one cannot undo another's. */
#include "kube/lease.h"

#include "base/mem.h"
#include "codec/timestamp.h"

enum {
    SECOND_US = 1000000,
    MAX_BODY = 1 << 20,
    MAX_DURATION_SECONDS = 600, /* of somebody else's lease: more is not waited for */
};

enum task { LOOK, CLAIM, GIVE_UP };

struct kube_lease {
    struct kube_client *client;
    struct rand *rand;
    struct loop *loop;
    char *ns, *name, *identity;
    int64_t duration_us, renew_deadline_us, retry_us;

    void (*changed)(void *context, bool held);
    void *context;
    bool told; /* what the owner was told last */

    void (*trouble)(void *context, const char *error);
    void *trouble_context;
    struct err last_error; /* what it was told last */

    struct json_doc *seen; /* the Lease as last seen; NULL before, and when there is none */
    int64_t seen_us;       /* since when its resourceVersion has been this one, by our clock */
    bool known;            /* seen is the server's latest, as far as anyone can know */
    bool claimed;          /* we sent a write that names us: the name in the record may be ours */
    bool claimed_before;   /* the same, without the write under way */
    bool from_nobody;      /* the record that our claim replaced, or will, named no holder */
    int64_t valid_until_us;

    struct kube_call *call;
    enum task task;
    int64_t sent_us;
    struct loop_timer next, expiry;

    bool releasing, released_look;
    void (*released)(void *context);
    void *released_context;
};

static void step(void *context);

/* --- the record --- */

static const struct json *spec_of(const struct kube_lease *lease)
{
    return json_get(json_root(lease->seen), "spec");
}

static struct str version_of(const struct kube_lease *lease)
{
    return json_str(json_at(json_root(lease->seen), "metadata", "resourceVersion"));
}

static struct str holder_of(const struct kube_lease *lease)
{
    return json_str(json_get(spec_of(lease), "holderIdentity"));
}

/* A record with our name that this process never wrote belongs to a twin, alive until it expires.
 */
static bool is_ours(const struct kube_lease *lease)
{
    return lease->claimed && str_is(holder_of(lease), lease->identity);
}

static int64_t may_be_taken_at(const struct kube_lease *lease)
{
    int64_t seconds = json_i64_or(json_get(spec_of(lease), "leaseDurationSeconds"), 0);

    if (holder_of(lease).len == 0 || is_ours(lease))
        return lease->seen_us;
    if (seconds > MAX_DURATION_SECONDS)
        seconds = MAX_DURATION_SECONDS;
    return lease->seen_us +
           (seconds * SECOND_US > lease->duration_us ? seconds * SECOND_US : lease->duration_us);
}

static void remember(struct kube_lease *lease, const struct json *object)
{
    struct str version = json_str(json_at(object, "metadata", "resourceVersion"));

    if (!lease->seen || !str_eq(version, version_of(lease)))
        lease->seen_us = loop_now_us(lease->loop);
    json_doc_free(lease->seen);
    lease->seen = json_clone(object);
    lease->known = version.len > 0;
}

static void forget(struct kube_lease *lease)
{
    json_doc_free(lease->seen);
    lease->seen = NULL;
    lease->known = false;
}

static void put_time(struct json_build *build, struct json_mut *spec, const char *key,
                     int64_t wall_us)
{
    auto_buf struct buf text = { .max = 64 };

    if (timestamp_print_micro(wall_us, &text, NULL) == 0)
        json_put_str(build, spec, key, buf_str(&text));
}

/* As client-go writes it: a new holder counts as a transition and begins a new acquireTime. */
static void put_spec(const struct kube_lease *lease, struct json_build *build,
                     struct json_mut *spec, enum task task)
{
    int64_t now_us = clock_wall_us(loop_clock(lease->loop));
    int64_t transitions = json_i64_or(json_get(spec_of(lease), "leaseTransitions"), 0);
    bool same_holder = str_is(holder_of(lease), lease->identity);
    int64_t seconds = (lease->duration_us + SECOND_US - 1) / SECOND_US;

    if (!lease->seen || transitions < 0 || transitions >= INT32_MAX)
        transitions = 0;
    else if (task == CLAIM && !same_holder)
        transitions++;
    json_put_text(build, spec, "holderIdentity", task == CLAIM ? lease->identity : "");
    json_put_i64(build, spec, "leaseDurationSeconds", task == CLAIM ? seconds : 1);
    json_put_i64(build, spec, "leaseTransitions", transitions);
    if (task == GIVE_UP || !same_holder)
        put_time(build, spec, "acquireTime", now_us);
    put_time(build, spec, "renewTime", now_us);
}

static void write_object(const struct kube_lease *lease, enum task task, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root =
        lease->seen ? json_copy(build, json_root(lease->seen)) : json_new_object(build);

    json_put_text(build, root, "apiVersion", "coordination.k8s.io/v1");
    json_put_text(build, root, "kind", "Lease");
    json_put_at(build, root, json_new_str(build, str_of(lease->name)), "metadata", "name");
    json_put_at(build, root, json_new_str(build, str_of(lease->ns)), "metadata", "namespace");
    put_spec(lease, build, json_object_at(build, root, "spec"), task);
    json_mut_write(root, out);
}

/* --- telling --- */

bool kube_lease_is_held(const struct kube_lease *lease)
{
    return loop_now_us(lease->loop) < lease->valid_until_us;
}

bool kube_lease_was_released(const struct kube_lease *lease)
{
    return lease->from_nobody && kube_lease_is_held(lease);
}

/* The last thing in every callback: the owner may free the lease here. */
static void tell(struct kube_lease *lease)
{
    bool held = kube_lease_is_held(lease);

    if (held == lease->told || lease->releasing)
        return;
    lease->told = held;
    if (lease->changed)
        lease->changed(lease->context, held);
}

/* Why the last step failed; "" for what a contender expects. */
static void note(struct kube_lease *lease, const char *text)
{
    struct err err = { 0 };

    if (text[0])
        (void)err_set(&err, ERR_UNAVAILABLE, "%s", text);
    if (strcmp(err.text, lease->last_error.text) == 0)
        return;
    lease->last_error = err;
    if (lease->trouble)
        lease->trouble(lease->trouble_context, err.text);
}

static void on_expiry(void *context)
{
    tell(context);
}

static void finish_release(void *context)
{
    struct kube_lease *lease = context;
    void (*released)(void *context) = lease->released;

    lease->released = NULL;
    if (released)
        released(lease->released_context);
}

/* --- calls --- */

static void on_answer(void *context, const struct kube_answer *answer);

static void send_task(struct kube_lease *lease, enum task task)
{
    auto_buf struct buf body = { .max = MAX_BODY };
    bool exists = lease->seen != NULL;
    struct kube_request request = { .resource = &kube_leases,
                                    .ns = lease->ns,
                                    .name = task == LOOK || exists ? lease->name : NULL,
                                    .timeout_us = lease->renew_deadline_us / 2 };

    request.verb = task == LOOK ? KUBE_GET : exists ? KUBE_UPDATE : KUBE_CREATE;
    if (task != LOOK)
        write_object(lease, task, &body);
    if (task == CLAIM && !is_ours(lease))
        lease->from_nobody = exists && holder_of(lease).len == 0;
    lease->claimed_before = lease->claimed;
    lease->claimed = lease->claimed || task == CLAIM;
    request.body = buf_str(&body);
    lease->task = task;
    lease->known = false; /* until the answer says more */
    lease->sent_us = loop_now_us(lease->loop);
    lease->call = kube_send(lease->client, &request, on_answer, lease);
}

static void step_after(struct kube_lease *lease, int64_t delay_us)
{
    loop_timer_start(lease->loop, &lease->next, delay_us, step, lease);
}

static void look_soon(struct kube_lease *lease)
{
    step_after(lease, rand_jitter(lease->rand, lease->retry_us / 20, 50));
}

static void look_later(struct kube_lease *lease)
{
    step_after(lease, rand_jitter(lease->rand, lease->retry_us, 20));
}

/* The record is known: write if it is ours or free, else wait until it may be. */
static void decide(struct kube_lease *lease)
{
    int64_t left_us = may_be_taken_at(lease) - loop_now_us(lease->loop);
    int64_t pause_us = rand_jitter(lease->rand, lease->retry_us, 20);

    if (!is_ours(lease))
        lease->valid_until_us = 0;
    if (left_us <= 0) {
        send_task(lease, CLAIM);
        return;
    }
    note(lease, "");
    lease->known = false;
    step_after(lease, left_us < pause_us ? left_us : pause_us);
}

static void on_looked(struct kube_lease *lease, const struct kube_answer *answer)
{
    if (answer->outcome == KUBE_DONE) {
        remember(lease, answer->object);
        decide(lease);
    } else if (answer->outcome == KUBE_GONE) {
        forget(lease);
        lease->valid_until_us = 0; /* anyone may create it now */
        send_task(lease, CLAIM);
    } else {
        note(lease, answer->message);
        look_later(lease);
    }
}

static void on_claimed(struct kube_lease *lease, const struct kube_answer *answer)
{
    if (answer->outcome != KUBE_DONE && answer->outcome != KUBE_UNKNOWN)
        lease->claimed = lease->claimed_before;
    if (answer->outcome != KUBE_CONFLICT)
        note(lease, answer->outcome == KUBE_DONE ? "" : answer->message);
    if (answer->outcome == KUBE_DONE) {
        remember(lease, answer->object);
        if (lease->valid_until_us > 0 && !kube_lease_is_held(lease))
            lease->from_nobody = false; /* ours all the time, but for a while we did not hold it */
        if (is_ours(lease))
            lease->valid_until_us = lease->sent_us + lease->renew_deadline_us;
        loop_timer_start(lease->loop, &lease->expiry,
                         lease->valid_until_us - loop_now_us(lease->loop), on_expiry, lease);
        step_after(lease, lease->sent_us + lease->retry_us - loop_now_us(lease->loop));
    } else if (answer->outcome == KUBE_CONFLICT) {
        look_soon(lease);
    } else if (answer->outcome == KUBE_GONE) {
        forget(lease);
        lease->valid_until_us = 0;
        look_later(lease);
    } else {
        look_later(lease);
    }
}

/* Giving up: at most the end of the call under way, one look, one write. */
static void release_step(struct kube_lease *lease)
{
    if (lease->known && is_ours(lease)) {
        send_task(lease, GIVE_UP);
    } else if (!lease->known && lease->claimed && !lease->released_look) {
        lease->released_look = true;
        send_task(lease, LOOK);
    } else {
        loop_timer_start(lease->loop, &lease->next, 0, finish_release, lease);
    }
}

static void on_answer_while_releasing(struct kube_lease *lease, const struct kube_answer *answer)
{
    if (lease->task == GIVE_UP) {
        finish_release(lease);
        return;
    }
    if (answer->outcome == KUBE_DONE)
        remember(lease, answer->object);
    release_step(lease);
}

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct kube_lease *lease = context;

    lease->call = NULL;
    if (lease->releasing) {
        on_answer_while_releasing(lease, answer);
        return;
    }
    if (lease->task == LOOK)
        on_looked(lease, answer);
    else
        on_claimed(lease, answer);
    tell(lease);
}

static void step(void *context)
{
    struct kube_lease *lease = context;

    if (lease->known && is_ours(lease))
        send_task(lease, CLAIM);
    else
        send_task(lease, LOOK);
    tell(lease);
}

/* --- the lease --- */

static int64_t given_or(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

struct kube_lease *kube_lease_new(struct kube_client *client, struct rand *rand,
                                  const struct kube_lease_options *options)
{
    struct kube_lease *lease = mem_alloc(sizeof(*lease));

    lease->client = client;
    lease->rand = rand;
    lease->loop = kube_client_loop(client);
    lease->ns = mem_strdup(options->ns);
    lease->name = mem_strdup(options->name);
    lease->identity = mem_strdup(options->identity);
    lease->duration_us = given_or(options->duration_us, 15 * SECOND_US);
    lease->renew_deadline_us = given_or(options->renew_deadline_us, 10 * SECOND_US);
    lease->retry_us = given_or(options->retry_us, 2 * SECOND_US);
    if (lease->renew_deadline_us >= lease->duration_us)
        lease->renew_deadline_us = lease->duration_us * 2 / 3;
    return lease;
}

void kube_lease_start(struct kube_lease *lease, void (*changed)(void *context, bool held),
                      void *context)
{
    lease->changed = changed;
    lease->context = context;
    step_after(lease, 0);
}

void kube_lease_on_trouble(struct kube_lease *lease,
                           void (*trouble)(void *context, const char *error), void *context)
{
    lease->trouble = trouble;
    lease->trouble_context = context;
}

void kube_lease_release(struct kube_lease *lease, void (*done)(void *context), void *context)
{
    lease->releasing = true;
    lease->released = done;
    lease->released_context = context;
    lease->valid_until_us = 0;
    loop_timer_stop(&lease->next);
    loop_timer_stop(&lease->expiry);
    if (!lease->call) /* else it goes on when that has ended: a write cannot be called back */
        release_step(lease);
}

static int64_t whole_seconds(int64_t time_us)
{
    return timestamp_to_seconds(time_us) * SECOND_US;
}

bool kube_lease_skew(const struct kube_lease *lease, int64_t *ret_skew_us)
{
    struct json_iter iter = json_iter(json_at(json_root(lease->seen), "metadata", "managedFields"));
    int64_t renewed_us, taken_us = 0, at_us;
    const struct json *entry;

    if (!lease->seen ||
        !str_is(json_str(json_get(spec_of(lease), "holderIdentity")), lease->identity) ||
        timestamp_parse(json_str(json_get(spec_of(lease), "renewTime")), &renewed_us, NULL) < 0)
        return false;
    while (json_next_item(&iter, &entry))
        if (timestamp_parse(json_str(json_get(entry, "time")), &at_us, NULL) == 0 &&
            at_us > taken_us)
            taken_us = at_us;
    if (taken_us == 0)
        return false;
    *ret_skew_us = taken_us - whole_seconds(renewed_us);
    return true;
}

void kube_lease_free(struct kube_lease *lease)
{
    if (!lease)
        return;
    kube_call_cancel(lease->call);
    loop_timer_stop(&lease->next);
    loop_timer_stop(&lease->expiry);
    json_doc_free(lease->seen);
    mem_free(lease->ns);
    mem_free(lease->name);
    mem_free(lease->identity);
    mem_free(lease);
}
