/* sjobs.c - an example of libslinc-slurm: lists jobs and nodes, asks for an external job, follows
 * it.
 *
 *     sjobs jobs                     all jobs that Slurm remembers
 *     sjobs nodes                    all nodes
 *     sjobs run PARTITION SECONDS    an external job of one core: shown until it ends; cancelled
 *                                    after so many seconds
 *
 * Where: SLURM_REST_URL (http://127.0.0.1:6820), or SLURM_REST_SOCKET for a unix socket. Who:
 * SLURM_JWT, or SLURM_JWT_FILE, or SLURM_JWT_KEY_FILE to sign tokens for user "slurm". */
#include <assert.h>
#include <inttypes.h>
#include <slinc-slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECOND_US = 1000000, POLL_US = 500000 };

static void print_words(const struct slurm_vocabulary *vocabulary, const struct slurm_words *set,
                        int width)
{
    auto_buf struct buf text;

    buf_init(&text, 4096);
    slurm_words_print(vocabulary, set, &text);
    printf("%-*s", width, buf_text(&text));
}

/* ---- sjobs jobs, sjobs nodes ---- */

static void print_job(const struct slurm_job *job)
{
    printf("%8" PRId64 "  %-16s ", job->id, job->sluid);
    print_words(&slurm_job_states, &job->state, 12);
    printf(" %-12s %-10s %-20s %s\n", job->partition, job->user, job->name,
           job->nodes[0] ? job->nodes : job->reason);
}

static void print_node(const struct slurm_node *node)
{
    printf("%-20s ", node->name);
    print_words(&slurm_node_states, &node->state, 28);
    printf(" %4" PRId64 "/%-4" PRId64 " %8" PRId64 "/%-8" PRId64 " %s\n", node->alloc_cpus,
           node->cpus, node->alloc_memory, node->real_memory, node->gres);
}

static int list_jobs(struct slurm_sync *sync, struct err *err)
{
    auto_slurm_list struct slurm_list jobs = { 0 };
    int result;

    slurm_jobs_list(slurm_sync_client(sync), 0, slurm_sync_done, sync);
    result = slurm_sync_wait(sync, NULL, err);
    if (result == 0)
        result = slurm_list_decode(&slurm_job_kind, slurm_sync_body(sync), &jobs, err);
    if (result < 0)
        return err_wrap(err, "list jobs");
    printf("%8s  %-16s %-12s %-12s %-10s %-20s %s\n", "JOB", "SLUID", "STATE", "PARTITION", "USER",
           "NAME", "NODES OR REASON");
    for (size_t i = 0; i < jobs.count; i++)
        print_job(slurm_job_of(jobs.at[i]));
    return 0;
}

static int list_nodes(struct slurm_sync *sync, struct err *err)
{
    auto_slurm_list struct slurm_list nodes = { 0 };
    int result;

    slurm_nodes_list(slurm_sync_client(sync), 0, slurm_sync_done, sync);
    result = slurm_sync_wait(sync, NULL, err);
    if (result == 0)
        result = slurm_list_decode(&slurm_node_kind, slurm_sync_body(sync), &nodes, err);
    if (result < 0)
        return err_wrap(err, "list nodes");
    printf("%-20s %-28s %-9s %-17s %s\n", "NODE", "STATE", "CPUS", "MEMORY (MiB)", "GRES");
    for (size_t i = 0; i < nodes.count; i++)
        print_node(slurm_node_of(nodes.at[i]));
    return 0;
}

/* ---- sjobs run ---- */

static struct json_mut *describe(struct json_build *build, const char *partition)
{
    struct json_mut *job = json_new_object(build);

    json_put_text(build, job, "name", "sjobs");
    json_put_text(build, job, "partition", partition);
    json_put_text(build, job, "current_working_directory", "/tmp");
    json_put_u64(build, job, "tasks", 1);
    json_put_u64(build, job, "cpus_per_task", 1);
    slurm_number_put(build, job, "memory_per_node", slurm_number_set(16));
    json_push_str(build, json_put_array(build, job, "flags"), STR("EXTERNAL_JOB"));
    json_push_str(build, json_put_array(build, job, "environment"), STR("SJOBS=1"));
    return job;
}

/* An ask whose answer was lost is not repeated here: the person is told how to find out. */
static int ask(struct slurm_sync *sync, const char *partition, int64_t *ret_id, struct err *err)
{
    auto_json_build struct json_build *build = json_build_new();
    char key[64];
    const struct slurm_owner owner = { .cluster = STR("none"), .release = STR("sjobs") };
    struct slurm_submit_ask ask = { .build = build,
                                    .job = describe(build, partition),
                                    .owner = &owner };
    struct slurm_submit_outcome outcome;
    int result;

    snprintf(key, sizeof(key), "sjobs-%d", (int)getpid());
    ask.key = str_of(key);
    slurm_submit(slurm_sync_client(sync), &ask, slurm_sync_done, sync);
    result = slurm_sync_wait(sync, NULL, err);
    slurm_submit_judge(slurm_sync_answer(sync), slurm_submit_fence_us(slurm_sync_client(sync), 0),
                       &outcome);
    switch (outcome.result) {
    case SLURM_SUBMITTED:
        *ret_id = outcome.job_id;
        return 0;
    case SLURM_REFUSED:
        return err_wrap(err, "Slurm refused the job");
    case SLURM_UNRESOLVED:
        if (outcome.settles_us == 0)
            return err_wrap(err, "Slurm was not asked");
        break;
    }
    err_wrap(err,
             "it is not known whether there is a job; look for a job whose extra begins with %s in "
             "a minute",
             key);
    return result < 0 ? result : -ERR_UNKNOWN;
}

static int look(struct slurm_sync *sync, int64_t id, struct slurm_list *ret_jobs, struct err *err)
{
    int result;

    slurm_job_get(slurm_sync_client(sync), id, slurm_sync_done, sync);
    result = slurm_sync_wait(sync, NULL, err);
    if (result == 0)
        result = slurm_list_decode(&slurm_job_kind, slurm_sync_body(sync), ret_jobs, err);
    if (result == 0 && ret_jobs->count != 1)
        result = err_set(err, ERR_INVALID, "%zu jobs", ret_jobs->count);
    return result < 0 ? err_wrap(err, "look at job %" PRId64, id) : 0;
}

static int show_resources(struct slurm_sync *sync, int64_t id, struct err *err)
{
    auto_arena struct arena arena;
    struct slurm_layout layout = { 0 };
    int result;

    arena_init(&arena, SLURM_LAYOUT_MEMORY);
    slurm_resources_get(slurm_sync_client(sync), id, slurm_sync_done, sync);
    result = slurm_sync_wait(sync, NULL, err);
    if (result == 0)
        result = slurm_layout_decode(&arena, slurm_sync_body(sync), &layout, err);
    if (result < 0)
        return err_wrap(err, "resources of job %" PRId64, id);
    for (size_t i = 0; i < layout.count; i++)
        printf("  on %s: cores %s, %" PRId64 " MiB\n", layout.nodes[i].name, layout.nodes[i].cores,
               layout.nodes[i].memory);
    return 0;
}

static int cancel(struct slurm_sync *sync, int64_t id, struct err *err)
{
    printf("cancelling\n");
    slurm_job_cancel(slurm_sync_client(sync), id, slurm_sync_done, sync);
    return slurm_sync_wait(sync, NULL, err) < 0 ? err_wrap(err, "cancel job %" PRId64, id) : 0;
}

/* Shows each change of state until the job has ended. */
static int follow(struct slurm_sync *sync, int64_t id, int64_t seconds, struct err *err)
{
    uint64_t shown = 0;
    bool cancelled = false;
    int result = 0;

    for (int64_t waited_us = 0; result == 0; waited_us += POLL_US) {
        auto_slurm_list struct slurm_list jobs = { 0 };

        result = look(sync, id, &jobs, err);
        if (result < 0)
            return result;

        assert(jobs.count == 1); /* look has made sure */
        const struct slurm_job *job = slurm_job_of(jobs.at[0]);

        if (job->state.known != shown)
            print_job(job);
        if (job->state.known != shown && slurm_words_has(&job->state, SLURM_JOB_RUNNING))
            result = show_resources(sync, id, err);
        shown = job->state.known;
        if (slurm_job_has_ended(&job->state))
            return 0;
        if (result == 0 && !cancelled && waited_us >= seconds * SECOND_US) {
            cancelled = true;
            result = cancel(sync, id, err);
        }
        slurm_sync_sleep(sync, POLL_US);
    }
    return result;
}

static int run(struct slurm_sync *sync, const char *partition, const char *seconds, struct err *err)
{
    uint64_t limit = 0;
    int64_t id = 0;
    int result = str_to_u64(str_of(seconds), 0, 86400, &limit, err);

    if (result == 0)
        result = ask(sync, partition, &id, err);
    if (result < 0)
        return result;
    printf("job %" PRId64 "\n", id);
    return follow(sync, id, (int64_t)limit, err);
}

/* ---- the program ---- */

static const char usage[] =
    "usage: sjobs jobs                     all jobs that Slurm remembers\n"
    "       sjobs nodes                    all nodes\n"
    "       sjobs run PARTITION SECONDS    an external job of one core, followed to its end\n"
    "\n"
    "environment: SLURM_REST_URL (http://127.0.0.1:6820) or SLURM_REST_SOCKET;\n"
    "             SLURM_JWT, SLURM_JWT_FILE or SLURM_JWT_KEY_FILE\n";

static int dispatch(struct slurm_sync *sync, int count, char **words, struct err *err)
{
    if (count == 2 && str_is(str_of(words[1]), "jobs"))
        return list_jobs(sync, err);
    if (count == 2 && str_is(str_of(words[1]), "nodes"))
        return list_nodes(sync, err);
    if (count == 4 && str_is(str_of(words[1]), "run"))
        return run(sync, words[2], words[3], err);
    return err_set(err, ERR_INVALID, "usage: sjobs jobs | nodes | run PARTITION SECONDS");
}

int main(int count, char **words)
{
    const char *url = getenv("SLURM_REST_URL");
    struct slurm_sync_options options = { .url = url ? url : "http://127.0.0.1:6820",
                                          .unix_socket = getenv("SLURM_REST_SOCKET"),
                                          .token = getenv("SLURM_JWT"),
                                          .token_file = getenv("SLURM_JWT_FILE"),
                                          .key_file = getenv("SLURM_JWT_KEY_FILE") };
    struct slurm_sync *sync = NULL;
    struct err err = { 0 };
    int result;

    if (count == 2 && str_is(str_of(words[1]), "--help")) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    result = slurm_sync_new(&options, &sync, &err);
    if (result == 0)
        result = dispatch(sync, count, words, &err);
    if (result < 0)
        fprintf(stderr, "sjobs: %s: %s\n", err_class_name(err.class), err.text);
    slurm_sync_free(sync);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
