/* test_submit.c - one job per key: what an ask carries, how its answer is judged, how it is found.
 */
#include "slurm/submit.h"

#include "codec/jwt.h"
#include "slurm/calls.h"
#include "world.h"

#include <inttypes.h>

#include <stdio.h>

static const struct slurm_owner ours = { .cluster = { "c0ffee", 6 },
                                         .release = { "ns/bridge", 9 },
                                         .secret = { "the secret of this installation", 31 } };
static const struct slurm_owner c = { .cluster = { "c", 1 }, .release = { "r", 1 } };

struct asking {
    struct json_build *build;
    struct slurm_submit_ask ask;
    struct str pods[2];
};

static void asking_init(struct asking *asking, struct str key)
{
    asking->build = json_build_new();
    asking->pods[0] = STR("default/a");
    asking->pods[1] = STR("default/\"b\"");
    asking->ask = (struct slurm_submit_ask){ .build = asking->build,
                                             .job = json_new_object(asking->build),
                                             .key = key,
                                             .owner = &ours,
                                             .pods = asking->pods,
                                             .pod_count = 2 };
}

static void an_ask_carries_its_key_twice_and_the_pods_first(void **state)
{
    struct asking asking;
    auto_buf struct buf body;

    buf_init(&body, SLURM_MAX_SUBMIT);
    asking_init(&asking, STR("uid-1/2"));
    json_put_text(asking.build, asking.ask.job, "name", "x");
    json_put_text(asking.build, asking.ask.job, "extra", "is replaced");
    asking.ask.at_once = true;
    assert_int_equal(slurm_submit_body(&asking.ask, &body, NULL), 0);
    assert_string_equal(
        buf_text(&body),
        "{\"job\":{\"name\":\"x\",\"extra\":\"uid-1/2 c0ffee ns/bridge\",\"admin_comment\":"
        "\"{\\\"pods\\\":[\\\"default/a\\\",\\\"default/\\\\\\\"b\\\\\\\"\\\"],\\\"v\\\":1,"
        "\\\"cluster\\\":\\\"c0ffee\\\",\\\"release\\\":\\\"ns/bridge\\\",\\\"unit\\\":\\\"uid-1/"
        "2\\\"}\",\"immediate\":true}}");
    json_build_free(asking.build);
}

static void an_ask_may_carry_a_note_of_its_owner(void **state)
{
    char longest[SLURM_MAX_NOTE + 1];
    struct asking asking;
    auto_buf struct buf body;

    buf_init(&body, SLURM_MAX_SUBMIT);
    memset(longest, 'n', sizeof(longest));
    asking_init(&asking, STR("k"));
    asking.ask.pod_count = 0;
    asking.ask.note = STR("1 \"2\"");
    assert_int_equal(slurm_submit_body(&asking.ask, &body, NULL), 0);
    assert_non_null(
        strstr(buf_text(&body),
               "\"{\\\"pods\\\":[],\\\"v\\\":1,\\\"cluster\\\":\\\"c0ffee\\\","
               "\\\"release\\\":\\\"ns/bridge\\\",\\\"unit\\\":\\\"k\\\",\\\"note\\\":\\\"1 "
               "\\\\\\\"2\\\\\\\"\\\"}\""));
    asking.ask.note = (struct str){ longest, SLURM_MAX_NOTE };
    assert_int_equal(slurm_submit_body(&asking.ask, &body, NULL), 0);
    asking.ask.note = (struct str){ longest, SLURM_MAX_NOTE + 1 };
    assert_int_equal(slurm_submit_body(&asking.ask, &body, NULL), -ERR_TOO_BIG);
    json_build_free(asking.build);
}

static void an_ask_without_a_fit_key_is_refused(void **state)
{
    struct world *world = *state;
    char longest[SLURM_MAX_KEY + 2];
    struct str keys[] = {
        STR(""), STR("a b"), STR("a\nb"), STR("\xc3\xa4"), { longest, SLURM_MAX_KEY - 60 }
    };
    struct slurm_submit_outcome outcome;
    struct slurm_owner nobody = ours;
    struct asking asking;
    struct buf body;

    nobody.cluster = STR("");
    memset(longest, 'k', sizeof(longest));
    for (size_t i = 0; i < 5; i++) {
        asking_init(&asking, keys[i]);
        slurm_submit(world->client, &asking.ask, world_done, world);
        assert_int_equal(world_ends(world), SLURM_INVALID);
        slurm_submit_judge(&world->answer, 5, &outcome);
        assert_int_equal(outcome.result, SLURM_REFUSED);
        json_build_free(asking.build);
    }
    asking_init(&asking, STR("k"));
    asking.ask.owner = &nobody;
    buf_init(&body, 100);
    assert_int_equal(slurm_submit_body(&asking.ask, &body, NULL), -ERR_INVALID);
    json_build_free(asking.build);
    asking_init(&asking, (struct str){ longest, SLURM_MAX_KEY - 61 });
    assert_int_equal(slurm_submit_body(&asking.ask, &body, NULL), -ERR_TOO_BIG); /* of the buffer */
    json_build_free(asking.build);
    buf_done(&body);
}

static void a_comment_has_a_bound(void **state)
{
    static char pod[4096];
    struct str *pods = mem_alloc_array(300, sizeof(*pods));
    struct asking asking;
    struct buf body;

    memset(pod, 'p', sizeof(pod));
    for (size_t i = 0; i < 300; i++)
        pods[i] = (struct str){ pod, sizeof(pod) };
    asking_init(&asking, STR("k"));
    asking.ask.pods = pods;
    asking.ask.pod_count = 300;
    buf_init(&body, SLURM_MAX_SUBMIT);
    assert_int_equal(slurm_submit_body(&asking.ask, &body, NULL), -ERR_TOO_BIG);
    buf_done(&body);
    json_build_free(asking.build);
    mem_free(pods);
}

static void a_cancel_has_a_token_that_dies_soon(void **state)
{
    struct world *world = *state;
    const char *const names[] = { "s7GWMEXEH1TG00" };
    struct jwt_claims claims;

    fake_answer(world->fake, "DELETE", V45 "/jobs/",
                (struct fake_answer){ .status = 200, .body = "{\"status\":[],\"errors\":[]}" });
    slurm_jobs_cancel_named(world->client, names, 1, world_done, world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    assert_int_equal(
        jwt_peek(str_of(fake_sent_header(fake_last_sent(world->fake), "X-SLURM-USER-TOKEN")),
                 &claims, NULL),
        0);
    assert_int_equal(claims.exp - claims.iat, 12);
}

static void an_ask_has_a_token_that_dies_with_its_deadline(void **state)
{
    struct world *world = *state;
    struct jwt_claims claims;
    struct slurm_submit_outcome outcome;
    struct asking asking;

    asking_init(&asking, STR("k"));
    asking.ask.message_timeout_s = 20;
    world_plays(world, "POST", V45 "/job/submit", "submit_done");
    slurm_submit(world->client, &asking.ask, world_done, world);
    assert_int_equal(world_ends(world), SLURM_DONE);
    slurm_submit_judge(&world->answer, 5, &outcome);
    assert_int_equal(outcome.result, SLURM_SUBMITTED);
    assert_int_equal(outcome.job_id, 9);
    assert_string_equal(outcome.sluid, "");
    assert_int_equal(
        jwt_peek(str_of(fake_sent_header(fake_last_sent(world->fake), "X-SLURM-USER-TOKEN")),
                 &claims, NULL),
        0);
    assert_int_equal(claims.exp - claims.iat, 22);
    assert_int_equal(fake_last_sent(world->fake)->deadline_us - fake_last_sent(world->fake)->at_us,
                     22 * SECOND_US);
    assert_int_equal(slurm_submit_fence_us(world->client, 20), 25 * SECOND_US);
    assert_int_equal(slurm_submit_fence_us(world->client, 0), 15 * SECOND_US);
    json_build_free(asking.build);
}

static void with_a_token_of_others_the_fence_is_a_minute_and_longer_than_the_deadline(void **state)
{
    struct world *world = *state;
    struct slurm_token *fixed;

    assert_int_equal(slurm_token_new_static(STR("abc"), &fixed, NULL), 0);
    slurm_client_set_token(world->client, fixed);
    assert_int_equal(slurm_submit_fence_us(world->client, 0), 60 * SECOND_US);
    assert_int_equal(slurm_submit_fence_us(world->client, 100), 105 * SECOND_US);
    slurm_client_set_token(world->client, world->token);
    slurm_token_free(fixed);
}

static void an_ask_at_once_goes_to_allocate(void **state)
{
    struct world *world = *state;
    struct slurm_submit_outcome outcome;
    struct asking asking;

    asking_init(&asking, STR("k"));
    asking.ask.at_once = true;
    asking.ask.user = "anna";
    world_plays(world, "POST", V45 "/job/allocate", "allocate_busy");
    slurm_submit(world->client, &asking.ask, world_done, world);
    assert_int_equal(world_ends(world), SLURM_BUSY);
    assert_string_equal(fake_sent_header(fake_last_sent(world->fake), "X-SLURM-USER-NAME"), "anna");
    slurm_submit_judge(&world->answer, 5, &outcome);
    assert_int_equal(outcome.result, SLURM_REFUSED);
    json_build_free(asking.build);
}

static void only_proof_is_a_refusal_and_only_an_id_is_a_job(void **state)
{
    static const struct {
        const char *recording; /* or */
        struct fake_answer answer;
        enum slurm_submit_result result;
        bool settles_at_once, is_answered;
    } rows[] = {
        { .recording = "submit_done", .result = SLURM_SUBMITTED },
        { .recording = "submit_unknown_field", .result = SLURM_SUBMITTED },
        { .recording = "submit_unsatisfiable", .result = SLURM_REFUSED },
        { .recording = "submit_excluded_unknown", .result = SLURM_REFUSED },
        { .recording = "submit_bad_partition", .result = SLURM_REFUSED },
        { .recording = "submit_as_nobody", .result = SLURM_REFUSED },
        { .recording = "submit_v42", .result = SLURM_REFUSED },
        { .recording = "body_not_json", .result = SLURM_REFUSED },
        { .recording = "unknown_version", .result = SLURM_REFUSED },
        { .recording = "submit_timeout", .result = SLURM_UNRESOLVED },
        { .recording = "submit_ctld_down", .result = SLURM_UNRESOLVED },
        { .answer = { .status = 422, .body = "{\"errors\":[{\"error_number\":2999}]}" },
          .result = SLURM_UNRESOLVED,
          .is_answered = true },
        { .answer = { .status = 500, .body = "{\"errors\":[{\"error_number\":9999}]}" },
          .result = SLURM_UNRESOLVED,
          .is_answered = true },
        { .answer = { .status = 500, .body = "{\"errors\":[{\"error_number\":1802}]}" },
          .result = SLURM_UNRESOLVED },
        { .answer = { .status = 502, .body = "{\"errors\":[{\"error_number\":7000}]}" },
          .result = SLURM_UNRESOLVED },
        { .answer = { .status = 500, .body = "{\"errors\":[{\"error_number\":104}]}" },
          .result = SLURM_UNRESOLVED },
        { .answer = { .status = 200, .body = EMPTY_BODY }, .result = SLURM_UNRESOLVED },
        { .answer = { .status = 200, .body = "{\"job_id\":7,\"errors\":[{\"error_number\":5}]}" },
          .result = SLURM_UNRESOLVED },
        { .answer = { .status = 503 }, .result = SLURM_UNRESOLVED },
        { .answer = { .class = ERR_UNKNOWN }, .result = SLURM_UNRESOLVED },
        { .answer = { .class = ERR_UNAVAILABLE },
          .result = SLURM_UNRESOLVED,
          .settles_at_once = true },
        { .answer = { .class = ERR_TIMEOUT }, .result = SLURM_UNRESOLVED, .settles_at_once = true },
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_submit_outcome outcome;
        struct asking asking;
        int64_t expected = 0;

        asking_init(&asking, STR("k"));
        if (rows[i].recording)
            world_plays(world, "POST", V45 "/job/submit", rows[i].recording);
        else
            fake_answer(world->fake, "POST", V45 "/job/submit", rows[i].answer);
        slurm_submit(world->client, &asking.ask, world_done, world);
        world_ends(world);
        slurm_submit_judge(&world->answer, 15 * SECOND_US, &outcome);
        if (outcome.result != rows[i].result)
            fail_msg("row %zu: %d (%s)", i, outcome.result, world->answer.error.text);
        if (outcome.result == SLURM_UNRESOLVED && !rows[i].settles_at_once)
            expected = fake_last_sent(world->fake)->at_us + 15 * SECOND_US;
        assert_int_equal(outcome.settles_us, expected);
        assert_int_equal(outcome.is_answered, rows[i].is_answered);
        assert_int_equal(fake_sent_count(world->fake), i + 1);
        json_build_free(asking.build);
    }
}

/* ---- finding ---- */

static struct slurm_list jobs_of(const char *items)
{
    struct slurm_list list;
    struct json_doc *doc;
    char text[4096];

    snprintf(text, sizeof(text), "{\"jobs\":[%s]}", items);
    assert_int_equal(json_parse(str_of(text), sizeof(text), &doc, NULL), 0);
    assert_int_equal(slurm_list_decode(&slurm_job_kind, json_root(doc), &list, NULL), 0);
    json_doc_free(doc);
    return list;
}

#define EXTERNAL ",\"flags\":[\"EXTERNAL_JOB\"]"

#define COMMENT_OF(cluster, release, unit)                                                         \
    "\"admin_comment\":\"{\\\"pods\\\":[],\\\"v\\\":1,\\\"cluster\\\":\\\"" cluster                \
    "\\\",\\\"release\\\":\\\"" release "\\\",\\\"unit\\\":\\\"" unit "\\\"}\""
#define COMMENT(cluster, unit) COMMENT_OF(cluster, "ns/bridge", unit)
#define REWRITTEN              "\"admin_comment\":\"seen by the site\""

static void a_job_is_ours_only_when_it_is_external_and_its_comment_names_us(void **state)
{
    static const struct {
        const char *job;
        bool ours;
    } rows[] = {
        { EXTERNAL "," COMMENT("c0ffee", "k"), true },
        { EXTERNAL ",\"extra\":\"x\"," COMMENT("c0ffee", "k"), true },
        { EXTERNAL ",\"extra\":\"k other ns/bridge\"," COMMENT("c0ffee", "k"), true },
        { EXTERNAL "," COMMENT("", "k"), false },
        { EXTERNAL "," COMMENT("other", "k"), false },
        { EXTERNAL "," COMMENT_OF("c0ffee", "ns/other", "k"), false },
        { EXTERNAL "," COMMENT_OF("c0ffee", "", "k"), false },
        { EXTERNAL "," COMMENT("c0ffee", "else"), false },
        /* Of a build that knew no releases. */
        { EXTERNAL ",\"extra\":\"k c0ffee\",\"admin_comment\":\"{\\\"pods\\\":[],\\\"v\\\":1,"
                   "\\\"cluster\\\":\\\"c0ffee\\\",\\\"unit\\\":\\\"k\\\"}\"",
          false },
        { EXTERNAL ",\"admin_comment\":\"{\\\"pods\\\":[\\\"a/b\\\"]}\"", false },
        { EXTERNAL, false },
        /* What every user can write. */
        { EXTERNAL ",\"extra\":\"k c0ffee ns/bridge\"", false },
        { EXTERNAL ",\"extra\":\"k c0ffee ns/bridge \"", false },
        { EXTERNAL ",\"extra\":\"k c0ffee\"," REWRITTEN, false },
        { EXTERNAL ",\"comment\":\"{\\\"cluster\\\":\\\"c0ffee\\\",\\\"release\\\":\\\"ns/"
                   "bridge\\\",\\\"unit\\\":\\\"k\\\"}\"",
          false },
        /* A job that runs something by itself, whatever its texts say. */
        { "," COMMENT("c0ffee", "k"), false },
        { ",\"flags\":[\"EXTERNAL\"]," COMMENT("c0ffee", "k"), false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[1000];
        struct slurm_list list;

        (void)snprintf(text, sizeof(text), "{\"job_id\":1%s}", rows[i].job);
        list = jobs_of(text);
        if (slurm_submit_is_for(slurm_job_of(list.at[0]), &ours, STR("k")) != rows[i].ours)
            fail_msg("%s", rows[i].job);
        slurm_list_done(&list);
    }
}

/* A mark by this secret for the key of this owner, in the job of a user whose number is 1000. */
struct marked {
    const char *cluster, *release, *key, *secret, *signed_for, *user, *comment;
    bool is_plain, ours;
};

static bool is_ours(const struct marked *row, const struct slurm_owner *reader)
{
    const struct slurm_owner writer = { .cluster = str_of(row->cluster),
                                        .release = str_of(row->release),
                                        .secret = str_of(row->secret) };
    auto_buf struct buf extra = { .max = SLURM_MAX_KEY };
    struct slurm_list list;
    char text[1000];
    bool result;

    assert_int_equal(
        slurm_mark_write(&writer, str_of(row->key), str_of(row->signed_for), &extra, NULL), 0);
    (void)snprintf(text, sizeof(text),
                   "{\"job_id\":1,\"user_name\":\"%s\",\"user_id\":1000,\"extra\":\"%s\",%s%s}",
                   row->user, buf_text(&extra), row->comment, row->is_plain ? "" : EXTERNAL);
    list = jobs_of(text);
    result = slurm_submit_is_for(slurm_job_of(list.at[0]), reader, STR("k"));
    slurm_list_done(&list);
    return result;
}

#define OWN_SECRET "the secret of this installation"

static void where_the_comment_was_rewritten_a_mark_counts_only_by_its_hmac(void **state)
{
    static const struct marked rows[] = {
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "slurm", "slurm", REWRITTEN, false, true },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "1000", "ann", REWRITTEN, false, true },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "slurm", "slurm", "\"admin_comment\":\"\"", false,
          true },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "slurm", "slurm", "\"admin_comment\":\"{broken\"",
          false, true },
        /* Copied into the job of another user, by name and by number. */
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "slurm", "mallory", REWRITTEN, false, false },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "1001", "mallory", REWRITTEN, false, false },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "", "", REWRITTEN, false, false },
        /* Made by somebody else. */
        { "c0ffee", "ns/bridge", "k", "a secret that somebody made up..", "slurm", "slurm",
          REWRITTEN, false, false },
        { "c0ffee", "ns/bridge", "k", "", "slurm", "slurm", REWRITTEN, false, false },
        /* Of others. */
        { "other", "ns/bridge", "k", OWN_SECRET, "slurm", "slurm", REWRITTEN, false, false },
        { "c0ffee", "ns/other", "k", OWN_SECRET, "slurm", "slurm", REWRITTEN, false, false },
        { "c0ffee", "ns/bridge", "else", OWN_SECRET, "slurm", "slurm", REWRITTEN, false, false },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "slurm", "slurm", COMMENT("other", "k"), false,
          false },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "slurm", "slurm",
          COMMENT_OF("c0ffee", "ns/other", "k"), false, false },
        { "c0ffee", "ns/bridge", "k", OWN_SECRET, "slurm", "slurm", REWRITTEN, true, false },
    };
    struct slurm_owner without = ours;

    without.secret = STR("");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (is_ours(&rows[i], &ours) != rows[i].ours)
            fail_msg("row %zu", i);
        assert_false(is_ours(&rows[i], &without)); /* without a secret there is no proof */
    }
}

static void the_hmac_of_one_key_is_none_of_another(void **state)
{
    static const char *const changes[][2] = { { "k c0ffee", "l c0ffee" },
                                              { "k c0ffee", "k c0ffef" },
                                              { "ns/bridge", "ns/bridgf" },
                                              { "k c0ffee", " c0ffee" } };

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        auto_buf struct buf extra = { .max = SLURM_MAX_KEY };
        struct slurm_owner reader = ours;
        struct slurm_job job = { .user = "slurm", .admin_comment = "" };
        struct str key;
        char *at;

        assert_int_equal(slurm_mark_write(&ours, STR("k"), STR("slurm"), &extra, NULL), 0);
        job.extra = buf_text(&extra);
        assert_true(slurm_mark_read(&ours, &job, &key));
        at = strstr(extra.data, changes[i][0]);
        assert_non_null(at);
        memcpy(at, changes[i][1], strlen(changes[i][1]));
        if (i == 1)
            reader.cluster = STR("c0ffef");
        if (i == 2)
            reader.release = STR("ns/bridgf");
        assert_false(slurm_mark_read(&reader, &job, &key));
    }
}

static void the_secret_before_counts_as_long_as_the_owner_has_it(void **state)
{
    static const struct marked row = {
        "c0ffee",  "ns/bridge", "k", "the secret before this one, kept", "slurm", "slurm",
        REWRITTEN, false,       true
    };
    struct slurm_owner owner = ours;
    struct err err = { .class = 0 };

    assert_int_equal(
        slurm_owner_read(&owner,
                         STR("the new secret of this installation\n"
                             "the secret before this one, kept 2026-11-20T00:00:00Z\n"),
                         NULL),
        -ERR_INVALID); /* a blank in it */
    assert_false(is_ours(&row, &owner));
    owner.former = STR("the secret before this one, kept");
    assert_true(is_ours(&row, &owner));
    owner.former = STR("");
    assert_false(is_ours(&row, &owner));
    assert_int_equal(
        slurm_owner_read(&owner,
                         STR("0123456789abcdef0123456789abcdef\n"
                             "fedcba9876543210fedcba9876543210 2026-11-20T00:00:00Z\n"),
                         &err),
        0);
    assert_true(str_is(owner.secret, "0123456789abcdef0123456789abcdef"));
    assert_true(str_is(owner.former, "fedcba9876543210fedcba9876543210"));
    assert_int_equal(owner.former_until_s, 1795132800);
    assert_int_equal(slurm_owner_read(&owner, STR("0123456789abcdef0123456789abcdef"), NULL), 0);
    assert_int_equal(owner.former.len, 0);
    assert_int_equal(slurm_owner_read(&owner, STR("too short\n"), &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "9 bytes"));
    assert_int_equal(slurm_owner_read(&owner,
                                      STR("0123456789abcdef0123456789abcdef\n"
                                          "fedcba9876543210fedcba9876543210\n"),
                                      NULL),
                     -ERR_INVALID);
}

static void a_key_is_a_unit_and_an_attempt_and_may_have_a_uid(void **state)
{
    static const struct {
        const char *text, *unit, *uid; /* unit NULL: it is none */
        unsigned attempt;
    } rows[] = {
        { "ns/u-1.1", "ns/u-1", "", 1 },
        { "ns/u.2.30", "ns/u.2", "", 30 },
        { "ns/podgroup/g@1-2.3", "ns/podgroup/g", "1-2", 3 },
        { "ns/lws/a.b@1-2.3", "ns/lws/a.b", "1-2", 3 },
        { "ns/u-1", NULL, "", 0 },
        { "ns/u-1.", NULL, "", 0 },
        { "ns/u-1.0", NULL, "", 0 },
        { "ns/u-1.x", NULL, "", 0 },
        { "ns/u-1.99999999999", NULL, "", 0 },
        { "@1.1", NULL, "", 0 },
        { ".1", NULL, "", 0 },
        { "", NULL, "", 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_key key;
        auto_buf struct buf text = { .max = SLURM_MAX_KEY };

        assert_int_equal(slurm_key_read(str_of(rows[i].text), &key), rows[i].unit != NULL);
        if (!rows[i].unit)
            continue;
        assert_true(str_is(key.unit, rows[i].unit) && str_is(key.uid, rows[i].uid));
        assert_int_equal(key.attempt, rows[i].attempt);
        slurm_key_write(&key, &text);
        assert_string_equal(buf_text(&text), rows[i].text);
    }
}

static void the_recorded_job_is_found_by_its_key(void **state)
{
    struct recording recording = recording_of("job_get");
    const struct slurm_job *found[1];
    struct slurm_list list;

    assert_int_equal(slurm_list_decode(&slurm_job_kind, json_root(recording.doc), &list, NULL), 0);
    assert_int_equal(slurm_submit_find(&list, &ours, STR("u-1/1"), found, 1), 1);
    assert_int_equal(found[0]->id, 9);
    assert_int_equal(slurm_submit_find(&list, &ours, STR("u-1/2"), found, 1), 0);
    assert_int_equal(slurm_submit_find(&list, &c, STR("u-1/1"), found, 1), 0);
    slurm_list_done(&list);
    recording_done(&recording);
}

#define K(unit) EXTERNAL "," COMMENT("c0ffee", unit)

static void ended_jobs_are_not_found_and_all_others_are_counted(void **state)
{
    struct slurm_list list = jobs_of("{\"job_id\":1" K(
        "k") ",\"job_state\":[\"FAILED\"]},"
             "{\"job_id\":2" K("k") ",\"job_state\":[\"PENDING\"]},"
                                    "{\"job_id\":3" K(
                                        "k") ",\"job_state\":[\"RUNNING\"]},"
                                             "{\"job_id\":4" K(
                                                 "k") ",\"job_state\":[\"NEW_IN_27\"]},"
                                                      "{\"job_id\":5" K(
                                                          "l") ",\"job_state\":[\"RUNNING\"]}");
    const struct slurm_job *found[2];

    assert_int_equal(slurm_submit_find(&list, &ours, STR("k"), found, 2), 3);
    assert_int_equal(found[0]->id, 2);
    assert_int_equal(found[1]->id, 3);
    slurm_list_done(&list);
}

static bool is_the_one(void *context, const struct slurm_job *job)
{
    return job->id == *(int64_t *)context;
}

static void of_several_the_one_with_pods_then_the_recorded_then_the_oldest_is_kept(void **state)
{
    struct slurm_list list = jobs_of("{\"job_id\":5,\"step_id\":{\"sluid\":\"s3\"}},"
                                     "{\"job_id\":9,\"step_id\":{\"sluid\":\"s1\"}},"
                                     "{\"job_id\":7,\"step_id\":{\"sluid\":\"s2\"}}");
    const struct slurm_job *jobs[3] = { slurm_job_of(list.at[0]), slurm_job_of(list.at[1]),
                                        slurm_job_of(list.at[2]) };
    int64_t bound = 5;
    struct slurm_submit_claim claim = { 0 };

    assert_int_equal(jobs[slurm_submit_choose(jobs, 3, &claim)]->id, 9);
    claim.recorded_id = 7;
    assert_int_equal(jobs[slurm_submit_choose(jobs, 3, &claim)]->id, 7);
    claim.recorded_sluid = "s2";
    assert_int_equal(jobs[slurm_submit_choose(jobs, 3, &claim)]->id, 7);
    claim.recorded_sluid = "s9"; /* the id was given to another job since */
    assert_int_equal(jobs[slurm_submit_choose(jobs, 3, &claim)]->id, 9);
    claim.has_pods = is_the_one;
    claim.context = &bound;
    assert_int_equal(jobs[slurm_submit_choose(jobs, 3, &claim)]->id, 5);
    assert_int_equal(slurm_submit_choose(jobs, 1, &claim), 0);
    slurm_list_done(&list);
    list = jobs_of("{\"job_id\":5,\"submit_time\":20},{\"job_id\":9,\"submit_time\":10},"
                   "{\"job_id\":8,\"submit_time\":10}");
    for (size_t i = 0; i < 3; i++)
        jobs[i] = slurm_job_of(list.at[i]);
    claim = (struct slurm_submit_claim){ 0 };
    assert_int_equal(jobs[slurm_submit_choose(jobs, 3, &claim)]->id, 8);
    slurm_list_done(&list);
}

/* ---- comments of jobs that are there ---- */

static void a_job_that_only_names_pods_gets_a_key_after_them(void **state)
{
    static const struct {
        const char *comment, *adopted; /* adopted NULL: it is none of such a kind */
    } cases[] = {
        { "{\\\"pods\\\":[\\\"ns/a\\\"]}",
          "{\"pods\":[\"ns/a\"],\"v\":1,\"cluster\":\"c0ffee\",\"release\":\"ns/bridge\","
          "\"unit\":\"k\"}" },
        { "{\\\"x\\\":1}", NULL },
        { "words", NULL },
        { "", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *fields = json_new_object(build);
        struct slurm_list list;
        int result;

        (void)snprintf(text, sizeof(text),
                       "{\"job_id\":7,\"user_id\":1000,\"admin_comment\":\"%s\"" EXTERNAL "}",
                       cases[i].comment);
        list = jobs_of(text);
        assert_false(slurm_submit_is_marked(slurm_job_of(list.at[0])));
        result = slurm_submit_adopt(slurm_job_of(list.at[0]), &ours, STR("k"), build, fields);
        assert_int_equal(result, cases[i].adopted ? 0 : -ERR_INVALID);
        if (cases[i].adopted) {
            auto_json_doc struct json_doc *doc = json_freeze(fields);
            struct slurm_job adopted = *slurm_job_of(list.at[0]);

            adopted.admin_comment = json_str(json_get(json_root(doc), "admin_comment")).at;
            assert_string_equal(adopted.admin_comment, cases[i].adopted);
            assert_true(slurm_submit_is_marked(&adopted));
            adopted.extra = json_str(json_get(json_root(doc), "extra")).at;
            adopted.admin_comment = ""; /* a plugin was there */
            assert_true(slurm_submit_is_for(&adopted, &ours, STR("k")));
        }
        slurm_list_done(&list);
    }
}

static void the_pods_of_a_job_of_ours_may_become_others(void **state)
{
    const struct str pods[] = { STR("ns/a"), STR("ns/b") };
    struct slurm_list list =
        jobs_of("{\"job_id\":7,\"admin_comment\":\"{\\\"pods\\\":[\\\"ns/x\\\"],\\\"v\\\":1,"
                "\\\"cluster\\\":\\\"c\\\",\\\"release\\\":\\\"r\\\",\\\"unit\\\":\\\"k.3\\\"}\"},"
                "{\"job_id\":8,\"admin_comment\":\"{\\\"pods\\\":[]}\"}");
    auto_buf struct buf out;

    (void)state;
    buf_init(&out, SLURM_MAX_COMMENT);
    assert_int_equal(slurm_submit_comment(slurm_job_of(list.at[0]), pods, 2, STR(""), &out), 0);
    assert_string_equal(buf_text(&out),
                        "{\"pods\":[\"ns/a\",\"ns/"
                        "b\"],\"v\":1,\"cluster\":\"c\",\"release\":\"r\",\"unit\":\"k.3\"}");
    assert_int_equal(slurm_submit_comment(slurm_job_of(list.at[1]), pods, 2, STR("n"), &out),
                     -ERR_INVALID);
    slurm_list_done(&list);
}

#define NOTED                                                                                      \
    "{\"job_id\":7,\"admin_comment\":\"{\\\"pods\\\":[\\\"ns/x\\\"],\\\"v\\\":1,"                  \
    "\\\"cluster\\\":\\\"c\\\",\\\"release\\\":\\\"r\\\",\\\"unit\\\":\\\"k.3\\\","                \
    "\\\"note\\\":\\\"old\\\"}\"}"

static void what_is_not_given_stays_in_a_comment(void **state)
{
    static const struct {
        size_t pod_count;
        struct str note;
        const char *comment;
    } rows[] = {
        { 0, STR(""),
          "{\"pods\":[\"ns/x\"],\"v\":1,\"cluster\":\"c\",\"release\":\"r\",\"unit\":\"k.3\","
          "\"note\":\"old\"}" },
        { 0, STR("new"),
          "{\"pods\":[\"ns/x\"],\"v\":1,\"cluster\":\"c\",\"release\":\"r\",\"unit\":\"k.3\","
          "\"note\":\"new\"}" },
        { 1, STR(""),
          "{\"pods\":[\"ns/a\"],\"v\":1,\"cluster\":\"c\",\"release\":\"r\",\"unit\":\"k.3\","
          "\"note\":\"old\"}" },
        { 1, STR("new"),
          "{\"pods\":[\"ns/a\"],\"v\":1,\"cluster\":\"c\",\"release\":\"r\",\"unit\":\"k.3\","
          "\"note\":\"new\"}" },
    };
    const struct str pods[] = { STR("ns/a") };
    char longest[SLURM_MAX_NOTE + 1];
    struct slurm_list list = jobs_of(NOTED);
    const struct slurm_job *job = slurm_job_of(list.at[0]);
    auto_buf struct buf none = { .max = SLURM_MAX_COMMENT };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_buf struct buf out = { .max = SLURM_MAX_COMMENT };

        assert_int_equal(slurm_submit_comment(job, rows[i].pod_count ? pods : NULL,
                                              rows[i].pod_count, rows[i].note, &out),
                         0);
        assert_string_equal(buf_text(&out), rows[i].comment);
    }
    memset(longest, 'n', sizeof(longest));
    assert_int_equal(
        slurm_submit_comment(job, NULL, 0, (struct str){ longest, sizeof(longest) }, &none),
        -ERR_TOO_BIG);
    slurm_list_done(&list);
}

static void a_note_is_only_read_in_a_comment_of_ours(void **state)
{
    static const struct {
        const char *job, *note; /* NULL: none */
    } rows[] = {
        { NOTED, "old" },
        { "{\"job_id\":1," COMMENT("c", "k") "}", NULL },
        { "{\"job_id\":1,\"admin_comment\":\"{\\\"note\\\":\\\"old\\\"}\"}", NULL },
        { "{\"job_id\":1,\"admin_comment\":\"{\\\"cluster\\\":\\\"c\\\",\\\"note\\\":\\\"o\\\"}\"}",
          NULL },
        { "{\"job_id\":1,\"admin_comment\":\"{\\\"cluster\\\":\\\"c\\\",\\\"release\\\":\\\"r\\\","
          "\\\"unit\\\":\\\"k\\\",\\\"note\\\":7}\"}",
          NULL },
        { "{\"job_id\":1,\"admin_comment\":\"{broken\"}", NULL },
        { "{\"job_id\":1,\"admin_comment\":\"[1]\"}", NULL },
        { "{\"job_id\":1,\"admin_comment\":\"words\"}", NULL },
        { "{\"job_id\":1}", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_list list = jobs_of(rows[i].job);
        auto_buf struct buf note = { .max = SLURM_MAX_NOTE };

        if (slurm_submit_note(slurm_job_of(list.at[0]), &note) != (rows[i].note != NULL))
            fail_msg("%s", rows[i].job);
        assert_string_equal(buf_text(&note), rows[i].note ? rows[i].note : "");
        slurm_list_done(&list);
    }
}

static void a_note_that_nobody_could_have_written_is_none(void **state)
{
    char job[SLURM_MAX_NOTE + 200], note[SLURM_MAX_NOTE + 2] = "";
    auto_buf struct buf out = { .max = SLURM_MAX_COMMENT };

    (void)state;
    memset(note, 'n', SLURM_MAX_NOTE);
    for (int i = 0; i < 2; i++) {
        struct slurm_list list;

        (void)snprintf(
            job, sizeof(job),
            "{\"job_id\":1,\"admin_comment\":\"{\\\"cluster\\\":\\\"c\\\","
            "\\\"release\\\":\\\"r\\\",\\\"unit\\\":\\\"k\\\",\\\"note\\\":\\\"%s\\\"}\"}",
            note);
        list = jobs_of(job);
        assert_int_equal(slurm_submit_note(slurm_job_of(list.at[0]), &out), i == 0);
        slurm_list_done(&list);
        note[SLURM_MAX_NOTE] = 'n'; /* one too many */
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ask_carries_its_key_twice_and_the_pods_first),
        cmocka_unit_test(an_ask_may_carry_a_note_of_its_owner),
        TEST(an_ask_without_a_fit_key_is_refused),
        cmocka_unit_test(a_comment_has_a_bound),
        TEST(a_cancel_has_a_token_that_dies_soon),
        TEST(an_ask_has_a_token_that_dies_with_its_deadline),
        TEST(with_a_token_of_others_the_fence_is_a_minute_and_longer_than_the_deadline),
        TEST(an_ask_at_once_goes_to_allocate),
        TEST(only_proof_is_a_refusal_and_only_an_id_is_a_job),
        cmocka_unit_test(a_job_is_ours_only_when_it_is_external_and_its_comment_names_us),
        cmocka_unit_test(where_the_comment_was_rewritten_a_mark_counts_only_by_its_hmac),
        cmocka_unit_test(the_hmac_of_one_key_is_none_of_another),
        cmocka_unit_test(the_secret_before_counts_as_long_as_the_owner_has_it),
        cmocka_unit_test(a_key_is_a_unit_and_an_attempt_and_may_have_a_uid),
        cmocka_unit_test(the_recorded_job_is_found_by_its_key),
        cmocka_unit_test(a_job_that_only_names_pods_gets_a_key_after_them),
        cmocka_unit_test(the_pods_of_a_job_of_ours_may_become_others),
        cmocka_unit_test(what_is_not_given_stays_in_a_comment),
        cmocka_unit_test(a_note_is_only_read_in_a_comment_of_ours),
        cmocka_unit_test(a_note_that_nobody_could_have_written_is_none),
        cmocka_unit_test(ended_jobs_are_not_found_and_all_others_are_counted),
        cmocka_unit_test(of_several_the_one_with_pods_then_the_recorded_then_the_oldest_is_kept),
    };

    return cmocka_run_group_tests_name("submit", tests, NULL, NULL);
}
