/* test_worker_claims.c - the claims of workers: names, owners by policy, and which pod has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "made.h"
#include "operator/worker_claims.h"

#define TEMPLATES                                                                                  \
    "'volumeClaimTemplates':[{'metadata':{'name':'data','labels':{'a':'b'}},"                      \
    "'spec':{'accessModes':['ReadWriteOnce']}}]"
#define POLICY(deleted, scaled)                                                                    \
    "{" TEMPLATES ",'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'" deleted               \
    "','whenScaled':'" scaled "'}}"

static const struct json *template_of(const struct kube_object *nodeset)
{
    return json_item(json_get(operator_spec(nodeset), "volumeClaimTemplates"), 0);
}

static void names_follow_the_ordinal_or_the_hostname(void **state)
{
    const struct worker_identity numbered = { .ordinal = 3, .name = "n-003", .hostname = "x-3" };
    const struct worker_identity on_node = { .ordinal = -1, .name = "n-bcdf5", .hostname = "node" };
    const struct kube_object *nodeset;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{" TEMPLATES "}");
    assert_string_equal(worker_claim_name(&desk.arena, nodeset, template_of(nodeset), &numbered),
                        "data-n-003");
    assert_string_equal(worker_claim_name(&desk.arena, nodeset, template_of(nodeset), &on_node),
                        "data-n-node");
    desk_done(&desk);
}

#define NODESET_OWNER                                                                              \
    "{'apiVersion':'slinky.slurm.net/v1beta1','kind':'NodeSet','name':'n',"                        \
    "'uid':'uid-NodeSet-n','controller':true,'blockOwnerDeletion':true}"
#define POD_OWNER                                                                                  \
    "{'apiVersion':'v1','kind':'Pod','name':'n-0','uid':'uid-Pod-n-0','controller':true,"          \
    "'blockOwnerDeletion':true}"
#define OTHER_OWNER      "{'apiVersion':'v1','kind':'ConfigMap','name':'m','uid':'u'}"
#define OTHER_CONTROLLER "{'apiVersion':'v1','kind':'X','name':'x','uid':'u','controller':true}"
#define CLAIM_HEAD                                                                                 \
    "{'metadata':{'name':'data-n-0','labels':{'a':'b','app.kubernetes.io/instance':'n',"           \
    "'app.kubernetes.io/name':'slurmd'}"

static void a_new_claim_never_belongs_to_the_pod(void **state)
{
    static const struct {
        const char *spec, *wanted;
    } rows[] = {
        { "{" TEMPLATES "}", CLAIM_HEAD "},'spec':{'accessModes':['ReadWriteOnce']}}" },
        { POLICY("Retain", "Delete"), CLAIM_HEAD "},'spec':{'accessModes':['ReadWriteOnce']}}" },
        { POLICY("Delete", "Delete"), CLAIM_HEAD ",'ownerReferences':[" NODESET_OWNER "]},"
                                                 "'spec':{'accessModes':['ReadWriteOnce']}}" },
    };
    const struct worker_identity worker = { .ordinal = 0, .name = "n-0", .hostname = "n-0" };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *is = NULL, *wanted = parsed(rows[i].wanted);
        const struct kube_object *nodeset;
        struct desk desk;

        desk_init(&desk);
        nodeset = made_nodeset(&desk, rows[i].spec);
        is = json_freeze(worker_claim(build, &desk.arena, nodeset, template_of(nodeset), &worker));
        assert_true(json_equal(json_root(is), json_root(wanted)));
        desk_done(&desk);
    }
}

static void owners_follow_the_policy(void **state)
{
    static const struct {
        const char *spec;
        bool is_condemned; /* by scale-in */
        const char *owners;
        enum worker_claim_state state;
        const char *wanted; /* owners in the patch; NULL: no patch */
    } rows[] = {
        { POLICY("Retain", "Retain"), false, "[]", CLAIM_RIGHT, NULL },
        { POLICY("Retain", "Retain"), true, "[]", CLAIM_RIGHT, NULL },
        { POLICY("Retain", "Retain"), false, "[" NODESET_OWNER "]", CLAIM_REOWN, "[]" },
        { POLICY("Delete", "Retain"), false, "[]", CLAIM_REOWN, "[" NODESET_OWNER "]" },
        { POLICY("Delete", "Retain"), false, "[" NODESET_OWNER "]", CLAIM_RIGHT, NULL },
        { POLICY("Delete", "Retain"), true, "[" NODESET_OWNER "]", CLAIM_RIGHT, NULL },
        { POLICY("Retain", "Delete"), false, "[]", CLAIM_RIGHT, NULL },
        { POLICY("Retain", "Delete"), true, "[]", CLAIM_REOWN, "[" POD_OWNER "]" },
        { POLICY("Retain", "Delete"), true, "[" POD_OWNER "]", CLAIM_RIGHT, NULL },
        /* the scale-in was taken back */
        { POLICY("Retain", "Delete"), false, "[" POD_OWNER "]", CLAIM_REOWN, "[]" },
        { POLICY("Delete", "Delete"), true, "[" NODESET_OWNER "]", CLAIM_REOWN, "[" POD_OWNER "]" },
        { POLICY("Delete", "Delete"), false, "[" POD_OWNER "]", CLAIM_REOWN,
          "[" NODESET_OWNER "]" },
        /* what others added stays */
        { POLICY("Delete", "Retain"), false, "[" OTHER_OWNER "]", CLAIM_REOWN,
          "[" OTHER_OWNER "," NODESET_OWNER "]" },
        { POLICY("Delete", "Retain"), false, "[" OTHER_CONTROLLER "]", CLAIM_CONFLICT, NULL },
        { POLICY("Delete", "Retain"), false, "[" OTHER_CONTROLLER "," NODESET_OWNER "]",
          CLAIM_CONFLICT, "[" OTHER_CONTROLLER "]" },
        /* of a pod or a NodeSet of the same name that is gone */
        { POLICY("Delete", "Delete"), true,
          "[{'apiVersion':'v1','kind':'Pod','name':'n-0','uid':'before'}]", CLAIM_STALE, NULL },
        { POLICY("Delete", "Delete"), false,
          "[{'apiVersion':'slinky.slurm.net/v1beta1','kind':'NodeSet','name':'n','uid':'before'}]",
          CLAIM_STALE, NULL },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_json_build struct json_build *build = json_build_new();
        const struct kube_object *nodeset, *pod, *claim;
        char text[2048], wanted[2048];
        struct json_mut *patch;
        struct desk desk;

        desk_init(&desk);
        nodeset = made_nodeset(&desk, rows[i].spec);
        pod = made(&desk, "{'kind':'Pod','metadata':{'name':'n-0'}}");
        (void)snprintf(text, sizeof(text),
                       "{'kind':'PersistentVolumeClaim','metadata':{'name':'data-n-0',"
                       "'ownerReferences':%s}}",
                       rows[i].owners);
        claim = made(&desk, text);
        if (worker_claim_owners(build, nodeset, pod, rows[i].is_condemned, claim, &patch) !=
            rows[i].state)
            fail_msg("row %zu", i);
        if (rows[i].wanted) {
            (void)snprintf(wanted, sizeof(wanted), "{'metadata':{'ownerReferences':%s}}",
                           rows[i].wanted);
            assert_json(patch, wanted);
        } else {
            assert_null(patch);
        }
        desk_done(&desk);
    }
}

/* The padding of ordinals has changed since: the pod's own volumes say which claims it has. */
static void a_pod_has_the_claims_that_it_mounts(void **state)
{
    const struct kube_object *nodeset, *pod;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{'ordinalPadding':3," TEMPLATES "}");
    pod = made(&desk, "{'kind':'Pod','metadata':{'name':'n-0'},'spec':{'volumes':["
                      "{'name':'data','persistentVolumeClaim':{'claimName':'data-n-0'}},"
                      "{'name':'home','persistentVolumeClaim':{'claimName':'home'}},"
                      "{'name':'b','persistentVolumeClaim':{'claimName':'data-nn-0'}}]}}");
    assert_true(worker_owns_claim(nodeset, kube_pod_of(pod), "data-n-0"));
    assert_false(worker_owns_claim(nodeset, kube_pod_of(pod), "data-n-000"));
    assert_false(worker_owns_claim(nodeset, kube_pod_of(pod), "home"));
    assert_false(worker_owns_claim(nodeset, kube_pod_of(pod), "data-nn-0"));
    desk_done(&desk);
}

static void a_claim_that_is_being_deleted_holds_up_its_pod(void **state)
{
    const struct worker_identity worker = { .ordinal = 0, .name = "n-0", .hostname = "n-0" };
    const struct kube_object *nodeset;
    const char *name = NULL;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{" TEMPLATES "}");
    assert_true(worker_claims_allow(&desk.world, &desk.arena, nodeset, &worker, &name));
    (void)made(&desk, "{'kind':'PersistentVolumeClaim','metadata':{'name':'data-n-0'}}");
    assert_true(worker_claims_allow(&desk.world, &desk.arena, nodeset, &worker, &name));
    (void)made(&desk, "{'kind':'PersistentVolumeClaim','metadata':{'name':'data-n-0',"
                      "'deletionTimestamp':'2026-01-01T00:00:00Z'}}");
    assert_false(worker_claims_allow(&desk.world, &desk.arena, nodeset, &worker, &name));
    assert_string_equal(name, "data-n-0");
    desk_done(&desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_follow_the_ordinal_or_the_hostname),
        cmocka_unit_test(a_new_claim_never_belongs_to_the_pod),
        cmocka_unit_test(owners_follow_the_policy),
        cmocka_unit_test(a_pod_has_the_claims_that_it_mounts),
        cmocka_unit_test(a_claim_that_is_being_deleted_holds_up_its_pod),
    };

    return cmocka_run_group_tests_name("worker_claims", tests, NULL, NULL);
}
