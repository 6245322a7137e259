/* events.c - the Events of creates, patches and deletes, as a table. */
#include "operator/events.h"

/* Of pods and claims the reasons are those of controllers of Kubernetes. */
static const struct event_row {
    enum kube_verb verb;
    bool is_pod;
    const char *action, *succeeded, *failed; /* NULL: not told */
} rows[] = {
    { KUBE_CREATE, false, "Create", "CreateSucceeded", "CreateFailed" },
    { KUBE_CREATE, true, "Create", "SuccessfulCreate", "FailedCreate" },
    { KUBE_MERGE_PATCH, false, "Patch", NULL, "PatchFailed" },
    { KUBE_MERGE_PATCH, true, "Update", NULL, "FailedUpdate" },
    { KUBE_DELETE, false, "Delete", "DeleteSucceeded", "DeleteFailed" },
    { KUBE_DELETE, true, "Delete", "SuccessfulDelete", "FailedDelete" },
};

/* Answers that only mean "look again" are no news. */
static bool is_failure(const struct kube_answer *answer)
{
    return answer->outcome == KUBE_DENIED || answer->outcome == KUBE_INVALID;
}

bool operator_event_of(const struct action *action, const struct kube_answer *answer,
                       struct operator_event *ret_event)
{
    const struct kube_request *request = &action->request;
    bool is_done = answer->outcome == KUBE_DONE, is_pod;

    if (action->type != &action_kube || request->subresource || (!is_done && !is_failure(answer)))
        return false;
    is_pod = strcmp(request->resource->kind, "Pod") == 0 ||
             strcmp(request->resource->kind, "PersistentVolumeClaim") == 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].verb == request->verb && rows[i].is_pod == is_pod)
            *ret_event = (struct operator_event){
                .type = is_done ? KUBE_EVENT_NORMAL : KUBE_EVENT_WARNING,
                .reason = is_done ? rows[i].succeeded : rows[i].failed,
                .action = rows[i].action,
            };
    return ret_event->reason != NULL;
}
