/* main.c - slinc-agent: answers some paths of slurmrestd, and what REST lacks, by libslurm.
 *
 * The program as a whole is GPL-3.0-or-later: it is linked with libslurm (GPL-2.0-or-later) and
 * with libraries of this project (Apache-2.0). See NOTICE.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "conf.h"
#include "pool.h"
#include "serve.h"
#include "token.h"
#include "worker.h"

#include "base/core_dump.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "io/loop_real.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    US_PER_SECOND = 1000000,
    MARGIN_S = 2, /* the deadline of a call is MessageTimeout and this */
    QUEUE_US = 2000000,
    MAX_PATH = 512,
    MAX_WORKERS = 64,
    WORKER_FD = 3,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
};

struct values {
    const char *run_dir, *cluster, *slurmctld, *token_file, *key_file, *user;
    const char *log_level, *log_encoder;
    int64_t workers, queue, message_timeout, lifetime;
    bool version;
};

#define AT(member) offsetof(struct values, member)

static const struct flag flags[] = {
    { "run-dir", FLAG_TEXT, AT(run_dir), "/run/slinc-agent",
      "folder of the socket agent.sock and of the slurm.conf that is written; made if missing" },
    { "cluster-name", FLAG_TEXT, AT(cluster), "slurm", "ClusterName of the Slurm cluster" },
    { "slurmctld", FLAG_TEXT, AT(slurmctld), NULL,
      "where slurmctld is: host or host:port; its backups behind commas" },
    { "token-file", FLAG_TEXT, AT(token_file), NULL,
      "file with the token; a new one is taken without a restart" },
    { "jwt-key-file", FLAG_TEXT, AT(key_file), NULL,
      "instead: file with Slurm's JWT key, with which the agent signs its tokens itself" },
    { "user", FLAG_TEXT, AT(user), "slurm", "whose tokens are signed" },
    { "token-lifetime", FLAG_NUMBER, AT(lifetime), "3600", "seconds, of tokens that are signed" },
    { "workers", FLAG_NUMBER, AT(workers), "4", "processes that each make one call at a time" },
    { "queue", FLAG_NUMBER, AT(queue), "256", "requests that may wait for a worker" },
    { "message-timeout", FLAG_NUMBER, AT(message_timeout), "10",
      "Slurm's MessageTimeout in seconds; a call that takes 2 s more is given up" },
    { "zap-log-level", FLAG_TEXT, AT(log_level), "info", "error, warn, info or debug" },
    { "zap-encoder", FLAG_TEXT, AT(log_encoder), NULL,
      "json or console; else console on a terminal" },
    { "version", FLAG_BOOL, AT(version), "false", "print the version and end" },
    { .name = NULL },
};

struct agent {
    struct loop *loop;
    struct pool *pool;
    struct serve *serve;
    bool stopping;
};

/* ---- flags ---- */

static int check(const struct values *values, struct err *err)
{
    if (!values->slurmctld)
        return err_set(err, ERR_INVALID, "--slurmctld is missing");
    if (!values->token_file == !values->key_file)
        return err_set(err, ERR_INVALID, "wants one of --token-file and --jwt-key-file");
    if (values->workers < 1 || values->workers > MAX_WORKERS)
        return err_set(err, ERR_INVALID, "--workers: wants 1 to %d", MAX_WORKERS);
    if (values->queue < 1 || values->queue > 100000)
        return err_set(err, ERR_INVALID, "--queue: wants 1 to 100000");
    if (values->message_timeout < 1 || values->message_timeout > 300)
        return err_set(err, ERR_INVALID, "--message-timeout: wants 1 to 300");
    if (values->lifetime < 60 || values->lifetime > 86400)
        return err_set(err, ERR_INVALID, "--token-lifetime: wants 60 to 86400");
    return 0;
}

static int start_log(const struct values *values, struct err *err)
{
    struct log_options options = { .level = LOG_LEVEL_INFO };
    struct str name = str_of(values->log_encoder);

    if (log_level_parse(str_of(values->log_level), &options.level, err) < 0)
        return err_wrap(err, "--zap-log-level");
    if (str_is(name, "json"))
        options.format = LOG_FORMAT_JSON;
    else if (str_is(name, "console"))
        options.format = LOG_FORMAT_TEXT;
    else if (name.len > 0)
        return err_set(err, ERR_INVALID, "--zap-encoder: wants json or console");
    log_setup(&options);
    return 0;
}

static void print_help(void)
{
    auto_buf struct buf out = { .max = 1 << 16 };

    buf_add_text(&out, "slinc-agent: answers some paths of slurmrestd, and completes jobs with "
                       "their exit codes, on a unix socket\n\nflags:\n");
    flags_help(flags, &out);
    (void)fputs(buf_text(&out), stdout);
}

/* ---- what happens ---- */

static void on_token(void *context, struct str token, const char *user)
{
    struct agent *agent = context;

    log_info("a new token for Slurm is taken", LOG_TEXT("user", user));
    serve_set_user(agent->serve, user);
    pool_set_token(agent->pool, token);
}

static void on_stopped(void *context)
{
    struct agent *agent = context;

    loop_stop(agent->loop);
}

static void on_signal(void *context)
{
    struct agent *agent = context;

    if (agent->stopping)
        loop_stop(agent->loop);
    agent->stopping = true;
    serve_stop(agent->serve, on_stopped, agent);
}

/* ---- start ---- */

static int prepare(const struct values *values, char ret_conf[MAX_PATH], char ret_socket[MAX_PATH],
                   struct err *err)
{
    const struct conf_ask ask = { values->cluster, values->slurmctld, values->message_timeout };
    auto_buf struct buf text = { .max = 1 << 16 };
    int result = conf_write(&ask, &text, err);

    if (result < 0)
        return result;
    if ((size_t)snprintf(ret_conf, MAX_PATH, "%s/slurm.conf", values->run_dir) >= MAX_PATH ||
        (size_t)snprintf(ret_socket, MAX_PATH, "%s/agent.sock", values->run_dir) >= MAX_PATH)
        return err_set(err, ERR_INVALID, "--run-dir is too long");
    if (mkdir(values->run_dir, 0700) < 0 && errno != EEXIST)
        return err_system(err, errno, "%s", values->run_dir);
    return conf_save(ret_conf, buf_str(&text), err);
}

static int run(const struct values *values, const char *program, struct err *err)
{
    const char *const worker[] = { program, WORKER_ARGUMENT, NULL };
    char conf[MAX_PATH], socket[MAX_PATH];
    struct agent agent = { .loop = NULL };
    struct token_source *tokens;
    struct loop_signal *term, *interrupt;
    struct pool_options pool = { .program = worker,
                                 .conf_path = conf,
                                 .workers = (unsigned)values->workers,
                                 .max_queued = (unsigned)values->queue,
                                 .call_us = (values->message_timeout + MARGIN_S) * US_PER_SECOND,
                                 .queue_us = QUEUE_US };
    struct serve_options serve = { .socket_path = socket, .call_us = pool.call_us };
    int result = prepare(values, conf, socket, err);

    if (result == 0)
        result = loop_new_real(&agent.loop, err);
    if (result < 0)
        return result;
    serve.pool = agent.pool = pool_new(agent.loop, &pool);
    result = serve_new(agent.loop, &serve, &agent.serve, err);
    if (result == 0) {
        tokens =
            token_source_new(agent.loop, &(struct token_options){ .token_file = values->token_file,
                                                                  .key_file = values->key_file,
                                                                  .user = values->user,
                                                                  .lifetime_s = values->lifetime,
                                                                  .changed = on_token,
                                                                  .context = &agent });
        term = loop_signal_new(agent.loop, SIGTERM, on_signal, &agent);
        interrupt = loop_signal_new(agent.loop, SIGINT, on_signal, &agent);
        log_info("the agent answers", LOG_TEXT("version", cmd_version), LOG_TEXT("socket", socket));
        loop_run(agent.loop);
        loop_signal_free(interrupt);
        loop_signal_free(term);
        token_source_free(tokens);
    }
    serve_free(agent.serve);
    pool_free(agent.pool);
    loop_free(agent.loop);
    return result;
}

int main(int argc, char **argv)
{
    struct err err = { .class = 0 };
    struct values values = { .run_dir = NULL };
    bool help;

    core_dump_forbid();
    if (argc == 2 && strcmp(argv[1], WORKER_ARGUMENT) == 0)
        return worker_run(WORKER_FD);
    if (flags_parse(flags, argc - 1, argv + 1, &values, &help, &err) < 0 ||
        (!help && !values.version && (check(&values, &err) < 0 || start_log(&values, &err) < 0))) {
        (void)fprintf(stderr, "slinc-agent: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (help || values.version) {
        if (help)
            print_help();
        else
            (void)printf("slinc-agent %s\n", cmd_version);
        return 0;
    }
    if (run(&values, "/proc/self/exe", &err) == 0)
        return 0;
    log_error("the agent cannot start", LOG_ERROR(&err));
    return EXIT_FAILED;
}
