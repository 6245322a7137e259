/* token.c - what must exist for one Token.
 *
 * Reads   the Token, the Secret with the JWT key, the Secret with the token that was signed last.
 * Returns actions; does no I/O.
 * Holds   a token that counts is kept until a fifth of its life is left; one that does not count
 *         (another key, no token at all) is signed anew at once, so renewing never stops. */
#include "operator/token.h"

#include "base/mem.h"
#include "codec/base64.h"
#include "codec/duration.h"
#include "codec/json_format.h"
#include "codec/jwt.h"
#include "codec/timestamp.h"
#include "engine/child.h"
#include "operator/hashes.h"

enum {
    SECOND_US = 1000000,
    DEFAULT_LIFETIME_S = 900,
    MIN_LIFETIME_S = 5,
    MAX_SECRET = 64 << 10,
};

static const int64_t max_lifetime_s = 2147483646;

struct signing { /* what a token is signed with, and for whom */
    struct buf key;
    const char *user;
    int64_t now_s, lifetime_s;
};

static const char *secret_name(const struct sync *sync)
{
    struct str name = json_str(json_at(sync->spec, "secretRef", "name"));

    return name.len > 0 ? name.at
                        : arena_printf(sync->plan->arena, "%s-jwt-%s", sync->object->name,
                                       json_str(json_get(sync->spec, "username")).at);
}

static const char *secret_key(const struct sync *sync)
{
    struct str key = json_str(json_at(sync->spec, "secretRef", "key"));

    return key.len > 0 ? key.at : "SLURM_JWT";
}

static bool is_renewed(const struct sync *sync)
{
    return spec_flag(sync->object, "refresh");
}

/* ---- what to sign with ---- */

static int read_lifetime(const struct sync *sync, int64_t *ret_seconds, struct err *err)
{
    const struct json *value = json_get(sync->spec, "lifetime");
    int64_t nanos;

    *ret_seconds = DEFAULT_LIFETIME_S;
    if (!json_exists(value))
        return 0;
    if (duration_parse(json_str(value), &nanos, err) < 0)
        return err_wrap(err, "spec.lifetime");
    *ret_seconds = nanos / DURATION_SECOND;
    if (*ret_seconds < MIN_LIFETIME_S)
        return err_set(err, ERR_INVALID, "spec.lifetime: %lld s is less than %d s",
                       (long long)*ret_seconds, MIN_LIFETIME_S);
    if (*ret_seconds > max_lifetime_s)
        *ret_seconds = max_lifetime_s;
    return 0;
}

static int read_signing(const struct sync *sync, struct signing *ret_signing, struct err *err)
{
    const char *ref = jwt_key_ref(sync->object);
    const struct json *key = json_get(json_get(sync->spec, ref), "key");
    const struct kube_object *secret = operator_world_ref(sync->world->secrets, sync->object, ref);
    const struct json *value =
        secret ? json_get_str(json_get(operator_tree(secret), "data"), json_str(key)) : NULL;

    if (!value)
        return err_set(err, ERR_NOT_FOUND, "spec.%s: Secret %s with the key %s does not exist", ref,
                       json_str(json_at(sync->spec, ref, "name")).at, json_str(key).at);
    if (base64_decode(json_str(value), 0, &ret_signing->key, err) < 0)
        return err_wrap(err, "spec.%s", ref);
    ret_signing->user = json_str(json_get(sync->spec, "username")).at;
    if (!ret_signing->user[0])
        ret_signing->user = "nobody";
    ret_signing->now_s = timestamp_to_seconds(sync->world->wall_us);
    return read_lifetime(sync, &ret_signing->lifetime_s, err);
}

/* ---- the token that there is ---- */

static bool is_due(const struct signing *signing, const struct jwt_claims *claims)
{
    return signing->now_s >= claims->exp - signing->lifetime_s / 5;
}

/* Whether the stored token counts, and need not be renewed yet. */
static bool is_good(const struct sync *sync, const struct signing *signing, struct str stored,
                    struct jwt_claims *ret_claims)
{
    auto_buf struct buf token;
    bool is_valid;

    buf_init(&token, MAX_SECRET);
    if (stored.len == 0 || base64_decode(stored, 0, &token, NULL) < 0)
        return false;
    is_valid = jwt_verify(buf_str(&signing->key), buf_str(&token), signing->now_s, 0, ret_claims,
                          NULL) == 0 &&
               strcmp(ret_claims->sun, signing->user) == 0;
    return is_valid && (!is_renewed(sync) || !is_due(signing, ret_claims));
}

static struct str stored_token(const struct sync *sync)
{
    const struct kube_object *secret =
        kube_cache_get(sync->world->secrets, sync->object->ns, secret_name(sync));

    return secret ? json_str(json_get(json_get(operator_tree(secret), "data"), secret_key(sync)))
                  : STR("");
}

/* ---- steps ---- */

/* The Slinky operator gives its token Secrets to the key Secret, so that they outlive their Token.
 * Such a Secret becomes the Token's. */
static bool plan_adoption(struct sync *sync, const char *name)
{
    const struct kube_object *secret = kube_cache_get(sync->world->secrets, sync->object->ns, name);
    auto_json_build struct json_build *build = json_build_new();

    if (!secret || strcmp(secret->owner.kind, "Secret") != 0 ||
        !str_is(json_str(json_at(sync->spec, jwt_key_ref(sync->object), "name")),
                secret->owner.name))
        return false;
    (void)plan_merge_patch(sync->plan, sync->world->secrets, &kube_secrets, secret->ns,
                           secret->name, NULL, secret->version,
                           json_format(build, "{'metadata':{'ownerReferences':[%m]}}",
                                       kube_owner_reference(build, sync->object)));
    return true;
}

static bool is_immutable(const struct sync *sync, const char *name)
{
    const struct kube_object *secret = kube_cache_get(sync->world->secrets, sync->object->ns, name);

    return secret && json_bool_or(json_get(operator_tree(secret), "immutable"), false);
}

/* The token as the Secret holds it: the stored one while it is good, else a new one. */
static int choose_token(const struct sync *sync, const struct signing *signing, struct buf *out,
                        struct jwt_claims *ret_claims, struct err *err)
{
    struct str stored = stored_token(sync);
    auto_buf struct buf token;
    int result;

    buf_init(&token, MAX_SECRET);
    if (is_good(sync, signing, stored, ret_claims)) {
        buf_add_str(out, stored);
        return 0;
    }
    *ret_claims = (struct jwt_claims){ .iat = 0 };
    if (is_immutable(sync, secret_name(sync)))
        return err_set(err, ERR_CONFLICT,
                       "Secret %s is immutable and holds no valid token; a new one is signed when "
                       "it is deleted",
                       secret_name(sync));
    *ret_claims =
        (struct jwt_claims){ .iat = signing->now_s, .exp = signing->now_s + signing->lifetime_s };
    if (strlen(signing->user) >= sizeof(ret_claims->sun))
        return err_set(err, ERR_TOO_BIG, "spec.username is longer than %d bytes", JWT_USER_MAX);
    memcpy(ret_claims->sun, signing->user, strlen(signing->user) + 1);
    if ((result = jwt_sign(buf_str(&signing->key), ret_claims, &token, err)) < 0)
        return result;
    base64_encode(buf_str(&token), 0, out);
    return 0;
}

/* A Secret that nobody controls and that we did not make. Deleting the Token must not delete it. */
static bool is_of_user(const struct kube_object *secret)
{
    bool has_stamp = false;

    if (secret)
        (void)kube_pairs_get(&secret->labels, CHILD_STAMP, &has_stamp);
    return secret && secret->owner.uid[0] == '\0' && !has_stamp;
}

static int write_secret(struct sync *sync, const char *name, const char *value, struct err *err)
{
    const struct kube_object *live = kube_cache_get(sync->world->secrets, sync->object->ns, name);
    const struct json *labels = json_at(operator_tree(sync->object), "metadata", "labels");

    if (!is_of_user(live))
        return plan_child(
            sync->plan, sync->world->secrets, sync->object,
            json_format(sync->build,
                        "{'metadata':{'name':%s,'labels':%m},'immutable':%b,'data':{%s:%s}}", name,
                        json_exists(labels) ? json_copy(sync->build, labels)
                                            : json_new_object(sync->build),
                        !is_renewed(sync), secret_key(sync), value),
            err);
    if (!str_is(stored_token(sync), value))
        (void)plan_merge_patch(
            sync->plan, sync->world->secrets, &kube_secrets, live->ns, name, NULL, live->version,
            json_format(sync->build, "{'data':{%s:%s}}", secret_key(sync), value));
    return 0;
}

static int plan_secret(struct sync *sync, struct jwt_claims *ret_claims, struct err *err)
{
    struct signing signing = { .user = "" };
    const char *name = secret_name(sync);
    struct buf value;
    int result;

    buf_init(&signing.key, MAX_SECRET);
    buf_init(&value, MAX_SECRET);
    if ((result = read_signing(sync, &signing, err)) == 0 && !plan_adoption(sync, name) &&
        (result = choose_token(sync, &signing, &value, ret_claims, err)) == 0) {
        result = write_secret(sync, name, buf_text(&value), err);
        if (result < 0) /* it was signed for nothing */
            *ret_claims = (struct jwt_claims){ .iat = 0 };
        else if (is_renewed(sync))
            plan_look_again(sync->plan,
                            (ret_claims->exp - signing.lifetime_s / 5 - signing.now_s) * SECOND_US);
    }
    mem_free_secret(signing.key.data, signing.key.len);
    buf_done(&value);
    return result;
}

static const char *time_text(const struct sync *sync, int64_t seconds)
{
    auto_buf struct buf text;

    buf_init(&text, 64);
    (void)timestamp_print(seconds * SECOND_US, &text, NULL);
    return arena_strdup(sync->plan->arena, buf_text(&text));
}

void token_plan(const struct operator_world *world, const struct kube_object *token,
                struct plan *plan)
{
    auto_json_build struct json_build *build = json_build_new();
    struct sync sync = {
        .world = world, .object = token, .spec = operator_spec(token), .plan = plan, .build = build
    };
    struct sync_workload none = { .note = "no token was signed" };
    struct jwt_claims claims = { .iat = 0 };
    struct json_mut *members = NULL;
    struct err err = { .class = 0 };

    sync_run(&sync, NULL, 0);
    if (!plan->failure && plan_secret(&sync, &claims, &err) < 0)
        plan_step_failed(plan, "Secret", &err);
    if (claims.iat > 0) {
        none.note = arena_printf(plan->arena, "Secret %s holds a token of %s until %s",
                                 secret_name(&sync), claims.sun, time_text(&sync, claims.exp));
        members = json_format(build, "{'issuedAt':%s}", time_text(&sync, claims.iat));
    }
    sync_status(&sync, &none, members);
}
