/* test_config.c - where the API server is and who we are, from every place that can say so. */
#include "kube/config.h"

#include "base/buf.h"
#include "base/mem.h"
#include "io/http.h"
#include "io/http_server.h"
#include "io/loop_real.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTEXT                                                                                    \
    "current-context: c\n"                                                                         \
    "contexts: [{name: c, context: {cluster: k, user: u, namespace: team}}]\n"
#define CLUSTER "clusters: [{name: k, cluster: {server: 'https://h:6443'}}]\n"
#define USER    "users: [{name: u, user: {token: abc}}]\n"

/* --- a folder and an environment of our own --- */

struct world {
    char root[64];
    const char *kubeconfig, *host, *port, *home;
    struct kube_config_options options;
    struct kube_config *config;
    struct err err;
};

static const char *env(void *context, const char *name)
{
    const struct world *world = context;

    if (strcmp(name, "KUBECONFIG") == 0)
        return world->kubeconfig;
    if (strcmp(name, "KUBERNETES_SERVICE_HOST") == 0)
        return world->host;
    if (strcmp(name, "KUBERNETES_SERVICE_PORT") == 0)
        return world->port;
    return strcmp(name, "HOME") == 0 ? world->home : NULL;
}

static int set_up(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    snprintf(world->root, sizeof(world->root), "/tmp/slinc-config-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    world->options =
        (struct kube_config_options){ .root = world->root, .env = env, .env_context = world };
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    char command[128];

    kube_config_free(world->config);
    snprintf(command, sizeof(command), "rm -rf '%s'", world->root);
    assert_int_equal(system(command), 0);
    mem_free(world);
    return 0;
}

static char *path_of(struct world *world, const char *name)
{
    static char path[4][256];
    static unsigned turn;
    char *at = path[turn++ % 4];

    snprintf(at, 256, "%s/%s", world->root, name);
    return at;
}

static void write_file(struct world *world, const char *name, const char *text)
{
    char *path = path_of(world, name);

    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");

    if (!file)
        abort();
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int load(struct world *world)
{
    kube_config_free(world->config);
    world->config = NULL;
    return kube_config_load(&world->options, &world->config, &world->err);
}

static int resolve(struct world *world, const char *text)
{
    struct kube_config_file file = { .text = str_of(text), .path = "/etc/kube/config" };

    kube_config_free(world->config);
    world->config = NULL;
    world->err = (struct err){ 0 };
    return kube_config_resolve(&file, 1, NULL, &world->config, &world->err);
}

static void refused_with(struct world *world, const char *text, const char *words)
{
    assert_true(resolve(world, text) < 0);
    assert_null(world->config);
    if (!strstr(world->err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", world->err.text, words);
}

#define ACCOUNT "var/run/secrets/kubernetes.io/serviceaccount/"

static void put_account(struct world *world)
{
    write_file(world, ACCOUNT "token", "tok1\n");
    write_file(world, ACCOUNT "ca.crt", "pem");
    write_file(world, ACCOUNT "namespace", "slurm\n");
    world->host = "10.0.0.1";
    world->port = "443";
}

/* --- tests --- */

static void in_a_pod_the_service_account_is_used(void **state)
{
    struct world *world = *state;

    put_account(world);
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://10.0.0.1:443");
    assert_string_equal(world->config->ns, "slurm");
    assert_string_equal(world->config->ca_file, path_of(world, ACCOUNT "ca.crt"));
    assert_string_equal(world->config->token_file, path_of(world, ACCOUNT "token"));
    assert_string_equal(world->config->context, "");

    world->host = "fd00::1";
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://[fd00::1]:443");
    assert_int_equal(unlink(path_of(world, ACCOUNT "namespace")), 0);
    world->host = "[fd00::1]";
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://[fd00::1]:443");
    assert_string_equal(world->config->ns, "default");
}

static void the_cluster_domain_is_what_the_pods_resolver_searches(void **state)
{
    static const struct {
        const char *text, *domain;
    } rows[] = {
        { "nameserver 10.0.0.10\nsearch site.svc.corp.example svc.corp.example corp.example\n",
          "corp.example" },
        { "search\tsite.svc.k8s.  svc.k8s. k8s.\n", "k8s" },
        { "search svc.old old\nsearch a.svc.new svc.new\noptions ndots:5", "new" },
        { "# search svc.no\nsearch svc. corp.example\n", "cluster.local" },
        { "search svc.a/b\n", "cluster.local" },
        { "searches svc.no\n", "cluster.local" },
        { "nameserver 10.0.0.10\n", "cluster.local" },
    };
    struct world *world = *state;

    put_account(world);
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->cluster_domain, "cluster.local");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file(world, "etc/resolv.conf", rows[i].text);
        assert_int_equal(load(world), 0);
        assert_string_equal(world->config->cluster_domain, rows[i].domain);
    }
}

static void a_bad_service_address_is_an_error(void **state)
{
    static const struct {
        const char *host, *port;
    } rows[] = { { "h", NULL },    { "h", "0" },     { "h", "65536" }, { "h", "443x" },
                 { "a/b", "443" }, { "a@b", "443" }, { "a b", "443" } };
    struct world *world = *state;

    put_account(world);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        world->host = rows[i].host;
        world->port = rows[i].port;
        assert_int_equal(load(world), -ERR_INVALID);
    }
}

static void a_token_file_is_followed_as_it_rotates(void **state)
{
    struct world *world = *state;
    struct clock clock;

    clock_init_virtual(&clock, 0);
    struct loop *loop = loop_new_virtual(&clock);

    put_account(world);
    assert_int_equal(load(world), 0);
    assert_int_equal(kube_config_open(world->config, loop, &world->err), 0);
    assert_int_equal(kube_config_open(world->config, loop, &world->err), 0);
    assert_true(str_is(kube_config_token(world->config), "tok1"));
    write_file(world, ACCOUNT "token", "tok2");
    for (int i = 0; i < 3; i++)
        loop_step(loop);
    assert_true(str_is(kube_config_token(world->config), "tok2"));
    assert_int_equal(unlink(path_of(world, ACCOUNT "token")), 0);
    for (int i = 0; i < 3; i++)
        loop_step(loop);
    assert_true(str_is(kube_config_token(world->config), "tok2"));
    kube_config_free(world->config);
    world->config = NULL;
    loop_free(loop);
}

static void a_token_file_that_cannot_be_read_is_an_error(void **state)
{
    struct world *world = *state;
    struct clock clock;

    clock_init_virtual(&clock, 0);
    struct loop *loop = loop_new_virtual(&clock);

    assert_int_equal(resolve(world, CONTEXT CLUSTER
                             "users: [{name: u, user: {tokenFile: /nonexistent/token}}]\n"),
                     0);
    assert_true(kube_config_open(world->config, loop, &world->err) < 0);
    assert_non_null(strstr(world->err.text, "token"));
    loop_free(loop);
}

static void kubeconfig_goes_before_the_pod_and_the_pod_before_home(void **state)
{
    struct world *world = *state;

    write_file(world, "home/.kube/config",
               CONTEXT USER "clusters: [{name: k, cluster: {server: 'https://home'}}]\n");
    write_file(world, "list",
               CONTEXT USER "clusters: [{name: k, cluster: {server: 'https://list'}}]\n");
    write_file(world, "flag",
               CONTEXT USER "clusters: [{name: k, cluster: {server: 'https://flag'}}]\n");
    put_account(world);
    world->home = path_of(world, "home");
    world->kubeconfig = path_of(world, "list");
    world->options.path = path_of(world, "flag");
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://flag");
    world->options.path = NULL;
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://list");
    world->kubeconfig = NULL;
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://10.0.0.1:443");
    world->options.context = "c"; /* a context is a thing of kubeconfigs */
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://home");
    world->options.context = NULL;
    world->host = NULL;
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->server, "https://home");
    world->home = "/nonexistent";
    assert_int_equal(load(world), -ERR_NOT_FOUND);
    assert_non_null(strstr(world->err.text, "KUBECONFIG"));
}

static void several_files_are_merged_and_the_first_that_says_a_thing_wins(void **state)
{
    struct world *world = *state;
    char list[600];

    write_file(world, "one/a",
               "contexts: [{name: x, context: {cluster: k, user: u}}]\n"
               "users: [{name: u, user: {tokenFile: tok}}]\n");
    write_file(world, "two/b", CONTEXT USER CLUSTER "preferences: {}\n");
    write_file(world, "three/c",
               "current-context: other\n"
               "clusters: [{name: k, cluster: {server: 'https://no'}}]\n");
    write_file(world, "empty", "");
    snprintf(list, sizeof(list), "%s:/nonexistent:%s:%s::%s", path_of(world, "one/a"),
             path_of(world, "empty"), path_of(world, "two/b"), path_of(world, "three/c"));
    world->kubeconfig = list;
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->context, "c");
    assert_string_equal(world->config->ns, "team");
    assert_string_equal(world->config->server, "https://h:6443");
    assert_string_equal(world->config->token_file, path_of(world, "one/tok"));
    assert_null(world->config->token.at);

    world->options.context = "x";
    assert_int_equal(load(world), 0);
    assert_string_equal(world->config->ns, "default");
    world->options.context = "y";
    assert_int_equal(load(world), -ERR_NOT_FOUND);
    assert_non_null(strstr(world->err.text, "no context \"y\""));

    world->kubeconfig = "/nonexistent:/nonexistent2";
    assert_int_equal(load(world), -ERR_NOT_FOUND);
    world->kubeconfig = path_of(world, "empty");
    assert_int_equal(load(world), -ERR_NOT_FOUND);
    world->options.path = "/nonexistent";
    assert_true(load(world) < 0);
}

static void too_many_files_are_refused(void **state)
{
    struct world *world = *state;
    struct kube_config_file files[KUBE_CONFIG_MAX_FILES + 1];
    auto_buf struct buf list = { .max = 4096 };

    write_file(world, "f", CONTEXT CLUSTER USER);
    for (int i = 0; i <= KUBE_CONFIG_MAX_FILES; i++) {
        buf_printf(&list, "%s:", path_of(world, "f"));
        files[i] = (struct kube_config_file){ .text = STR(CONTEXT CLUSTER USER), .path = "f" };
    }
    world->kubeconfig = buf_text(&list);
    assert_int_equal(load(world), -ERR_TOO_BIG);
    assert_int_equal(
        kube_config_resolve(files, KUBE_CONFIG_MAX_FILES + 1, NULL, &world->config, &world->err),
        -ERR_TOO_BIG);
    assert_int_equal(
        kube_config_resolve(files, KUBE_CONFIG_MAX_FILES, NULL, &world->config, &world->err), 0);
}

static void everything_a_context_can_say_is_taken(void **state)
{
    struct world *world = *state;

    assert_int_equal(resolve(world, CONTEXT
                             "clusters: [{name: k, cluster: {server: 'https://h:6443/prefix',"
                             " certificate-authority: pki/ca.pem, tls-server-name: kubernetes}}]\n"
                             "users: [{name: u, user: {client-certificate: /abs/cert.pem,"
                             " client-key: key.pem, token: ' abc '}}]\n"),
                     0);
    assert_string_equal(world->config->server, "https://h:6443/prefix");
    assert_string_equal(world->config->ca_file, "/etc/kube/pki/ca.pem");
    assert_string_equal(world->config->cert_file, "/abs/cert.pem");
    assert_string_equal(world->config->key_file, "/etc/kube/key.pem");
    assert_string_equal(world->config->server_name, "kubernetes");
    assert_string_equal(world->config->ns, "team");
    assert_true(str_is(kube_config_token(world->config), "abc"));
    assert_false(world->config->insecure);

    assert_int_equal(resolve(world, CONTEXT
                             "clusters: [{name: k, cluster: {server: 'https://h',"
                             " certificate-authority-data: Y2E=, certificate-authority: x}}]\n"
                             "users: [{name: u, user: {client-certificate-data: Y2VydA==,"
                             " client-key-data: a2V5}}]\n"),
                     0);
    assert_string_equal(world->config->ca.at, "ca");
    assert_string_equal(world->config->cert.at, "cert");
    assert_string_equal(world->config->key.at, "key");
    assert_int_equal(kube_config_token(world->config).len, 0);

    assert_int_equal(resolve(world, "current-context: c\n"
                                    "contexts: [{name: c, context: {cluster: k}}]\n"
                                    "clusters: [{name: k, cluster: {server: 'http://h:8001',"
                                    " insecure-skip-tls-verify: true}}]\n"),
                     0);
    assert_true(world->config->insecure);
}

static void what_cannot_be_done_is_refused_with_what_to_do_instead(void **state)
{
    static const struct {
        const char *user, *words;
    } rows[] = {
        { "{exec: {command: aws}}", "apiVersion must be client.authentication.k8s.io/v1" },
        { "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: aws}}",
          "apiVersion must" },
        { "{exec: {apiVersion: client.authentication.k8s.io/v1}}", "command" },
        { "{exec: {apiVersion: client.authentication.k8s.io/v1, command: a, interactiveMode: "
          "Always}}",
          "interactiveMode Always is not supported" },
        { "{exec: {apiVersion: client.authentication.k8s.io/v1, command: a}, token: t}",
          "which of them counts" },
        { "{exec: {apiVersion: client.authentication.k8s.io/v1, command: a, env: [{name: '', "
          "value: p4ssw0rd}]}}",
          "env has" },
        { "{auth-provider: {name: gcp}}", "auth-provider is not supported: use a token" },
        { "{username: admin, password: p4ssw0rd}", "use a token" },
        { "{password: p4ssw0rd}", "use a token" },
        { "{token: t, as: root}", "impersonation" },
        { "{token: t, as-groups: [g]}", "impersonation" },
        { "{token: t, as-uid: '1'}", "impersonation" },
        { "{token: t, as-user-extra: {a: [b]}}", "impersonation" },
        { "{client-certificate: c}", "belong together" },
        { "{client-key-data: a2V5}", "belong together" },
        { "{client-key-data: '*secret*', client-certificate: c}", "client-key-data" },
        { "{client-key-data: 5, client-certificate: c}", "client-key-data" },
        { "{token: \"a\\nb\"}", "token is not fit" },
        { "{token: 12}", "token is not fit" },
        { "{tokenFile: \"a\\0b\"}", "tokenFile" },
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512];

        snprintf(text, sizeof(text), CONTEXT CLUSTER "users: [{name: u, user: %s}]\n",
                 rows[i].user);
        refused_with(world, text, rows[i].words);
        assert_int_equal(world->err.class, ERR_INVALID);
        assert_null(strstr(world->err.text, "p4ssw0rd"));
        assert_null(strstr(world->err.text, "*secret*"));
    }
    assert_int_equal(resolve(world, CONTEXT CLUSTER /* empty ones say nothing */
                             "users: [{name: u, user: {exec: null, username: '', as-groups: [],"
                             " token: t}}]\n"),
                     0);
}

static void a_cluster_that_cannot_be_used_is_refused(void **state)
{
    static const struct {
        const char *cluster, *words;
    } rows[] = {
        { "{server: 'https://h', proxy-url: 'http://p'}", "set HTTPS_PROXY" },
        { "{}", "no server" },
        { "{server: 'h:6443'}", "must begin with https://" },
        { "{server: 5}", "server" },
        { "{server: 'https://u:p@h'}", "no user" },
        { "{server: 'https://h', insecure-skip-tls-verify: true, certificate-authority: x}",
          "exclude each other" },
        { "{server: 'https://h', insecure-skip-tls-verify: maybe}", "neither true nor false" },
        { "{server: 'https://h', certificate-authority-data: '###'}", "authority-data" },
        { "{server: 'http://h'}", "plain http" },
        { "{server: 'https://h', tls-server-name: [a]}", "tls-server-name" },
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512];

        snprintf(text, sizeof(text), CONTEXT USER "clusters: [{name: k, cluster: %s}]\n",
                 rows[i].cluster);
        refused_with(world, text, rows[i].words);
    }
}

static void names_that_lead_nowhere_are_told(void **state)
{
    struct world *world = *state;

    refused_with(world, "", "no current-context");
    refused_with(world, "[]", "no current-context");
    refused_with(world, "current-context: 7", "no current-context");
    refused_with(world, "current-context: c", "no context \"c\"");
    refused_with(world, CONTEXT, "no cluster \"k\"");
    refused_with(world, CONTEXT CLUSTER, "no user \"u\"");
    assert_int_equal(world->err.class, ERR_NOT_FOUND);
    refused_with(world, "contexts: {", "/etc/kube/config");
    refused_with(world, "a: 1\n---\nb: 2\n", "/etc/kube/config");
}

static void a_transport_is_made_or_the_reason_is_told(void **state)
{
    struct world *world = *state;
    struct http_transport *transport = NULL;
    struct loop *loop;

    assert_int_equal(loop_new_real(&loop, &world->err), 0);
    assert_int_equal(resolve(world, CONTEXT CLUSTER USER), 0);
    assert_int_equal(kube_config_transport(loop, world->config, &transport, &world->err), 0);
    http_transport_free(transport);

    put_account(world); /* its ca.crt is no certificate */
    assert_int_equal(load(world), 0);
    assert_true(kube_config_transport(loop, world->config, &transport, &world->err) < 0);
    assert_non_null(strstr(world->err.text, "API server https://10.0.0.1:443: "));
    kube_config_free(world->config);
    world->config = NULL;
    loop_free(loop);
}

/* --- many streams --- */

enum { STREAMS = 70, WAIT_US = 20 * 1000000 };

struct streams {
    struct loop *loop;
    struct http_responder *open[STREAMS];
    unsigned asked, heads;
};

static void on_watch(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct streams *streams = context;

    assert_true(streams->asked < STREAMS);
    streams->open[streams->asked++] = responder;
    http_stream_begin(responder, "application/json");
}

static void on_head(void *context, int status)
{
    struct streams *streams = context;

    if (++streams->heads == STREAMS)
        loop_stop(streams->loop);
}

static void on_failed(void *context, const struct err *why)
{
    fail_msg("%s", why->text);
}

static void on_wait_over(void *context)
{
    loop_stop(context);
}

static void the_kinds_of_many_namespaces_are_watched_at_once(void **state)
{
    struct world *world = *state;
    struct streams streams = { 0 };
    const struct http_route route = { "/", true, on_watch, &streams };
    const struct http_server_options options = { .address = "127.0.0.1",
                                                 .routes = &route,
                                                 .route_count = 1 };
    const struct http_handlers handlers = { .on_head = on_head,
                                            .failed = on_failed,
                                            .context = &streams };
    struct loop_timer watchdog = { .due_us = 0 };
    struct http_transport *transport = NULL;
    struct http_server *server = NULL;
    char text[256];

    assert_int_equal(loop_new_real(&streams.loop, NULL), 0);
    assert_int_equal(http_server_new(streams.loop, &options, &server, NULL), 0);
    snprintf(text, sizeof(text),
             "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
             "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\n",
             (unsigned)http_server_port(server));
    assert_int_equal(resolve(world, text), 0);
    assert_int_equal(kube_config_transport(streams.loop, world->config, &transport, NULL), 0);
    for (unsigned i = 0; i < STREAMS; i++)
        http_send(transport,
                  &(struct http_request){ .method = "GET",
                                          .path = "/watch",
                                          .deadline_us = loop_now_us(streams.loop) + 2 * WAIT_US,
                                          .stream = true },
                  &handlers);
    loop_timer_start(streams.loop, &watchdog, WAIT_US, on_wait_over, streams.loop);
    loop_run(streams.loop);
    loop_timer_stop(&watchdog);
    assert_int_equal(streams.heads, STREAMS);
    http_transport_free(transport);
    for (unsigned i = 0; i < streams.asked; i++)
        http_stream_end(streams.open[i]);
    http_server_free(server);
    kube_config_free(world->config);
    world->config = NULL;
    loop_free(streams.loop);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(in_a_pod_the_service_account_is_used),
        TEST(the_cluster_domain_is_what_the_pods_resolver_searches),
        TEST(a_bad_service_address_is_an_error),
        TEST(a_token_file_is_followed_as_it_rotates),
        TEST(a_token_file_that_cannot_be_read_is_an_error),
        TEST(kubeconfig_goes_before_the_pod_and_the_pod_before_home),
        TEST(several_files_are_merged_and_the_first_that_says_a_thing_wins),
        TEST(too_many_files_are_refused),
        TEST(everything_a_context_can_say_is_taken),
        TEST(what_cannot_be_done_is_refused_with_what_to_do_instead),
        TEST(a_cluster_that_cannot_be_used_is_refused),
        TEST(names_that_lead_nowhere_are_told),
        TEST(a_transport_is_made_or_the_reason_is_told),
        TEST(the_kinds_of_many_namespaces_are_watched_at_once),
    };

    return cmocka_run_group_tests_name("kube/config", tests, NULL, NULL);
}
