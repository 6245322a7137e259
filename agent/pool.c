/* pool.c - starts, feeds, watches and replaces the workers.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "pool.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/loop_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    WORKER_FD = 3,
    START_US = 15000000,    /* for a worker to become ready */
    FIRST_PAUSE_US = 20000, /* before a worker that died is replaced, doubled each time */
    LONGEST_PAUSE_US = 5000000,
    MAX_TOKEN = 16 << 10,
    SLURM_TEXT = 32,
};

enum worker_state {
    WORKER_STARTS, /* it has not said that it is ready */
    WORKER_IDLE,
    WORKER_BUSY, /* request is set, or was forgotten */
};

struct worker {
    struct list link; /* pool->workers */
    struct pool *pool;
    enum worker_state state;
    uint64_t token; /* which one it has */
    pid_t pid;
    int fd;
    struct loop_fd *watch;
    struct loop_timer deadline;
    struct buf out, in; /* the rest of a request; what has come of an answer */
    struct pool_request *request;
};

struct pool_request {
    struct list link; /* pool->queue, or not linked: a worker has it */
    struct pool *pool;
    struct loop_timer timer; /* ends the waiting */
    int64_t deadline_us;
    enum agent_call call;
    int64_t job_id;
    struct buf text;
    pool_done done;
    void *context;
};

struct pool {
    struct loop *loop;
    struct pool_options options;
    struct list workers, queue;
    unsigned queued;
    char *token;
    uint64_t token_count; /* the number of the token */
    unsigned deaths;      /* of workers since the last answer */
    struct loop_timer refill;
    char slurm[SLURM_TEXT];
    uint64_t killed, died;
};

static void fill(void *context);
static void feed(struct pool *pool);

/* ---- requests ---- */

static void request_free(struct pool_request *request)
{
    loop_timer_stop(&request->timer);
    if (list_is_linked(&request->link)) {
        list_remove(&request->link);
        request->pool->queued--;
    }
    buf_done(&request->text);
    mem_free(request);
}

static void request_end(struct pool_request *request, int status, struct str body)
{
    pool_done done = request->done;
    void *context = request->context;

    request_free(request);
    done(context, status, body);
}

static void on_waited(void *context)
{
    request_end(context, 503, STR(""));
}

struct pool_request *pool_send(struct pool *pool, enum agent_call call, int64_t job_id,
                               struct str text, pool_done done, void *context)
{
    struct pool_request *request;

    if (pool->queued >= pool->options.max_queued)
        return NULL;
    request = mem_alloc(sizeof(*request));
    request->pool = pool;
    request->call = call;
    request->job_id = job_id;
    request->done = done;
    request->context = context;
    request->deadline_us = loop_now_us(pool->loop) + pool->options.call_us;
    buf_init(&request->text, FRAME_MAX);
    buf_add_str(&request->text, text);
    list_push_back(&pool->queue, &request->link);
    pool->queued++;
    loop_timer_start(pool->loop, &request->timer, pool->options.queue_us, on_waited, request);
    feed(pool);
    return request;
}

void pool_forget(struct pool_request *request)
{
    if (list_is_linked(&request->link)) {
        request_free(request);
        return;
    }
    list_each (struct worker, worker, &request->pool->workers, link)
        if (worker->request == request)
            worker->request = NULL; /* its call goes on */
    request_free(request);
}

/* ---- the end of a worker ---- */

static void worker_free(struct worker *worker)
{
    loop_timer_stop(&worker->deadline);
    loop_fd_free(worker->watch);
    (void)close(worker->fd);
    buf_done(&worker->in);
    mem_free_secret(worker->out.data, worker->out.cap);
    list_remove(&worker->link);
    mem_free(worker);
}

/* A killed process is gone in a moment. */
static void reap(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void plan_refill(struct pool *pool)
{
    int64_t pause_us = pool->deaths > 0 ? FIRST_PAUSE_US : 0;

    for (unsigned i = 1; i < pool->deaths && pause_us < LONGEST_PAUSE_US; i++)
        pause_us *= 2;
    if (!loop_timer_is_armed(&pool->refill))
        loop_timer_start(pool->loop, &pool->refill, pause_us, fill, pool);
}

/* The worker is gone, or is made to go: whether its call took effect is not known. */
static void worker_fail(struct worker *worker)
{
    struct pool *pool = worker->pool;
    struct pool_request *request = worker->request;

    reap(worker->pid);
    worker_free(worker);
    pool->died++;
    pool->deaths++;
    plan_refill(pool);
    if (request)
        request_end(request, 504, STR(""));
}

static void on_deadline(void *context)
{
    struct worker *worker = context;

    worker->pool->killed++;
    log_warn(worker->state == WORKER_STARTS ? "a worker did not become ready; it is killed"
                                            : "slurmctld did not answer in time; the worker is "
                                              "killed",
             LOG_I64("pid", worker->pid));
    worker_fail(worker);
}

/* Its socket is closed, at which it ends: it has no call. */
static void retire(struct worker *worker)
{
    pid_t pid = worker->pid;

    worker_free(worker);
    reap(pid);
}

/* ---- answers ---- */

static bool has_new_workers(const struct pool *pool)
{
    list_each (struct worker, worker, &pool->workers, link)
        if (worker->token == pool->token_count && worker->state != WORKER_STARTS)
            return true;
    return false;
}

static void take_ready(struct worker *worker, struct str text)
{
    struct pool *pool = worker->pool;

    (void)snprintf(pool->slurm, sizeof(pool->slurm), STR_FMT, STR_ARG(text));
    loop_timer_stop(&worker->deadline);
    worker->state = WORKER_IDLE;
    list_each (struct worker, old, &pool->workers, link)
        if (old->token != pool->token_count && old->state == WORKER_IDLE)
            retire(old);
}

static void take_answer(struct worker *worker, int status, struct str text)
{
    struct pool *pool = worker->pool;
    struct pool_request *request = worker->request;

    loop_timer_stop(&worker->deadline);
    worker->request = NULL;
    worker->state = WORKER_IDLE;
    pool->deaths = 0;
    if (request)
        request_end(request, status, text);
}

static void take_frames(struct worker *worker)
{
    struct pool *pool = worker->pool;
    struct frame frame;
    struct buf text = worker->in;

    if (worker->in.len < sizeof(frame))
        return;
    memcpy(&frame, worker->in.data, sizeof(frame));
    if (worker->in.len < sizeof(frame) + frame.length)
        return;
    if (worker->state == WORKER_IDLE) { /* an answer to nothing */
        worker_fail(worker);
        return;
    }
    buf_init(&worker->in, FRAME_MAX + sizeof(frame));
    if (worker->state == WORKER_STARTS)
        take_ready(worker, str_sub(buf_str(&text), sizeof(frame), text.len));
    else
        take_answer(worker, (int)frame.word, str_sub(buf_str(&text), sizeof(frame), text.len));
    buf_done(&text);
    if (worker->token != pool->token_count && has_new_workers(pool))
        retire(worker);
    feed(pool);
}

/* ---- the socket of a worker ---- */

static bool read_some(struct worker *worker)
{
    char bytes[16384];
    ssize_t got;

    while ((got = read(worker->fd, bytes, sizeof(bytes))) > 0)
        buf_add(&worker->in, bytes, (size_t)got);
    return got < 0 && (errno == EAGAIN || errno == EINTR) && !worker->in.overflowed;
}

/* False: the worker is gone. */
static bool write_some(struct worker *worker)
{
    ssize_t put = 0;

    while (worker->out.len > 0 && put >= 0) {
        put = send(worker->fd, worker->out.data, worker->out.len, MSG_NOSIGNAL);
        if (put > 0)
            buf_drop_front(&worker->out, (size_t)put);
    }
    loop_fd_set_events(worker->watch,
                       worker->out.len > 0 ? LOOP_FD_READ | LOOP_FD_WRITE : LOOP_FD_READ);
    return put >= 0 || errno == EAGAIN || errno == EINTR;
}

static void on_ready(void *context, unsigned events)
{
    struct worker *worker = context;
    bool lives = true;

    if (events & LOOP_FD_WRITE)
        lives = write_some(worker);
    if (lives && events & LOOP_FD_READ)
        lives = read_some(worker);
    if (lives)
        take_frames(worker);
    else
        worker_fail(worker);
}

static void send_frame(struct worker *worker, enum agent_call call, int64_t job_id, struct str text)
{
    struct frame frame = { .word = call, .length = (uint32_t)text.len, .job_id = job_id };

    buf_add(&worker->out, &frame, sizeof(frame));
    buf_add_str(&worker->out, text);
    (void)write_some(worker); /* a worker that is gone is noticed when it is read from */
}

/* ---- the beginning of a worker ---- */

static int spawn(const char *const *program, int fd, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int number;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
    number = posix_spawn(ret_pid, program[0], &actions, NULL, (char *const *)(uintptr_t)program,
                         environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return number;
}

static void greet(struct worker *worker)
{
    struct pool *pool = worker->pool;
    struct buf text = { .max = MAX_TOKEN };

    buf_add_text(&text, pool->options.conf_path);
    buf_add_char(&text, '\0');
    buf_add_text(&text, pool->token);
    send_frame(worker, AGENT_START, 0, buf_str(&text));
    mem_free_secret(text.data, text.cap);
}

static int start_worker(struct pool *pool, struct err *err)
{
    struct worker *worker;
    int ends[2], number;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_system(err, errno, "socketpair");
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    number = spawn(pool->options.program, ends[1], &pid);
    (void)close(ends[1]);
    if (number != 0) {
        (void)close(ends[0]);
        return err_system(err, number, "%s", pool->options.program[0]);
    }
    worker = mem_alloc(sizeof(*worker));
    worker->pool = pool;
    worker->pid = pid;
    worker->fd = ends[0];
    worker->token = pool->token_count;
    buf_init(&worker->in, FRAME_MAX + sizeof(struct frame));
    buf_init(&worker->out, FRAME_MAX + sizeof(struct frame));
    worker->watch = loop_fd_new(pool->loop, worker->fd, LOOP_FD_READ, on_ready, worker);
    list_push_back(&pool->workers, &worker->link);
    loop_timer_start(pool->loop, &worker->deadline, START_US, on_deadline, worker);
    greet(worker);
    return 0;
}

static unsigned count_workers(const struct pool *pool, bool with_this_token)
{
    unsigned count = 0;

    list_each (struct worker, worker, &pool->workers, link)
        count += !with_this_token || worker->token == pool->token_count;
    return count;
}

/* So many as there should be, with the token of now. */
static void fill(void *context)
{
    struct pool *pool = context;
    struct err why = { .class = 0 };

    while (pool->token && count_workers(pool, true) < pool->options.workers)
        if (start_worker(pool, &why) < 0) {
            log_error("a worker cannot be started", LOG_ERROR(&why));
            pool->deaths++;
            plan_refill(pool);
            return;
        }
}

/* ---- handing over ---- */

static struct worker *find_idle(struct pool *pool)
{
    struct worker *found = NULL;

    list_each (struct worker, worker, &pool->workers, link)
        if (worker->state == WORKER_IDLE && (!found || worker->token > found->token))
            found = worker;
    return found;
}

static void hand_over(struct worker *worker, struct pool_request *request)
{
    struct pool *pool = worker->pool;

    list_remove(&request->link);
    pool->queued--;
    loop_timer_stop(&request->timer);
    worker->request = request;
    worker->state = WORKER_BUSY;
    loop_timer_start(pool->loop, &worker->deadline, request->deadline_us - loop_now_us(pool->loop),
                     on_deadline, worker);
    send_frame(worker, request->call, request->job_id, buf_str(&request->text));
    buf_done(&request->text);
}

static void feed(struct pool *pool)
{
    struct worker *worker;

    while (!list_is_empty(&pool->queue) && (worker = find_idle(pool)))
        hand_over(worker, list_item(list_first(&pool->queue), struct pool_request, link));
}

/* ---- the pool ---- */

struct pool *pool_new(struct loop *loop, const struct pool_options *options)
{
    struct pool *pool = mem_alloc(sizeof(*pool));

    pool->loop = loop;
    pool->options = *options;
    list_init(&pool->workers);
    list_init(&pool->queue);
    return pool;
}

static void drop_token(struct pool *pool)
{
    if (pool->token)
        mem_free_secret(pool->token, strlen(pool->token) + 1);
    pool->token = NULL;
}

void pool_free(struct pool *pool)
{
    struct list *node;

    if (!pool)
        return;
    while ((node = list_first(&pool->workers))) {
        struct worker *worker = list_item(node, struct worker, link);

        if (worker->request)
            request_free(worker->request);
        retire(worker);
    }
    while ((node = list_first(&pool->queue)))
        request_free(list_item(node, struct pool_request, link));
    loop_timer_stop(&pool->refill);
    drop_token(pool);
    mem_free(pool);
}

void pool_set_token(struct pool *pool, struct str token)
{
    drop_token(pool);
    pool->token = mem_strndup(token.at, token.len);
    pool->token_count++;
    pool->deaths = 0;
    loop_timer_stop(&pool->refill);
    plan_refill(pool);
}

void pool_state(const struct pool *pool, struct pool_state *ret_state)
{
    struct pool_state state = {
        .queued = pool->queued, .slurm = pool->slurm, .killed = pool->killed, .died = pool->died
    };

    list_each (struct worker, worker, &pool->workers, link) {
        state.workers += worker->state != WORKER_STARTS;
        state.busy += worker->state == WORKER_BUSY;
    }
    *ret_state = state;
}
