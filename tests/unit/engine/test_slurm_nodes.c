/* test_slurm_nodes.c - nodes are made, changed and deleted many at a time, and an action is over
 * when the cache shows it. */
#include "slurm_lane_rig.h"

static struct slurm_node_ask shape(const char *name, const char *address)
{
    return (struct slurm_node_ask){ .names = name, .address = address, .cpus = 4, .memory = 1000 };
}

static struct end *create(struct rig *rig, const struct slurm_node_ask *ask)
{
    return rig_do(rig, plan_slurm_create_node(&rig->plan, ask));
}

static struct end *create_plain(struct rig *rig, unsigned number)
{
    char name[32], address[32];
    struct slurm_node_ask ask = shape(name, address);

    snprintf(name, sizeof(name), "n%u", number);
    snprintf(address, sizeof(address), "10.0.%u.%u", number / 250, number % 250);
    return create(rig, &ask);
}

/* In one call, and to its end. */
static void create_ten(struct rig *rig)
{
    for (unsigned i = 0; i < 10; i++)
        create_plain(rig, i);
    rig_run(rig, MS_US);
    rig_sync(rig);
    rig_run(rig, SECOND_US);
}

static struct end *update(struct rig *rig, const char *name, const char *extra)
{
    struct json_mut *fields = json_new_object(rig->build);

    json_put_text(rig->build, fields, "extra", extra);
    return rig_do(rig, plan_slurm_update_node(&rig->plan, name, fields));
}

static struct end *delete(struct rig *rig, const char *name, const struct action_unless *unless)
{
    return rig_do(rig, plan_slurm_delete_node(&rig->plan, name, unless));
}

static void one_node_is_made_read_and_then_over(void **state)
{
    struct rig *rig = *state;
    struct slurm_node_ask ask = shape("n1", "10.0.0.1");
    const struct end *end;

    rig_answers(rig, "POST", "/new/node/", 200, FINE);
    fake_answer(rig->fake, "GET", V45 "/node/n1",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"nodes\":[{\"name\":\"n1\"}],\"errors\":[]}",
                                      .delay_us = SECOND_US });
    end = create(rig, &ask);
    rig_run(rig, SECOND_US / 2);
    assert_false(end->is_over); /* it is made, but no plan could see it */
    assert_non_null(strstr(fake_sent(rig->fake, 0)->body, "NodeName=n1 NodeAddr=10.0.0.1"));
    rig_run(rig, SECOND_US);
    assert_true(end->is_over);
    assert_int_equal(end->outcome, KUBE_DONE);
    assert_non_null(slurm_cache_get(rig->nodes, "n1"));
    assert_string_equal(buf_text(&rig->settled), "n1;");
}

static int64_t time_passes(void *context, const struct fake_sent *sent)
{
    (void)sent;
    clock_advance_us(context, 1);
    return 0;
}

/* A clock does not stand still while an answer is taken. The read that this answer begins is later
 * than the answer; otherwise only the next poll, seconds later, would end the action. */
static void the_read_that_an_answer_begins_is_later_than_the_answer(void **state)
{
    struct rig *rig = *state;
    struct slurm_node_ask ask = shape("n1", "10.0.0.1");
    const struct end *end;

    fake_travel(rig->fake, time_passes, &rig->clock);
    rig_answers(rig, "POST", "/new/node/", 200, FINE);
    fake_answer(rig->fake, "GET", V45 "/node/n1",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"nodes\":[{\"name\":\"n1\"}],\"errors\":[]}" });
    end = create(rig, &ask);
    rig_run(rig, SECOND_US / 5);
    assert_true(end->is_over);
    assert_int_equal(end->outcome, KUBE_DONE);
}

static void a_read_that_never_comes_holds_nothing_up_for_ever(void **state)
{
    struct rig *rig = *state;
    struct slurm_node_ask ask = shape("n1", "10.0.0.1");
    const struct end *end;

    rig_answers(rig, "POST", "/new/node/", 200, FINE);
    fake_answer(rig->fake, "GET", V45 "/node/n1",
                (struct fake_answer){ .status = 500, .body = "", .times = FAKE_ALWAYS });
    end = create(rig, &ask);
    rig_run(rig, 6 * SECOND_US);
    assert_true(end->is_over);
    assert_int_equal(end->outcome, KUBE_DONE);
}

static void alike_nodes_of_one_turn_are_one_line_with_their_addresses(void **state)
{
    struct rig *rig = *state;
    struct slurm_node_ask other = shape("big", "10.9.9.9");
    const struct end *ends[10];

    other.cpus = 64;
    rig_answers(rig, "POST", "/new/node/", 200, FINE);
    rig_answers(rig, "POST", "/new/node/", 200, FINE);
    rig_reads_node(rig, "big");
    for (unsigned i = 0; i < 9; i++)
        ends[i] = create_plain(rig, i);
    ends[9] = create(rig, &other);
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/new/node/"), 2);
    assert_non_null(strstr(fake_sent(rig->fake, 0)->body,
                           "NodeName=n0,n1,n2,n3,n4,n5,n6,n7,n8 "
                           "NodeAddr=10.0.0.0,10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5,"
                           "10.0.0.6,10.0.0.7,10.0.0.8 "));
    assert_non_null(strstr(fake_sent(rig->fake, 1)->body, "NodeName=big "));
    assert_int_equal(rig_sent(rig, "GET", "/node/"), 1); /* of the single one */
    assert_false(ends[0]->is_over);
    rig_sync(rig); /* the list that began later */
    rig_run(rig, SECOND_US);
    for (unsigned i = 0; i < 10; i++)
        assert_true(ends[i]->is_over && ends[i]->outcome == KUBE_DONE);
    assert_int_equal(rig_sent(rig, "POST", "/new/node/"), 2);
}

static void nodes_with_gres_are_made_one_by_one_and_two_calls_at_a_time(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[3];
    char name[16];

    for (int i = 0; i < 3; i++) {
        struct slurm_node_ask ask;

        snprintf(name, sizeof(name), "g%d", i);
        ask = shape(name, "10.0.0.1");
        ask.gres = "gpu:1";
        ask.gres_conf = "count=1,name=gpu";
        fake_answer(rig->fake, "POST", V45 "/new/node/",
                    (struct fake_answer){ .status = 200, .body = FINE, .delay_us = SECOND_US });
        rig_reads_node(rig, name);
        ends[i] = create(rig, &ask);
    }
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/new/node/"), 2);
    rig_run(rig, SECOND_US);
    assert_int_equal(rig_sent(rig, "POST", "/new/node/"), 3);
    rig_run(rig, 2 * SECOND_US);
    for (int i = 0; i < 3; i++)
        assert_true(ends[i]->is_over && ends[i]->outcome == KUBE_DONE);
}

static void at_most_500_nodes_are_made_by_one_call(void **state)
{
    struct rig *rig = *state;

    fake_answer(rig->fake, "POST", V45 "/new/node/",
                (struct fake_answer){ .status = 200, .body = FINE, .times = FAKE_ALWAYS });
    rig_reads_node(rig, "n1000"); /* the last one is alone */
    for (unsigned i = 0; i < 1001; i++)
        create_plain(rig, i);
    rig_run(rig, MS_US);
    assert_int_equal(rig_sent(rig, "POST", "/new/node/"), 3);
    rig_sync(rig);
    rig_run(rig, 6 * SECOND_US);
    for (unsigned i = 0; i < 1001; i++)
        assert_true(rig->ends[i].is_over);
}

static void what_would_spoil_a_call_is_refused_alone(void **state)
{
    static const struct {
        const char *name, *address, *features, *gres;
    } bad[] = {
        { "n[1-2]", "10.0.0.1", NULL, NULL },
        { "a,b", "10.0.0.1", NULL, NULL },
        { "", "10.0.0.1", NULL, NULL },
        { "n1", "", NULL, NULL },
        { "n1", "10.0.0.1,10.0.0.2", NULL, NULL }, /* would end slurmctld */
        { "n1", "10.0.0.[1-2]", NULL, NULL },
        { "n1", "10.0.0.1 State=DOWN", NULL, NULL },
        { "n1", "10.0.0.1", "a b\n", NULL },
        { "n1", "10.0.0.1", NULL, "gpu:1" },
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct slurm_node_ask ask = shape(bad[i].name, bad[i].address);
        const struct end *end;

        ask.features = bad[i].features;
        ask.gres = bad[i].gres;
        end = create(rig, &ask);
        rig_run(rig, MS_US);
        if (!end->is_over || end->outcome != KUBE_INVALID)
            fail_msg("case %zu: %s", i, kube_outcome_name(end->outcome));
        assert_string_not_equal(end->message, "");
    }
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void a_node_that_exists_makes_all_of_the_call_be_planned_again(void **state)
{
    struct rig *rig = *state;
    char text[200];

    rig_answers(rig, "POST", "/new/node/", 422, rig_refusal(2168, text));
    create_ten(rig);
    for (unsigned i = 0; i < 10; i++)
        assert_true(rig->ends[i].is_over && rig->ends[i].outcome == KUBE_CONFLICT);
    assert_int_equal(rig_sent(rig, "GET", "/node/"), 0);
}

/* One node of 16 is refused: calls get smaller until it is alone and is told. */
static struct fake_answer no_thirteen(void *context, const struct fake_sent *sent)
{
    static char text[200];
    struct fake_answer answer = { .status = 200, .body = FINE };

    if (strcmp(sent->method, "GET") == 0)
        return (struct fake_answer){ .status = 500, .body = "" };
    if (strstr(sent->body, "n13"))
        answer = (struct fake_answer){ .status = 500, .body = rig_refusal(-1, text) };
    return answer;
}

static void a_bad_node_is_soon_alone(void **state)
{
    struct rig *rig = *state;
    bool made[16] = { false };
    unsigned rounds = 0, left = 16;

    fake_serve(rig->fake, no_thirteen, NULL);
    while (left > 1 && rounds++ < 12) {
        const struct end *ends[16];

        for (unsigned i = 0; i < 16; i++)
            ends[i] = made[i] ? NULL : create_plain(rig, i);
        for (unsigned k = 0; k < 20; k++) {
            rig_run(rig, SECOND_US / 10);
            rig_sync(rig);
        }
        for (unsigned i = 0; i < 16; i++) {
            if (!ends[i])
                continue;
            assert_true(ends[i]->is_over);
            made[i] = ends[i]->outcome == KUBE_DONE;
            left -= made[i];
        }
    }
    assert_int_equal(left, 1);
    assert_false(made[13]);
    assert_true(rounds <= 6);

    const struct end *end = create_plain(rig, 13);

    rig_run(rig, 6 * SECOND_US);
    assert_int_equal(end->outcome, KUBE_INVALID);
}

/* What is remembered of the last action: NULL when it was not refused, or is another one's. */
static const char *refusal(const struct rig *rig, const char *node)
{
    const struct action *last = list_item(rig->plan.actions.prev, const struct action, link);
    auto_buf struct buf detail;

    buf_init(&detail, 1 << 16);
    last->type->write(last, &detail);
    return node_refusals_why(rig->lane.node_refusals, str_of(node), buf_str(&detail));
}

static void what_slurm_refuses_about_a_node_is_remembered_until_it_is_done(void **state)
{
    struct rig *rig = *state;
    char text[200];

    fake_serve(rig->fake, no_thirteen, NULL);
    create_plain(rig, 13);
    rig_run(rig, 6 * SECOND_US);
    assert_non_null(refusal(rig, "n13"));
    assert_null(refusal(rig, "n12"));
    fake_serve(rig->fake, NULL, NULL);
    rig_answers(rig, "POST", "/node/n13", 200, FINE);
    rig_reads_node(rig, "n13");
    update(rig, "n13", "ours"); /* that goes well, and is something else */
    rig_run(rig, SECOND_US);
    assert_null(refusal(rig, "n13"));
    assert_true(node_refusals_have(rig->lane.node_refusals, STR("n13")));
    rig_answers(rig, "POST", "/new/node/", 422, rig_refusal(2169, text)); /* MaxNodeCount */
    rig_reads_node(rig, "n13");
    create_plain(rig, 13);
    rig_run(rig, SECOND_US);
    assert_non_null(refusal(rig, "n13"));
    rig_answers(rig, "POST", "/new/node/", 200, FINE);
    rig_reads_node(rig, "n13");
    create_plain(rig, 13);
    rig_run(rig, SECOND_US);
    assert_null(refusal(rig, "n13"));
    assert_false(node_refusals_have(rig->lane.node_refusals, STR("n13")));
}

static void what_is_only_late_or_lost_is_no_refusal(void **state)
{
    static const struct {
        int status, number;
        bool is_refusal;
    } cases[] = {
        { 422, 2018, false }, { 422, 2016, false }, { 502, 1800, false },
        { 504, 5004, false }, { 500, 2010, true },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_fresh(state);
        char text[200];

        rig_answers(rig, "DELETE", "/node/n1", cases[i].status, rig_refusal(cases[i].number, text));
        rig_reads_node(rig, "n1");
        delete (rig, "n1", NULL);
        rig_run(rig, SECOND_US);
        if ((refusal(rig, "n1") != NULL) != cases[i].is_refusal)
            fail_msg("case %zu", i);
    }
}

static void whoever_may_not_is_told_at_every_node(void **state)
{
    struct rig *rig = *state;
    char text[200];

    rig_answers(rig, "POST", "/new/node/", 500, rig_refusal(2010, text));
    create_ten(rig);
    assert_true(node_refusals_have(rig->lane.node_refusals, STR("n0")));
    assert_non_null(refusal(rig, "n9"));
}

static void equal_updates_go_as_one_list(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[8];
    char name[16];

    rig_answers(rig, "POST", "/nodes/", 200, FINE);
    rig_answers(rig, "POST", "/node/other", 200, FINE);
    rig_reads_node(rig, "other");
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        ends[i] = update(rig, name, "ours");
    }
    ends[7] = update(rig, "other", "not ours");
    rig_run(rig, MS_US);
    assert_string_equal(
        fake_sent(rig->fake, 0)->body,
        "{\"extra\":\"ours\",\"name\":[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\"]}");
    assert_string_equal(fake_sent(rig->fake, 1)->body, "{\"extra\":\"not ours\"}");
    rig_sync(rig);
    rig_run(rig, SECOND_US);
    for (int i = 0; i < 8; i++)
        assert_true(ends[i]->is_over && ends[i]->outcome == KUBE_DONE);
}

static void fields_that_are_no_object_are_not_sent(void **state)
{
    struct rig *rig = *state;
    const struct end *end = rig_do(
        rig, plan_slurm_update_node(&rig->plan, "n1", json_new_str(rig->build, STR("text"))));

    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_INVALID);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void an_unknown_node_in_a_list_makes_all_be_planned_again(void **state)
{
    struct rig *rig = *state;
    const struct end *first, *second;
    char text[200];

    rig_answers(rig, "POST", "/nodes/", 422, rig_refusal(2018, text));
    rig_reads_node(rig, "n1");
    rig_reads_node(rig, "n2");
    first = update(rig, "n1", "ours");
    second = update(rig, "n2", "ours");
    rig_run(rig, SECOND_US);
    assert_int_equal(first->outcome, KUBE_CONFLICT);
    assert_int_equal(second->outcome, KUBE_CONFLICT);
    assert_int_equal(rig_sent(rig, "GET", "/node/"), 2);
}

static void deletions_go_as_one_list_unless_the_node_is_back(void **state)
{
    struct rig *rig = *state;
    const struct action_unless unless = { .resource = &kube_nodes, .name = "n3", .uid = "u" };
    const struct end *ends[3];

    rig_answers(rig, "DELETE", "/node/n1%2Cn2", 200, FINE);
    rig_reads_node(rig, "n1");
    rig_reads_node(rig, "n2");
    fake_answer(rig->api, "GET", "/api/v1/nodes/n3",
                (struct fake_answer){ .status = 200, .body = "{\"metadata\":{\"uid\":\"u\"}}" });
    ends[0] = delete (rig, "n1", NULL);
    ends[1] = delete (rig, "n2", NULL);
    ends[2] = delete (rig, "n3", &unless);
    rig_run(rig, SECOND_US);
    assert_int_equal(ends[0]->outcome, KUBE_DONE);
    assert_int_equal(ends[1]->outcome, KUBE_DONE);
    assert_int_equal(ends[2]->outcome, KUBE_CONFLICT);
    assert_int_equal(rig_sent(rig, "DELETE", "/"), 1);
}

static void a_deletion_that_fails_says_how(void **state)
{
    static const struct {
        int status, number;
        enum kube_outcome outcome;
    } cases[] = {
        { 422, 2018, KUBE_DONE },     /* there is no such node */
        { 422, 2016, KUBE_CONFLICT }, /* it has jobs */
        { 500, 2010, KUBE_DENIED },   { 502, 1800, KUBE_UNAVAILABLE }, { 504, 5004, KUBE_UNKNOWN },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct end *end;
        struct rig *rig = rig_fresh(state);
        char text[200];

        rig_answers(rig, "DELETE", "/node/n1", cases[i].status, rig_refusal(cases[i].number, text));
        rig_reads_node(rig, "n1");
        end = delete (rig, "n1", NULL);
        rig_run(rig, SECOND_US);
        assert_true(end->is_over);
        if (end->outcome != cases[i].outcome)
            fail_msg("case %zu: %s", i, kube_outcome_name(end->outcome));
    }
}

static void what_was_never_sent_is_told_at_once(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    fake_answer(rig->fake, "DELETE", V45 "/node/n1",
                (struct fake_answer){ .class = ERR_UNAVAILABLE });
    end = delete (rig, "n1", NULL);
    rig_run(rig, SECOND_US / 10);
    assert_int_equal(end->outcome, KUBE_UNAVAILABLE);
    assert_true(end->is_over);
    assert_int_equal(rig_sent(rig, "GET", "/"), 0);
}

static void nothing_is_deleted_in_doubt(void **state)
{
    struct rig *rig = *state;
    const struct end *end;

    slurm_poller_suspect(rig->poller, "for the test");
    end = delete (rig, "n1", NULL);
    rig_run(rig, MS_US);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void a_path_is_never_too_long(void **state)
{
    struct rig *rig = *state;
    char name[256];

    fake_answer(rig->fake, "DELETE", V45 "/node/", (struct fake_answer){ .status = 0 });
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "a-%0200u-z", i);
        delete (rig, name, NULL);
    }
    fake_serve(rig->fake, no_thirteen, NULL);
    rig_run(rig, 10 * MS_US);
    assert_int_equal(rig_sent(rig, "DELETE", "/node/"), 4);
    for (size_t i = 0; i < fake_sent_count(rig->fake); i++)
        assert_true(strlen(fake_sent(rig->fake, i)->path) < 13000);
}

static void a_cancelled_action_leaves_the_others_alone(void **state)
{
    struct rig *rig = *state;
    const struct end *ends[8];

    fake_answer(rig->fake, "POST", V45 "/new/node/",
                (struct fake_answer){ .status = 200, .body = FINE, .delay_us = SECOND_US });
    for (unsigned i = 0; i < 8; i++)
        ends[i] = create_plain(rig, i);
    rig_cancel(rig, ends[0]); /* while it waits for its turn */
    rig_run(rig, MS_US);
    rig_cancel(rig, ends[1]); /* while it is sent */
    rig_run(rig, SECOND_US);
    rig_cancel(rig, ends[2]); /* while the cache does not show it */
    rig_sync(rig);
    rig_run(rig, SECOND_US);
    assert_null(strstr(fake_sent(rig->fake, 0)->body, "n0,"));
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(ends[i]->is_over, i > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_node_is_made_read_and_then_over),
        TEST(the_read_that_an_answer_begins_is_later_than_the_answer),
        TEST(a_read_that_never_comes_holds_nothing_up_for_ever),
        TEST(alike_nodes_of_one_turn_are_one_line_with_their_addresses),
        TEST(nodes_with_gres_are_made_one_by_one_and_two_calls_at_a_time),
        TEST(at_most_500_nodes_are_made_by_one_call),
        TEST(what_would_spoil_a_call_is_refused_alone),
        TEST(a_node_that_exists_makes_all_of_the_call_be_planned_again),
        TEST(a_bad_node_is_soon_alone),
        TEST(what_slurm_refuses_about_a_node_is_remembered_until_it_is_done),
        TEST(what_is_only_late_or_lost_is_no_refusal),
        TEST(whoever_may_not_is_told_at_every_node),
        TEST(equal_updates_go_as_one_list),
        TEST(fields_that_are_no_object_are_not_sent),
        TEST(an_unknown_node_in_a_list_makes_all_be_planned_again),
        TEST(deletions_go_as_one_list_unless_the_node_is_back),
        TEST(a_deletion_that_fails_says_how),
        TEST(what_was_never_sent_is_told_at_once),
        TEST(nothing_is_deleted_in_doubt),
        TEST(a_path_is_never_too_long),
        TEST(a_cancelled_action_leaves_the_others_alone),
    };

    return cmocka_run_group_tests_name("slurm_nodes", tests, NULL, NULL);
}
