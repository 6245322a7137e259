/* why.c - what the bridge thinks of one pod, as JSON. */
#include "bridge/why.h"

#include "base/mem.h"
#include "bridge/bridge_private.h"
#include "bridge/place.h"
#include "bridge/submit/submit.h"
#include "bridge/world/names.h"
#include "slurm/submit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_ANSWER = 4 << 20,
    MAX_MEMORY = 64 << 20,
    MAX_NAME = 1024,
    READ_US = 2 * 1000000, /* who asks waits for it */
    PAUSE_US = 1000000,    /* between pods for which slurmctld is asked when they would start */
};

/* The job as Slurm showed it last, with the keys of a job in the exporter's view API. A unit's own
 * job may be shown to whoever may read its pods. */
static void write_job(const struct slurm_job *job, struct buf *out)
{
    bool waits = slurm_words_has(&job->state, SLURM_JOB_PENDING);

    buf_printf(out, ",\"slurm\":{\"id\":%" PRId64 ",\"state\":\"%s\",\"holder\":\"pod\"", job->id,
               waits                              ? "pending"
               : slurm_job_has_ended(&job->state) ? "ended"
                                                  : "running");
    json_add_text(out, "partition", job->partition);
    json_add_text(out, "user", job->user);
    json_add_text(out, "account", job->account);
    json_add_text(out, "qos", job->qos);
    json_add_time(out, "submitted", job->submit_time);
    if (job->node_count > 0)
        buf_printf(out, ",\"nodes\":%" PRId64 ",\"cpus\":%" PRId64, job->node_count, job->cpus);
    if (job->priority.set)
        buf_printf(out, ",\"priority\":%" PRId64, (int64_t)job->priority.number);
    if (job->time_limit.set)
        buf_printf(out, ",\"timeLimitSeconds\":%" PRId64, 60 * (int64_t)job->time_limit.number);
    if (waits) {
        json_add_text(out, "reason", job->reason[0] ? job->reason : "None");
        json_add_time(out, "expectedStart", slurm_job_expected_start(job));
        json_add_text(out, "expectedNodes", job->scheduled_nodes);
    } else {
        json_add_time(out, "started", job->start_time);
        json_add_text(out, "nodeList", job->nodes);
    }
    buf_add_char(out, '}');
}

/* The objects whose annotations make the job, and what each says; the last one wins. */
static void write_annotations(const struct unit *unit, struct buf *out)
{
    buf_add_text(out, ",\"annotations\":[");
    for (unsigned i = 0; i <= unit->owner.more_count; i++) {
        const struct kube_object *object = i == 0 ? unit->owner.object : unit->owner.more[i - 1];
        const char *between = "";

        buf_printf(out, "%s{\"kind\":\"%s\",\"name\":\"%s\",\"values\":{", i > 0 ? "," : "",
                   object->kind->resource->kind, object->name);
        for (unsigned k = 0; k < object->annotations.count; k++) {
            const struct kube_pair *pair = &object->annotations.at[k];

            if (!str_starts(pair->key, STR(BRIDGE_ANNOTATION_PREFIX)))
                continue;
            buf_add_text(out, between);
            json_escape(out, pair->key);
            buf_add_char(out, ':');
            json_escape(out, pair->value);
            between = ",";
        }
        buf_add_text(out, "}}");
    }
    buf_add_char(out, ']');
}

/* How Slurm is asked for the unit, or why it cannot be, and the nodes that its pods may use. */
static void write_translation(const struct bridge_world *world, const struct unit *unit,
                              struct arena *arena, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct err err = { .class = 0 };
    struct exclusion exclusion;
    struct job_desc desc;

    if (unit_describe(world, unit, DESCRIBE_BOTH, arena, &desc, &err) < 0) {
        json_add_text(out, "invalid", err.text);
        return;
    }
    buf_add_text(out, ",\"job\":");
    json_mut_write(job_desc_json(build, &desc), out);
    if (unit->stage != POD_WAITS)
        return;
    exclusion = exclusion_of(world, unit, desc.partition, arena);
    buf_printf(out, ",\"nodes\":{\"fit\":%u,\"total\":%u,\"needed\":%" PRId64, exclusion.fit,
               exclusion.total, job_desc_least_nodes(&desc));
    json_add_text(out, "why", exclusion.why);
    buf_add_char(out, '}');
}

/* Everybody who may label a pod can name any job: only one with the unit's key is shown. */
static bool is_job_of(const struct bridge_world *world, const struct slurm_job *job,
                      const struct unit *unit)
{
    auto_buf struct buf key = { .max = SLURM_MAX_KEY };
    unsigned attempt;

    return job && !slurm_job_has_ended(&job->state) && world_job_key(world, job, &key, &attempt) &&
           str_eq(buf_str(&key), unit->key);
}

static void gather_for(const struct bridge_world *world, const struct kube_pod *pod,
                       struct arena *arena, struct unit *ret_unit)
{
    auto_buf struct buf key = { .max = MAX_NAME };

    world_unit_key(world, pod, &key);
    unit_gather(world, str_of(arena_strdup(arena, buf_text(&key))), arena, ret_unit);
}

void why_write(const struct bridge_world *world, const struct kube_pod *pod,
               const struct slurm_job *read, const struct slurm_what_ifs *ifs, bool is_change,
               struct arena *arena, struct buf *out)
{
    enum unit_phase phase;
    struct unit unit;

    gather_for(world, pod, arena, &unit);
    phase = unit_phase(world, &unit, arena);
    if (!unit.job && is_job_of(world, read, &unit))
        unit.job = read;
    buf_add_text(out, "{\"unit\":");
    json_escape(out, unit.key);
    buf_printf(out, ",\"phase\":\"%s\",\"pods\":%u,\"needed\":%" PRId64 ",\"bound\":%u",
               unit_phase_name(phase), unit.member_count, unit.owner.needed, unit.in[POD_BOUND]);
    if (unit.job)
        write_job(unit.job, out);
    if (unit.owner.object)
        write_annotations(&unit, out);
    if (unit.pod && !unit.owner.object)
        json_add_text(out, "invalid",
                      unit.owner.wanting ? unit.owner.wanting : "its owner is not known yet");
    else if (unit.pod && phase != UNIT_OVER && phase != UNIT_FOREIGN)
        write_translation(world, &unit, arena, out);
    if (ifs)
        slurm_what_ifs_write(ifs, world->slurm_jobs, is_change, out);
    buf_add_char(out, '}');
}

/* ---- asking ---- */

struct why_read {
    struct list link;
    struct why_reads *reads;
    struct slurm_call *call;
    struct slurm_what_ifs ifs;
    bool is_change;
    char *pod;
    why_answer answer;
    void *context;
};

void why_reads_init(struct why_reads *reads, const struct bridge_world *world,
                    struct slurm_client *slurm)
{
    *reads = (struct why_reads){ .world = world, .slurm = slurm };
    list_init(&reads->list);
}

static void end_read(struct why_read *read)
{
    list_remove(&read->link);
    slurm_what_ifs_done(&read->ifs);
    mem_free(read->pod);
    mem_free(read);
}

void why_reads_stop(struct why_reads *reads)
{
    list_each (struct why_read, read, &reads->list, link) {
        slurm_call_cancel(read->call);
        end_read(read);
    }
}

static const struct kube_pod *find_pod(const struct bridge_world *world, struct str pod,
                                       struct arena *arena)
{
    const struct kube_object *object = NULL;
    struct str ns, name;

    if (str_cut(pod, '/', &ns, &name))
        object = kube_cache_get(world->pods, arena_strndup(arena, ns.at, ns.len),
                                arena_strndup(arena, name.at, name.len));
    return object ? kube_pod_of(object) : NULL;
}

static void tell(const struct bridge_world *world, struct str name, const struct slurm_job *read,
                 const struct slurm_what_ifs *ifs, bool is_change, why_answer answer, void *context)
{
    auto_arena struct arena arena;
    auto_buf struct buf out;
    const struct kube_pod *pod;

    arena_init(&arena, MAX_MEMORY);
    buf_init(&out, MAX_ANSWER);
    pod = find_pod(world, name, &arena);
    if (pod)
        why_write(world, pod, read, ifs, is_change, &arena, &out);
    if (!pod)
        answer(context, 404, STR("the bridge has no such pod\n"));
    else if (out.overflowed)
        answer(context, 500, STR("the answer is too big\n"));
    else
        answer(context, 200, buf_str(&out));
}

static void on_read(void *context, const struct slurm_answer *answer)
{
    struct why_read *read = context;
    struct slurm_list list = { .count = 0 };

    if (answer->error.class == SLURM_DONE)
        (void)slurm_list_decode(&slurm_job_kind, answer->body, &list, NULL);
    tell(read->reads->world, str_of(read->pod), list.count == 1 ? slurm_job_of(list.at[0]) : NULL,
         NULL, false, read->answer, read->context);
    slurm_list_done(&list);
    end_read(read);
}

/* The job that the pod names and the caches do not have; 0: none. */
static int64_t unread_job(const struct bridge_world *world, struct str name)
{
    auto_arena struct arena arena;
    const struct kube_pod *pod;
    struct unit unit;

    arena_init(&arena, MAX_MEMORY);
    pod = find_pod(world, name, &arena);
    if (!pod)
        return 0;
    gather_for(world, pod, &arena, &unit);
    return unit.stage == POD_WAITS && !unit.job ? unit.jobs.recorded_id : 0;
}

/* ---- when would it start ---- */

static void on_asked(void *context)
{
    struct why_read *read = context;

    tell(read->reads->world, str_of(read->pod), NULL, &read->ifs, read->is_change, read->answer,
         read->context);
    end_read(read);
}

static bool find_questions(struct why_reads *reads, struct str name,
                           const struct slurm_change *change, struct slurm_what_ifs *ret_ifs)
{
    int64_t now_us = loop_now_us(slurm_client_loop(reads->slurm));
    auto_arena struct arena arena;
    const struct kube_pod *pod;
    struct unit unit;

    arena_init(&arena, MAX_MEMORY);
    if (!slurm_agent_is_up(reads->slurm) || now_us < reads->next_us)
        return false;
    pod = find_pod(reads->world, name, &arena);
    if (!pod)
        return false;
    gather_for(reads->world, pod, &arena, &unit);
    if (!why_start_ask(reads->world, &unit, change, &arena, ret_ifs))
        return false;
    reads->next_us = now_us + PAUSE_US;
    return true;
}

static struct why_read *read_new(struct why_reads *reads, struct str pod, why_answer answer,
                                 void *context)
{
    struct why_read *read = mem_alloc(sizeof(*read));

    *read = (struct why_read){
        .reads = reads, .pod = mem_strndup(pod.at, pod.len), .answer = answer, .context = context
    };
    list_push_back(&reads->list, &read->link);
    return read;
}

void why_ask(struct why_reads *reads, struct str pod, const struct slurm_change *change,
             why_answer answer, void *context)
{
    int64_t id = unread_job(reads->world, pod);
    struct slurm_what_ifs ifs;
    struct why_read *read;
    char key[32];

    if (id == 0 && find_questions(reads, pod, change, &ifs)) {
        read = read_new(reads, pod, answer, context);
        read->ifs = ifs;
        read->is_change = change != NULL;
        slurm_what_ifs_ask(&read->ifs, reads->slurm, on_asked, read);
        return;
    }
    if (id == 0) {
        tell(reads->world, pod, NULL, NULL, false, answer, context);
        return;
    }
    (void)snprintf(key, sizeof(key), "%" PRId64, id);
    read = read_new(reads, pod, answer, context);
    read->call = slurm_send(reads->slurm,
                            &(struct slurm_request){ .verb = SLURM_GET,
                                                     .endpoint = SLURM_JOB,
                                                     .name = str_of(key),
                                                     .timeout_us = READ_US,
                                                     .once = true },
                            on_read, read);
}

/* ---- serving ---- */

/* The table that decides, for people. */
static void serve_rules(struct http_responder *responder)
{
    auto_buf struct buf out;

    buf_init(&out, MAX_ANSWER);
    place_reference(&out);
    http_respond_text(responder, 200, buf_text(&out));
}

static void respond(void *context, int status, struct str text)
{
    if (status == 200)
        http_respond_json(context, 200, text);
    else
        http_respond_text(context, status, text.at);
}

/* False: there is no change in the query. */
static bool read_change(const struct http_view *view, struct slurm_change *ret_change)
{
    auto_buf struct buf text;

    buf_init(&text, sizeof(ret_change->partition));
    *ret_change = (struct slurm_change){ .time_limit = 0 };
    if (http_view_query(view, "timelimit", &text, NULL) == 0)
        (void)str_to_i64(buf_str(&text), 1, INT32_MAX, &ret_change->time_limit, NULL);
    buf_clear(&text);
    if (http_view_query(view, "cpus", &text, NULL) == 0)
        (void)str_to_i64(buf_str(&text), 1, INT32_MAX, &ret_change->cpus, NULL);
    buf_clear(&text);
    if (http_view_query(view, "partition", &text, NULL) == 0)
        (void)snprintf(ret_change->partition, sizeof(ret_change->partition), "%s", buf_text(&text));
    return ret_change->time_limit > 0 || ret_change->cpus > 0 || ret_change->partition[0];
}

void why_serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct bridge *bridge = context;
    auto_buf struct buf wanted;
    struct slurm_change change;

    buf_init(&wanted, MAX_NAME);
    if (http_view_query(view, "rules", &wanted, NULL) == 0) {
        serve_rules(responder);
        return;
    }
    buf_clear(&wanted);
    if (!bridge->poller)
        http_respond_text(responder, 503, "Kubernetes has not been read yet\n");
    else if (http_view_query(view, "pod", &wanted, NULL) < 0 ||
             !memchr(buf_text(&wanted), '/', wanted.len))
        http_respond_text(responder, 400, "wants ?pod=NAMESPACE/NAME, or ?rules\n");
    else
        why_ask(&bridge->why_reads, buf_str(&wanted), read_change(view, &change) ? &change : NULL,
                respond, responder);
}
