/* admit_self.c - who we are, by a SelfSubjectReview. */
#include "bridge/admit_self.h"

#include "base/log.h"
#include "base/mem.h"

enum { SECOND_US = 1000000, RETRY_US = 5 * SECOND_US, ANSWER_US = 10 * SECOND_US };

static const struct kube_resource self_subject_reviews = { "authentication.k8s.io", "v1",
                                                           "selfsubjectreviews",
                                                           "SelfSubjectReview", false };

struct admit_self {
    struct kube_client *client;
    struct admit *admit;
    struct kube_call *call;
    struct loop_timer retry;
    bool was_told; /* that it cannot be known */
};

static void ask(void *context);

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct admit_self *self = context;
    struct str user = json_str(json_at(answer->object, "status", "userInfo", "username"));

    self->call = NULL;
    if (answer->outcome == KUBE_DONE && user.len > 0) {
        log_info("updates of pods by this user are never refused", LOG_STR("user", user));
        admit_trust(self->admit, user);
        return;
    }
    if (!self->was_told)
        log_warn("cannot ask who we are: an update of a running pod by the bridge may be refused",
                 LOG_TEXT("outcome", kube_outcome_name(answer->outcome)),
                 LOG_TEXT("error", answer->message));
    self->was_told = true;
    loop_timer_start(kube_client_loop(self->client), &self->retry, RETRY_US, ask, self);
}

static void ask(void *context)
{
    struct admit_self *self = context;
    const struct kube_request request = {
        .verb = KUBE_CREATE,
        .resource = &self_subject_reviews,
        .body = STR("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}"),
        .timeout_us = ANSWER_US,
    };

    self->call = kube_send(self->client, &request, on_answer, self);
}

struct admit_self *admit_self_new(struct kube_client *client, struct admit *admit)
{
    struct admit_self *self = mem_alloc(sizeof(*self));

    self->client = client;
    self->admit = admit;
    ask(self);
    return self;
}

void admit_self_free(struct admit_self *self)
{
    if (!self)
        return;
    loop_timer_stop(&self->retry);
    if (self->call)
        kube_call_cancel(self->call);
    mem_free(self);
}
