/* test_http_server_tls.c - the server over TLS: certificates that change while it serves. */
#include "certs.h"
#include "exchange.h"
#include "io/http_server.h"
#include "peer.h"

enum { DAY = 86400 };

struct world {
    struct loop *loop;
    struct http_server *server;
    struct http_server_options options;
    char folder[32], cert_file[64], key_file[64], url[64];
    unsigned reloads, failures, handled, gone;
    struct http_responder *kept;
    char peer[64]; /* by its certificate */
    unsigned groups;
};

static struct cert ca, first, second;

static int make_certs(void **state)
{
    cert_make(&ca, "test CA", NULL, NULL, DAY);
    cert_make(&first, "first", "IP:127.0.0.1,DNS:first.test", &ca, DAY);
    cert_make(&second, "second", "IP:127.0.0.1,DNS:second.test", &ca, DAY);
    return 0;
}

static int free_certs(void **state)
{
    cert_free(&ca);
    cert_free(&first);
    cert_free(&second);
    return 0;
}

static void on_hello(void *context, const struct http_view *view, struct http_responder *responder)
{
    http_respond_text(responder, 200, "hello");
}

static void on_gone(void *context)
{
    ((struct world *)context)->gone++;
}

static void on_late(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct world *world = context;

    world->handled++;
    world->kept = responder;
    http_responder_on_gone(responder, on_gone, world);
    loop_stop(world->loop);
}

static void count_groups(void *context, const char *name, const char *value)
{
    struct world *world = context;

    world->groups += strcmp(name, "X-Group") == 0 && value[0];
}

static void on_who(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct world *world = context;
    int result = http_view_peer(view, str_of(ca.cert_pem), world->peer, sizeof(world->peer), NULL);

    http_view_headers(view, count_groups, world);
    http_respond_text(responder, result == 0 ? 200 : result == -ERR_NOT_FOUND ? 401 : 403, "");
}

static void on_tls_changed(void *context, const struct err *why)
{
    struct world *world = context;

    if (why)
        world->failures++;
    else
        world->reloads++;
    loop_stop(world->loop);
}

static void begin(struct world *world)
{
    static struct http_route routes[3];

    routes[0] = (struct http_route){ "/late", false, on_late, world };
    routes[1] = (struct http_route){ "/who", false, on_who, world };
    routes[2] = (struct http_route){ "/", true, on_hello, NULL };
    snprintf(world->folder, sizeof(world->folder), "/tmp/slinc-srv-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->cert_file, sizeof(world->cert_file), "%s/tls.crt", world->folder);
    snprintf(world->key_file, sizeof(world->key_file), "%s/tls.key", world->folder);
    write_file(world->cert_file, first.cert_pem);
    write_file(world->key_file, first.key_pem);
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    world->options.address = "127.0.0.1";
    world->options.routes = routes;
    world->options.route_count = 3;
    world->options.cert_file = world->cert_file;
    world->options.key_file = world->key_file;
    world->options.tls_changed = on_tls_changed;
    world->options.tls_context = world;
    if (world->options.tls_period_us == 0)
        world->options.tls_period_us = 3600 * (int64_t)SECOND_US;
    assert_int_equal(http_server_new(world->loop, &world->options, &world->server, NULL), 0);
    snprintf(world->url, sizeof(world->url), "https://127.0.0.1:%u",
             http_server_port(world->server));
}

static void end(struct world *world)
{
    http_server_free(world->server);
    loop_free(world->loop);
    unlink(world->cert_file);
    unlink(world->key_file);
    rmdir(world->folder);
}

/* A client that takes only the certificate of this name. */
static struct http_transport *client_for(struct world *world, const char *name)
{
    struct http_transport *transport;
    struct http_client_options options = { .base_url = world->url,
                                           .server_name = name,
                                           .tls = { .ca = str_of(ca.cert_pem) } };

    assert_int_equal(http_client_new(world->loop, &options, &transport, NULL), 0);
    return transport;
}

static struct exchange ask(struct world *world, struct http_transport *transport)
{
    struct exchange done = { .ends = 0 };

    exchange_do(&done, world->loop, transport,
                &(struct http_request){ .method = "GET", .path = "/" });
    return done;
}

/* What somebody with this certificate (NULL: without one) is answered. */
static int status_for(struct world *world, const struct cert *own)
{
    struct http_client_options options = { .base_url = world->url,
                                           .tls = { .ca = str_of(ca.cert_pem),
                                                    .cert = str_of(own ? own->cert_pem : NULL),
                                                    .key = str_of(own ? own->key_pem : NULL) } };
    struct http_transport *transport;
    struct exchange done = { .ends = 0 };

    world->groups = 0;
    assert_int_equal(http_client_new(world->loop, &options, &transport, NULL), 0);
    exchange_do(&done, world->loop, transport,
                &(struct http_request){ .method = "GET",
                                        .path = "/who",
                                        .headers = { { .name = "X-Group", .value = "a" },
                                                     { .name = "X-Group", .value = "b" } },
                                        .header_count = 2 });
    http_transport_free(transport);
    assert_int_equal(world->groups, 2);
    return done.status;
}

static void a_client_is_known_by_a_certificate_of_the_right_ca_only(void **state)
{
    struct world world = { .options = { .asks_certificate = true } };
    struct cert other_ca, stranger;

    cert_make(&other_ca, "other CA", NULL, NULL, DAY);
    cert_make(&stranger, "first", "IP:127.0.0.1", &other_ca, DAY);
    begin(&world);
    assert_int_equal(status_for(&world, NULL), 401);
    assert_int_equal(status_for(&world, &stranger), 403);
    assert_int_equal(status_for(&world, &first), 200);
    assert_string_equal(world.peer, "first");
    end(&world);
    cert_free(&stranger);
    cert_free(&other_ca);
}

static void a_new_certificate_serves_new_connections_and_keeps_the_old_ones(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world);

    struct http_transport *old = client_for(&world, "first.test");
    struct http_transport *new = client_for(&world, "second.test");

    assert_int_equal(ask(&world, old).status, 200);
    assert_int_equal(ask(&world, new).class, ERR_DENIED);
    write_file(world.cert_file, second.cert_pem);
    write_file(world.key_file, second.key_pem);
    assert_int_equal(http_server_reload_tls(world.server, NULL), 0);
    assert_int_equal(ask(&world, old).status, 200); /* over the connection it has */
    assert_int_equal(ask(&world, new).status, 200);
    http_transport_free(old);
    old = client_for(&world, "first.test");
    assert_int_equal(ask(&world, old).class, ERR_DENIED);
    http_transport_free(old);
    http_transport_free(new);
    end(&world);
}

static void changed_files_are_noticed_and_a_mixed_pair_is_not_used(void **state)
{
    struct world world = { .options = { .tls_period_us = 10 * MS_US } };

    begin(&world);

    struct http_transport *old = client_for(&world, "first.test");
    struct http_transport *new = client_for(&world, "second.test");

    write_file(world.cert_file, second.cert_pem); /* and the key is still the old one */
    run_until(world.loop, &world.failures);
    assert_int_equal(ask(&world, old).status, 200);
    write_file(world.key_file, second.key_pem);
    run_until(world.loop, &world.reloads);
    assert_int_equal(ask(&world, new).status, 200);
    world.failures = 0;
    unlink(world.cert_file);
    run_until(world.loop, &world.failures);
    assert_int_equal(ask(&world, new).status, 200);
    http_transport_free(old);
    http_transport_free(new);
    end(&world);
}

static SSL *raw_tls(struct world *world, SSL_CTX *context, int *ret_fd)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(world->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SSL *ssl = SSL_new(context);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    BIO_socket_nbio(fd, 1);
    SSL_set_fd(ssl, fd);
    *ret_fd = fd;
    return ssl;
}

/* 1 when the handshake succeeds, 0 when it is refused; with the loop running. */
static int handshake(struct world *world, SSL *ssl)
{
    int64_t limit_us = loop_now_us(world->loop) + (int64_t)15 * SECOND_US;

    for (;;) {
        int result = SSL_connect(ssl), why = SSL_get_error(ssl, result);

        if (result == 1)
            return 1;
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return 0;
        run_for(world->loop, MS_US);
        assert_true(loop_now_us(world->loop) < limit_us);
    }
}

static void http_1_1_is_chosen_and_old_protocols_are_refused(void **state)
{
    static const unsigned char offered[] = "\x02h2\x08http/1.1";
    struct world world = { .loop = NULL };
    const unsigned char *chosen;
    unsigned length;
    int fd;

    begin(&world);

    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = raw_tls(&world, context, &fd);

    SSL_set_alpn_protos(ssl, offered, sizeof(offered) - 1);
    assert_int_equal(handshake(&world, ssl), 1);
    SSL_get0_alpn_selected(ssl, &chosen, &length);
    assert_int_equal(length, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
    SSL_free(ssl);
    close(fd);

    ssl = raw_tls(&world, context, &fd);
    SSL_set_cipher_list(ssl, "ALL:@SECLEVEL=0");
    SSL_set_min_proto_version(ssl, TLS1_VERSION);
    SSL_set_max_proto_version(ssl, TLS1_1_VERSION);
    assert_int_equal(handshake(&world, ssl), 0);
    SSL_free(ssl);
    close(fd);
    SSL_CTX_free(context);
    end(&world);
}

static void an_answer_to_one_who_has_left_does_no_harm(void **state)
{
    for (int answered = 0; answered < 2; answered++) {
        struct world world = { .options = { .request_us = 200 * MS_US } };
        int fd;

        begin(&world);

        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        SSL *ssl = raw_tls(&world, context, &fd);

        assert_int_equal(handshake(&world, ssl), 1);
        assert_true(SSL_write(ssl, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n", 31) > 0);
        run_until(world.loop, &world.handled);
        SSL_shutdown(ssl);
        SSL_free(ssl);
        close(fd);
        run_for(world.loop, 5 * MS_US);
        if (answered)
            http_respond_text(world.kept, 200, "anybody?");
        while (http_server_connections(world.server) > 0)
            run_for(world.loop, MS_US);
        if (!answered) {
            assert_int_equal(world.gone, 1);
            http_respond_text(world.kept, 200, "too late");
        }
        SSL_CTX_free(context);
        end(&world);
    }
}

static void a_handshake_that_never_comes_ends_at_the_deadline(void **state)
{
    struct world world = { .options = { .request_us = 150 * MS_US } };
    struct exchange done = { .ends = 0 };
    struct http_transport *plain;
    char url[64];

    begin(&world);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(world.server));
    assert_int_equal(
        http_client_new(world.loop, &(struct http_client_options){ .base_url = url }, &plain, NULL),
        0);
    exchange_do(&done, world.loop, plain, &(struct http_request){ .method = "GET", .path = "/" });
    assert_int_equal(done.class, ERR_UNKNOWN); /* it spoke plain text to TLS */
    http_transport_free(plain);

    int fd;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = raw_tls(&world, context, &fd); /* connects and says nothing */

    while (http_server_connections(world.server) == 0)
        run_for(world.loop, MS_US);
    while (http_server_connections(world.server) > 0)
        run_for(world.loop, MS_US);
    SSL_free(ssl);
    close(fd);
    SSL_CTX_free(context);
    end(&world);
}

static void files_that_do_not_fit_are_refused_at_the_start(void **state)
{
    struct world world = { .loop = NULL };
    struct http_server *server = NULL;

    begin(&world);
    write_file(world.key_file, second.key_pem);
    assert_int_equal(http_server_new(world.loop, &world.options, &server, NULL), -ERR_INVALID);
    world.options.key_file = NULL;
    assert_int_equal(http_server_new(world.loop, &world.options, &server, NULL), -ERR_INVALID);
    world.options.key_file = "/nonexistent/key";
    assert_int_equal(http_server_new(world.loop, &world.options, &server, NULL), -ERR_NOT_FOUND);
    assert_null(server);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_known_by_a_certificate_of_the_right_ca_only),
        cmocka_unit_test(a_new_certificate_serves_new_connections_and_keeps_the_old_ones),
        cmocka_unit_test(changed_files_are_noticed_and_a_mixed_pair_is_not_used),
        cmocka_unit_test(http_1_1_is_chosen_and_old_protocols_are_refused),
        cmocka_unit_test(an_answer_to_one_who_has_left_does_no_harm),
        cmocka_unit_test(a_handshake_that_never_comes_ends_at_the_deadline),
        cmocka_unit_test(files_that_do_not_fit_are_refused_at_the_start),
    };

    return cmocka_run_group_tests_name("io/http_server_tls", tests, make_certs, free_certs);
}
