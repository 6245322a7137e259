/* test_slurm_guard.c - an action is sent only if the API server says that no object is left that
 * objects. */
#include "slurm_lane_rig.h"

static struct end *delete(struct rig *rig, const char *name, const struct action_unless *unless)
{
    return rig_do(rig, plan_slurm_delete_node(&rig->plan, name, unless));
}

/* Any node is there, and may be deleted. */
static struct fake_answer slurm(void *context, const struct fake_sent *sent)
{
    (void)context;
    return (struct fake_answer){ .status = 200,
                                 .body = strcmp(sent->method, "GET") == 0
                                             ? "{\"nodes\":[],\"errors\":[]}"
                                             : FINE };
}

static void an_object_objects_until_it_is_gone_or_another(void **state)
{
    static const struct {
        int status;
        const char *reason, *uid;
        enum kube_outcome outcome;
    } cases[] = {
        { 404, "NotFound", NULL, KUBE_DONE },    { 200, NULL, "another", KUBE_DONE },
        { 200, NULL, "uid", KUBE_CONFLICT },     { 200, NULL, "", KUBE_CONFLICT },
        { 404, "", NULL, KUBE_UNAVAILABLE },     { 500, "InternalError", NULL, KUBE_UNAVAILABLE },
        { 403, "Forbidden", NULL, KUBE_DENIED },
    };
    const struct action_unless unless = {
        .resource = &kube_pods, .ns = "ns", .name = "pod", .uid = "uid"
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = "/api/v1/namespaces/ns/pods/pod";
        const struct end *end;
        struct rig *rig = rig_fresh(state);
        char text[200];

        fake_serve(rig->fake, slurm, NULL);
        snprintf(text, sizeof(text), "{\"kind\":\"Pod\",\"metadata\":{\"uid\":\"%s\"}}",
                 cases[i].uid ? cases[i].uid : "");
        if (cases[i].uid)
            fake_answer(rig->api, "GET", path, (struct fake_answer){ .status = 200, .body = text });
        else if (cases[i].reason[0])
            fake_status(rig->api, "GET", path, cases[i].status, cases[i].reason, "words");
        else
            fake_answer(rig->api, "GET", path,
                        (struct fake_answer){ .status = 404, .body = "not here" });
        end = delete (rig, "n1", &unless);
        rig_run(rig, 40 * SECOND_US);
        assert_true(end->is_over);
        if (end->outcome != cases[i].outcome)
            fail_msg("case %zu: %s", i, kube_outcome_name(end->outcome));
        assert_int_equal(rig_sent(rig, "DELETE", "/"), cases[i].outcome == KUBE_DONE);
    }
}

/* A namespace may have more objects than one answer can hold. */
static void every_page_of_a_list_counts(void **state)
{
    static const struct {
        int status;
        const char *second;
        enum kube_outcome outcome;
    } cases[] = {
        { 200, "{\"metadata\":{\"uid\":\"uid\"}}", KUBE_CONFLICT },
        { 200, "{\"metadata\":{\"uid\":\"another\"}}", KUBE_DONE },
        { 410, "", KUBE_GONE }, /* the token is too old */
    };
    const struct action_unless unless = { .resource = &kube_pods, .ns = "ns", .uid = "uid" };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *second = "/api/v1/namespaces/ns/pods?limit=500&continue=a%2Fb";
        struct rig *rig = rig_fresh(state);
        const struct end *end;
        char list[1000];

        fake_serve(rig->fake, slurm, NULL);
        fake_answer(
            rig->api, "GET", "/api/v1/namespaces/ns/pods?limit=500",
            (struct fake_answer){ .status = 200,
                                  .body = "{\"metadata\":{\"continue\":\"a/b\"},\"items\":[]}" });
        snprintf(list, sizeof(list), "{\"metadata\":{},\"items\":[%s]}", cases[i].second);
        if (cases[i].status == 200)
            fake_answer(rig->api, "GET", second,
                        (struct fake_answer){ .status = 200, .body = list });
        else
            fake_status(rig->api, "GET", second, cases[i].status, "Expired", "too old");
        end = delete (rig, "n1", &unless);
        rig_run(rig, 8 * SECOND_US);
        if (!end->is_over || end->outcome != cases[i].outcome)
            fail_msg("case %zu: %s", i, kube_outcome_name(end->outcome));
        assert_int_equal(rig_sent(rig, "DELETE", "/"), cases[i].outcome == KUBE_DONE);
    }
}

static bool objects_by_name(const struct json *object, const struct action_unless *unless,
                            const struct slurm_action *action)
{
    assert_string_equal(unless->about, "us");
    return str_is(json_str(json_at(object, "metadata", "name")), action->name);
}

/* By a rule of the owner's; and the guard behind it is asked, too. */
static void each_guard_of_a_row_of_them_is_asked(void **state)
{
    static const struct {
        const char *pods, *node;
        enum kube_outcome outcome;
    } cases[] = {
        { "n2", "another", KUBE_DONE },
        { "n1", "another", KUBE_CONFLICT },
        { "n2", "uid", KUBE_CONFLICT },
    };
    const struct action_unless also = { .resource = &kube_nodes, .name = "n1", .uid = "uid" };
    const struct action_unless unless = {
        .resource = &kube_pods, .ns = "ns", .objects = objects_by_name, .about = "us", .also = &also
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_fresh(state);
        char list[200], node[200];
        const struct end *end;

        fake_serve(rig->fake, slurm, NULL);
        snprintf(list, sizeof(list), "{\"items\":[{\"metadata\":{\"name\":\"%s\"}}]}",
                 cases[i].pods);
        snprintf(node, sizeof(node), "{\"metadata\":{\"uid\":\"%s\"}}", cases[i].node);
        fake_answer(rig->api, "GET", "/api/v1/namespaces/ns/pods",
                    (struct fake_answer){ .status = 200, .body = list });
        fake_answer(rig->api, "GET", "/api/v1/nodes/n1",
                    (struct fake_answer){ .status = 200, .body = node });
        end = delete (rig, "n1", &unless);
        rig_run(rig, 8 * SECOND_US);
        if (!end->is_over || end->outcome != cases[i].outcome)
            fail_msg("case %zu: %s", i, kube_outcome_name(end->outcome));
    }
}

/* Of many actions each may ask for all pods of its namespace. */
static void two_lists_are_read_at_once(void **state)
{
    enum { ACTIONS = 5 };
    const struct action_unless unless = { .resource = &kube_pods, .ns = "ns", .uid = "uid" };
    struct rig *rig = *state;
    const struct end *ends[ACTIONS];
    char name[16];

    fake_serve(rig->fake, slurm, NULL);
    fake_answer(rig->api, "GET", "/api/v1/namespaces/ns/pods",
                (struct fake_answer){ .status = 200,
                                      .body = "{\"metadata\":{},\"items\":[]}",
                                      .delay_us = SECOND_US,
                                      .times = ACTIONS });
    for (int i = 0; i < ACTIONS; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        ends[i] = delete (rig, name, &unless);
    }
    rig_run(rig, MS_US);
    assert_int_equal(fake_sent_count(rig->api), 2);
    rig_cancel(rig, ends[0]); /* the next one comes in its place */
    rig_run(rig, MS_US);
    assert_int_equal(fake_sent_count(rig->api), 3);
    rig_run(rig, 10 * SECOND_US);
    assert_int_equal(fake_sent_count(rig->api), ACTIONS);
    for (int i = 1; i < ACTIONS; i++) {
        assert_true(ends[i]->is_over);
        assert_int_equal(ends[i]->outcome, KUBE_DONE);
    }
}

/* What was read first may come to it when another process leads. */
static void the_lease_is_asked_for_behind_the_guard(void **state)
{
    const struct action_unless unless = { .resource = &kube_nodes, .name = "n1" };
    struct rig *rig = *state;
    const struct end *end;

    fake_serve(rig->fake, slurm, NULL);
    fake_status(rig->api, "GET", "/api/v1/nodes/n1", 404, "NotFound", "words");
    end = delete (rig, "n1", &unless);
    rig->leads = false;
    rig_run(rig, SECOND_US);
    assert_true(end->is_over);
    assert_int_equal(end->outcome, KUBE_CONFLICT);
    assert_int_equal(rig_sent(rig, "DELETE", "/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_object_objects_until_it_is_gone_or_another), TEST(every_page_of_a_list_counts),
        TEST(each_guard_of_a_row_of_them_is_asked),          TEST(two_lists_are_read_at_once),
        TEST(the_lease_is_asked_for_behind_the_guard),
    };

    return cmocka_run_group_tests_name("slurm_guard", tests, NULL, NULL);
}
