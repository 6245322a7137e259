/* test_secrets.c - the whole operator on virtual time, and which Secrets it asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/health.h"
#include "fake_transport.h"
#include "operator/operator.h"

#include <stdio.h>
#include <string.h>

#define SECOND    INT64_C(1000000)
#define HOST_KEYS "/api/v1/namespaces/site/secrets/login-ssh-host-keys"
#define META(name)                                                                                 \
    "\"metadata\":{\"namespace\":\"site\",\"name\":\"" name "\",\"uid\":\"u-" name                 \
    "\",\"resourceVersion\":\"5\",\"generation\":1}"

static const struct {
    const char *list, *items;
} lists[] = {
    { "/controllers",
      "{" META("slurm") ",\"spec\":{\"slurmKeyRef\":{\"name\":\"keys\","
                        "\"key\":\"k\"},\"jwtKeyRef\":{\"name\":\"keys\",\"key\":\"k\"}}}" },
    { "/loginsets", "{" META("login") ",\"spec\":{\"controllerRef\":{\"name\":\"slurm\"},"
                                      "\"sssdConfRef\":{\"name\":\"sssd\",\"key\":\"conf\"}}}" },
};

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct slurm_operator *program;
    struct buf lease, list;
    bool has_silent_secrets; /* they are not answered */
};

static struct fake_answer answer_lease(struct rig *rig, const struct fake_sent *sent)
{
    const char *lease = sent->body ? strstr(sent->body, "\"spec\"") : NULL;

    if (strcmp(sent->method, "GET") == 0)
        return (struct fake_answer){ .status = 404,
                                     .body = "{\"kind\":\"Status\",\"reason\":"
                                             "\"NotFound\"}" };
    buf_clear(&rig->lease);
    buf_printf(&rig->lease, "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%llu\"},%s",
               (unsigned long long)fake_sent_count(rig->fake), lease);
    return (struct fake_answer){ .status = 200, .body = buf_text(&rig->lease) };
}

static struct fake_answer answer_list(struct rig *rig, const char *path)
{
    const char *items = "";

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (strstr(path, lists[i].list))
            items = lists[i].items;
    buf_clear(&rig->list);
    buf_printf(&rig->list, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}", items);
    return (struct fake_answer){ .status = 200, .body = buf_text(&rig->list) };
}

static struct fake_answer answer(void *context, const struct fake_sent *sent)
{
    struct rig *rig = context;

    if (strstr(sent->path, "/leases"))
        return answer_lease(rig, sent);
    if (sent->stream)
        return (struct fake_answer){ .status = 200 };
    if (strcmp(sent->method, "GET") == 0 && strstr(sent->path, "limit="))
        return answer_list(rig, sent->path);
    if (strstr(sent->path, "/secrets/") && rig->has_silent_secrets)
        return (struct fake_answer){ .status = 0 };
    if (strcmp(sent->path, HOST_KEYS) == 0)
        return (struct fake_answer){ .status = 200,
                                     .body = "{" META("login-ssh-host-keys") ",\"data\":{}}" };
    if (strcmp(sent->method, "GET") == 0)
        return (struct fake_answer){ .status = 404,
                                     .body = "{\"kind\":\"Status\",\"reason\":\"NotFound\"}" };
    return (struct fake_answer){ .status = 403,
                                 .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}" };
}

static int rig_up(void **state)
{
    static struct rig rig;

    rig = (struct rig){ .lease = { .max = 1 << 16 }, .list = { .max = 1 << 16 } };
    clock_init_virtual(&rig.clock, INT64_C(1767225600000000));
    rig.loop = loop_new_virtual(&rig.clock);
    rig.fake = fake_transport_new(rig.loop);
    fake_serve(rig.fake, answer, &rig);
    rig.program = operator_new(
        &(struct operator_links){
            .loop = rig.loop, .api = fake_http(rig.fake), .lease_api = fake_http(rig.fake) },
        &(struct operator_options){ .identity = "me", .lease_ns = "system", .seed = 1 });
    operator_start(rig.program);
    *state = &rig;
    return 0;
}

static int rig_down(void **state)
{
    struct rig *rig = *state;

    operator_free(rig->program);
    fake_transport_free(rig->fake);
    loop_free(rig->loop);
    buf_done(&rig->lease);
    buf_done(&rig->list);
    return 0;
}

static unsigned sent(const struct rig *rig, const char *method, const char *part)
{
    unsigned count = 0;

    for (size_t i = 0; i < fake_sent_count(rig->fake); i++)
        count += strcmp(fake_sent(rig->fake, i)->method, method) == 0 &&
                 strstr(fake_sent(rig->fake, i)->path, part);
    return count;
}

static void secrets_are_read_by_name_and_never_listed(void **state)
{
    struct rig *rig = *state;

    fake_run_for(rig->fake, 5 * SECOND);
    assert_true(operator_is_leader(rig->program));
    for (size_t i = 0; i < fake_sent_count(rig->fake); i++)
        assert_true(!strstr(fake_sent(rig->fake, i)->path, "/secrets") ||
                    strstr(fake_sent(rig->fake, i)->path, "/namespaces/site/secrets"));
    assert_true(sent(rig, "GET", HOST_KEYS) > 0);
    assert_true(sent(rig, "GET", "/namespaces/site/secrets/sssd") > 0);
    assert_true(sent(rig, "GET", "/namespaces/site/secrets/keys") > 0);
    assert_true(sent(rig, "POST", "/deployments") > 0);
    assert_int_equal(sent(rig, "POST", "/secrets"), 0); /* there are host keys */
}

static void nothing_is_written_for_a_secret_that_was_not_read_yet(void **state)
{
    struct rig *rig = *state;

    rig->has_silent_secrets = true;
    fake_run_for(rig->fake, 60 * SECOND);
    assert_true(sent(rig, "GET", HOST_KEYS) > 0);
    assert_int_equal(sent(rig, "POST", "/secrets"), 0);
    assert_int_equal(sent(rig, "POST", "/deployments"), 0);
    rig->has_silent_secrets = false;
    fake_run_for(rig->fake, 30 * SECOND);
    assert_true(sent(rig, "POST", "/deployments") > 0);
}

static void an_operator_that_reads_no_secret_for_long_is_not_ready(void **state)
{
    struct rig *rig = *state;
    struct health *health =
        health_new(rig->loop, operator_metrics(rig->program), operator_engine(rig->program));
    auto_buf struct buf why = { .max = 10000 };

    operator_add_health(rig->program, health);
    fake_run_for(rig->fake, 5 * SECOND);
    (void)health_is_ready(health, true, &why);
    assert_non_null(strstr(buf_text(&why), "[+] cache of secrets: ok"));
    rig->has_silent_secrets = true;
    fake_run_for(rig->fake, 180 * SECOND);
    buf_clear(&why);
    assert_false(health_is_ready(health, false, &why));
    assert_non_null(strstr(buf_text(&why), "[-] cache of secrets: silent for "));
    health_free(health);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(secrets_are_read_by_name_and_never_listed),
        TEST(nothing_is_written_for_a_secret_that_was_not_read_yet),
        TEST(an_operator_that_reads_no_secret_for_long_is_not_ready),
    };

    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
