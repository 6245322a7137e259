/* test_harden.c - which rights the pods of slurmctld, slurmdbd and slurmrestd have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../codec/parsed.h"
#include "desk.h"
#include "operator/build.h"

static struct json_doc *hardened(const char *text)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *given = parsed(text);
    struct json_mut *template = json_copy(build, json_root(given));

    return json_freeze(build_hardened(build, &component_slurmctld, template));
}

#define POD(security, container)                                                                   \
    "{'spec':{'securityContext':" security ",'containers':[" container "]}}"
#define SLURM    "{'runAsNonRoot':true,'runAsUser':401}"
#define HARD     "{'allowPrivilegeEscalation':false,'capabilities':{'drop':['ALL']}}"
#define PROFILE  "'seccompProfile':{'type':'RuntimeDefault'}"
#define HARD_POD "{'runAsNonRoot':true,'runAsUser':401," PROFILE "}"

static const struct {
    const char *what, *given, *wanted;
} rows[] = {
    { "a daemon that is not root", POD(SLURM, "{'name':'slurmctld'}"),
      POD(HARD_POD, "{'name':'slurmctld','securityContext':" HARD "}") },
    { "a container of the user's",
      POD(SLURM, "{'name':'slurmctld'},{'name':'theirs','securityContext':{'runAsUser':7}}"),
      POD(HARD_POD, "{'name':'slurmctld','securityContext':" HARD
                    "},{'name':'theirs','securityContext':{'runAsUser':7}}") },
    { "a daemon that the user lets be root",
      POD(SLURM, "{'name':'slurmctld','securityContext':{'runAsUser':0}}"),
      POD(HARD_POD, "{'name':'slurmctld','securityContext':{'runAsUser':0}}") },
    { "a privileged one", POD(SLURM, "{'name':'slurmctld','securityContext':{'privileged':true}}"),
      POD(HARD_POD, "{'name':'slurmctld','securityContext':{'privileged':true}}") },
    { "capabilities that the user names",
      POD(SLURM, "{'name':'logfile','securityContext':{'capabilities':{'add':['SYS_ADMIN']}}}"),
      POD(HARD_POD,
          "{'name':'logfile','securityContext':{'capabilities':{'add':['SYS_ADMIN']}}}") },
    { "a profile that the user names",
      POD("{'runAsUser':401,'seccompProfile':{'type':'Unconfined'}}", "{'name':'other'}"),
      POD("{'runAsUser':401,'seccompProfile':{'type':'Unconfined'}}", "{'name':'other'}") },
    { "a user of the pod that is root", POD("{'runAsUser':0}", "{'name':'slurmctld'}"),
      POD("{'runAsUser':0," PROFILE "}", "{'name':'slurmctld'}") },
};

static void what_a_user_says_of_rights_stays_and_the_rest_is_given_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_doc struct json_doc *found = hardened(rows[i].given);
        auto_json_doc struct json_doc *wanted = parsed(rows[i].wanted);
        auto_buf struct buf text = { .max = 10000 };

        json_write_canonical(json_root(found), &text);
        if (!json_equal(json_root(found), json_root(wanted)))
            fail_msg("%s: %s", rows[i].what, buf_text(&text));
    }
}

/* What the plan creates for this custom resource of a new cluster. */
static const char *const made[][2] = {
    { "Controller", "create statefulset site/slurm-controller" },
    { "Accounting", "create statefulset site/slurm-accounting" },
    { "RestApi", "create deployment site/slurm-restapi" },
};

static void add(struct desk *desk, const char *text)
{
    auto_json_doc struct json_doc *doc = parsed(text);

    assert_int_equal(desk_add(desk, json_root(doc), NULL), 0);
}

static void check_container(const struct json *container)
{
    const struct json *security = json_get(container, "securityContext");

    assert_false(json_bool_or(json_get(security, "allowPrivilegeEscalation"), true));
    assert_true(str_is(json_str(json_item(json_at(security, "capabilities", "drop"), 0)), "ALL"));
}

static void check_pod(const struct json *pod)
{
    static const char *const lists[] = { "containers", "initContainers" };
    const struct json *container;

    assert_true(json_bool_or(json_at(pod, "securityContext", "runAsNonRoot"), false));
    assert_true(str_is(json_str(json_at(pod, "securityContext", "seccompProfile", "type")),
                       "RuntimeDefault"));
    for (size_t i = 0; i < 2; i++) {
        struct json_iter iter = json_iter(json_get(pod, lists[i]));

        while (json_next_item(&iter, &container))
            check_container(container);
    }
}

static void pods_of_a_new_cluster_have_no_rights(void **state)
{
    struct desk desk;
    unsigned found = 0;

    (void)state;
    desk_init(&desk);
    add(&desk, "{'kind':'Secret','metadata':{'name':'keys'},'data':{'k':'a2V5'}}");
    add(&desk, "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{'inplaceReconfigure':true,"
               "'slurmKeyRef':{'name':'keys','key':'k'},'jwtKeyRef':{'name':'keys','key':'k'}}}");
    add(&desk, "{'kind':'Accounting','metadata':{'name':'slurm'},'spec':{"
               "'storageConfig':{'host':'db','passwordKeyRef':{'name':'keys','key':'k'}},"
               "'slurmKeyRef':{'name':'keys','key':'k'},'jwtKeyRef':{'name':'keys','key':'k'}}}");
    add(&desk, "{'kind':'RestApi','metadata':{'name':'slurm'},"
               "'spec':{'controllerRef':{'name':'slurm'}}}");
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        plan_clear(&desk.plan);
        assert_int_equal(desk_plan(&desk, str_of(made[i][0]), STR("slurm"), NULL), 0);
        list_each (const struct action, action, &desk.plan.actions, link) {
            auto_json_doc struct json_doc *body = NULL;

            if (strcmp(action->what, made[i][1]) != 0)
                continue;
            found++;
            assert_int_equal(json_parse(action->request.body, 1 << 20, &body, NULL), 0);
            check_pod(json_at(json_root(body), "spec", "template", "spec"));
        }
    }
    assert_int_equal(found, 3);
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_user_says_of_rights_stays_and_the_rest_is_given_up),
        cmocka_unit_test(pods_of_a_new_cluster_have_no_rights),
    };

    return cmocka_run_group_tests_name("harden", tests, NULL, NULL);
}
