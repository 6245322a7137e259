/* slurm_store.c - making the model, and the way of a request through slurmrestd: path, token, body.
 *
 * The order of the refusals is slurmrestd's: an unknown path before a missing token, a missing
 * token before a body that cannot be read, and only then slurmctld, which looks at the token. */
#include "slurm_store.h"

#include "base/mem.h"
#include "codec/jwt.h"
#include "slurm_private.h"

#include <stdio.h>

enum { MAX_USERS = 10000, SLURM_UID = 401, FIRST_UID = 1000 };

/* clang-format off */
static const struct ctld_route routes[] = {
    { "GET", "ping/", false, 42, ctld_run_ping, "", "", NULL, true },
    { "GET", "conf", false, 45, ctld_run_conf, "Unable to query configuration", "slurm_load_ctl_conf()", NULL, false },
    { "GET", "diag/", false, 42, ctld_run_diag, "slurm_get_statistics() failed to get slurmctld statistics", "slurm_get_statistics()", NULL, false },
    { "GET", "licenses/", false, 42, ctld_run_licenses, "Unable to query licenses", "slurm_load_licenses()", NULL, false },
    { "GET", "reconfigure/", false, 42, ctld_run_reconfigure, "slurm_reconfigure() failed", "slurm_reconfigure()", NULL, false },
    { "GET", "jobs/", false, 42, ctld_run_jobs_list, "Unable to query jobs", "slurm_load_jobs()", "\"jobs\":[],\"last_backfill\":{\"set\":true,\"infinite\":false,\"number\":0},\"last_update\":{\"set\":true,\"infinite\":false,\"number\":0}", false },
    { "GET", "jobs/state/", false, 42, ctld_run_jobs_state, "Unable to query job states", "slurm_load_job_state()", "\"jobs\":null", false },
    { "DELETE", "jobs/", false, 42, ctld_run_jobs_cancel, "Signal request failed", "slurm_kill_jobs()", "\"status\":[]", false },
    { "POST", "job/submit", false, 42, ctld_run_submit, "Batch job submission failed", "slurm_submit_batch_job()", NULL, false },
    { "POST", "job/allocate", false, 42, ctld_run_allocate, "Job allocation request failed", "slurm_allocate_resources_blocking()", NULL, false },
    { "GET", "job/", true, 42, ctld_run_job_get, "Unable to query JobId=%s", "_handle_job_get", "\"jobs\":[],\"last_backfill\":{\"set\":true,\"infinite\":false,\"number\":0},\"last_update\":{\"set\":true,\"infinite\":false,\"number\":0}", false },
    { "POST", "job/", true, 42, ctld_run_job_update, "Job update requested failed", "slurm_update_job2()", "\"results\":null", false },
    { "DELETE", "job/", true, 42, ctld_run_job_cancel, "Signal request failed", "slurm_kill_jobs()", "\"status\":[]", false },
    { "GET", "resources/", true, 44, ctld_run_resources, "Unable to query JobId=%s", "_handle_get", "\"nodes\":[]", false },
    { "GET", "nodes/", false, 42, ctld_run_nodes_list, "Failure to query nodes", "_dump_nodes", NULL, false },
    { "POST", "nodes/", false, 42, ctld_run_nodes_update, "Failure to update node %s", "_update_nodes", NULL, false },
    { "GET", "node/", true, 42, ctld_run_node_get, "Failure to query node %s", "_dump_nodes", NULL, false },
    { "POST", "node/", true, 42, ctld_run_node_update, "Failure to update node %s", "_update_node", NULL, false },
    { "DELETE", "node/", true, 42, ctld_run_node_delete, "Failure to delete node %s", "op_handler_node", NULL, false },
    { "POST", "new/node/", false, 44, ctld_run_node_create, "Failure to create node", "_create_node", NULL, false },
    { "GET", "partitions/", false, 42, ctld_run_partitions_list, NULL, "", NULL, false },
    { "GET", "partition/", true, 42, ctld_run_partition_get, NULL, "", NULL, false },
    { "GET", "reservations/", false, 42, ctld_run_resvs_list, "Unable to query reservations", "slurm_load_reservations()", NULL, false },
    { "GET", "reservation/", true, 42, ctld_run_resv_get, "Unable to query reservations", "slurm_load_reservations()", NULL, false },
    { "POST", "reservation", false, 43, ctld_run_resv_put, "Error creating reservation", "slurm_create_reservation", NULL, false },
    { "DELETE", "reservation/", true, 43, ctld_run_resv_delete, "Error deleting reservation %s", "slurm_delete_reservation", NULL, false },
};
/* clang-format on */

static const struct ctld_route complete_route = { "POST",
                                                  "job/",
                                                  true,
                                                  45,
                                                  ctld_run_job_complete,
                                                  "Job completion failed",
                                                  "slurm_complete_job()",
                                                  NULL,
                                                  false };

static const char no_such_path[] =
    "Unable to find requested URL endpoint. Please query the '/openapi/v3' endpoint or visit "
    "'https://slurm.schedmd.com/rest_api.html' for the OpenAPI specification which includes a list "
    "of all possible slurmrestd endpoints.";

/* ---- time ---- */

int64_t ctld_now_us(const struct slurm_store *store)
{
    return clock_now_us(store->clock);
}

int64_t ctld_wall_us(const struct slurm_store *store)
{
    return clock_wall_us(store->clock);
}

void ctld_touch(struct slurm_store *store, enum ctld_table table)
{
    store->changed_us[table] = ctld_wall_us(store);
    if (!store->dirty)
        store->save_us = ctld_now_us(store) + store->options.save_interval_s * CTLD_SECOND;
    store->dirty = true;
    ctld_wake(store);
}

void ctld_wake(struct slurm_store *store)
{
    if (store->wake)
        store->wake(store->wake_context);
}

void slurm_store_on_wake(struct slurm_store *store, void (*wake)(void *context), void *context)
{
    store->wake = wake;
    store->wake_context = context;
}

int64_t slurm_store_message_timeout_us(const struct slurm_store *store)
{
    return store->options.message_timeout_s * CTLD_SECOND;
}

/* ---- users, each with a group of the same name and number ---- */

static const char *const system_users[] = { "root", "daemon", "bin" }; /* 0, 1, 2 everywhere */

enum { SYSTEM_USERS = sizeof(system_users) / sizeof(system_users[0]) };

static int64_t find_system_user(struct str name)
{
    for (int64_t uid = 0; uid < SYSTEM_USERS; uid++)
        if (str_is(name, system_users[uid]))
            return uid;
    return -1;
}

bool ctld_knows_user(const struct slurm_store *store, struct str name)
{
    return find_system_user(name) >= 0 || str_is(name, store->options.slurm_user) ||
           map_has(&store->users, name);
}

int64_t ctld_uid(struct slurm_store *store, const char *user)
{
    int64_t uid = find_system_user(str_of(user));

    if (uid >= 0)
        return uid;
    if (strcmp(user, store->options.slurm_user) == 0)
        return SLURM_UID;
    if (str_to_i64(str_of(user), 0, INT32_MAX, &uid, NULL) == 0)
        return uid;
    if (!map_has(&store->users, str_of(user)) &&
        map_put(&store->users, str_of(user), (void *)(uintptr_t)(FIRST_UID + store->users.count),
                NULL) < 0)
        return INT32_MAX;
    return (int64_t)(uintptr_t)map_get(&store->users, str_of(user));
}

const char *ctld_user_of(const struct slurm_store *store, int64_t uid)
{
    if (uid >= 0 && uid < SYSTEM_USERS)
        return system_users[uid];
    if (uid == SLURM_UID)
        return store->options.slurm_user;
    map_each (item, &store->users) {
        if ((int64_t)(uintptr_t)item->value == uid)
            return item->key.at;
    }
    return "";
}

/* ---- the store ---- */

#define OR(value, fallback) ((value) ? (value) : (fallback))

static void fill_options(struct slurm_store *store, const struct slurm_store_options *given)
{
    struct slurm_store_options *options = &store->options;

    *options = given ? *given : (struct slurm_store_options){ .seed = 1 };
    ctld_set(&store->texts[0], OR(options->cluster, "sim"));
    ctld_set(&store->texts[1], OR(options->slurm_user, "slurm"));
    ctld_set(&store->texts[2], OR(options->private_data, "none"));
    ctld_set_str(&store->texts[3], options->jwt_key.at ? options->jwt_key : STR(""));
    options->cluster = store->texts[0];
    options->slurm_user = store->texts[1];
    options->private_data = store->texts[2];
    options->jwt_key.at = store->texts[3];
    options->message_timeout_s = OR(options->message_timeout_s, 10);
    options->min_job_age_s = OR(options->min_job_age_s, 300);
    options->backfill_interval_s = OR(options->backfill_interval_s, 30);
    options->save_interval_s = OR(options->save_interval_s, 5);
    options->start_delay_min_us = OR(options->start_delay_min_us, 300 * 1000);
    options->start_delay_max_us = OR(options->start_delay_max_us, 1000 * 1000);
    options->max_job_count = OR(options->max_job_count, 10000);
    options->max_node_count = OR(options->max_node_count, 1024);
    options->oldest_version = OR(options->oldest_version, 42);
    options->newest_version = OR(options->newest_version, 45);
}

struct slurm_store *slurm_store_new(const struct clock *clock,
                                    const struct slurm_store_options *options)
{
    struct slurm_store *store = mem_alloc(sizeof(*store));

    store->clock = clock;
    fill_options(store, options);
    rand_init(&store->rand, store->options.seed);
    list_init(&store->waiting);
    map_init(&store->users, &(struct map_options){ .max = MAX_USERS });
    buf_init(&store->scratch, 1u << 20);
    ctld_state_init(&store->state);
    ctld_state_init(&store->saved);
    ctld_partition_add(&store->state, "all")->is_default = true;
    for (unsigned i = 0; i < 4; i++)
        store->changed_us[i] = ctld_wall_us(store);
    store->boot_us = ctld_wall_us(store);
    slurm_store_save(store);
    return store;
}

void slurm_store_free(struct slurm_store *store)
{
    struct list *link;

    if (!store)
        return;
    while ((link = list_first(&store->waiting)))
        ctld_waiting_free(list_item(link, struct ctld_waiting, link));
    ctld_state_done(&store->state);
    ctld_state_done(&store->saved);
    map_done(&store->users);
    buf_done(&store->scratch);
    for (unsigned i = 0; i < 4; i++)
        mem_free(store->texts[i]);
    mem_free(store);
}

void slurm_store_answer_init(struct slurm_store_answer *answer)
{
    *answer = (struct slurm_store_answer){ .content_type = "" };
    buf_init(&answer->body, CTLD_MAX_ANSWER);
}

void slurm_store_answer_done(struct slurm_store_answer *answer)
{
    buf_done(&answer->body);
}

/* ---- paths ---- */

/* "/slurm/v0.0.45/node/n1": the version, and what follows it. */
static bool split_target(struct ctld_call *call, struct str target, struct str *ret_rest)
{
    struct str path = target, query = STR("");
    uint64_t version;

    (void)str_cut(target, '?', &path, &query);
    call->query = query;
    if (!str_starts(path, STR("/slurm/v0.0.")) || path.len < 16 || path.at[14] != '/' ||
        str_to_u64(str_sub(path, 12, 14), call->store->options.oldest_version,
                   call->store->options.newest_version, &version, NULL) < 0)
        return false;
    call->version = (unsigned)version;
    *ret_rest = str_sub(path, 15, path.len);
    return true;
}

/* Percent-decoded; NULL when it holds what must be encoded. */
static const char *decode_name(struct arena *arena, struct str text)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t length = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (strchr("/[],", text.at[i]))
            return NULL;
        if (text.at[i] == '%' && i + 2 < text.len && str_hex_digit(text.at[i + 1]) >= 0 &&
            str_hex_digit(text.at[i + 2]) >= 0) {
            out[length++] =
                (char)(str_hex_digit(text.at[i + 1]) << 4 | str_hex_digit(text.at[i + 2]));
            i += 2;
        } else {
            out[length++] = text.at[i];
        }
    }
    return length > 0 ? out : NULL;
}

/* "/agent/v1/job/7/complete" */
static bool is_complete(struct ctld_call *call, struct str target)
{
    const struct str before = STR("/agent/v1/job/"), after = STR("/complete");

    if (!call->by_agent || !str_starts(target, before) || !str_ends(target, after))
        return false;
    call->version = 45;
    call->name = decode_name(call->arena, str_sub(target, before.len, target.len - after.len));
    return call->name != NULL;
}

const struct ctld_route *ctld_find_route(struct ctld_call *call, const char *method,
                                         struct str target)
{
    struct str rest;

    call->name = "";
    if (is_complete(call, target))
        return &complete_route;
    if (!split_target(call, target, &rest))
        return NULL;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct ctld_route *route = &routes[i];
        struct str path = str_of(route->path);

        if (strcmp(route->method, method) != 0 || route->since > call->version)
            continue;
        if (!route->takes_name &&
            (str_eq(rest, path) ||
             (str_ends(path, STR("/")) && str_eq(rest, str_sub(path, 0, path.len - 1)))))
            return route;
        if (!route->takes_name || !str_starts(rest, path))
            continue;
        call->name = decode_name(call->arena, str_sub(rest, path.len, rest.len));
        if (call->name)
            return route;
        call->name = "";
    }
    return NULL;
}

/* ---- serving ---- */

/* slurmctld's opinion of the token. */
static bool is_known(struct ctld_call *call, const struct slurm_store_request *request)
{
    const struct slurm_store *store = call->store;
    struct jwt_claims claims = { .iat = 0 };
    const char *name = request->user && request->user[0] ? request->user : NULL;
    int result;

    if (call->by_agent) { /* its own token */
        call->user = arena_strdup(call->arena, name ? name : store->options.slurm_user);
        call->privileged = strcmp(call->user, store->options.slurm_user) == 0;
        return true;
    }
    if (store->options.jwt_key.len > 0)
        result = jwt_verify(store->options.jwt_key, request->token,
                            ctld_wall_us(store) / CTLD_SECOND, 0, &claims, NULL);
    else
        result = jwt_peek(request->token, &claims, NULL);
    if (result == 0 && !claims.sun[0])
        jwt_peek_text(request->token, CTLD_USER_CLAIM, claims.sun);
    if (result < 0 && store->options.jwt_key.len == 0) { /* any text: a user's name */
        (void)snprintf(claims.sun, sizeof(claims.sun), STR_FMT, STR_ARG(request->token));
        claims.exp = JWT_NEVER;
        result = 0;
    }
    if (result < 0 || claims.exp <= ctld_wall_us(store) / CTLD_SECOND)
        return false;

    bool is_slurm = strcmp(claims.sun, store->options.slurm_user) == 0;

    if (name && !is_slurm && strcmp(name, claims.sun) != 0)
        return false;
    call->user = arena_strdup(call->arena, name ? name : claims.sun);
    call->privileged =
        strcmp(call->user, store->options.slurm_user) == 0 || strcmp(call->user, "root") == 0;
    return true;
}

static bool read_body(struct ctld_call *call, const struct slurm_store_request *request,
                      struct json_doc **ret_doc)
{
    if (request->body.len == 0)
        return true;
    if (!str_starts(request->content_type, STR("application/json")) &&
        request->content_type.len > 0) {
        ctld_plain(call->answer, 415, "MIME type is unknown to any loaded plugins");
        return false;
    }
    if (json_parse(request->body, CTLD_MAX_BODY, ret_doc, NULL) < 0) {
        ctld_plain(call->answer, 400, "Failure during parsing");
        return false;
    }
    call->body = json_root(*ret_doc);
    return true;
}

static void serve(struct ctld_call *call, const struct slurm_store_request *request)
{
    auto_json_doc struct json_doc *doc = NULL;

    call->by_agent = request->by_agent;
    call->route = ctld_find_route(call, request->method, request->target);
    if (!call->route) {
        ctld_plain(call->answer, 404, no_such_path);
        return;
    }
    if (request->token.len == 0 && !request->by_agent) {
        ctld_plain(call->answer, 401, "Authentication failure");
        return;
    }
    if (!read_body(call, request, &doc))
        return;
    call->reached_ctld = !call->route->is_local || call->store->ctld == SLURM_CTLD_STOPPED;
    if (call->restd_only && call->reached_ctld)
        return;
    if (!is_known(call, request) && !call->route->is_local) {
        ctld_refuse(call, 1007);
        return;
    }
    call->route->run(call);
}

static bool serve_so_far(struct slurm_store *store, const struct slurm_store_request *request,
                         bool restd_only, struct slurm_store_answer *answer)
{
    struct arena arena;
    struct ctld_call call = {
        .store = store, .answer = answer, .arena = &arena, .restd_only = restd_only
    };

    arena_init(&arena, CTLD_MAX_MEMORY);
    buf_init(&call.warnings, 1u << 20);
    serve(&call, request);
    buf_done(&call.warnings);
    arena_done(&arena);
    return !call.reached_ctld;
}

void slurm_store_serve(struct slurm_store *store, const struct slurm_store_request *request,
                       struct slurm_store_answer *answer)
{
    (void)serve_so_far(store, request, false, answer);
}

bool ctld_serve_restd(struct slurm_store *store, const struct slurm_store_request *request,
                      struct slurm_store_answer *answer)
{
    return serve_so_far(store, request, true, answer);
}

void slurm_store_trouble(struct slurm_store *store, int status,
                         const struct slurm_store_request *request,
                         struct slurm_store_answer *answer)
{
    struct arena arena;
    struct ctld_call call = { .store = store, .answer = answer, .arena = &arena };

    arena_init(&arena, CTLD_MAX_MEMORY);
    buf_init(&call.warnings, 1000);
    call.by_agent = request->by_agent;
    call.route = ctld_find_route(&call, request->method, request->target);
    if (!call.route)
        ctld_plain(answer, 404, no_such_path);
    else if (call.route->is_local)
        call.route->run(&call);
    else if (call.route->run == ctld_run_job_cancel || call.route->run == ctld_run_jobs_cancel)
        ctld_refuse(&call, 1); /* whatever it was */
    else
        ctld_refuse(&call, status == 504 ? 5004 : status == 502 ? 1800 : -1);
    buf_done(&call.warnings);
    arena_done(&arena);
}
