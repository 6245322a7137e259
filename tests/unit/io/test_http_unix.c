/* test_http_unix.c - a server on a unix socket: its mode, its peers, and what is there before it.
 */
#include "exchange.h"
#include "io/http_server.h"
#include "raw_client.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { NOBODY = 65534 };

struct world {
    struct loop *loop;
    struct http_server *server;
    struct http_route route;
    char folder[32], path[64], body[16];
    unsigned handled;
};

static void on_request(void *context, const struct http_view *view,
                       struct http_responder *responder)
{
    struct world *world = context;

    world->handled++;
    snprintf(world->body, sizeof(world->body), "%.*s", (int)(view->body.len % 16), view->body.at);
    http_respond_text(responder, 200, "served");
}

static int start(struct world *world, const char *path, struct err *err)
{
    struct http_server_options options = {
        .unix_path = path, .routes = &world->route, .route_count = 1, .delete_has_body = true
    };

    return http_server_new(world->loop, &options, &world->server, err);
}

static void begin(struct world *world)
{
    *world = (struct world){ .folder = "/tmp/slinc-unix-XXXXXX" };
    world->route = (struct http_route){ "/", true, on_request, world };
    assert_non_null(mkdtemp(world->folder));
    assert_int_equal(chmod(world->folder, 0755), 0);
    snprintf(world->path, sizeof(world->path), "%s/socket", world->folder);
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
}

static void end(struct world *world)
{
    http_server_free(world->server);
    loop_free(world->loop);
    (void)unlink(world->path);
    assert_int_equal(rmdir(world->folder), 0);
}

static int dial(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path));
    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void ask(struct world *world, const char *request)
{
    int fd = dial(world->path);

    assert_true(fd >= 0);
    raw_say(fd, request);
    raw_read_until(world->loop, fd, "served");
    (void)close(fd);
}

static void requests_come_over_a_socket_of_mode_0600(void **state)
{
    struct world world;
    struct stat found;

    (void)state;
    begin(&world);
    assert_int_equal(start(&world, world.path, NULL), 0);
    assert_int_equal(stat(world.path, &found), 0);
    assert_true(S_ISSOCK(found.st_mode));
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(http_server_port(world.server), 0);
    ask(&world, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(world.handled, 1);
    end(&world);
}

static void a_delete_may_have_a_body_where_the_server_says_so(void **state)
{
    struct world world;
    int fd;

    (void)state;
    begin(&world);
    assert_int_equal(start(&world, world.path, NULL), 0);
    fd = dial(world.path);
    for (unsigned i = 0; i < 2; i++) { /* also the second request of a connection */
        world.body[0] = '\0';
        raw_say(fd, "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
        raw_read_until(world.loop, fd, "served");
        assert_string_equal(world.body, "{}");
    }
    (void)close(fd);
    end(&world);
}

/* What a process of this user gets to read; run as a child, whose exit code it is. */
static int read_as(uid_t user, const char *path)
{
    struct timeval limit = { .tv_sec = 10 };
    char text[64];
    int fd;

    if (setresuid(user, user, user) < 0)
        return 9;
    fd = dial(path);
    if (fd < 0)
        return 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)!write(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 28);
    return read(fd, text, sizeof(text)) > 0 ? 0 : 2;
}

static int run_as(struct world *world, uid_t user)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(read_as(user, world->path));
    while (waitpid(child, &status, WNOHANG) == 0)
        run_for(world->loop, MS_US);
    return WEXITSTATUS(status);
}

static void another_user_is_not_served_even_where_the_file_lets_it_connect(void **state)
{
    struct world world;

    (void)state;
    if (geteuid() != 0)
        skip();
    begin(&world);
    assert_int_equal(start(&world, world.path, NULL), 0);
    assert_int_equal(run_as(&world, NOBODY), 1);
    assert_int_equal(chmod(world.path, 0666), 0);
    assert_int_equal(run_as(&world, NOBODY), 2);
    assert_int_equal(world.handled, 0);
    assert_int_equal(run_as(&world, 0), 0);
    assert_int_equal(world.handled, 1);
    end(&world);
}

static void a_socket_that_was_left_is_replaced_and_a_file_is_not(void **state)
{
    struct world world;
    struct err err = { .class = 0 };
    char file[80];
    FILE *made;

    (void)state;
    begin(&world);
    assert_int_equal(start(&world, world.path, NULL), 0);
    http_server_free(world.server);
    assert_int_equal(start(&world, world.path, NULL), 0);
    ask(&world, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    http_server_free(world.server);
    world.server = NULL;

    snprintf(file, sizeof(file), "%s/file", world.folder);
    made = fopen(file, "w");
    assert_non_null(made);
    (void)fclose(made);
    assert_int_equal(start(&world, file, &err), -ERR_SYSTEM);
    assert_non_null(strstr(err.text, file));
    assert_int_equal(unlink(file), 0);
    end(&world);
}

static void a_path_that_does_not_fit_is_refused(void **state)
{
    struct world world;
    char path[200];

    (void)state;
    begin(&world);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(start(&world, path, NULL), -ERR_INVALID);
    assert_int_equal(start(&world, "", NULL), -ERR_INVALID);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_over_a_socket_of_mode_0600),
        cmocka_unit_test(a_delete_may_have_a_body_where_the_server_says_so),
        cmocka_unit_test(another_user_is_not_served_even_where_the_file_lets_it_connect),
        cmocka_unit_test(a_socket_that_was_left_is_replaced_and_a_file_is_not),
        cmocka_unit_test(a_path_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests_name("io/http_unix", tests, NULL, NULL);
}
