/* calls.c - fills in the request of each named call. */
#include "slurm/calls.h"

#include "base/mem.h"
#include "codec/hostlist.h"
#include "slurm/client_private.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ID_TEXT = 24,
    MAX_BODY = 1 << 20,
    CANCEL_TOKEN_S = 12, /* MessageTimeout as it mostly is, and 2 s */
};

/* What nearly all calls are. */
static struct slurm_call *send_simple(struct slurm_client *client, enum slurm_verb verb,
                                      enum slurm_endpoint endpoint, struct str name,
                                      struct str body, slurm_done done, void *context)
{
    struct slurm_request request = {
        .verb = verb, .endpoint = endpoint, .name = name, .body = body
    };

    return slurm_send(client, &request, done, context);
}

static struct slurm_call *read_all(struct slurm_client *client, enum slurm_endpoint endpoint,
                                   slurm_done done, void *context)
{
    return send_simple(client, SLURM_GET, endpoint, STR(""), STR(""), done, context);
}

static struct str id_text(int64_t id, char text[ID_TEXT])
{
    if (id <= 0)
        return STR(""); /* is refused as missing */
    snprintf(text, ID_TEXT, "%" PRId64, id);
    return str_of(text);
}

static struct slurm_call *read_list(struct slurm_client *client, enum slurm_endpoint endpoint,
                                    int64_t update_time, slurm_done done, void *context)
{
    char text[ID_TEXT];
    struct slurm_param query[2];
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = endpoint, .query = query };

    if (endpoint == SLURM_JOBS)
        query[request.query_count++] = (struct slurm_param){ "flags", STR("LOCAL") };
    if (update_time > 0)
        query[request.query_count++] =
            (struct slurm_param){ "update_time", id_text(update_time, text) };
    return slurm_send(client, &request, done, context);
}

/* ---- reads ---- */

struct slurm_call *slurm_ping_all(struct slurm_client *client, slurm_done done, void *context)
{
    return read_all(client, SLURM_PING, done, context);
}

struct slurm_call *slurm_conf_get(struct slurm_client *client, slurm_done done, void *context)
{
    return read_all(client, SLURM_CONF, done, context);
}

struct slurm_call *slurm_jobs_list(struct slurm_client *client, int64_t update_time,
                                   slurm_done done, void *context)
{
    return read_list(client, SLURM_JOBS, update_time, done, context);
}

static int check_ids(const int64_t *ids, size_t count, struct err *err)
{
    if (count > SLURM_MAX_IDS)
        return err_set(err, ERR_INVALID, "%zu job ids; %d can be", count, SLURM_MAX_IDS);
    for (size_t i = 0; i < count; i++)
        if (ids[i] <= 0)
            return err_set(err, ERR_INVALID, "%" PRId64 " is not a job id", ids[i]);
    return 0;
}

struct slurm_call *slurm_jobs_state(struct slurm_client *client, const int64_t *ids, size_t count,
                                    slurm_done done, void *context)
{
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = SLURM_JOBS_STATE };
    struct slurm_param *query;
    struct slurm_call *call;
    struct err why = { 0 };
    char(*texts)[ID_TEXT];

    if (check_ids(ids, count, &why) < 0)
        return slurm_send_refused(client, SLURM_GET, SLURM_JOBS_STATE, &why, done, context);
    query = mem_alloc_array(count + 1, sizeof(*query));
    texts = mem_alloc_array(count + 1, sizeof(*texts));
    for (size_t i = 0; i < count; i++) /* a comma list is documented, and fails */
        query[i] = (struct slurm_param){ "job_id", id_text(ids[i], texts[i]) };
    request.query = query;
    request.query_count = count;
    call = slurm_send(client, &request, done, context);
    mem_free(query);
    mem_free(texts);
    return call;
}

struct slurm_call *slurm_job_get(struct slurm_client *client, int64_t id, slurm_done done,
                                 void *context)
{
    struct slurm_param flags = { "flags", STR("LOCAL") };
    char text[ID_TEXT];
    struct slurm_request request = { .verb = SLURM_GET,
                                     .endpoint = SLURM_JOB,
                                     .name = id_text(id, text),
                                     .query = &flags,
                                     .query_count = 1 };

    return slurm_send(client, &request, done, context);
}

struct slurm_call *slurm_resources_get(struct slurm_client *client, int64_t job_id, slurm_done done,
                                       void *context)
{
    char text[ID_TEXT];

    return send_simple(client, SLURM_GET, SLURM_RESOURCES, id_text(job_id, text), STR(""), done,
                       context);
}

struct slurm_call *slurm_nodes_list(struct slurm_client *client, int64_t update_time,
                                    slurm_done done, void *context)
{
    return read_list(client, SLURM_NODES, update_time, done, context);
}

struct slurm_call *slurm_node_get(struct slurm_client *client, const char *name, slurm_done done,
                                  void *context)
{
    return send_simple(client, SLURM_GET, SLURM_NODE, str_of(name), STR(""), done, context);
}

struct slurm_call *slurm_partitions_list(struct slurm_client *client, int64_t update_time,
                                         slurm_done done, void *context)
{
    return read_list(client, SLURM_PARTITIONS, update_time, done, context);
}

struct slurm_call *slurm_partition_get(struct slurm_client *client, const char *name,
                                       slurm_done done, void *context)
{
    return send_simple(client, SLURM_GET, SLURM_PARTITION, str_of(name), STR(""), done, context);
}

struct slurm_call *slurm_reservations_list(struct slurm_client *client, int64_t update_time,
                                           slurm_done done, void *context)
{
    return read_list(client, SLURM_RESERVATIONS, update_time, done, context);
}

struct slurm_call *slurm_reservation_get(struct slurm_client *client, const char *name,
                                         slurm_done done, void *context)
{
    return send_simple(client, SLURM_GET, SLURM_RESERVATION, str_of(name), STR(""), done, context);
}

struct slurm_call *slurm_diag_get(struct slurm_client *client, slurm_done done, void *context)
{
    return read_all(client, SLURM_DIAG, done, context);
}

struct slurm_call *slurm_licenses_list(struct slurm_client *client, slurm_done done, void *context)
{
    return read_all(client, SLURM_LICENSES, done, context);
}

struct slurm_call *slurm_db_list(struct slurm_client *client, enum slurm_endpoint endpoint,
                                 const struct slurm_param *query, size_t query_count,
                                 slurm_done done, void *context)
{
    struct slurm_request request = {
        .verb = SLURM_GET, .endpoint = endpoint, .query = query, .query_count = query_count
    };

    return slurm_send(client, &request, done, context);
}

/* ---- jobs ---- */

struct slurm_call *slurm_job_submit(struct slurm_client *client, struct str body, slurm_done done,
                                    void *context)
{
    return send_simple(client, SLURM_POST, SLURM_JOB_SUBMIT, STR(""), body, done, context);
}

struct slurm_call *slurm_job_allocate(struct slurm_client *client, struct str body, slurm_done done,
                                      void *context)
{
    return send_simple(client, SLURM_POST, SLURM_JOB_ALLOCATE, STR(""), body, done, context);
}

struct slurm_call *slurm_job_update(struct slurm_client *client, int64_t id, struct str body,
                                    slurm_done done, void *context)
{
    char text[ID_TEXT];

    return send_simple(client, SLURM_POST, SLURM_JOB, id_text(id, text), body, done, context);
}

struct slurm_call *slurm_job_cancel(struct slurm_client *client, int64_t id, slurm_done done,
                                    void *context)
{
    char text[ID_TEXT];

    return send_simple(client, SLURM_DELETE, SLURM_JOB, id_text(id, text), STR(""), done, context);
}

static int write_ids(const int64_t *ids, size_t count, struct buf *out, struct err *err)
{
    if (count == 0)
        return err_set(err, ERR_INVALID, "no jobs to cancel");
    if (check_ids(ids, count, err) < 0)
        return -ERR_INVALID;
    buf_add_text(out, "{\"jobs\":[");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s\"%" PRId64 "\"", i > 0 ? "," : "", ids[i]);
    buf_add_text(out, "]}");
    return buf_check(out, "list of jobs", err);
}

struct slurm_call *slurm_jobs_cancel(struct slurm_client *client, const int64_t *ids, size_t count,
                                     slurm_done done, void *context)
{
    auto_buf struct buf body;
    struct err why = { 0 };

    buf_init(&body, MAX_BODY);
    if (write_ids(ids, count, &body, &why) < 0)
        return slurm_send_refused(client, SLURM_DELETE, SLURM_JOBS, &why, done, context);
    return send_simple(client, SLURM_DELETE, SLURM_JOBS, STR(""), buf_str(&body), done, context);
}

static int write_names(const char *const *names, size_t count, struct buf *out, struct err *err)
{
    if (count == 0 || count > SLURM_MAX_IDS)
        return err_set(err, ERR_INVALID, "%zu jobs to cancel", count);
    buf_add_text(out, "{\"jobs\":[");
    for (size_t i = 0; i < count; i++) {
        if (!names[i][0])
            return err_set(err, ERR_INVALID, "a job without a name");
        if (i > 0)
            buf_add_char(out, ',');
        json_escape(out, str_of(names[i]));
    }
    buf_add_text(out, "]}");
    return buf_check(out, "list of jobs", err);
}

struct slurm_call *slurm_jobs_cancel_named(struct slurm_client *client, const char *const *names,
                                           size_t count, slurm_done done, void *context)
{
    struct slurm_request request = { .verb = SLURM_DELETE,
                                     .endpoint = SLURM_JOBS,
                                     .token_s = CANCEL_TOKEN_S };
    auto_buf struct buf body;
    struct err why = { 0 };

    buf_init(&body, MAX_BODY);
    if (write_names(names, count, &body, &why) < 0)
        return slurm_send_refused(client, SLURM_DELETE, SLURM_JOBS, &why, done, context);
    request.body = buf_str(&body);
    return slurm_send(client, &request, done, context);
}

/* ---- nodes ---- */

struct slurm_call *slurm_node_create(struct slurm_client *client, const struct slurm_node_ask *ask,
                                     slurm_done done, void *context)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    auto_buf struct buf line;
    auto_buf struct buf body;
    struct err why = { 0 };

    buf_init(&line, MAX_BODY);
    buf_init(&body, MAX_BODY + 4096);
    if (slurm_node_line(ask, &line, &why) < 0)
        return slurm_send_refused(client, SLURM_POST, SLURM_NEW_NODE, &why, done, context);
    json_put_str(build, root, "node_conf", buf_str(&line));
    json_mut_write(root, &body);
    return send_simple(client, SLURM_POST, SLURM_NEW_NODE, STR(""), buf_str(&body), done, context);
}

struct slurm_call *slurm_node_update(struct slurm_client *client, const char *name, struct str body,
                                     slurm_done done, void *context)
{
    return send_simple(client, SLURM_POST, SLURM_NODE, str_of(name), body, done, context);
}

struct slurm_call *slurm_nodes_update(struct slurm_client *client, struct str body, slurm_done done,
                                      void *context)
{
    return send_simple(client, SLURM_POST, SLURM_NODES, STR(""), body, done, context);
}

struct slurm_call *slurm_node_delete(struct slurm_client *client, const char *names,
                                     slurm_done done, void *context)
{
    return send_simple(client, SLURM_DELETE, SLURM_NODE, str_of(names), STR(""), done, context);
}

/* ---- reservations and the rest ---- */

struct slurm_call *slurm_reservation_put(struct slurm_client *client, struct str body,
                                         slurm_done done, void *context)
{
    return send_simple(client, SLURM_POST, SLURM_NEW_RESERVATION, STR(""), body, done, context);
}

struct slurm_call *slurm_reservation_delete(struct slurm_client *client, const char *name,
                                            slurm_done done, void *context)
{
    return send_simple(client, SLURM_DELETE, SLURM_RESERVATION, str_of(name), STR(""), done,
                       context);
}

struct slurm_call *slurm_reconfigure(struct slurm_client *client, slurm_done done, void *context)
{
    return read_all(client, SLURM_RECONFIGURE, done, context);
}
