/* jobwatch.c - an example of libslinc-slurm in a program with a loop of its own: shows each change
 * of a job as it happens, until its standard input ends.
 *
 * Its loop is a plain epoll, which waits for standard input and for the library; any other loop
 * that can wait for a descriptor does as well. To be seen in `serve`: the library's part is one
 * descriptor and one call.
 *
 * Where: SLURM_REST_URL (http://127.0.0.1:6820), or SLURM_REST_SOCKET for a unix socket. Who:
 * SLURM_JWT, or SLURM_JWT_FILE. */
#include <inttypes.h>
#include <slinc-slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct program {
    struct loop *loop;
    struct http_transport *transport;
    struct slurm_token *token;
    struct slurm_client *client;
    struct slurm_poller *poller;
};

/* ---- what is shown ---- */

/* The jobs that are there at the start come as new ones. */
static void on_change(void *context, const struct slurm_object *old,
                      const struct slurm_object *next)
{
    const struct slurm_job *job = slurm_job_of(next ? next : old);
    auto_buf struct buf state;

    buf_init(&state, 4096);
    slurm_words_print(&slurm_job_states, &job->state, &state);
    printf("job %" PRId64 " %s: %s %s\n", job->id, job->name,
           next ? buf_text(&state) : "forgotten by Slurm",
           job->nodes[0] ? job->nodes : job->reason);
}

/* ---- the library's parts ---- */

static int make_token(struct program *program, struct err *err)
{
    const char *file = getenv("SLURM_JWT_FILE");

    if (file)
        return slurm_token_new_file(program->loop, file, &program->token, err);
    return slurm_token_new_static(str_of(getenv("SLURM_JWT")), &program->token, err);
}

static int begin(struct program *program, struct err *err)
{
    const char *url = getenv("SLURM_REST_URL");
    struct http_client_options http = { .base_url = url ? url : "http://127.0.0.1:6820",
                                        .unix_socket = getenv("SLURM_REST_SOCKET"),
                                        .user_agent = "jobwatch" };
    struct slurm_poller_options polls = { 0 };
    int result = loop_new_guest(&program->loop, err);

    if (result == 0)
        result = http_client_new(program->loop, &http, &program->transport, err);
    if (result == 0)
        result = make_token(program, err);
    if (result < 0)
        return result;
    program->client = slurm_client_new(program->loop, program->transport, program->token, NULL);
    program->poller = slurm_poller_new(program->client, &polls);
    slurm_cache_listen(slurm_poller_cache(program->poller, SLURM_FEED_JOBS), on_change, program);
    slurm_poller_start(program->poller);
    return 0;
}

/* In the opposite order, the loop last. */
static void end(struct program *program)
{
    slurm_poller_free(program->poller);
    slurm_client_free(program->client);
    slurm_token_free(program->token);
    http_transport_free(program->transport);
    loop_free(program->loop);
}

/* ---- the program's own loop ---- */

static int wait_for(int host, int fd, struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    return epoll_ctl(host, EPOLL_CTL_ADD, fd, &event) < 0 ? err_set(err, ERR_SYSTEM, "epoll_ctl")
                                                          : 0;
}

static int serve(struct program *program, int host, struct err *err)
{
    const int guest = loop_guest_fd(program->loop);
    struct epoll_event event;
    char ignored[512];

    if (wait_for(host, STDIN_FILENO, err) < 0 || wait_for(host, guest, err) < 0)
        return -ERR_SYSTEM;
    for (;;) {
        if (epoll_wait(host, &event, 1, -1) != 1)
            continue;
        if (event.data.fd == guest)
            loop_step(program->loop);
        else if (read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0)
            return 0;
    }
}

int main(int count, char **words)
{
    struct program program = { .loop = NULL };
    struct err err = { .class = 0 };
    int host, result;

    if (count > 1) {
        printf("usage: jobwatch    (ends with its standard input)\n");
        return str_is(str_of(words[1]), "--help") ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    host = epoll_create1(EPOLL_CLOEXEC);
    result = begin(&program, &err);
    if (result == 0)
        result = serve(&program, host, &err);
    if (result < 0)
        fprintf(stderr, "jobwatch: %s: %s\n", err_class_name(err.class), err.text);
    end(&program);
    close(host);
    return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
