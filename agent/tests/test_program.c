/* test_program.c - the whole agent, with workers that call the fake libslurm: what is proof that
 * nothing was done, what is not known, and that nothing is done twice.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent_test.h"

#include "base/buf.h"
#include "codec/json.h"
#include "codec/jwt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 128, ANSWER_SIZE = 4096, PATIENCE_MS = 30000, CLIENTS = 6 };

/* build/<flavour>/agent, where the tests run: see meson.build */
static const char folder_of_program[] = "agent";

struct world {
    char folder[32], log[PATH_SIZE], token[PATH_SIZE], socket[PATH_SIZE];
    pid_t agent;
};

struct answer {
    int status; /* 0: the connection ended without one */
    char body[ANSWER_SIZE];
};

/* ---- the agent ---- */

static void nap(long ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    (void)nanosleep(&time, NULL);
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);

    if (!file) {
        print_error("%s cannot be opened\n", path);
        abort();
    }
    return file;
}

/* A token of this number, in one piece. */
static void write_token(const struct world *world, int number)
{
    const struct jwt_claims claims = { .iat = 1000, .exp = 2000000000 + number, .sun = "slurm" };
    auto_buf struct buf token = { .max = 4096 };
    char part[PATH_SIZE + 8];
    FILE *file;

    assert_int_equal(jwt_sign(STR("a key of thirty-two bytes, or so"), &claims, &token, NULL), 0);
    snprintf(part, sizeof(part), "%s.part", world->token);
    file = open_file(part, "w");
    assert_true(fputs(buf_text(&token), file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(part, world->token), 0);
}

static void start(struct world *world, const char *workers, const char *queue)
{
    char program[PATH_SIZE], run_dir[PATH_SIZE], token[PATH_SIZE + 16];

    *world = (struct world){ .folder = "/tmp/slinc-agent-XXXXXX" };
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->log, sizeof(world->log), "%s/log", world->folder);
    snprintf(world->token, sizeof(world->token), "%s/token", world->folder);
    snprintf(world->socket, sizeof(world->socket), "%s/run/agent.sock", world->folder);
    snprintf(program, sizeof(program), "%s/slinc-agent", folder_of_program);
    snprintf(run_dir, sizeof(run_dir), "--run-dir=%s/run", world->folder);
    snprintf(token, sizeof(token), "--token-file=%s", world->token);
    assert_int_equal(setenv("LD_LIBRARY_PATH", folder_of_program, 1), 0);
    assert_int_equal(setenv("FAKE_LIBSLURM_LOG", world->log, 1), 0);
    /* The process lets nobody look into it, also not the leak detector. */
    assert_int_equal(setenv("ASAN_OPTIONS", "detect_leaks=0", 1), 0);
    world->agent = fork();
    assert_true(world->agent >= 0);
    if (world->agent == 0) {
        execl(program, program, run_dir, token, "--slurmctld=localhost", "--message-timeout=1",
              "--zap-log-level=error", workers, queue, (char *)NULL);
        _exit(127);
    }
}

static void stop(struct world *world)
{
    char command[PATH_SIZE];
    int status;

    assert_int_equal(kill(world->agent, SIGTERM), 0);
    assert_int_equal(waitpid(world->agent, &status, 0), world->agent);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    snprintf(command, sizeof(command), "rm -r %s", world->folder);
    assert_int_equal(system(command), 0);
}

/* ---- requests ---- */

static int dial(const struct world *world)
{
    struct timeval limit = { .tv_sec = PATIENCE_MS / 1000 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        abort();
    memcpy(address.sun_path, world->socket, strlen(world->socket));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    for (int left = PATIENCE_MS; left > 0; left -= 20, nap(20))
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
            return fd;
    (void)close(fd);
    return -1;
}

static int begin(const struct world *world, const char *method, const char *path, const char *more,
                 const char *body)
{
    char request[2048];
    int fd = dial(world), length;

    length = snprintf(request, sizeof(request),
                      "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%sContent-Length: %zu\r\n"
                      "\r\n%s",
                      method, path, more, strlen(body), body);
    if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static struct answer end(int fd)
{
    struct answer answer = { .status = 0 };
    char text[ANSWER_SIZE];
    const char *body;
    size_t got = 0;
    ssize_t part;

    while (got + 1 < sizeof(text) && (part = read(fd, text + got, sizeof(text) - 1 - got)) > 0)
        got += (size_t)part;
    text[got] = '\0';
    (void)close(fd);
    body = strstr(text, "\r\n\r\n");
    if (got > 12 && body) {
        answer.status = (int)strtol(text + 9, NULL, 10);
        snprintf(answer.body, sizeof(answer.body), "%s", body + 4);
    }
    return answer;
}

#define SLURM "/slurm/v0.0.45/"

static int begin_job(const struct world *world, const char *name)
{
    char body[256];

    snprintf(body, sizeof(body),
             "{\"job\":{\"flags\":[\"EXTERNAL_JOB\"],\"immediate\":true,\"name\":\"%s\"}}", name);
    return begin(world, "POST", SLURM "job/allocate", "", body);
}

static struct answer ask_job(const struct world *world, const char *name)
{
    return end(begin_job(world, name));
}

static int64_t number_of(const struct answer *answer, const char *key)
{
    auto_json_doc struct json_doc *doc = NULL;

    assert_int_equal(json_parse(str_of(answer->body), ANSWER_SIZE, &doc, NULL), 0);
    return json_i64_or(json_get(json_root(doc), key), -1);
}

static int64_t ping(const struct world *world, const char *key)
{
    struct answer answer = end(begin(world, "GET", "/agent/v1/ping", "", ""));

    assert_int_equal(answer.status, 200);
    return number_of(&answer, key);
}

static void wait_until(const struct world *world, const char *key, int64_t wanted)
{
    int64_t left = PATIENCE_MS;

    while (ping(world, key) < wanted && left > 0) {
        nap(20);
        left -= 20;
    }
    assert_true(left > 0);
}

/* Lines of the log that have this text. */
static unsigned count_log(const struct world *world, const char *text)
{
    char line[256];
    unsigned count = 0;
    FILE *file = fopen(world->log, "r");

    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, text) != NULL;
    if (file)
        (void)fclose(file);
    return count;
}

/* ---- tests ---- */

static void calls_are_answered_when_there_is_a_token(void **state)
{
    struct world world;
    struct answer answer;
    struct stat found;

    (void)state;
    start(&world, "--workers=2", "--queue=10");
    assert_int_equal(ask_job(&world, "early").status, 503);
    assert_int_equal(count_log(&world, "early"), 0);
    write_token(&world, 1);
    wait_until(&world, "workers", 2);
    answer = ask_job(&world, "a");
    assert_int_equal(answer.status, 200);
    assert_int_equal(number_of(&answer, "job_id"), 1);
    assert_int_equal(stat(world.socket, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    stop(&world);
}

static void what_is_not_for_the_agent_is_501(void **state)
{
    struct world world;

    (void)state;
    start(&world, "--workers=1", "--queue=10");
    write_token(&world, 1);
    wait_until(&world, "workers", 1);
    assert_int_equal(end(begin(&world, "GET", SLURM "nodes/", "", "")).status, 501);
    assert_int_equal(end(begin(&world, "PUT", SLURM "job/1", "", "")).status, 501);
    assert_int_equal(end(begin(&world, "GET", SLURM "job/1x", "", "")).status, 501);
    assert_int_equal(end(begin(&world, "GET", SLURM "job/0", "", "")).status, 501);
    assert_int_equal(
        end(begin(&world, "GET", SLURM "job/1", "X-SLURM-USER-NAME: eve\r\n", "")).status, 501);
    assert_int_equal(
        end(begin(&world, "GET", SLURM "job/1", "X-SLURM-USER-NAME: slurm\r\n", "")).status, 200);
    stop(&world);
}

static void a_call_that_overruns_is_504_and_its_worker_is_replaced(void **state)
{
    struct world world;

    (void)state;
    start(&world, "--workers=1", "--queue=10");
    write_token(&world, 1);
    assert_int_equal(ask_job(&world, "hang").status, 504);
    assert_int_equal(count_log(&world, "hang"), 1);
    wait_until(&world, "killed", 1);
    wait_until(&world, "workers", 1);
    assert_int_equal(ask_job(&world, "next").status, 200);
    stop(&world);
}

static void a_worker_that_dies_leaves_its_call_unknown_and_is_replaced(void **state)
{
    struct world world;

    (void)state;
    start(&world, "--workers=1", "--queue=10");
    write_token(&world, 1);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(ask_job(&world, "die").status, 504);
        assert_int_equal(count_log(&world, "die"), i);
    }
    wait_until(&world, "workers", 1);
    assert_int_equal(ask_job(&world, "next").status, 200);
    stop(&world);
}

static void what_finds_no_place_in_the_queue_is_503(void **state)
{
    struct world world;
    int busy, waits;

    (void)state;
    start(&world, "--workers=1", "--queue=1");
    write_token(&world, 1);
    wait_until(&world, "workers", 1);
    busy = begin_job(&world, "hang");
    while (count_log(&world, "hang") == 0)
        nap(10);
    waits = begin_job(&world, "waits");
    nap(200); /* it may come late: then the next one waits in its place, and is 503 as well */
    assert_int_equal(ask_job(&world, "too-many").status, 503);
    assert_int_equal(end(waits).status, 503); /* nobody was free for 2 s */
    assert_int_equal(end(busy).status, 504);
    assert_int_equal(count_log(&world, "too-many") + count_log(&world, "waits"), 0);
    stop(&world);
}

static void a_new_token_loses_no_call(void **state)
{
    struct world world;
    char line[256] = "", first[65] = "", last[65] = "";
    FILE *log;

    (void)state;
    start(&world, "--workers=2", "--queue=10");
    write_token(&world, 1);
    wait_until(&world, "workers", 2);
    assert_int_equal(ask_job(&world, "a").status, 200);
    write_token(&world, 2);
    for (unsigned i = 0; i < 400; i++, nap(20))
        if (ask_job(&world, "a").status != 200)
            fail_msg("call %u was lost", i);
    assert_int_equal(count_log(&world, "allocate"), 401);
    assert_int_equal(ping(&world, "died"), 0);
    log = open_file(world.log, "r");
    for (unsigned i = 0; fgets(line, sizeof(line), log); i++)
        snprintf(i == 0 ? first : last, 65, "%.64s", line + 34);
    (void)fclose(log);
    assert_string_not_equal(first, last); /* the tokens of the first and of the last call */
    stop(&world);
}

/* ---- workers that are killed under load ---- */

/* A client: asks for jobs of names of its own until told to stop, and writes down what came of it.
 */
static void ask_on(const struct world *world, unsigned client, int64_t until_s)
{
    char path[PATH_SIZE], name[32];
    FILE *file;

    snprintf(path, sizeof(path), "%s/client-%u", world->folder, client);
    file = fopen(path, "w");
    for (unsigned i = 0; file && time(NULL) < until_s; i++) {
        struct answer answer;

        snprintf(name, sizeof(name), "c%u-%u.", client, i);
        answer = ask_job(world, name);
        fprintf(file, "%s %d %lld\n", name, answer.status,
                (long long)(answer.status == 200 ? number_of(&answer, "job_id") : 0));
    }
    if (file)
        (void)fclose(file);
}

static pid_t random_worker(pid_t agent, unsigned *seed)
{
    char path[64], text[1024] = "", *at = text;
    pid_t found[64];
    unsigned count = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)agent, (int)agent);
    file = open_file(path, "r");
    (void)!fgets(text, sizeof(text), file);
    (void)fclose(file);
    while (count < COUNT(found)) {
        long pid = strtol(at, &at, 10);

        if (pid <= 0)
            break;
        found[count++] = (pid_t)pid;
    }
    *seed = *seed * 1103515245 + 12345;
    return count > 0 ? found[*seed / 65536 % count] : 0;
}

static void check_client(const struct world *world, unsigned client, unsigned counts[3], char *seen)
{
    char path[PATH_SIZE], line[128], name[32];
    FILE *file;

    snprintf(path, sizeof(path), "%s/client-%u", world->folder, client);
    file = open_file(path, "r");
    while (fgets(line, sizeof(line), file)) {
        char *behind = strchr(line, ' '), *id = behind;
        long status = strtol(behind, &id, 10), job = strtol(id, NULL, 10);
        unsigned done;

        *behind = '\0';
        snprintf(name, sizeof(name), "%.31s", line);
        done = count_log(world, name);
        if (status == 200) {
            assert_int_equal(done, 1);
            assert_in_range(job, 1, 99999);
            assert_int_equal(seen[job], 0); /* an answer of its own */
            seen[job] = 1;
            counts[0]++;
        } else if (status == 503) {
            assert_int_equal(done, 0);
            counts[1]++;
        } else {
            assert_int_equal(status, 504);
            assert_in_range(done, 0, 1);
            counts[2]++;
        }
    }
    (void)fclose(file);
}

static void workers_that_are_killed_under_load_make_nothing_twice(void **state)
{
    static char seen[100000];
    const char *seconds = getenv("AGENT_KILL_SECONDS");
    int64_t until_s = time(NULL) + (seconds ? strtol(seconds, NULL, 10) : 4);
    unsigned counts[3] = { 0 }, seed = (unsigned)getpid(), kills = 0;
    struct world world;

    (void)state;
    start(&world, "--workers=4", "--queue=64");
    write_token(&world, 1);
    wait_until(&world, "workers", 4);
    for (unsigned i = 0; i < CLIENTS; i++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            ask_on(&world, i, until_s);
            _exit(0);
        }
    }
    for (; time(NULL) < until_s; nap(200)) {
        pid_t worker = random_worker(world.agent, &seed);

        kills += worker > 0 && kill(worker, SIGKILL) == 0;
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_true(wait(NULL) > 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        check_client(&world, i, counts, seen);
    printf("# %u kills: %u jobs, %u refused, %u unknown\n", kills, counts[0], counts[1], counts[2]);
    assert_true(kills > 5);
    assert_true(counts[0] > 50);
    assert_true(counts[2] <= kills);
    wait_until(&world, "workers", 4);
    stop(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_answered_when_there_is_a_token),
        cmocka_unit_test(what_is_not_for_the_agent_is_501),
        cmocka_unit_test(a_call_that_overruns_is_504_and_its_worker_is_replaced),
        cmocka_unit_test(a_worker_that_dies_leaves_its_call_unknown_and_is_replaced),
        cmocka_unit_test(what_finds_no_place_in_the_queue_is_503),
        cmocka_unit_test(a_new_token_loses_no_call),
        cmocka_unit_test(workers_that_are_killed_under_load_make_nothing_twice),
    };

    return cmocka_run_group_tests_name("agent/program", tests, NULL, NULL);
}
