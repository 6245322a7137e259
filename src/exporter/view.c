/* view.c - writes the documents of view.slinky.slurm.net. */
#include "exporter/view.h"

#include "codec/json.h"
#include "exporter/demand.h"

#include <ctype.h>
#include <inttypes.h>

#define VIEW_VERSION VIEW_GROUP "/v1alpha1"

enum { MAX_NAME = 253 };

static const struct {
    const char *path, *resource;
} rows[] = {
    [VIEW_IS_GROUP] = { "", NULL },
    [VIEW_IS_LIST] = { "/v1alpha1", NULL },
    [VIEW_IS_JOBS] = { "/v1alpha1/jobs", "jobs" },
    [VIEW_IS_NODES] = { "/v1alpha1/nodes", "nodes" },
    [VIEW_IS_CHECKS] = { "/v1alpha1/checks", "checks" },
};

/* Of namespaces and pods. Nothing else reaches the bridge. */
static bool is_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!islower((unsigned char)text.at[i]) && !isdigit((unsigned char)text.at[i]) &&
            text.at[i] != '-' && text.at[i] != '.')
            return false;
    return text.len > 0 && text.len <= MAX_NAME;
}

/* "/v1alpha1/namespaces/NS/workloads/POD/why" */
static bool parse_why(struct str rest, struct view_question *ret_question)
{
    static const char *const words[] = { "",          "v1alpha1", "namespaces", NULL,
                                         "workloads", NULL,       "why" };
    enum { PARTS = sizeof(words) / sizeof(words[0]) };
    struct str parts[PARTS + 1];
    size_t count = 0;

    while (count <= PARTS && rest.len > 0 && str_next(&rest, '/', &parts[count]))
        count++;
    if (count != PARTS)
        return false;
    for (size_t i = 0; i < PARTS; i++)
        if (words[i] ? !str_is(parts[i], words[i]) : !is_name(parts[i]))
            return false;
    *ret_question = (struct view_question){ VIEW_IS_WHY, .ns = parts[3], .pod = parts[5] };
    return true;
}

int view_parse(struct str path, struct view_question *ret_question, struct err *err)
{
    struct str rest = str_sub(path, strlen(VIEW_PATH), path.len);

    if (str_ends(rest, STR("/")))
        rest = str_sub(rest, 0, rest.len - 1);
    for (size_t i = 0; str_starts(path, STR(VIEW_PATH)) && i < sizeof(rows) / sizeof(rows[0]);
         i++) {
        if (str_is(rest, rows[i].path)) {
            *ret_question = (struct view_question){ .kind = (enum view_kind)i };
            return 0;
        }
    }
    if (str_starts(path, STR(VIEW_PATH)) && parse_why(rest, ret_question))
        return 0;
    return err_set(err, ERR_NOT_FOUND, "the server could not find the requested resource");
}

const char *view_resource(enum view_kind kind)
{
    return rows[kind].resource;
}

/* ---- members; each writes its own comma ---- */

static void put_gres(struct buf *out, const char *key, const struct tres *tres, double times)
{
    if (tres->gres_count == 0)
        return;
    buf_printf(out, ",\"%s\":{", key);
    for (unsigned i = 0; i < tres->gres_count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        json_escape(out, tres->gres[i].name);
        buf_printf(out, ":%.0f", times * (double)tres->gres[i].count);
    }
    buf_add_char(out, '}');
}

/* ---- jobs ---- */

/* The first pod that a job of the bridge is for, as "namespace/name". */
static void put_pod(struct buf *out, const struct slurm_job *job)
{
    struct json_doc *doc;
    struct str pod;

    if (tally_holder_of(job) != TALLY_POD ||
        json_parse(str_of(job->admin_comment), 1 << 20, &doc, NULL) < 0)
        return;
    pod = json_str(json_item(json_get(json_root(doc), "pods"), 0));
    if (pod.len > 0) {
        buf_add_text(out, ",\"pod\":");
        json_escape(out, pod);
    }
    json_doc_free(doc);
}

static void write_pending(struct buf *out, struct tally *tally, const struct slurm_job *job)
{
    struct tally_request request;
    struct slurm_reason reason = slurm_reason_of(job->reason, job->hold);

    tally_request_of(tally, job, &request);
    buf_printf(out,
               ",\"tasks\":%.0f,\"nodes\":%" PRId64 ",\"cpus\":%" PRId64
               ",\"memoryBytes\":%.0f,\"class\":\"%s\"",
               request.tasks, request.each.nodes, request.each.cpus, request.each.memory_bytes,
               slurm_reason_class_name(reason.class));
    buf_printf(out, ",\"nodesWanted\":%.6g", demand_of_job(tally, job, &request));
    put_gres(out, "gres", &request.each, 1);
    json_add_text(out, "actor", reason.actor);
    json_add_text(out, "reason", job->reason[0] ? job->reason : "None");
    json_add_time(out, "expectedStart", slurm_job_expected_start(job));
    json_add_text(out, "expectedNodes", job->scheduled_nodes);
}

static void write_held(struct buf *out, const struct slurm_job *job)
{
    struct tres held;

    tally_allocation_of(job, &held);
    buf_printf(out, ",\"tasks\":1,\"nodes\":%" PRId64 ",\"cpus\":%" PRId64 ",\"memoryBytes\":%.0f",
               held.nodes, held.cpus, held.memory_bytes);
    put_gres(out, "gres", &held, 1);
    json_add_time(out, "started", job->start_time);
    json_add_text(out, "nodeList", job->nodes);
}

static void write_job(struct buf *out, struct tally *tally, const struct slurm_job *job,
                      enum tally_job_state state)
{
    buf_printf(out, "{\"id\":%" PRId64 ",\"state\":\"%s\",\"holder\":\"%s\"", job->id,
               tally_job_state_names[state], tally_holder_names[tally_holder_of(job)]);
    json_add_text(out, "name", job->name);
    put_pod(out, job);
    if (tally->view->shows_users)
        json_add_text(out, "user", job->user);
    json_add_text(out, "account", job->account);
    json_add_text(out, "qos", job->qos);
    json_add_text(out, "partition", job->partition);
    json_add_text(out, "reservation", job->reservation);
    json_add_time(out, "submitted", job->submit_time);
    json_add_time(out, "eligible", job->eligible_time);
    if (job->priority.set)
        buf_printf(out, ",\"priority\":%" PRId64, job->priority.number);
    if (job->time_limit.set)
        buf_printf(out, ",\"timeLimitSeconds\":%.0f", 60.0 * (double)job->time_limit.number);
    if (state == TALLY_JOB_PENDING)
        write_pending(out, tally, job);
    else
        write_held(out, job);
    buf_add_char(out, '}');
}

static void write_jobs(struct tally *tally, struct buf *out)
{
    struct slurm_cache_walk walk = slurm_cache_walk(tally->view->jobs);
    const struct slurm_object *object;
    const char *between = "";
    enum tally_job_state state;

    while ((object = slurm_cache_next(&walk))) {
        if (!tally_job_state_of(slurm_job_of(object), &state))
            continue;
        buf_add_text(out, between);
        write_job(out, tally, slurm_job_of(object), state);
        between = ",";
    }
}

/* ---- nodes ---- */

static void put_shares(struct buf *out, const char *key, const double *shares)
{
    const char *between = "";

    buf_printf(out, ",\"%s\":{", key);
    for (unsigned i = 0; i < TALLY_HOLDERS; i++) {
        buf_printf(out, "%s\"%s\":%.0f", between, tally_holder_names[i], shares[i]);
        between = ",";
    }
    buf_add_char(out, '}');
}

static void write_node(struct buf *out, const struct tally_node *node)
{
    buf_add_text(out, "{\"name\":");
    json_escape(out, str_of(node->node->name));
    buf_printf(out, ",\"state\":\"%s\"", tally_node_state_names[node->state]);
    json_add_text(out, "partitions", node->node->partitions);
    put_shares(out, "cpus", node->cpus);
    put_shares(out, "memoryBytes", node->memory_bytes);
    put_gres(out, "gres", &node->has, 1);
    put_gres(out, "gresUsed", &node->used, 1);
    json_add_text(out, "reason", node->node->reason);
    json_add_time(out, "reasonSince", node->node->reason[0] ? node->node->reason_time : 0);
    buf_add_char(out, '}');
}

static void write_nodes(const struct tally *tally, struct buf *out)
{
    for (size_t i = 0; i < tally->node_count; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        write_node(out, &tally->nodes[i]);
    }
}

/* ---- documents ---- */

static void write_discovery(enum view_kind kind, struct buf *out)
{
    if (kind == VIEW_IS_GROUP)
        buf_add_text(
            out,
            "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"" VIEW_GROUP
            "\",\"versions\":[{\"groupVersion\":\"" VIEW_VERSION
            "\",\"version\":\"v1alpha1\"}],\"preferredVersion\":{\"groupVersion\":\"" VIEW_VERSION
            "\",\"version\":\"v1alpha1\"}}");
    else
        buf_add_text(
            out,
            "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"" VIEW_VERSION
            "\",\"resources\":["
            "{\"name\":\"jobs\",\"singularName\":\"job\",\"namespaced\":false,"
            "\"kind\":\"SlurmJob\",\"verbs\":[\"list\"]},"
            "{\"name\":\"nodes\",\"singularName\":\"node\",\"namespaced\":false,"
            "\"kind\":\"SlurmNode\",\"verbs\":[\"list\"]},"
            "{\"name\":\"checks\",\"singularName\":\"check\",\"namespaced\":false,"
            "\"kind\":\"Checks\",\"verbs\":[\"list\"]},"
            "{\"name\":\"workloads/why\",\"singularName\":\"\",\"namespaced\":true,"
            "\"kind\":\"WorkloadWhy\",\"verbs\":[\"get\"]}]}");
}

int view_write(struct tally *tally, enum view_kind kind, struct buf *out, struct err *err)
{
    bool is_jobs = kind == VIEW_IS_JOBS;
    const struct tally_health *health;

    if (!rows[kind].resource) {
        write_discovery(kind, out);
        return 0;
    }
    health = tally->view->health;
    if (is_jobs ? !tally->view->jobs : !tally->view->nodes)
        return err_set(err, ERR_UNAVAILABLE, "Slurm is not read now, or hides %s from the exporter",
                       rows[kind].resource);
    buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"" VIEW_VERSION "\",\"metadata\":{}",
               is_jobs ? "SlurmJobList" : "SlurmNodeList");
    if (health)
        buf_printf(out, ",\"ageSeconds\":%.3f",
                   health->kinds[is_jobs ? KIND_JOBS : KIND_NODES].age_s);
    buf_add_text(out, ",\"items\":[");
    if (is_jobs)
        write_jobs(tally, out);
    else
        write_nodes(tally, out);
    buf_add_text(out, "]}");
    return buf_check(out, "the answer", err);
}

void view_write_checks(struct str bridge, struct str metrics, struct buf *out)
{
    buf_add_text(out, "{\"kind\":\"Checks\",\"apiVersion\":\"" VIEW_VERSION "\",\"metadata\":{}");
    if (bridge.len > 0)
        buf_printf(out, ",\"bridge\":" STR_FMT, STR_ARG(bridge));
    buf_add_text(out, ",\"metrics\":");
    json_escape(out, metrics);
    buf_add_char(out, '}');
}

void view_write_why(const struct view_question *question, struct str decision, struct buf *out)
{
    buf_printf(out,
               "{\"kind\":\"WorkloadWhy\",\"apiVersion\":\"" VIEW_VERSION
               "\",\"metadata\":{\"name\":\"" STR_FMT "\",\"namespace\":\"" STR_FMT
               "\"},\"decision\":" STR_FMT "}",
               STR_ARG(question->pod), STR_ARG(question->ns), STR_ARG(decision));
}
