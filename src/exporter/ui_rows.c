/* ui_rows.c - writes what the page shows of jobs and sums. */
#include "exporter/ui_rows.h"

#include "codec/json.h"
#include "exporter/ui_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The pods of a job stand in its comment; others are known by their name. */
void ui_write_name(const struct slurm_job *job, struct buf *out)
{
    auto_json_doc struct json_doc *comment = NULL;
    const struct json *pods = NULL;

    if (tally_holder_of(job) == TALLY_POD &&
        json_parse(str_of(job->admin_comment), SLURM_MAX_OBJECT_TEXT, &comment, NULL) == 0)
        pods = json_get(json_root(comment), "pods");
    json_escape(out, json_len(pods) == 1 ? json_str(json_item(pods, 0)) : str_of(job->name));
}

const char *ui_user(const struct tally *tally, const struct slurm_job *job)
{
    return tally->view->shows_users ? job->user : "";
}

/* Generic resources whose name is or begins with "gpu". */
int64_t ui_gpus(const struct tres *tres)
{
    int64_t count = 0;

    for (unsigned i = 0; i < tres->gres_count; i++)
        if (str_is(tres->gres[i].name, "gpu") || str_starts(tres->gres[i].name, STR("gpu:")))
            count += tres->gres[i].count;
    return count;
}

/* ---- the queue ---- */

static int by_priority(const void *a, const void *b)
{
    const struct slurm_job *left = *(const struct slurm_job *const *)a;
    const struct slurm_job *right = *(const struct slurm_job *const *)b;

    if (left->priority.number != right->priority.number)
        return left->priority.number > right->priority.number ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

static void write_waiting(const struct tally *tally, const struct slurm_job *job, struct buf *out)
{
    struct slurm_reason reason = slurm_reason_of(job->reason, job->hold);
    struct tally_request request;

    tally_request_of(tally, job, &request);
    buf_printf(out, "[%" PRId64 ",\"%s\",", job->id, tally_holder_of(job) == TALLY_POD ? "p" : "j");
    ui_write_name(job, out);
    buf_add_char(out, ',');
    json_escape(out, str_of(ui_user(tally, job)));
    buf_add_char(out, ',');
    json_escape(out, str_of(job->account));
    buf_add_char(out, ',');
    json_escape(out, str_of(job->partition));
    buf_printf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",\"%s\",", request.each.nodes,
               request.each.cpus, ui_gpus(&request.each), job->submit_time,
               slurm_reason_class_name(reason.class));
    json_escape(out, str_of(job->reason));
    buf_printf(out, ",%" PRId64 ",", slurm_job_expected_start(job));
    json_escape(out, str_of(reason.text));
    buf_add_char(out, ']');
}

/* The jobs that wait, those of the highest priority first. */
void ui_write_queue(const struct tally *tally, struct buf *out)
{
    struct slurm_cache_walk walk = slurm_cache_walk(tally->view->jobs);
    const struct slurm_job **waiting =
        arena_alloc(tally->arena,
                    (slurm_cache_count(tally->view->jobs) + 1) * sizeof(const struct slurm_job *));
    const struct slurm_object *object;
    enum tally_job_state state;
    size_t count = 0;

    while ((object = slurm_cache_next(&walk)))
        if (tally_job_state_of(slurm_job_of(object), &state) && state == TALLY_JOB_PENDING)
            waiting[count++] = slurm_job_of(object);
    qsort(waiting, count, sizeof(const struct slurm_job *), by_priority);
    buf_add_char(out, '[');
    for (size_t i = 0; i < count && i < UI_VIEW_QUEUE; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        write_waiting(tally, waiting[i], out);
    }
    buf_add_char(out, ']');
}

/* ---- sums ---- */

static void write_holders(struct buf *out, const char *name, const double sums[TALLY_HOLDERS])
{
    buf_printf(out, "\"%s\":{", name);
    for (unsigned i = 0; i < TALLY_HOLDERS; i++)
        buf_printf(out, "%s\"%s\":%.0f", i > 0 ? "," : "", tally_holder_names[i], sums[i]);
    buf_add_text(out, "},");
}

void ui_write_totals(const struct tally *tally, struct buf *out)
{
    const struct tally_group *cluster = &tally->cluster;
    double gpus[TALLY_HOLDERS] = { 0 };

    for (unsigned i = 0; i < tally->gres_count; i++)
        if (str_is(str_of(tally->gres_names[i]), "gpu") ||
            str_starts(str_of(tally->gres_names[i]), STR("gpu:")))
            for (unsigned holder = 0; holder < TALLY_HOLDERS; holder++)
                gpus[holder] += cluster->gres[i][holder];
    buf_add_char(out, '{');
    write_holders(out, "cores", cluster->cpus);
    write_holders(out, "gpus", gpus);
    buf_printf(out, "\"nodes\":%zu,\"running\":%.0f,\"pending\":{", tally->node_count,
               cluster->jobs[TALLY_JOB_RUNNING]);
    for (unsigned i = 0; i < SLURM_REASON_CLASSES; i++) {
        buf_printf(out, "%s\"%s\":%.0f", i > 0 ? "," : "",
                   slurm_reason_class_name((enum slurm_reason_class)i), cluster->pending[i].jobs);
    }
    buf_printf(out, "},\"wanted\":%.0f}",
               ceil(cluster->size.whole_nodes + cluster->size.shared_nodes - 1e-9));
}

void ui_write_partitions(const struct tally *tally, struct buf *out)
{
    bool is_first = true;

    buf_add_char(out, '[');
    map_each (item, &tally->partitions) {
        const struct tally_group *group = item->value;
        double nodes = 0, cores = 0, waiting = 0;

        for (unsigned i = 0; i < TALLY_NODE_STATES; i++)
            nodes += group->nodes[i];
        for (unsigned i = 0; i < TALLY_HOLDERS; i++)
            cores += group->cpus[i];
        for (unsigned i = 0; i < SLURM_REASON_CLASSES; i++)
            waiting += group->pending[i].jobs;
        buf_add_text(out, is_first ? "[" : ",[");
        json_escape(out, str_of(group->name));
        buf_printf(out, ",%.0f,%.0f,%.0f,%.0f]", nodes, cores,
                   group->cpus[TALLY_POD] + group->cpus[TALLY_JOB], waiting);
        is_first = false;
    }
    buf_add_char(out, ']');
}

void ui_write_ages(const struct tally *tally, struct buf *out)
{
    const struct tally_health *health = tally->view->health;

    buf_add_char(out, '{');
    if (health && health->kinds[KIND_JOBS].age_s >= 0)
        buf_printf(out, "\"jobs\":%.1f%s", health->kinds[KIND_JOBS].age_s,
                   health->kinds[KIND_NODES].age_s >= 0 ? "," : "");
    if (health && health->kinds[KIND_NODES].age_s >= 0)
        buf_printf(out, "\"nodes\":%.1f", health->kinds[KIND_NODES].age_s);
    buf_add_char(out, '}');
}

void ui_write_about(const struct tally *tally, struct buf *out)
{
    const struct tally_health *health = tally->view->health;
    bool hides_jobs = health && health->knows_hidden && health->hides[HIDES_JOBS];

    buf_add_text(out, "\"cluster\":");
    json_escape(out, str_of(health ? health->cluster : ""));
    buf_printf(out, ",\"names\":%s,\"hidden\":", tally->view->shows_users ? "true" : "false");
    json_escape(out, hides_jobs ? STR("Slurm's PrivateData hides jobs of others: who holds what is "
                                      "not shown.")
                                : STR(""));
}
