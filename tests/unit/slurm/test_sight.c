/* test_sight.c - only a positive fact says that our user sees every job. */
#include "slurm/sight.h"

#include "codec/base64.h"
#include "world.h"

static struct slurm_site site_of(const char *name)
{
    struct recording recording = recording_of(name);
    struct slurm_site site;

    assert_int_equal(slurm_site_decode(json_root(recording.doc), &site, NULL), 0);
    recording_done(&recording);
    return site;
}

static void the_configuration_tells_timeouts_user_and_restarts(void **state)
{
    struct slurm_site site = site_of("conf");

    assert_string_equal(site.slurm_user, "slurm");
    assert_string_equal(site.cluster, "slinc");
    assert_string_equal(site.version, "26.05.5");
    assert_int_equal(site.message_timeout_s, 10);
    assert_int_equal(site.min_job_age_s, 300);
    assert_int_equal(site.kill_wait_s, 45);
    assert_true(site.boot_time > 1700000000);
    assert_int_equal(site.next_job_id, 21);
    assert_int_equal(site.time, 1794723070); /* when it was recorded */
    assert_false(site.hides_jobs);
    assert_true(site_of("conf_private").hides_jobs);
    assert_string_equal(site_of("conf_private").private_data, "jobs,nodes");
}

static void half_a_configuration_is_none(void **state)
{
    static const char *const bodies[] = { "{}", "{\"slurm_conf\":{}}",
                                          "{\"slurm_conf\":{\"SlurmUser\":\"slurm\"}}",
                                          "{\"slurm_conf\":{\"PrivateData\":[]}}", "null" };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct slurm_site site;
        struct json_doc *doc;

        assert_int_equal(json_parse(str_of(bodies[i]), 1000, &doc, NULL), 0);
        assert_int_equal(slurm_site_decode(json_root(doc), &site, NULL), -ERR_INVALID);
        json_doc_free(doc);
    }
}

static void sight_follows_from_user_privacy_and_level(void **state)
{
    static const struct {
        const char *site, *user, *level;
        enum slurm_sight sight;
    } rows[] = {
        { "conf", "slurm", NULL, SLURM_SEES_ALL },
        { "conf", "anna", NULL, SLURM_SEES_ALL },
        { "conf", "", NULL, SLURM_SEES_ALL },
        { "conf_private", "slurm", NULL, SLURM_SEES_ALL },
        { "conf_private", "root", NULL, SLURM_SEES_ALL },
        { "conf_private", "anna", "Operator", SLURM_SEES_ALL },
        { "conf_private", "anna", "Administrator", SLURM_SEES_ALL },
        { "conf_private", "anna", "None", SLURM_SEES_PART },
        { "conf_private", "anna", NULL, SLURM_SIGHT_UNKNOWN },
        { "conf_private", "", NULL, SLURM_SIGHT_UNKNOWN },
        { NULL, "slurm", NULL, SLURM_SIGHT_UNKNOWN },
        { NULL, "root", NULL, SLURM_SEES_ALL },
        { NULL, "anna", "Operator", SLURM_SEES_ALL },
        { NULL, "anna", "None", SLURM_SIGHT_UNKNOWN },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slurm_site site = { 0 };
        char why[240] = "";

        if (rows[i].site)
            site = site_of(rows[i].site);
        if (slurm_sight_of(rows[i].site ? &site : NULL, rows[i].user, rows[i].level, why,
                           sizeof(why)) != rows[i].sight)
            fail_msg("row %zu: %s", i, why);
        assert_true(why[0]);
    }
}

static void a_clock_is_ahead_or_behind_by_what_no_delay_explains(void **state)
{
    static const struct {
        int64_t second, from_us, until_us, skew_us;
    } rows[] = {
        { 100, 100000000, 100010000, 0 },        { 100, 99000000, 100000000, 0 },
        { 100, 100999999, 101500000, 0 },        { 103, 100000000, 100010000, 2990000 },
        { 100, 105000000, 105010000, -4000000 }, { 0, 105000000, 105010000, 0 },
        { 100, 90000000, 110000000, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(slurm_clock_skew_us(rows[i].second, rows[i].from_us, rows[i].until_us),
                         rows[i].skew_us);
    (void)state;
}

struct told {
    int64_t skew_us;
    unsigned times;
    enum slurm_sight sight;
    bool has_site;
};

static void on_told(void *context, enum slurm_sight sight, const char *why,
                    const struct slurm_site *site)
{
    struct told *told = context;

    assert_true(why[0]);
    told->times++;
    told->sight = sight;
    told->has_site = site != NULL;
    told->skew_us = site ? site->skew_us : 0;
}

static enum slurm_sight check(struct world *world, const char *user, struct told *ret_told)
{
    struct slurm_client_options options = { .version = 45, .user = user, .read_timeout_us = 5000 };
    struct slurm_sight_check sight_check;

    *ret_told = (struct told){ 0 };
    world_client(world, &options);
    slurm_can_see_all(&sight_check, world->client, on_told, ret_told);
    loop_run(world->loop);
    assert_int_equal(ret_told->times, 1);
    return ret_told->sight;
}

static void the_check_asks_the_accounting_only_when_it_must(void **state)
{
    struct world *world = *state;
    struct told told;

    world_plays(world, "GET", V45 "/conf", "conf_private");
    assert_int_equal(check(world, NULL, &told), SLURM_SEES_ALL); /* the token is SlurmUser's */
    assert_true(told.has_site);
    assert_int_equal(fake_sent_count(world->fake), 1);
    world_plays(world, "GET", V45 "/conf", "conf_private");
    world_answers(world, "GET", "/slurmdb/v0.0.45/user/anna", 200,
                  "{\"users\":[{\"administrator_level\":[\"Operator\"]}],\"errors\":[]}");
    assert_int_equal(check(world, "anna", &told), SLURM_SEES_ALL);
    world_plays(world, "GET", V45 "/conf", "conf_private");
    world_answers(world, "GET", "/slurmdb/v0.0.45/user/anna", 200,
                  "{\"users\":[{\"administrator_level\":[\"None\"]}],\"errors\":[]}");
    assert_int_equal(check(world, "anna", &told), SLURM_SEES_PART);
    world_plays(world, "GET", V45 "/conf", "conf_private");
    world_plays(world, "GET", "/slurmdb/v0.0.45/user/anna", "slurmdb_off");
    assert_int_equal(check(world, "anna", &told), SLURM_SIGHT_UNKNOWN);
    world_plays(world, "GET", V45 "/conf", "bad_token_read");
    world_plays(world, "GET", "/slurmdb/v0.0.45/user/anna", "slurmdb_off");
    assert_int_equal(check(world, "anna", &told), SLURM_SIGHT_UNKNOWN);
    assert_false(told.has_site);
}

/* A token of an identity provider has no claim `sun`: only slurmctld's configuration tells which
 * claim is the user. */
static void the_check_learns_which_claim_of_the_token_is_its_user(void **state)
{
    static const char *const parameters[] = {
        "\"jwks=/keys.json,userclaimfield=preferred_username\"",
        "[\"jwks=/keys.json\",\"userclaimfield=preferred_username\"]"
    };
    struct world *world = *state;
    struct told told;

    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
        auto_buf struct buf text = { .max = 1024 };
        struct slurm_token *token = NULL;
        struct slurm_sight_check sight_check;

        base64_encode(STR("{}"), BASE64_URL | BASE64_UNPADDED, &text);
        buf_add_char(&text, '.');
        base64_encode(STR("{\"preferred_username\":\"slurm\"}"), BASE64_URL | BASE64_UNPADDED,
                      &text);
        buf_add_text(&text, ".c2lnbmVk");
        assert_int_equal(slurm_token_new_static(buf_str(&text), &token, NULL), 0);
        buf_clear(&text);
        buf_printf(&text,
                   "{\"slurm_conf\":{\"PrivateData\":[\"jobs\"],\"SlurmUser\":\"slurm\","
                   "\"AuthAltParameters\":%s}}",
                   parameters[i]);
        world_answers(world, "GET", V45 "/conf", 200, buf_text(&text));
        world_client(world, &(struct slurm_client_options){ .version = 45 });
        slurm_client_set_token(world->client, token);
        told = (struct told){ 0 };
        slurm_can_see_all(&sight_check, world->client, on_told, &told);
        loop_run(world->loop);
        assert_int_equal(told.sight, SLURM_SEES_ALL); /* by the claim it is SlurmUser's */
        assert_string_equal(slurm_token_user(token), "slurm");
        slurm_client_set_token(world->client, world->token);
        slurm_token_free(token);
    }
}

static void the_check_compares_the_clocks(void **state)
{
    struct world *world = *state;
    struct told told;

    world_plays(world, "GET", V45 "/conf", "conf");
    check(world, NULL, &told);
    assert_int_equal(told.skew_us,
                     INT64_C(1794723070) * 1000000 - clock_wall_us(loop_clock(world->loop)));
}

static void a_stopped_check_is_silent(void **state)
{
    struct world *world = *state;
    struct slurm_sight_check sight_check;
    struct told told = { 0 };

    world_plays(world, "GET", V45 "/conf", "conf");
    slurm_can_see_all(&sight_check, world->client, on_told, &told);
    slurm_sight_stop(&sight_check);
    slurm_sight_stop(&sight_check);
    loop_run(world->loop);
    assert_int_equal(told.times, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_configuration_tells_timeouts_user_and_restarts),
        cmocka_unit_test(half_a_configuration_is_none),
        cmocka_unit_test(sight_follows_from_user_privacy_and_level),
        cmocka_unit_test(a_clock_is_ahead_or_behind_by_what_no_delay_explains),
        TEST(the_check_asks_the_accounting_only_when_it_must),
        TEST(the_check_learns_which_claim_of_the_token_is_its_user),
        TEST(the_check_compares_the_clocks),
        TEST(a_stopped_check_is_silent),
    };

    return cmocka_run_group_tests_name("sight", tests, NULL, NULL);
}
