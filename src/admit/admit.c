/* admit.c - reads a review, finds whether its pod concerns us, and writes the answer.
 *
 * Holds: what is not a pod, not ours or not of our business is allowed; what cannot be read is
 * refused; a fact that was not seen yet is never taken for "no". Every answer carries the uid of
 * its request. */
#include "admit/admit.h"

#include "admit/admit_private.h"
#include "admit/rules.h"
#include "base/mem.h"
#include "codec/base64.h"
#include "kube/kinds.h"

enum {
    MAX_WHY = 4096,
    MAX_PATCH = 256 << 10, /* a gang's annotation comes from an object of at most that size */
    RETRY_AFTER_S = 1,
};

const char *admit_verdict_name(enum admit_verdict verdict)
{
    static const char *const names[ADMIT_VERDICTS] = {
        [ADMIT_ALLOWED] = "allowed",       [ADMIT_CHANGED] = "changed",
        [ADMIT_REFUSED] = "refused",       [ADMIT_NOT_KNOWN] = "not-known",
        [ADMIT_UNREADABLE] = "unreadable",
    };

    return names[verdict];
}

/* ---- making and freeing ---- */

int admit_new(const struct bridge_config *config, const struct bridge_world *world,
              struct admit **ret_admit, struct err *err)
{
    struct admit *admit = mem_alloc(sizeof(*admit));
    int result = 0;

    admit->config = config;
    admit->world = world;
    arena_init(&admit->arena, 16 << 20);
    if (config->managed_namespace_selector)
        result = selector_from_json(&admit->arena, config->managed_namespace_selector,
                                    SELECTOR_ABSENT_MATCHES_NOTHING, &admit->selector, err);
    if (result < 0) {
        admit_free(admit);
        (void)err_wrap(err, "managedNamespaceSelector");
        return result;
    }
    *ret_admit = admit;
    return 0;
}

void admit_free(struct admit *admit)
{
    if (!admit)
        return;
    mem_free(admit->users[0]);
    mem_free(admit->users[1]);
    arena_done(&admit->arena);
    mem_free(admit);
}

static void trust(char **place, struct str user)
{
    mem_free(*place);
    *place = user.len > 0 ? mem_strndup(user.at, user.len) : NULL;
}

void admit_trust(struct admit *admit, struct str user)
{
    trust(&admit->users[0], user);
}

void admit_trust_also(struct admit *admit, struct str user)
{
    trust(&admit->users[1], user);
}

/* ---- scope ---- */

enum scope { SCOPE_OUT, SCOPE_IN, SCOPE_NOT_KNOWN };

static enum scope scope_by_selector(const struct admit *admit, struct str ns)
{
    auto_buf struct buf name = { .max = KUBE_MAX_NAME };
    const struct kube_object *found = NULL;

    buf_add_str(&name, ns);
    if (admit->world && admit->world->namespaces && !name.overflowed)
        found = kube_cache_get(admit->world->namespaces, "", buf_text(&name));
    if (!found)
        return SCOPE_NOT_KNOWN;
    return selector_matches(admit->selector, kube_labels(&found->labels)) ? SCOPE_IN : SCOPE_OUT;
}

static enum scope scope_of_namespace(const struct admit *admit, const struct admit_request *request)
{
    if (admit->selector)
        return scope_by_selector(admit, request->review.ns);
    for (unsigned i = 0; i < admit->config->managed_namespace_count; i++)
        if (str_eq(request->review.ns, admit->config->managed_namespaces[i]))
            return SCOPE_IN;
    return SCOPE_OUT;
}

static enum scope scope_of(const struct admit *admit, const struct admit_request *request)
{
    if (admit_is_of_kubelet(request))
        return SCOPE_OUT;
    if (str_is(json_str(json_at(request->review.object, "spec", "schedulerName")),
               admit->config->scheduler_name))
        return SCOPE_IN;
    if (admit_is_of_daemonset(request))
        return SCOPE_OUT;
    return scope_of_namespace(admit, request);
}

/* ---- answering ---- */

static enum admit_verdict allow(const struct admit_request *request, struct buf *out)
{
    admission_write(&request->review, &(struct admission_answer){ .code = 0 }, out);
    return ADMIT_ALLOWED;
}

static enum admit_verdict deny(const struct admit_request *request, enum admit_verdict verdict,
                               struct str why, struct buf *out)
{
    static const int codes[ADMIT_VERDICTS] = {
        [ADMIT_REFUSED] = ADMISSION_FORBIDDEN,
        [ADMIT_NOT_KNOWN] = ADMISSION_UNAVAILABLE,
        [ADMIT_UNREADABLE] = ADMISSION_BAD_REQUEST,
    };

    admission_write(&request->review,
                    &(struct admission_answer){
                        .code = codes[verdict],
                        .message = why,
                        .retry_after_s = verdict == ADMIT_NOT_KNOWN ? RETRY_AFTER_S : 0,
                    },
                    out);
    return verdict;
}

static enum admit_verdict deny_unknown(const struct admit_request *request, const char *what,
                                       struct buf *out)
{
    auto_buf struct buf why = { .max = MAX_WHY };

    buf_printf(&why, "the bridge has not read %s yet: try again in a moment", what);
    return deny(request, ADMIT_NOT_KNOWN, buf_str(&why), out);
}

static enum admit_verdict change(const struct admit_request *request, const struct json_mut *ops,
                                 struct buf *out)
{
    auto_buf struct buf patch = { .max = MAX_PATCH }, text = { .max = 2 * MAX_PATCH };

    json_mut_write(ops, &patch);
    if (patch.overflowed)
        return deny(request, ADMIT_REFUSED, STR("what the pod would be given is too long"), out);
    base64_encode(buf_str(&patch), 0, &text);
    admission_write(&request->review, &(struct admission_answer){ .patch = buf_str(&text) }, out);
    return ADMIT_CHANGED;
}

/* ---- the two hooks ---- */

/* Whether there is anything to say, whatever the pod is. Only new pods are changed; an update by
 * the bridge itself passes, and so does one of a pod that is on its way out. */
static bool is_our_business(const struct admit *admit, enum admit_hook hook,
                            const struct admit_request *request)
{
    bool is_plain = request->review.subresource.len == 0;

    if (!str_is(request->review.resource, "pods") || request->review.group.len > 0)
        return false;
    if (request->op == ADMIT_CREATE)
        return is_plain;
    return hook == ADMIT_VALIDATE && request->op == ADMIT_UPDATE &&
           (is_plain || str_is(request->review.subresource, "resize")) &&
           !(request->review.user.len > 0 &&
             (str_eq(request->review.user, str_of(admit->users[0])) ||
              str_eq(request->review.user, str_of(admit->users[1])))) &&
           !json_exists(json_at(request->review.object, "metadata", "deletionTimestamp"));
}

static void answer_pod(const struct admit *admit, enum admit_hook hook,
                       const struct admit_request *request, struct admit_answer *answer,
                       struct buf *out)
{
    auto_buf struct buf what = { .max = MAX_WHY };

    switch (scope_of(admit, request)) {
    case SCOPE_OUT:
        answer->verdict = allow(request, out);
        return;
    case SCOPE_NOT_KNOWN:
        buf_printf(&what, "the namespace \"" STR_FMT "\"",
                   STR_ARG(str_sub(request->review.ns, 0, 64)));
        answer->verdict = deny_unknown(request, buf_text(&what), out);
        answer->is_early = true;
        return;
    case SCOPE_IN:
        break;
    }
    if (hook == ADMIT_MUTATE) {
        auto_json_build struct json_build *build = json_build_new();
        struct admit_mutation mutation;

        admit_mutate(admit, request, build, &mutation);
        answer->is_early = mutation.is_early;
        if (mutation.not_known)
            answer->verdict = deny_unknown(request, mutation.not_known, out);
        else if (json_mut_len(mutation.ops) == 0)
            answer->verdict = allow(request, out);
        else
            answer->verdict = change(request, mutation.ops, out);
    } else {
        auto_buf struct buf why = { .max = MAX_WHY };

        if (admit_rules_allow(request, &why))
            answer->verdict = allow(request, out);
        else
            answer->verdict = deny(request, ADMIT_REFUSED, buf_str(&why), out);
    }
}

/* What pods inherit their creator from. Their updates are the policy's business. */
static bool is_new_workload(enum admit_hook hook, const struct admit_request *request)
{
    static const char *const kinds[] = { "jobs",    "statefulsets",     "replicasets",
                                         "jobsets", "leaderworkersets", "podgroups" };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_is(request->review.resource, kinds[i]))
            return hook == ADMIT_MUTATE && request->op == ADMIT_CREATE &&
                   request->review.subresource.len == 0;
    return false;
}

static void answer_workload(const struct admit *admit, const struct admit_request *request,
                            struct admit_answer *answer, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    enum scope scope = scope_of_namespace(admit, request);
    struct admit_mutation mutation;

    answer->is_early = scope == SCOPE_NOT_KNOWN;
    if (scope == SCOPE_NOT_KNOWN) {
        answer->verdict = deny_unknown(request, "its namespace", out);
        return;
    }
    admit_mutate_workload(request, build, &mutation);
    if (scope == SCOPE_OUT || json_mut_len(mutation.ops) == 0)
        answer->verdict = allow(request, out);
    else
        answer->verdict = change(request, mutation.ops, out);
}

struct admit_answer admit_review(const struct admit *admit, enum admit_hook hook, struct str body,
                                 struct buf *out)
{
    struct admit_answer answer = { .status = 200, .verdict = ADMIT_UNREADABLE };
    auto_json_doc struct json_doc *doc = NULL;
    struct admit_request request = { .config = admit->config };
    struct err err = { .class = 0 };

    if (json_parse(body, ADMIT_MAX_BODY, &doc, &err) < 0 ||
        admission_read(json_root(doc), &request.review, &err) < 0) {
        buf_printf(out, "%s\n", err.text);
        answer.status = err.class == ERR_TOO_BIG ? ADMISSION_TOO_LARGE : ADMISSION_BAD_REQUEST;
        return answer;
    }
    request.op = str_is(request.review.operation, "CREATE")   ? ADMIT_CREATE
                 : str_is(request.review.operation, "UPDATE") ? ADMIT_UPDATE
                                                              : 0;
    if (is_new_workload(hook, &request))
        answer_workload(admit, &request, &answer, out);
    else if (!is_our_business(admit, hook, &request))
        answer.verdict = allow(&request, out);
    else if (admit_pod_check(request.review.object, &err) < 0)
        answer.verdict = deny(&request, ADMIT_UNREADABLE, str_of(err.text), out);
    else
        answer_pod(admit, hook, &request, &answer, out);
    return answer;
}
