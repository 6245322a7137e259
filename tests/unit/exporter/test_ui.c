/* test_ui.c - the stream of the page over a real connection, to viewers who read late or never.
 * Long reasons of the nodes make a message several times UI_MAX_BEHIND. */
#include "../io/exchange.h"
#include "exporter/ui.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NODES = 2000, REASON = 4096, MESSAGE = NODES * REASON };

struct rig {
    struct loop *loop;
    struct http_server *slurm, *server;
    struct http_transport *transport;
    struct slurm_token *token;
    struct metrics *metrics;
    struct source *source;
    struct ui *ui;
    size_t reason; /* how long the reason of each node is */
    int fd;        /* of the viewer */
};

#define UPDATED "\"errors\":[],\"last_update\":{\"set\":true,\"number\":9}}"

static void write_nodes(const struct rig *rig, struct buf *out)
{
    char reason[REASON + 1] = "";

    memset(reason, 'x', rig->reason);
    for (unsigned i = 0; i < NODES; i++)
        buf_printf(out, "%s{\"name\":\"n%u\",\"state\":[\"IDLE\"],\"cpus\":8,\"reason\":\"%s\"}",
                   i > 0 ? "," : "{\"nodes\":[", i, reason);
    buf_add_text(out, "]," UPDATED);
}

static void serve_slurm(void *context, const struct http_view *view,
                        struct http_responder *responder)
{
    static const char *const bodies[][2] = {
        { "/conf", "{\"slurm_conf\":{\"PrivateData\":[],\"SlurmUser\":\"slurm\"},\"errors\":[]}" },
        { "/jobs/", "{\"jobs\":[]," UPDATED },
        { "/partitions/", "{\"partitions\":[]," UPDATED },
        { "/reservations/", "{\"reservations\":[]," UPDATED },
        { "/diag/", "{\"statistics\":{},\"errors\":[]}" },
        { "/licenses/", "{\"licenses\":[],\"errors\":[]}" },
        { "/", "{\"pings\":[{\"hostname\":\"c\"}],\"errors\":[]}" },
    };
    auto_buf struct buf nodes = { .max = 2 * MESSAGE };
    unsigned i = 0;

    if (strstr(view->path, "/nodes/")) {
        write_nodes(context, &nodes);
        http_respond_json(responder, 200, buf_str(&nodes));
        return;
    }
    while (!strstr(view->path, bodies[i][0]))
        i++;
    http_respond_json(responder, 200, str_of(bodies[i][1]));
}

static struct http_server *server_new(struct loop *loop, const struct http_route *routes,
                                      size_t count)
{
    struct http_server *server;

    assert_int_equal(http_server_new(loop,
                                     &(struct http_server_options){ .address = "127.0.0.1",
                                                                    .routes = routes,
                                                                    .route_count = count },
                                     &server, NULL),
                     0);
    return server;
}

static bool has_nodes(const struct rig *rig)
{
    struct tally_health health;
    struct tally_view view;

    source_view(rig->source, &health, &view);
    return view.nodes && slurm_cache_count(view.nodes) == NODES;
}

/* A viewer with a small window, who has asked for the stream. */
static int connect_viewer(const struct rig *rig)
{
    static const char request[] = "GET /ui/?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n";
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(rig->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), window = 4096;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return fd;
}

static void begin(struct rig *rig, size_t reason)
{
    static struct http_route slurm_route, routes[UI_ROUTES];
    const struct source_options options = { .poll_us = SECOND_US, .seed = 1 };
    char url[64];
    int64_t limit_us;

    rig->reason = reason;
    assert_int_equal(loop_new_real(&rig->loop, NULL), 0);
    slurm_route = (struct http_route){ "/", true, serve_slurm, rig };
    rig->slurm = server_new(rig->loop, &slurm_route, 1);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(rig->slurm));
    assert_int_equal(http_client_new(rig->loop, &(struct http_client_options){ .base_url = url },
                                     &rig->transport, NULL),
                     0);
    assert_int_equal(slurm_token_new_static(STR("x"), &rig->token, NULL), 0);
    rig->metrics = metrics_new();
    rig->source = source_new(rig->loop, rig->transport, rig->token, rig->metrics, &options);
    source_start(rig->source);
    limit_us = loop_now_us(rig->loop) + (int64_t)20 * SECOND_US;
    while (!has_nodes(rig)) {
        run_for(rig->loop, 10 * MS_US);
        assert_true(loop_now_us(rig->loop) < limit_us);
    }
    rig->ui = ui_new(rig->loop, rig->source, NULL);
    rig->server = server_new(rig->loop, routes, ui_routes(rig->ui, routes));
    rig->fd = connect_viewer(rig);
}

static void end(struct rig *rig)
{
    (void)close(rig->fd);
    ui_free(rig->ui);
    http_server_free(rig->server);
    source_free(rig->source);
    metrics_free(rig->metrics);
    slurm_token_free(rig->token);
    http_transport_free(rig->transport);
    http_server_free(rig->slurm);
    loop_free(rig->loop);
}

/* Reads on until this has come, and the snapshot before it. */
static void read_until(const struct rig *rig, const char *wanted, size_t at_least)
{
    int64_t limit_us = loop_now_us(rig->loop) + (int64_t)20 * SECOND_US;
    size_t got = 0;

    for (;;) {
        static char piece[1 << 16];
        ssize_t part = recv(rig->fd, piece, sizeof(piece), MSG_DONTWAIT);

        assert_true(part > 0 || (part < 0 && errno == EAGAIN));
        assert_true(loop_now_us(rig->loop) < limit_us);
        if (part < 0) {
            run_for(rig->loop, MS_US);
            continue;
        }
        got += (size_t)part;
        if (got > at_least && memmem(piece, (size_t)part, wanted, strlen(wanted)))
            return;
    }
}

static void run_until_viewers_are(const struct rig *rig, size_t wanted)
{
    int64_t limit_us = loop_now_us(rig->loop) + (int64_t)20 * SECOND_US;

    while (ui_viewers(rig->ui) != wanted) {
        run_for(rig->loop, 10 * MS_US);
        assert_true(loop_now_us(rig->loop) < limit_us);
    }
}

static void a_viewer_may_take_longer_than_a_tick_to_read_a_snapshot(void **state)
{
    struct rig rig = { .loop = NULL };

    (void)state;
    begin(&rig, REASON);
    run_until_viewers_are(&rig, 1);
    run_for(rig.loop, (int64_t)3 * UI_TICK_US);
    assert_int_equal(ui_viewers(rig.ui), 1);
    read_until(&rig, "event: delta", MESSAGE);
    end(&rig);
}

static void a_viewer_that_does_not_read_the_news_is_told_so_and_ended(void **state)
{
    struct rig rig = { .loop = NULL };

    (void)state;
    begin(&rig, 0);
    run_until_viewers_are(&rig, 1);
    rig.reason = REASON;
    run_until_viewers_are(&rig, 0);
    read_until(&rig, "event: bye\ndata: {\"why\":\"slow\"}\n\n", UI_MAX_BEHIND);
    end(&rig);
}

static void a_viewer_is_told_that_the_exporter_stops(void **state)
{
    struct rig rig = { .loop = NULL };

    (void)state;
    begin(&rig, 0);
    run_until_viewers_are(&rig, 1);
    ui_free(rig.ui);
    rig.ui = NULL;
    read_until(&rig, "event: bye\ndata: {\"why\":\"restart\"}\n\n", 0);
    end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_viewer_may_take_longer_than_a_tick_to_read_a_snapshot),
        cmocka_unit_test(a_viewer_that_does_not_read_the_news_is_told_so_and_ended),
        cmocka_unit_test(a_viewer_is_told_that_the_exporter_stops),
    };

    return cmocka_run_group_tests_name("exporter/ui", tests, NULL, NULL);
}
