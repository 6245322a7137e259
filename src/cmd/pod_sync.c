/* pod_sync.c - asks kubelet for the Secrets of our pod, by a change of the pod. */
#include "cmd/pod_sync.h"

#include "base/log.h"
#include "base/mem.h"
#include "codec/timestamp.h"
#include "kube/kinds.h"

#include <stdio.h>

enum {
    SECOND_US = 1000000,
    LOOK_US = SECOND_US,
    FIRST_PAUSE_US = 4 * SECOND_US, /* between two writes; doubled each time */
    MAX_PAUSE_US = 300 * SECOND_US,
    CALM_US = 60 * SECOND_US, /* without a refusal: the next one is another story */
};

struct pod_sync {
    struct kube_client *client;
    const struct slurm_token *token;
    char *ns, *pod;
    struct kube_call *call;
    struct loop_timer timer;
    uint64_t seen; /* refusals */
    int64_t refused_us, next_us, pause_us;
};

static void on_written(void *context, const struct kube_answer *answer)
{
    struct pod_sync *sync = context;

    sync->call = NULL;
    if (answer->outcome != KUBE_DONE)
        log_warn("cannot ask kubelet for a new token: our pod cannot be changed",
                 LOG_TEXT("pod", sync->pod), LOG_TEXT("error", answer->message));
}

static void write_annotation(struct pod_sync *sync)
{
    const struct clock *clock = loop_clock(kube_client_loop(sync->client));
    auto_buf struct buf body = { .max = 256 };

    buf_add_text(&body, "{\"metadata\":{\"annotations\":{\"" POD_SYNC_ANNOTATION "\":\"");
    (void)timestamp_print(clock_wall_us(clock), &body, NULL);
    buf_add_text(&body, "\"}}}");
    log_info("Slurm refuses the token: kubelet is asked for a new one", LOG_TEXT("pod", sync->pod));
    sync->call = kube_send(sync->client,
                           &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                   .resource = &kube_pods,
                                                   .ns = sync->ns,
                                                   .name = sync->pod,
                                                   .body = buf_str(&body) },
                           on_written, sync);
}

static void look(void *context)
{
    struct pod_sync *sync = context;
    struct loop *loop = kube_client_loop(sync->client);
    uint64_t refusals = slurm_token_outdated(sync->token);
    int64_t now_us = loop_now_us(loop);

    if (now_us - sync->refused_us >= CALM_US)
        sync->pause_us = FIRST_PAUSE_US;
    if (refusals != sync->seen)
        sync->refused_us = now_us;
    if (refusals != sync->seen && now_us >= sync->next_us && !sync->call) {
        write_annotation(sync);
        sync->next_us = now_us + sync->pause_us;
        sync->pause_us = 2 * sync->pause_us < MAX_PAUSE_US ? 2 * sync->pause_us : MAX_PAUSE_US;
    }
    sync->seen = refusals;
    loop_timer_start(loop, &sync->timer, LOOK_US, look, sync);
}

struct pod_sync *pod_sync_new(struct kube_client *client, const struct slurm_token *token,
                              const char *ns, const char *pod)
{
    struct pod_sync *sync = mem_alloc(sizeof(*sync));

    sync->client = client;
    sync->token = token;
    sync->ns = mem_strdup(ns);
    sync->pod = mem_strdup(pod);
    sync->refused_us = -(int64_t)CALM_US;
    sync->pause_us = FIRST_PAUSE_US;
    loop_timer_start(kube_client_loop(client), &sync->timer, LOOK_US, look, sync);
    return sync;
}

void pod_sync_free(struct pod_sync *sync)
{
    if (!sync)
        return;
    loop_timer_stop(&sync->timer);
    kube_call_cancel(sync->call);
    mem_free(sync->ns);
    mem_free(sync->pod);
    mem_free(sync);
}
