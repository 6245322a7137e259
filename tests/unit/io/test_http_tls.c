/* test_http_tls.c - the client over TLS: who is believed, and what a reload changes. */
#include "certs.h"
#include "exchange.h"
#include "peer.h"

struct world {
    struct loop *loop;
    struct peer peer;
    struct http_transport *transport;
    SSL_CTX *context;
    char url[64];
};

static struct cert ca, other_ca, good, expired, misnamed, user;

enum { DAY = 86400 };

static int make_certs(void **state)
{
    cert_make(&ca, "test CA", NULL, NULL, DAY);
    cert_make(&other_ca, "other CA", NULL, NULL, DAY);
    cert_make(&good, "server", "IP:127.0.0.1,DNS:api.test", &ca, DAY);
    cert_make(&expired, "server", "IP:127.0.0.1", &ca, -60);
    cert_make(&misnamed, "server", "DNS:elsewhere.test,IP:10.0.0.1", &ca, DAY);
    cert_make(&user, "user", NULL, &ca, DAY);
    return 0;
}

static int free_certs(void **state)
{
    cert_free(&ca);
    cert_free(&other_ca);
    cert_free(&good);
    cert_free(&expired);
    cert_free(&misnamed);
    cert_free(&user);
    return 0;
}

static void begin(struct world *world, const struct cert *server)
{
    assert_int_equal(loop_new_real(&world->loop, NULL), 0);
    world->context = cert_server_context(server);
    peer_start(&world->peer, world->context, peer_answers_ok, NULL);
    snprintf(world->url, sizeof(world->url), "https://127.0.0.1:%u", world->peer.port);
}

static void connect_with(struct world *world, struct http_client_options options)
{
    options.base_url = world->url;
    assert_int_equal(http_client_new(world->loop, &options, &world->transport, NULL), 0);
}

static void end(struct world *world)
{
    http_transport_free(world->transport);
    peer_stop(&world->peer);
    SSL_CTX_free(world->context);
    loop_free(world->loop);
}

static struct exchange post(struct world *world)
{
    struct exchange done = { .ends = 0 };

    exchange_do(&done, world->loop, world->transport,
                &(struct http_request){ .method = "POST", .path = "/", .body = STR("secret") });
    return done;
}

static struct exchange post_to(const struct cert *server, struct http_client_options options,
                               int *ret_arrivals)
{
    struct world world = { .loop = NULL };

    begin(&world, server);
    connect_with(&world, options);

    struct exchange done = post(&world);

    *ret_arrivals = world.peer.arrivals;
    end(&world);
    return done;
}

static void only_the_right_peer_gets_to_see_a_request(void **state)
{
    struct str right = str_of(ca.cert_pem), wrong = str_of(other_ca.cert_pem);
    const struct {
        const struct cert *server;
        struct http_client_options options;
        int class;
    } cases[] = {
        { &good, { .tls = { .ca = right } }, 0 },
        { &good, { .tls = { .ca = wrong } }, ERR_DENIED },
        { &good, { .base_url = NULL }, ERR_DENIED }, /* the system's authorities */
        { &expired, { .tls = { .ca = right } }, ERR_DENIED },
        { &misnamed, { .tls = { .ca = right } }, ERR_DENIED },
        { &misnamed, { .tls = { .ca = right }, .server_name = "elsewhere.test" }, 0 },
        { &good, { .tls = { .ca = right }, .server_name = "elsewhere.test" }, ERR_DENIED },
        { &expired, { .insecure = true }, 0 },
        { &misnamed, { .tls = { .ca = wrong }, .insecure = true }, 0 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int arrivals;
        struct exchange done = post_to(cases[i].server, cases[i].options, &arrivals);

        assert_int_equal(done.class, cases[i].class);
        assert_int_equal(arrivals, cases[i].class ? 0 : 1);
    }
}

static void a_server_name_changes_the_check_and_not_the_host(void **state)
{
    struct world world = { .loop = NULL };
    char host[64];

    begin(&world, &misnamed);
    connect_with(&world, (struct http_client_options){ .tls = { .ca = str_of(ca.cert_pem) },
                                                       .server_name = "elsewhere.test" });
    assert_int_equal(post(&world).status, 200);
    snprintf(host, sizeof(host), "\r\nHost: 127.0.0.1:%u\r\n", world.peer.port);
    assert_non_null(strstr(world.peer.last, host));
    end(&world);
}

static void a_client_certificate_is_shown_to_the_peer(void **state)
{
    for (int with = 0; with < 2; with++) {
        struct world world = { .loop = NULL };
        struct http_client_options options = { .tls = { .ca = str_of(ca.cert_pem) } };

        begin(&world, &good);
        X509_STORE_add_cert(SSL_CTX_get_cert_store(world.context), ca.x509);
        SSL_CTX_set_verify(world.context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        if (with) {
            options.tls.cert = str_of(user.cert_pem);
            options.tls.key = str_of(user.key_pem);
        }
        connect_with(&world, options);

        struct exchange done = post(&world);

        assert_int_equal(done.status, with ? 200 : 0);
        assert_int_equal(world.peer.arrivals, with);
        end(&world);
    }
}

static void old_protocols_are_refused(void **state)
{
    struct world world = { .loop = NULL };

    begin(&world, &good);
    SSL_CTX_set_cipher_list(world.context, "ALL:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(world.context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(world.context, TLS1_1_VERSION);
    connect_with(&world, (struct http_client_options){ .tls = { .ca = str_of(ca.cert_pem) } });
    assert_int_equal(post(&world).class, ERR_UNAVAILABLE);
    end(&world);
}

static void material_that_does_not_fit_is_refused_at_the_start(void **state)
{
    const struct {
        struct tls_source tls;
        int result;
    } cases[] = {
        { { .ca_file = "/nonexistent/ca.crt" }, -ERR_NOT_FOUND },
        { { .ca = STR("-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n") },
          -ERR_INVALID },
        { { .cert = str_of(user.cert_pem) }, -ERR_INVALID },
        { { .key = str_of(user.key_pem) }, -ERR_INVALID },
        { { .cert = str_of(user.cert_pem), .key = str_of(good.key_pem) }, -ERR_INVALID },
        { { .cert = str_of(user.cert_pem), .key = STR("rubbish") }, -ERR_INVALID },
    };
    struct loop *loop;

    assert_int_equal(loop_new_real(&loop, NULL), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_client_options options = { .base_url = "https://h", .tls = cases[i].tls };
        struct http_transport *transport = NULL;

        assert_int_equal(http_client_new(loop, &options, &transport, NULL), cases[i].result);
        assert_null(transport);
    }
    loop_free(loop);
}

static void after_a_reload_new_connections_use_the_new_files(void **state)
{
    struct world world = { .loop = NULL };
    char folder[] = "/tmp/slinc-tls-XXXXXX", path[64];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/ca.crt", folder);
    write_file(path, other_ca.cert_pem);
    begin(&world, &good);
    connect_with(&world, (struct http_client_options){ .tls = { .ca_file = path } });
    assert_int_equal(post(&world).class, ERR_DENIED);

    write_file(path, "rubbish");
    assert_int_equal(http_client_reload_tls(world.transport, NULL, NULL), -ERR_INVALID);
    assert_int_equal(post(&world).class, ERR_DENIED); /* as before */

    write_file(path, ca.cert_pem);
    assert_int_equal(http_client_reload_tls(world.transport, NULL, NULL), 0);
    assert_int_equal(post(&world).status, 200);

    /* Now the right peer is not to be trusted any more: the kept-alive connection is not used. */
    struct tls_source distrust = { .ca = str_of(other_ca.cert_pem) };

    assert_int_equal(http_client_reload_tls(world.transport, &distrust, NULL), 0);

    struct exchange waiting = { .ends = 0 };

    exchange_send(&waiting, world.loop, world.transport,
                  &(struct http_request){ .method = "GET", .path = "/" });
    assert_int_equal(http_client_reload_tls(world.transport, NULL, NULL), 0); /* from memory */
    run_for(world.loop, 20 * MS_US);
    http_cancel(world.transport, waiting.call);
    assert_int_equal(waiting.ends, 0); /* it wants a connection of its own; the peer serves one */
    assert_int_equal(world.peer.arrivals, 1);
    end(&world);
    unlink(path);
    rmdir(folder);
}

struct told {
    struct loop *loop;
    unsigned reasons, ends;
    char why[240];
};

static void on_tls_kept(void *context, const struct err *why)
{
    struct told *told = context;

    if (why) {
        told->reasons++;
        snprintf(told->why, sizeof(told->why), "%s", why->text);
    } else {
        told->ends++;
    }
    loop_stop(told->loop);
}

static void files_that_are_of_no_use_are_told_once(void **state)
{
    struct world world = { .loop = NULL };
    struct told told = { .reasons = 0 };
    char folder[] = "/tmp/slinc-tls-XXXXXX", path[64], next[64];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/ca.crt", folder);
    snprintf(next, sizeof(next), "%s/next", folder);
    write_file(path, ca.cert_pem);
    begin(&world, &good);
    told.loop = world.loop;
    connect_with(&world, (struct http_client_options){ .tls = { .ca_file = path },
                                                       .tls_period_us = 5 * MS_US,
                                                       .tls_kept = on_tls_kept,
                                                       .tls_context = &told });
    assert_int_equal(unlink(path), 0);
    run_until(world.loop, &told.reasons);
    assert_non_null(strstr(told.why, path));
    run_for(world.loop, 50 * MS_US);
    assert_int_equal(told.reasons, 1);

    write_file(next, ca.cert_pem);
    assert_int_equal(rename(next, path), 0);
    run_until(world.loop, &told.ends);
    assert_int_equal(told.reasons, 1);
    end(&world);
    unlink(path);
    rmdir(folder);
}

static void files_that_change_are_followed_without_being_told(void **state)
{
    struct world world = { .loop = NULL };
    char folder[] = "/tmp/slinc-tls-XXXXXX", path[64], next[64];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/ca.crt", folder);
    snprintf(next, sizeof(next), "%s/next", folder);
    write_file(path, other_ca.cert_pem);
    begin(&world, &good);
    connect_with(&world, (struct http_client_options){ .tls = { .ca_file = path },
                                                       .tls_period_us = 5 * MS_US });
    assert_int_equal(post(&world).class, ERR_DENIED);

    write_file(path, "rubbish"); /* a look at it changes nothing */
    run_for(world.loop, 50 * MS_US);
    assert_int_equal(post(&world).class, ERR_DENIED);

    write_file(next, ca.cert_pem);
    assert_int_equal(rename(next, path), 0);
    run_for(world.loop, 50 * MS_US);
    assert_int_equal(post(&world).status, 200);
    end(&world);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_right_peer_gets_to_see_a_request),
        cmocka_unit_test(a_server_name_changes_the_check_and_not_the_host),
        cmocka_unit_test(a_client_certificate_is_shown_to_the_peer),
        cmocka_unit_test(old_protocols_are_refused),
        cmocka_unit_test(material_that_does_not_fit_is_refused_at_the_start),
        cmocka_unit_test(after_a_reload_new_connections_use_the_new_files),
        cmocka_unit_test(files_that_change_are_followed_without_being_told),
        cmocka_unit_test(files_that_are_of_no_use_are_told_once),
    };

    return cmocka_run_group_tests_name("io/http_tls", tests, make_certs, free_certs);
}
