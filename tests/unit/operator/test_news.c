/* test_news.c - which turns of conditions people are told of, as Events behind the status write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json_format.h"
#include "desk.h"
#include "operator/events.h"

/* "Warning NotReachable: ..." of the first news of the plan; "" for none. */
static const char *first_news(struct desk *desk)
{
    list_each (const struct action, action, &desk->plan.actions, link)
        if (action->news)
            return arena_printf(&desk->arena, "%s %s: %s",
                                action->news->is_warning ? "Warning" : "Normal",
                                action->news->reason, action->news->text);
    return "";
}

static const struct turn {
    const char *type, *status; /* the condition as it is; NULL: there is none */
    const char *database;      /* what slurmdbd said last; "": it answers */
    const char *told;
} turns[] = {
    { NULL, NULL, "", "" },
    { "Ready", "True", "", "" },
    { "Ready", "False", "", "Normal AsExpected: slurmdbd runs elsewhere" },
    { "Degraded", "True", "", "" },
    { "DatabaseReachable", "True", "", "" },
    { "DatabaseReachable", "Unknown", "", "Normal Responding: slurmdbd answers from its database" },
    { "DatabaseReachable", "True", "gone",
      "Warning NotReachable: not reachable since 2026-01-01T00:00:00Z: gone" },
    { "DatabaseReachable", "False", "gone", "" },
};

static void people_are_told_of_turns(void **state)
{
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        const struct turn *turn = &turns[i];
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *accounting = NULL, *controller = NULL, *facts = NULL;
        struct desk desk;

        desk_init(&desk);
        accounting = json_freeze(
            json_format(build,
                        "{'kind':'Accounting','metadata':{'name':'acct'},'spec':{'external':true},"
                        "'status':{'conditions':[{'type':%s,'status':%s}]}}",
                        turn->type ? turn->type : "Other", turn->status ? turn->status : "True"));
        controller = json_freeze(json_format(build, "{'kind':'Controller','metadata':{'name':"
                                                    "'slurm'},'spec':{'accountingRef':{'name':"
                                                    "'acct'}}}"));
        facts = json_freeze(json_format(build, "{'slurm':{'database':%s}}", turn->database));
        assert_int_equal(desk_add(&desk, json_root(accounting), NULL), 0);
        assert_int_equal(desk_add(&desk, json_root(controller), NULL), 0);
        assert_int_equal(desk_slurm(&desk, json_root(facts), NULL), 0);
        assert_int_equal(desk_plan(&desk, STR("Accounting"), STR("acct"), NULL), 0);
        assert_string_equal(first_news(&desk), turn->told);
        desk_done(&desk);
    }
    (void)state;
}

/* ---- Events of writes ---- */

static const struct told {
    const struct kube_resource *resource;
    enum kube_verb verb;
    const char *subresource;
    enum kube_outcome outcome;
    const char *reason, *action; /* NULL: nobody is told */
} tolds[] = {
    { &kube_pods, KUBE_CREATE, NULL, KUBE_DONE, "SuccessfulCreate", "Create" },
    { &kube_pods, KUBE_CREATE, NULL, KUBE_DENIED, "FailedCreate", "Create" },
    { &kube_pods, KUBE_DELETE, NULL, KUBE_DONE, "SuccessfulDelete", "Delete" },
    { &kube_pods, KUBE_DELETE, NULL, KUBE_DENIED, "FailedDelete", "Delete" },
    { &kube_pods, KUBE_MERGE_PATCH, NULL, KUBE_INVALID, "FailedUpdate", "Update" },
    { &kube_pods, KUBE_MERGE_PATCH, NULL, KUBE_DONE, NULL, NULL },
    { &kube_pods, KUBE_MERGE_PATCH, "status", KUBE_DENIED, NULL, NULL },
    { &kube_secrets, KUBE_CREATE, NULL, KUBE_DONE, "CreateSucceeded", "Create" },
    { &kube_secrets, KUBE_CREATE, NULL, KUBE_CONFLICT, NULL, NULL },
    { &kube_secrets, KUBE_MERGE_PATCH, NULL, KUBE_DENIED, "PatchFailed", "Patch" },
    { &kube_secrets, KUBE_DELETE, NULL, KUBE_DONE, "DeleteSucceeded", "Delete" },
};

static void writes_are_told_with_the_reasons_that_people_know(void **state)
{
    for (size_t i = 0; i < sizeof(tolds) / sizeof(tolds[0]); i++) {
        const struct told *told = &tolds[i];
        const struct action action = { .type = &action_kube,
                                       .request = { .verb = told->verb,
                                                    .resource = told->resource,
                                                    .subresource = told->subresource } };
        const struct kube_answer answer = { .outcome = told->outcome, .message = "" };
        struct operator_event event = { .reason = NULL };

        assert_int_equal(operator_event_of(&action, &answer, &event), told->reason != NULL);
        if (!told->reason)
            continue;
        assert_string_equal(event.reason, told->reason);
        assert_string_equal(event.action, told->action);
        assert_int_equal(event.type,
                         told->outcome == KUBE_DONE ? KUBE_EVENT_NORMAL : KUBE_EVENT_WARNING);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(people_are_told_of_turns),
        cmocka_unit_test(writes_are_told_with_the_reasons_that_people_know),
    };

    return cmocka_run_group_tests_name("news", tests, NULL, NULL);
}
