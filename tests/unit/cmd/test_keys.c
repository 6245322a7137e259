/* test_keys.c - keys are made once, never changed, and deleted only with their release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "cmd/keys.h"
#include "codec/base64.h"
#include "fake_transport.h"

#include <string.h>

#define SECRETS "/api/v1/namespaces/site/secrets"
#define SECRET  SECRETS "/slurm-auth-slurm"
#define OURS                                                                                       \
    "\"annotations\":{\"meta.helm.sh/release-name\":\"slurm\","                                    \
    "\"meta.helm.sh/release-namespace\":\"site\""

static const struct keys_release release = { .name = "slurm", .ns = "site" };
static const struct keys_secret slurm_key = { .ns = "site",
                                              .name = "slurm-auth-slurm",
                                              .file = "slurm.key" };

/* ---- what to do about one Secret ---- */

static enum keys_step plan(const struct keys_secret *secret, const char *found, struct buf *body,
                           struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    enum keys_step step = KEYS_NOTHING;

    if (found)
        assert_int_equal(json_parse(str_of(found), 1 << 20, &doc, NULL), 0);
    (void)keys_plan(&release, secret, json_root(doc), STR("the-key"), &step, body, err);
    return step;
}

static void a_secret_that_is_missing_is_made_immutable_and_kept(void **state)
{
    auto_json_doc struct json_doc *labels = NULL, *annotations = NULL;
    struct keys_release with_labels = release;
    struct keys_secret secret = slurm_key;
    enum keys_step step;
    auto_buf struct buf body;
    struct err err = { .class = 0 };

    (void)state;
    buf_init(&body, 1 << 20);
    assert_int_equal(json_parse(STR("{\"a\":\"b\"}"), 99, &labels, NULL), 0);
    assert_int_equal(json_parse(STR("{\"owner\":\"hpc\"}"), 99, &annotations, NULL), 0);
    with_labels.labels = json_root(labels);
    secret.annotations = json_root(annotations);
    assert_int_equal(keys_plan(&with_labels, &secret, NULL, STR("the-key"), &step, &body, &err), 0);
    assert_int_equal(step, KEYS_CREATE);
    assert_string_equal(
        buf_text(&body),
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"slurm-auth-slurm\","
        "\"namespace\":\"site\",\"labels\":{\"a\":\"b\"},\"annotations\":{\"owner\":\"hpc\","
        "\"helm.sh/resource-policy\":\"keep\",\"meta.helm.sh/release-name\":\"slurm\","
        "\"meta.helm.sh/release-namespace\":\"site\"}},\"type\":\"Opaque\",\"immutable\":true,"
        "\"data\":{\"slurm.key\":\"dGhlLWtleQ==\"}}");
}

static void a_secret_that_is_there_gets_marks_and_no_other_change(void **state)
{
    static const struct {
        const char *what, *found;
        enum keys_step step;
        const char *body;
    } rows[] = {
        { "one that another chart rendered in this release",
          "{\"metadata\":{\"uid\":\"u1\"," OURS "}},\"data\":{\"slurm.key\":\"YQ==\"}}", KEYS_MARK,
          "{\"metadata\":{\"annotations\":{\"helm.sh/"
          "resource-policy\":\"keep\"},\"uid\":\"u1\"}}" },
        { "one that is marked",
          "{\"metadata\":{\"uid\":\"u1\"," OURS
          ",\"helm.sh/resource-policy\":\"keep\"}},\"data\":{\"slurm.key\":\"YQ==\"}}",
          KEYS_NOTHING, "" },
        { "one that a person made", "{\"metadata\":{},\"data\":{\"slurm.key\":\"YQ==\"}}",
          KEYS_NOTHING, "" },
        { "one of another release",
          "{\"metadata\":{\"annotations\":{\"meta.helm.sh/release-name\":\"slurm\","
          "\"meta.helm.sh/release-namespace\":\"other\"}},\"data\":{\"slurm.key\":\"YQ==\"}}",
          KEYS_NOTHING, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = { .class = 0 };
        auto_buf struct buf body;

        buf_init(&body, 1 << 20);
        assert_int_equal(plan(&slurm_key, rows[i].found, &body, &err), rows[i].step);
        assert_int_equal(err.class, 0);
        assert_string_equal(buf_text(&body), rows[i].body);
    }
}

static void a_secret_without_its_key_is_an_error(void **state)
{
    static const char *const rows[] = { "{\"metadata\":{}}", "{\"data\":{\"slurm.key\":\"\"}}",
                                        "{\"data\":{\"other\":\"YQ==\"}}" };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = { .class = 0 };
        auto_buf struct buf body;

        buf_init(&body, 1 << 20);
        assert_int_equal(plan(&slurm_key, rows[i], &body, &err), KEYS_NOTHING);
        assert_int_equal(err.class, ERR_INVALID);
        assert_non_null(strstr(err.text, "slurm-auth-slurm is there, and has no key slurm.key"));
    }
}

static void a_secret_of_the_user_is_never_made_and_may_hold_anything(void **state)
{
    const struct keys_secret users = { .ns = "site", .name = "mine" };
    struct err err = { .class = 0 };
    auto_buf struct buf body;

    (void)state;
    buf_init(&body, 1 << 20);
    assert_int_equal(plan(&users, NULL, &body, &err), KEYS_NOTHING);
    assert_int_equal(plan(&users, "{\"metadata\":{}}", &body, &err), KEYS_NOTHING);
    assert_int_equal(plan(&users, "{\"metadata\":{" OURS "}}}", &body, &err), KEYS_MARK);
    assert_int_equal(err.class, 0);
}

static void a_key_is_1024_printable_characters_and_never_the_same(void **state)
{
    char a[KEYS_TEXT], b[KEYS_TEXT];
    bool seen[256] = { false };
    unsigned different = 0;

    (void)state;
    keys_make_text(a);
    keys_make_text(b);
    assert_memory_not_equal(a, b, KEYS_TEXT);
    for (size_t i = 0; i < KEYS_TEXT; i++) {
        assert_in_range(a[i], '!', '~');
        different += !seen[(unsigned char)a[i]];
        seen[(unsigned char)a[i]] = true;
    }
    assert_true(different > 80); /* of 94 */
}

/* ---- the calls ---- */

struct bench {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
};

static void no_line(void *context, struct str line)
{
    (void)context;
    (void)line;
}

static int set_up(void **state)
{
    static struct bench bench;

    log_setup(&(struct log_options){ .sink = no_line });
    bench = (struct bench){ .loop = NULL };
    clock_init_virtual(&bench.clock, 1767225600000000);
    bench.loop = loop_new_virtual(&bench.clock);
    bench.fake = fake_transport_new(bench.loop);
    bench.client = kube_client_new(bench.loop, fake_http(bench.fake));
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    kube_client_free(bench->client);
    fake_transport_free(bench->fake);
    loop_free(bench->loop);
    log_setup(NULL);
    return 0;
}

static void answer(struct bench *bench, const char *method, const char *path, const char *body)
{
    fake_answer(
        bench->fake, method, path,
        (struct fake_answer){ .status = str_is(str_of(method), "POST") ? 201 : 200, .body = body });
}

static void a_missing_key_is_created_once_after_the_api_server_came_back(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };

    fake_status(bench->fake, "GET", SECRET, 503, "ServiceUnavailable", "later");
    fake_status(bench->fake, "GET", SECRET, 404, "NotFound", "secrets not found");
    answer(bench, "POST", SECRETS, "{}");
    assert_int_equal(keys_ensure(bench->client, &release, &slurm_key, &err), 0);
    assert_int_equal(fake_sent_count(bench->fake), 3);
    assert_non_null(strstr(fake_last_sent(bench->fake)->body, "\"immutable\":true"));
}

static void a_key_that_somebody_else_made_meanwhile_is_left_alone(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };

    fake_status(bench->fake, "GET", SECRET, 404, "NotFound", "secrets not found");
    fake_status(bench->fake, "POST", SECRETS, 409, "AlreadyExists", "exists");
    answer(bench, "GET", SECRET, "{\"metadata\":{},\"data\":{\"slurm.key\":\"YQ==\"}}");
    assert_int_equal(keys_ensure(bench->client, &release, &slurm_key, &err), 0);
    assert_int_equal(fake_sent_count(bench->fake), 3);
}

static void an_answer_that_got_lost_makes_no_second_key(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };

    fake_status(bench->fake, "GET", SECRET, 404, "NotFound", "secrets not found");
    fake_answer(bench->fake, "POST", SECRETS, (struct fake_answer){ .class = ERR_UNKNOWN });
    answer(bench, "GET", SECRET,
           "{\"metadata\":{\"uid\":\"u\"," OURS
           ",\"helm.sh/resource-policy\":\"keep\"}},\"data\":{\"slurm.key\":\"YQ==\"}}");
    assert_int_equal(keys_ensure(bench->client, &release, &slurm_key, &err), 0);
    assert_int_equal(fake_sent_count(bench->fake), 3);
}

static void a_refusal_is_an_error_at_once(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };

    fake_status(bench->fake, "GET", SECRET, 403, "Forbidden", "you may not");
    assert_int_equal(keys_ensure(bench->client, &release, &slurm_key, &err), -ERR_UNAVAILABLE);
    assert_string_equal(err.text, "Secret slurm-auth-slurm: you may not");
    assert_int_equal(fake_sent_count(bench->fake), 1);
}

static void an_api_server_that_stays_away_is_an_error_after_a_minute(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };

    fake_answer(bench->fake, "GET", SECRET,
                (struct fake_answer){ .class = ERR_UNAVAILABLE, .times = FAKE_ALWAYS });
    assert_int_equal(keys_ensure(bench->client, &release, &slurm_key, &err), -ERR_UNAVAILABLE);
    assert_in_range(loop_now_us(bench->loop), 55000000, 65000000);
}

static void the_marking_patch_names_the_secret_that_was_read(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };

    answer(bench, "GET", SECRET,
           "{\"metadata\":{\"uid\":\"u1\"," OURS "}},\"data\":{\"slurm.key\":\"YQ==\"}}");
    answer(bench, "PATCH", SECRET, "{}");
    assert_int_equal(keys_ensure(bench->client, &release, &slurm_key, &err), 0);
    assert_string_equal(
        fake_last_sent(bench->fake)->body,
        "{\"metadata\":{\"annotations\":{\"helm.sh/resource-policy\":\"keep\"},\"uid\":\"u1\"}}");
}

static void a_key_of_the_release_is_deleted_by_its_uid_and_another_stays(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };

    answer(bench, "GET", SECRET, "{\"metadata\":{\"uid\":\"u1\"," OURS "}}}");
    answer(bench, "DELETE", SECRET, "{}");
    assert_int_equal(keys_delete(bench->client, &release, &slurm_key, &err), 0);
    assert_string_equal(fake_last_sent(bench->fake)->body, "{\"preconditions\":{\"uid\":\"u1\"}}");
    fake_forget_sent(bench->fake);
    answer(bench, "GET", SECRET, "{\"metadata\":{\"uid\":\"u1\"}}");
    assert_int_equal(keys_delete(bench->client, &release, &slurm_key, &err), 0);
    assert_int_equal(fake_sent_count(bench->fake), 1);
}

static void only_helms_record_says_that_a_release_is_uninstalled(void **state)
{
    struct bench *bench = *state;
    struct err err = { .class = 0 };
    bool is = true;

    answer(bench, "GET", SECRETS, "{\"kind\":\"SecretList\",\"items\":[]}");
    assert_int_equal(keys_is_uninstalled(bench->client, &release, &is, &err), 0);
    assert_false(is);
    answer(bench, "GET", SECRETS, "{\"kind\":\"SecretList\",\"items\":[{}]}");
    assert_int_equal(keys_is_uninstalled(bench->client, &release, &is, &err), 0);
    assert_true(is);
    assert_string_equal(fake_last_sent(bench->fake)->path,
                        SECRETS "?labelSelector=owner%3Dhelm,name%3Dslurm,status%3Duninstalling");
    fake_status(bench->fake, "GET", SECRETS, 500, "InternalError", "no");
    assert_true(keys_is_uninstalled(bench->client, &release, &is, &err) < 0);
}

int main(void)
{
#define CALLS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_that_is_missing_is_made_immutable_and_kept),
        cmocka_unit_test(a_secret_that_is_there_gets_marks_and_no_other_change),
        cmocka_unit_test(a_secret_without_its_key_is_an_error),
        cmocka_unit_test(a_secret_of_the_user_is_never_made_and_may_hold_anything),
        cmocka_unit_test(a_key_is_1024_printable_characters_and_never_the_same),
        CALLS(a_missing_key_is_created_once_after_the_api_server_came_back),
        CALLS(a_key_that_somebody_else_made_meanwhile_is_left_alone),
        CALLS(an_answer_that_got_lost_makes_no_second_key),
        CALLS(a_refusal_is_an_error_at_once),
        CALLS(an_api_server_that_stays_away_is_an_error_after_a_minute),
        CALLS(the_marking_patch_names_the_secret_that_was_read),
        CALLS(a_key_of_the_release_is_deleted_by_its_uid_and_another_stays),
        CALLS(only_helms_record_says_that_a_release_is_uninstalled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
