/* test_admit.c - which pods are ours, what they are given, and how a review is answered. */
#include "admit_rig.h"

#define TOLERATION                                                                                 \
    "{'key':'slinky.slurm.net/managed-node','operator':'Equal','value':'" SCHEDULER                \
    "','effect':'NoExecute'}"
#define FINALIZER "'scheduler.slinky.slurm.net/finalizer'"
#define GANG      "'" WISH "gang'"

static struct rig rig;

static int begin(void **state)
{
    rig_begin(&rig, "");
    return 0;
}

static int end(void **state)
{
    rig_end(&rig);
    return 0;
}

/* Its own test looks at it. */
static void drop_creator(struct json_mut *object)
{
    struct json_mut *metadata = json_mut_get(object, STR("metadata"));
    struct json_mut *annotations = metadata ? json_mut_get(metadata, STR("annotations")) : NULL;

    if (annotations && json_remove(annotations, STR(BRIDGE_CREATOR_ANNOTATION)) &&
        json_mut_len(annotations) == 0)
        (void)json_remove(metadata, STR("annotations"));
}

/* The pod as it is stored after the mutating hook. */
static void assert_becomes(struct call call, const char *expected)
{
    struct reply reply = rig_ask(&rig, ADMIT_MUTATE, call);
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf text = { .max = 1 << 20 };
    const struct json *pod = parsed(&rig, call.pod);
    struct json_mut *after;

    assert_true(json_bool_or(json_get(reply.response, "allowed"), false));
    assert_int_equal(reply.answer.verdict, reply.patch ? ADMIT_CHANGED : ADMIT_ALLOWED);
    if (!reply.patch) {
        if (!json_equal(pod, parsed(&rig, expected)))
            fail_msg("unchanged: %s", call.pod);
        return;
    }
    assert_int_equal(patch_json_apply(build, pod, reply.patch, &after, NULL), 0);
    drop_creator(after);
    json_mut_write(after, &text);
    if (!json_equal(parsed(&rig, buf_text(&text)), parsed(&rig, expected)))
        fail_msg("%s\nis not %s", buf_text(&text), expected);
}

/* The value of the annotation of an object after the webhook; "" for none. */
static const char *creator_after(struct call call)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf text = { .max = 1 << 20 };
    struct reply reply = rig_ask(&rig, ADMIT_MUTATE, call);
    struct json_mut *after;

    if (!json_bool_or(json_get(reply.response, "allowed"), false))
        fail_msg("%s", reply.text);
    if (!reply.patch)
        return arena_printf(&rig.arena, STR_FMT,
                            STR_ARG(json_str(json_at(parsed(&rig, call.pod), "metadata",
                                                     "annotations", BRIDGE_CREATOR_ANNOTATION))));
    assert_int_equal(patch_json_apply(build, parsed(&rig, call.pod), reply.patch, &after, NULL), 0);
    json_mut_write(after, &text);
    return json_str(json_at(parsed_plain(&rig, arena_strdup(&rig.arena, buf_text(&text))),
                            "metadata", "annotations", BRIDGE_CREATOR_ANNOTATION))
        .at;
}

#define FORGED "'annotations':{'" BRIDGE_CREATOR_ANNOTATION "':'alice\\nadmins'}"
#define BY_JOB                                                                                     \
    "'ownerReferences':[{'apiVersion':'batch/v1','kind':'Job','name':'j','uid':'u','controller':"  \
    "true}]"
#define JOB_CONTROLLER "system:serviceaccount:kube-system:job-controller"

static void who_made_it_is_written_whatever_was_written_there(void **state)
{
    static const struct {
        const char *user, *groups, *resource, *ns, *object, *want;
    } rows[] = {
        { "bob", "['dev','ops']", NULL, NULL, "{'metadata':{},'spec':{}}", "bob\ndev\nops" },
        { "bob", NULL, NULL, NULL, "{'metadata':{" FORGED "},'spec':{}}", "bob" },
        { "bob", NULL, NULL, NULL, "{'metadata':{" FORGED "," BY_JOB "},'spec':{}}", "bob" },
        { "alice", "['admins']", NULL, NULL, "{'metadata':{" FORGED "},'spec':{}}",
          "alice\nadmins" },
        { JOB_CONTROLLER, NULL, NULL, NULL, "{'metadata':{" FORGED "," BY_JOB "},'spec':{}}",
          "\nu" },
        { JOB_CONTROLLER, NULL, NULL, NULL, "{'metadata':{" BY_JOB "},'spec':{}}", "\nu" },
        { "mallory\\nadmins", "['dev\\nops']", NULL, NULL, "{'metadata':{},'spec':{}}",
          "mallory?admins\ndev?ops" },
        { "\\nu", NULL, NULL, NULL, "{'metadata':{" BY_JOB "},'spec':{}}", "?u" },
        { JOB_CONTROLLER, NULL, NULL, NULL, "{'metadata':{" FORGED "},'spec':{}}", JOB_CONTROLLER },
        { "system:serviceaccount:team:job-controller", NULL, NULL, NULL,
          "{'metadata':{" FORGED "," BY_JOB "},'spec':{}}",
          "system:serviceaccount:team:job-controller" },
        { "bob", NULL, "jobs", NULL, "{'metadata':{" FORGED "}}", "bob" },
        { "bob", NULL, "jobsets", NULL, "{'metadata':{}}", "bob" },
        { "bob", NULL, "leaderworkersets", NULL, "{'metadata':{}}", "bob" },
        { "bob", NULL, "podgroups", NULL, "{'metadata':{}}", "bob" },
        { "bob", NULL, "statefulsets", NULL, "{'metadata':{" FORGED "}}", "bob" },
        { "bob", NULL, "jobs", "other", "{'metadata':{}}", "" },
        { "bob", NULL, "configmaps", NULL, "{'metadata':{}}", "" },
    };

    rig_see(&rig, rig.jobs, NULL);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(creator_after((struct call){ .user = rows[i].user,
                                                         .groups = rows[i].groups,
                                                         .resource = rows[i].resource,
                                                         .ns = rows[i].ns,
                                                         .pod = rows[i].object }),
                            rows[i].want);
}

static void a_pod_gets_its_creator_and_its_gang_in_one_patch(void **state)
{
    const char *pod = "{'metadata':{" BY_JOB "},'spec':{}}";
    struct reply reply;

    rig_see(&rig, rig.jobs,
            "{'metadata':{'name':'j','namespace':'slurm-bridge','uid':'u','resourceVersion':'1',"
            "'annotations':{" GANG ":'true'}}}");
    reply = rig_ask(&rig, ADMIT_MUTATE, (struct call){ .user = "bob", .pod = pod });
    assert_non_null(strstr(quoted(&rig, reply.text), "patch"));
    assert_string_equal(creator_after((struct call){ .user = "bob", .pod = pod }), "bob");
    assert_becomes((struct call){ .user = "bob", .pod = pod },
                   "{'metadata':{'annotations':{" GANG ":'true'}," BY_JOB
                   ",'finalizers':[" FINALIZER "]},'spec':{'schedulerName':'" SCHEDULER
                   "','tolerations':[" TOLERATION "]}}");
}

static void assert_unchanged(struct call call)
{
    assert_becomes(call, call.pod);
}

/* ---- what a pod is given ---- */

static void a_pod_of_a_managed_namespace_gets_all_it_needs_at_once(void **state)
{
    assert_becomes((struct call){ .pod = "{'metadata':{'name':'a'},'spec':{'schedulerName':"
                                         "'default-scheduler'}}" },
                   "{'metadata':{'name':'a','finalizers':[" FINALIZER "]},'spec':{'schedulerName':"
                   "'" SCHEDULER "','tolerations':[" TOLERATION "]}}");
}

static void what_a_pod_has_stays_in_its_place(void **state)
{
    assert_becomes(
        (struct call){ .pod = "{'metadata':{'finalizers':['a/b']},'spec':{'tolerations':[{'key':"
                              "'x'}]}}" },
        "{'metadata':{'finalizers':['a/b'," FINALIZER "]},'spec':{'schedulerName':'" SCHEDULER
        "','tolerations':[{'key':'x'}," TOLERATION "]}}");
}

static void a_pod_that_has_all_is_not_touched(void **state)
{
    assert_unchanged((struct call){ .pod = "{'metadata':{'finalizers':[" FINALIZER
                                           "]},'spec':{'schedulerName':'" SCHEDULER
                                           "','tolerations':[" TOLERATION "]}}" });
}

static void null_lists_are_as_good_as_none(void **state)
{
    assert_becomes((struct call){ .pod = "{'metadata':{'finalizers':null,'annotations':null},"
                                         "'spec':{'tolerations':null,'nodeName':null}}" },
                   "{'metadata':{'finalizers':[" FINALIZER "],'annotations':null},"
                   "'spec':{'nodeName':null,'schedulerName':'" SCHEDULER
                   "','tolerations':[" TOLERATION "]}}");
}

static void only_an_equal_toleration_will_do(void **state)
{
    static const struct {
        const char *toleration;
        bool will_do;
    } rows[] = {
        { TOLERATION, true },
        { "{'key':'slinky.slurm.net/managed-node','value':'" SCHEDULER "','effect':'NoExecute'}",
          true },
        { "{'key':'slinky.slurm.net/managed-node','operator':'','value':'" SCHEDULER
          "','effect':'NoExecute'}",
          true },
        { "{'operator':'Exists'}", false },
        { "{'key':'slinky.slurm.net/managed-node','operator':'Exists','effect':'NoExecute'}",
          false },
        { "{'key':'slinky.slurm.net/managed-node','value':'other','effect':'NoExecute'}", false },
        { "{'key':'slinky.slurm.net/managed-node','value':'" SCHEDULER "'}", false },
        { "{'key':'other','value':'" SCHEDULER "','effect':'NoExecute'}", false },
        { "7", false },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *pod =
            arena_printf(&rig.arena,
                         "{'metadata':{'finalizers':[" FINALIZER
                         "]},'spec':{'schedulerName':'" SCHEDULER "','tolerations':[%s]}}",
                         rows[i].toleration);
        struct reply reply = rig_ask(&rig, ADMIT_MUTATE, (struct call){ .pod = pod });

        assert_int_equal(json_len(reply.patch), rows[i].will_do ? 0 : 1);
    }
}

static void a_named_node_is_taken_away(void **state)
{
    assert_becomes((struct call){ .pod = "{'metadata':{},'spec':{'nodeName':'n1'}}" },
                   "{'metadata':{'finalizers':[" FINALIZER "]},'spec':{'schedulerName':'" SCHEDULER
                   "','tolerations':[" TOLERATION "]}}");
}

static void a_pod_of_another_scheduler_keeps_it_and_gets_no_finalizer(void **state)
{
    assert_becomes(
        (struct call){ .pod = "{'metadata':{},'spec':{'nodeName':'n1','schedulerName':'other'}}" },
        "{'metadata':{},'spec':{'schedulerName':'other'}}");
}

static void only_new_pods_are_changed(void **state)
{
    static const char pod[] = "{'metadata':{},'spec':{'schedulerName':'default-scheduler'}}";

    assert_unchanged((struct call){ .op = "UPDATE", .pod = pod, .old = pod });
    assert_unchanged((struct call){ .op = "CONNECT", .pod = pod });
    assert_unchanged((struct call){ .op = "", .pod = pod });
    assert_int_equal(
        rig_ask(&rig, ADMIT_MUTATE, (struct call){ .op = "DELETE", .old = pod }).answer.verdict,
        ADMIT_ALLOWED);
}

/* ---- scope ---- */

static void a_pod_that_names_our_scheduler_is_ours_anywhere(void **state)
{
    assert_becomes(
        (struct call){ .ns = "elsewhere",
                       .pod = "{'metadata':{},'spec':{'schedulerName':'" SCHEDULER "'}}" },
        "{'metadata':{'finalizers':[" FINALIZER "]},'spec':{'schedulerName':'" SCHEDULER
        "','tolerations':[" TOLERATION "]}}");
}

static void a_pod_elsewhere_is_not_touched(void **state)
{
    assert_unchanged((struct call){
        .ns = "elsewhere", .pod = "{'metadata':{},'spec':{'schedulerName':'default-scheduler'}}" });
    assert_unchanged((struct call){ .ns = "", .pod = "{'metadata':{},'spec':{}}" });
    assert_unchanged((struct call){ .ns = "slurm", .pod = "{'metadata':{},'spec':{}}" });
}

static void the_pods_own_namespace_counts_where_the_request_names_none(void **state)
{
    struct reply reply = rig_ask(
        &rig, ADMIT_MUTATE,
        (struct call){ .ns = "", .pod = "{'metadata':{'namespace':'slurm-bridge'},'spec':{}}" });

    assert_int_equal(reply.answer.verdict, ADMIT_CHANGED);
}

#define OWNED(kind)                                                                                \
    "'ownerReferences':[{'kind':'Other'},{'apiVersion':'apps/v1','kind':'" kind                    \
    "','controller':true}]"
#define DAEMONSETS  "system:serviceaccount:kube-system:daemon-set-controller"
#define CONTROLLERS "system:kube-controller-manager"
#define MIRROR      "'annotations':{'kubernetes.io/config.mirror':'x'}"
#define NODES       "['system:nodes','system:authenticated']"

/* What Slurm places instead of the node that was named. */
static const char *captured(const char *metadata)
{
    return arena_printf(&rig.arena,
                        "{'metadata':{%s,'finalizers':[" FINALIZER
                        "]},'spec':{'schedulerName':'" SCHEDULER "','tolerations':[" TOLERATION
                        "]}}",
                        metadata);
}

static void pods_that_the_daemonset_controller_makes_are_left_alone(void **state)
{
    static const char *const users[] = { DAEMONSETS, CONTROLLERS };
    static const char pod[] = "{'metadata':{" OWNED("DaemonSet") "},'spec':{'nodeName':'n1'}}";

    for (size_t i = 0; i < COUNT(users); i++)
        assert_unchanged((struct call){ .user = users[i], .pod = pod });
    assert_int_equal(rig_ask(&rig, ADMIT_VALIDATE,
                             (struct call){ .user = DAEMONSETS,
                                            .pod = "{'metadata':{" OWNED(
                                                "DaemonSet") "},'spec':{'resourceClaims':[{}]}}" })
                         .answer.verdict,
                     ADMIT_ALLOWED);
}

static void an_owner_that_somebody_else_wrote_makes_no_daemonset_of_a_pod(void **state)
{
    static const struct {
        const char *user, *owner;
    } rows[] = {
        { "somebody", OWNED("DaemonSet") },
        { "", OWNED("DaemonSet") },
        { "system:serviceaccount:slurm-bridge:daemon-set-controller", OWNED("DaemonSet") },
        { "system:serviceaccount:kube-system:replicaset-controller", OWNED("DaemonSet") },
        { DAEMONSETS, "'ownerReferences':[{'apiVersion':'x.y/v1','kind':'DaemonSet','controller':"
                      "true}]" },
        { CONTROLLERS, OWNED("ReplicaSet") },
        { CONTROLLERS, "'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet'}]" },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_becomes((struct call){ .user = rows[i].user,
                                      .pod = arena_printf(
                                          &rig.arena, "{'metadata':{%s},'spec':{'nodeName':'n1'}}",
                                          rows[i].owner) },
                       captured(rows[i].owner));
}

static void mirror_pods_of_the_kubelet_are_left_alone(void **state)
{
    assert_unchanged((struct call){ .user = "system:node:n1",
                                    .groups = NODES,
                                    .pod = "{'metadata':{" MIRROR
                                           "},'spec':{'nodeName':'n1','schedulerName':'" SCHEDULER
                                           "'}}" });
}

static void a_mirror_pod_of_anybody_else_is_a_pod_like_others(void **state)
{
    static const struct {
        const char *user, *groups;
    } rows[] = {
        { "somebody", "['system:authenticated']" },
        { "somebody", NODES },
        { "system:node:n1", NULL },
        { "system:node:n1", "['system:authenticated']" },
        { "system:node:n2", NODES },
        { "system:node:", NODES },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_becomes((struct call){ .user = rows[i].user,
                                      .groups = rows[i].groups,
                                      .pod = "{'metadata':{" MIRROR "},'spec':{'nodeName':'n1'}}" },
                       captured(MIRROR));
}

static void a_mirror_pod_without_a_node_is_no_kubelets(void **state)
{
    assert_becomes(
        (struct call){
            .user = "system:node:", .groups = NODES, .pod = "{'metadata':{" MIRROR "},'spec':{}}" },
        captured(MIRROR));
}

/* Else its size could be changed behind Slurm's back. */
static void a_pod_of_ours_is_ours_whatever_is_written_on_it(void **state)
{
    static const char *const marks[] = { MIRROR, OWNED("DaemonSet") };

    for (size_t i = 0; i < COUNT(marks); i++) {
        const char *pod = arena_printf(
            &rig.arena, "{'metadata':{%s},'spec':{'schedulerName':'" SCHEDULER "'}}", marks[i]);

        assert_int_equal(
            rig_ask(&rig, ADMIT_VALIDATE,
                    (struct call){ .op = "UPDATE", .sub = "resize", .pod = pod, .old = pod })
                .answer.verdict,
            ADMIT_REFUSED);
    }
}

static void pods_of_daemonsets_that_are_there_may_be_changed(void **state)
{
    static const char pod[] = "{'metadata':{" OWNED("DaemonSet") "},'spec':{}}";

    assert_int_equal(
        rig_ask(&rig, ADMIT_VALIDATE,
                (struct call){ .op = "UPDATE", .sub = "resize", .pod = pod, .old = pod })
            .answer.verdict,
        ADMIT_ALLOWED);
}

static void a_daemonset_that_names_our_scheduler_means_it_but_keeps_its_node(void **state)
{
    assert_becomes((struct call){ .user = DAEMONSETS,
                                  .pod = "{'metadata':{" OWNED(
                                      "DaemonSet") "},'spec':{'nodeName':'n1','schedulerName':"
                                                   "'" SCHEDULER "'}}" },
                   "{'metadata':{" OWNED("DaemonSet") ",'finalizers':[" FINALIZER
                                                      "]},'spec':{'nodeName':'n1','schedulerName':"
                                                      "'" SCHEDULER "','tolerations':[" TOLERATION
                                                      "]}}");
    assert_becomes((struct call){ .pod = "{'metadata':{" OWNED(
                                      "DaemonSet") "},'spec':{'nodeName':'n1','schedulerName':"
                                                   "'" SCHEDULER "'}}" },
                   captured(OWNED("DaemonSet")));
}

static void what_we_do_not_know_is_allowed(void **state)
{
    static const struct call calls[] = {
        { .resource = "services" },
        { .resource = "services", .pod = "'no pod'" },
        { .sub = "binding", .pod = "{'kind':'Binding','target':{}}" },
        { .sub = "status", .op = "UPDATE", .pod = "{'metadata':{},'spec':{}}" },
        { .sub = "ephemeralcontainers", .op = "UPDATE", .pod = "{'metadata':{},'spec':{}}" },
    };

    for (size_t i = 0; i < COUNT(calls); i++) {
        assert_int_equal(rig_ask(&rig, ADMIT_MUTATE, calls[i]).answer.verdict, ADMIT_ALLOWED);
        assert_int_equal(rig_ask(&rig, ADMIT_VALIDATE, calls[i]).answer.verdict, ADMIT_ALLOWED);
    }
}

/* A group of the same plural, and a review that names no resource. */
static void a_pod_is_known_by_group_and_name(void **state)
{
    static const struct {
        const char *named;
        enum admit_verdict verdict;
    } rows[] = {
        { "'resource':{'group':'metrics.k8s.io','version':'v1','resource':'pods'}", ADMIT_ALLOWED },
        { "'resource':{'group':'','version':'v1','resource':'pods'}", ADMIT_CHANGED },
        { "'kind':{'group':'','version':'v1','kind':'Pod'}", ADMIT_ALLOWED },
        { "'x':1", ADMIT_ALLOWED },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *text = quoted(
            &rig, arena_printf(&rig.arena,
                               "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview',"
                               "'request':{'uid':'u',%s,'operation':'CREATE','namespace':"
                               "'slurm-bridge','object':{'metadata':{},'spec':{}}}}",
                               rows[i].named));

        assert_int_equal(rig_send(&rig, ADMIT_MUTATE, str_of(text)).answer.verdict,
                         rows[i].verdict);
    }
}

static void use_config(const char *config)
{
    rig_end(&rig);
    rig_begin(&rig, config);
}

/* ---- cores ---- */

#define OURS                                                                                       \
    "'metadata':{'finalizers':[" FINALIZER "]%s},'spec':{'schedulerName':'" SCHEDULER              \
    "','tolerations':[" TOLERATION "]%s}"
#define CORES_CLAIM ",'resourceClaims':[{'name':'slinc-cpu','resourceClaimName':'slinc-cpu-u-1'}]"

static const char *our_pod(const char *metadata, const char *spec)
{
    return arena_printf(&rig.arena, "{" OURS "}", metadata, spec);
}

static void a_pod_that_shares_its_node_claims_its_cores_with_all_containers(void **state)
{
    use_config("pinCpus: auto\nsharedNodes: true");
    assert_becomes(
        (struct call){
            .pod = our_pod("", ",'initContainers':[{'name':'i','resources':null},{'name':'s',"
                               "'resources':{'requests':{'cpu':'1'}}}],'containers':[{'name':'c'},"
                               "{'name':'d','resources':{'claims':[{'name':'g'}]}}]") },
        our_pod("", CORES_CLAIM
                ",'initContainers':[{'name':'i','resources':{'claims':[{'name':'slinc-cpu'}]}},"
                "{'name':'s','resources':{'requests':{'cpu':'1'},'claims':[{'name':'slinc-cpu'}]}}]"
                ",'containers':[{'name':'c','resources':{'claims':[{'name':'slinc-cpu'}]}},{'name':"
                "'d','resources':{'claims':[{'name':'g'},{'name':'slinc-cpu'}]}}]"));
}

static void the_claim_of_cores_comes_after_those_of_the_pod(void **state)
{
    use_config("pinCpus: auto\nsharedNodes: true");
    assert_becomes(
        (struct call){ .pod = our_pod("", ",'resourceClaims':[{'name':'g'}]") },
        our_pod("", ",'resourceClaims':[{'name':'g'},{'name':'slinc-cpu','resourceClaimName':"
                    "'slinc-cpu-u-1'}]"));
}

static void a_pod_that_was_copied_gets_a_claim_of_its_own(void **state)
{
    use_config("pinCpus: auto\nsharedNodes: true");
    assert_becomes((struct call){ .pod = our_pod("", ",'resourceClaims':[{'name':'slinc-cpu',"
                                                     "'resourceClaimName':'slinc-cpu-u-0'}]") },
                   our_pod("", CORES_CLAIM));
}

static void a_pod_that_brings_the_entry_is_pinned_with_all_containers(void **state)
{
    use_config("pinCpus: auto\nsharedNodes: true");
    assert_becomes(
        (struct call){
            .pod = our_pod("", ",'resourceClaims':[{'name':'slinc-cpu','resourceClaimName':'x'}],"
                               "'containers':[{'name':'c'},{'name':'d','resources':{'claims':"
                               "[{'name':'slinc-cpu'}]}},{'name':'e','resources':{'claims':"
                               "[{'name':'slinc-cpu','request':'none'}]}}]") },
        our_pod("", CORES_CLAIM
                ",'containers':[{'name':'c','resources':{'claims':[{'name':'slinc-cpu'}]}},"
                "{'name':'d','resources':{'claims':[{'name':'slinc-cpu'}]}},{'name':'e',"
                "'resources':{'claims':[{'name':'slinc-cpu','request':'none'},"
                "{'name':'slinc-cpu'}]}}]"));
}

static void only_pods_that_share_nodes_and_ask_for_no_cores_are_pinned(void **state)
{
    static const struct {
        const char *config, *metadata, *spec;
        bool pins;
    } cases[] = {
        { "pinCpus: auto", "", "", false },
        { "pinCpus: auto", ",'annotations':{'" WISH "exclusive':'False '}", "", true },
        { "pinCpus: auto\nsharedNodes: true", ",'annotations':{'" WISH "exclusive':'true'}", "",
          false },
        { "pinCpus: never\nsharedNodes: true", "", "", false },
        { "sharedNodes: true", "", "", false },
        { "pinCpus: auto\nsharedNodes: true", "",
          ",'containers':[{'name':'c','resources':{'limits':{'deviceclass.resource.kubernetes.io/"
          "cores.slinky.slurm.net':'1'}}}]",
          false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *pod;

        use_config(cases[i].config);
        pod = our_pod(cases[i].metadata, cases[i].spec);
        assert_becomes((struct call){ .pod = pod },
                       cases[i].pins ? our_pod(cases[i].metadata, CORES_CLAIM) : pod);
    }
}

/* ---- namespaces by selector ---- */

static void a_selector_decides_by_the_labels_of_the_namespace(void **state)
{
    struct call call = { .ns = "team-a", .pod = "{'metadata':{},'spec':{}}" };

    use_config("managedNamespaceSelector: {matchLabels: {slurm: 'yes'}}");
    rig_see(&rig, rig.namespaces,
            "{'metadata':{'name':'team-a','uid':'1','resourceVersion':'1','labels':{'slurm':'yes'"
            ",'a':'b'}}}");
    assert_int_equal(rig_ask(&rig, ADMIT_MUTATE, call).answer.verdict, ADMIT_CHANGED);
    rig_see(&rig, rig.namespaces,
            "{'metadata':{'name':'team-a','uid':'1','resourceVersion':'2','labels':{'slurm':'no'}}"
            "}");
    assert_int_equal(rig_ask(&rig, ADMIT_MUTATE, call).answer.verdict, ADMIT_ALLOWED);
}

static void an_empty_selector_takes_every_namespace_and_the_list_counts_no_more(void **state)
{
    use_config("managedNamespaceSelector: {}\nmanagedNamespaces: [other]");
    rig_see(&rig, rig.namespaces, "{'metadata':{'name':'any','uid':'1','resourceVersion':'1'}}");
    assert_int_equal(rig_ask(&rig, ADMIT_MUTATE,
                             (struct call){ .ns = "any", .pod = "{'metadata':{},'spec':{}}" })
                         .answer.verdict,
                     ADMIT_CHANGED);
}

static void a_namespace_that_was_not_seen_is_asked_for_again(void **state)
{
    struct call call = { .ns = "new", .pod = "{'metadata':{},'spec':{}}" };

    use_config("managedNamespaceSelector: {matchLabels: {slurm: 'yes'}}");
    for (int hook = ADMIT_MUTATE; hook <= ADMIT_VALIDATE; hook++) {
        struct reply reply = rig_ask(&rig, (enum admit_hook)hook, call);

        assert_int_equal(reply.answer.verdict, ADMIT_NOT_KNOWN);
        assert_true(reply.answer.is_early);
        assert_int_equal(reply.code, 503);
        assert_string_equal(reply.message, "the bridge has not read the namespace \"new\" yet: "
                                           "try again in a moment");
        assert_false(json_bool_or(json_get(reply.response, "allowed"), true));
        assert_true(
            str_is(json_str(json_at(reply.response, "status", "reason")), "ServiceUnavailable"));
        assert_int_equal(
            json_i64_or(json_at(reply.response, "status", "details", "retryAfterSeconds"), 0), 1);
    }
}

static void our_schedulers_name_needs_no_namespace(void **state)
{
    use_config("managedNamespaceSelector: {matchLabels: {slurm: 'yes'}}");
    assert_int_equal(
        rig_ask(&rig, ADMIT_MUTATE,
                (struct call){ .ns = "new",
                               .pod = "{'metadata':{},'spec':{'schedulerName':'" SCHEDULER "'}}" })
            .answer.verdict,
        ADMIT_CHANGED);
}

static void without_a_cache_a_selector_decides_nothing(void **state)
{
    struct call call = { .ns = "new", .pod = "{'metadata':{},'spec':{}}" };
    auto_buf struct buf out = { .max = ADMIT_MAX_ANSWER };
    struct admit *alone;

    use_config("managedNamespaceSelector: {}");
    assert_int_equal(admit_new(&rig.config, NULL, &alone, NULL), 0);
    assert_int_equal(
        admit_review(alone, ADMIT_MUTATE, str_of(rig_review(&rig, &call)), &out).verdict,
        ADMIT_NOT_KNOWN);
    admit_free(alone);
}

static void a_name_longer_than_any_is_no_namespace(void **state)
{
    char *name = arena_alloc(&rig.arena, 2 * KUBE_MAX_NAME);

    memset(name, 'n', 2 * KUBE_MAX_NAME - 1);
    use_config("managedNamespaceSelector: {}");
    name = arena_alloc(&rig.arena, 2 * KUBE_MAX_NAME);
    memset(name, 'n', 2 * KUBE_MAX_NAME - 1);
    assert_int_equal(
        rig_ask(&rig, ADMIT_MUTATE, (struct call){ .ns = name, .pod = "{'metadata':{},'spec':{}}" })
            .answer.verdict,
        ADMIT_NOT_KNOWN);
}

/* ---- gangs ---- */

#define OF_JOB                                                                                     \
    "'ownerReferences':[{'apiVersion':'batch/"                                                     \
    "v1','kind':'Job','name':'j','uid':'j-1','controller':true}]"
#define JOB(more)                                                                                  \
    "{'metadata':{'name':'j','namespace':'slurm-bridge','uid':'j-1'," more "'resourceVersion':'1'" \
    "}}"
#define JOBSET(uid, value)                                                                         \
    "{'metadata':{'name':'s','namespace':'slurm-bridge','uid':'" uid "','annotations':{" GANG      \
    ":'" value "'},'resourceVersion':'1'}}"
#define OF_JOBSET                                                                                  \
    "'ownerReferences':[{'apiVersion':'jobset.x-k8s.io/"                                           \
    "v1alpha2','kind':'JobSet','name':'s','uid':'s-1','controller':true}],"

/* The value that the pod gets; NULL for none. */
static const char *gang_of(const char *metadata, struct reply *ret_reply)
{
    struct reply reply = rig_ask(
        &rig, ADMIT_MUTATE,
        (struct call){ .pod = arena_printf(&rig.arena, "{'metadata':{%s},'spec':{}}", metadata) });
    struct json_iter iter = json_iter(reply.patch);
    const struct json *op;

    *ret_reply = reply;
    while (json_next_item(&iter, &op)) {
        if (str_is(json_str(json_get(op, "path")), "/metadata/annotations"))
            return json_str(json_at(op, "value", BRIDGE_ANNOTATION_PREFIX BRIDGE_GANG)).at;
        if (str_is(json_str(json_get(op, "path")),
                   "/metadata/annotations/slurmjob.slinky.slurm.net~1gang"))
            return json_str(json_get(op, "value")).at;
    }
    return NULL;
}

static void a_pod_takes_the_word_of_its_job(void **state)
{
    struct reply reply;

    rig_see(&rig, rig.jobs, JOB("'annotations':{" GANG ":'4'},"));
    assert_string_equal(gang_of(OF_JOB, &reply), "4");
    assert_false(reply.answer.is_early);
    assert_string_equal(gang_of(OF_JOB ",'annotations':{'a':'b'}", &reply), "4");
}

static void a_pod_takes_the_word_of_the_jobset_above_its_job(void **state)
{
    struct reply reply;

    rig_see(&rig, rig.jobs, JOB(OF_JOBSET));
    rig_see(&rig, rig.jobsets, JOBSET("s-1", "true"));
    assert_string_equal(gang_of(OF_JOB, &reply), "true");
}

static bool is_pinned(const char *metadata)
{
    struct reply reply = rig_ask(
        &rig, ADMIT_MUTATE,
        (struct call){ .pod = arena_printf(&rig.arena, "{'metadata':{%s},'spec':{}}", metadata) });
    struct json_iter iter = json_iter(reply.patch);
    const struct json *op;

    assert_false(reply.answer.is_early);
    while (json_next_item(&iter, &op))
        if (str_is(json_str(json_get(op, "path")), "/spec/resourceClaims"))
            return true;
    return false;
}

static void a_pod_is_pinned_when_its_job_or_jobset_shares_nodes(void **state)
{
    use_config("pinCpus: auto");
    rig_see(&rig, rig.jobs, JOB("'annotations':{'" WISH "exclusive':'false'},"));
    assert_true(is_pinned(OF_JOB));
    /* What its template says does not count for its job, so it counts for nothing here. */
    assert_true(is_pinned(OF_JOB ",'annotations':{'" WISH "exclusive':'true'}"));
    rig_see(&rig, rig.jobs, JOB(OF_JOBSET));
    rig_see(&rig, rig.jobsets,
            "{'metadata':{'name':'s','namespace':'slurm-bridge','uid':'s-1','annotations':{'" WISH
            "exclusive':'false'},'resourceVersion':'1'}}");
    assert_true(is_pinned(OF_JOB));
}

#define OF_REPLICASET                                                                              \
    "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'r','uid':'r-1',"       \
    "'controller':true}]"
#define SAYS(name, exclusive, version)                                                             \
    "{'metadata':{'name':'" name "','namespace':'slurm-bridge','uid':'" name                       \
    "-1','annotations':{'" WISH "exclusive':'" exclusive "'},'resourceVersion':'" version "'}}"

static void a_pod_is_pinned_as_the_object_says_that_counts_for_its_job(void **state)
{
    use_config("pinCpus: auto\nsharedNodes: true");
    rig_see(&rig, rig.replicasets, SAYS("r", "false", "1"));
    assert_true(is_pinned(OF_REPLICASET ",'annotations':{'" WISH "exclusive':'true'}"));
    rig_see(&rig, rig.replicasets, SAYS("r", "true", "2"));
    assert_false(is_pinned(OF_REPLICASET));
}

static bool is_pinned_in_group(const char *metadata)
{
    struct reply reply =
        rig_ask(&rig, ADMIT_MUTATE,
                (struct call){ .pod = arena_printf(&rig.arena,
                                                   "{'metadata':{%s},'spec':{'schedulingGroup':"
                                                   "{'podGroupName':'g'}}}",
                                                   metadata) });

    return strstr(reply.text, "patch") && json_len(reply.patch) == 4;
}

static void of_several_objects_the_last_one_that_says_it_counts(void **state)
{
    use_config("pinCpus: auto\nsharedNodes: true");
    rig_see(&rig, rig.podgroups, SAYS("g", "true", "1"));
    rig_see(&rig, rig.jobs, JOB(""));
    assert_false(is_pinned_in_group("'annotations':{'" WISH "exclusive':'false'}"));
    rig_see(&rig, rig.jobs, SAYS("j", "false", "2"));
    assert_true(is_pinned_in_group(OF_JOB));
}

static void the_nearest_word_counts(void **state)
{
    struct reply reply;

    rig_see(&rig, rig.jobs, JOB(OF_JOBSET "'annotations':{" GANG ":'false'},"));
    rig_see(&rig, rig.jobsets, JOBSET("s-1", "true"));
    assert_string_equal(gang_of(OF_JOB, &reply), "false");
    assert_null(gang_of(OF_JOB ",'annotations':{" GANG ":'8'}", &reply));
    assert_null(gang_of(OF_JOB ",'annotations':{" GANG ":''}", &reply));
}

static void a_job_that_says_nothing_leaves_its_pods_alone(void **state)
{
    struct reply reply;

    rig_see(&rig, rig.jobs, JOB(""));
    assert_null(gang_of(OF_JOB, &reply));
    assert_false(reply.answer.is_early);
    assert_null(gang_of("'ownerReferences':[{'kind':'ReplicaSet','name':'j','uid':'j-1',"
                        "'controller':true}]",
                        &reply));
    assert_false(reply.answer.is_early);
}

static void a_job_that_was_not_seen_yet_makes_the_answer_an_early_one(void **state)
{
    struct reply reply;

    rig_see(&rig, rig.jobs, NULL);
    assert_null(gang_of(OF_JOB, &reply));
    assert_true(reply.answer.is_early);
    assert_int_equal(reply.answer.verdict, ADMIT_CHANGED);
    rig_see(&rig, rig.jobs,
            "{'metadata':{'name':'j','namespace':'slurm-bridge','uid':'of before',"
            "'annotations':{" GANG ":'4'},'resourceVersion':'1'}}");
    assert_null(gang_of(OF_JOB, &reply));
    assert_true(reply.answer.is_early);
}

static void a_jobset_that_was_not_seen_yet_makes_the_answer_an_early_one(void **state)
{
    struct reply reply;

    rig_see(&rig, rig.jobs, JOB(OF_JOBSET));
    rig_see(&rig, rig.jobsets, JOBSET("another", "true"));
    assert_null(gang_of(OF_JOB, &reply));
    assert_true(reply.answer.is_early);
    assert_int_equal(reply.answer.verdict, ADMIT_CHANGED);
}

static void jobs_that_were_never_read_are_not_taken_for_none(void **state)
{
    struct reply reply;

    assert_null(gang_of(OF_JOB, &reply));
    assert_int_equal(reply.answer.verdict, ADMIT_NOT_KNOWN);
    assert_true(reply.answer.is_early);
    assert_string_equal(reply.message, "the bridge has not read jobs yet: try again in a moment");
    rig_see(&rig, rig.jobs, JOB(OF_JOBSET));
    assert_null(gang_of(OF_JOB, &reply));
    assert_string_equal(reply.message,
                        "the bridge has not read jobsets yet: try again in a moment");
}

static void without_caches_of_owners_no_word_is_looked_for(void **state)
{
    struct call call = { .pod = "{'metadata':{" OF_JOB "},'spec':{}}" };
    auto_buf struct buf out = { .max = ADMIT_MAX_ANSWER };
    struct admit_answer answer;
    struct admit *alone;

    assert_int_equal(admit_new(&rig.config, NULL, &alone, NULL), 0);
    answer = admit_review(alone, ADMIT_MUTATE, str_of(rig_review(&rig, &call)), &out);
    assert_int_equal(answer.verdict, ADMIT_CHANGED);
    assert_false(answer.is_early);
    admit_free(alone);
}

/* ---- what cannot be read ---- */

#define REVIEW(request) "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview'," request "}"

static void what_is_no_review_is_answered_in_text(void **state)
{
    static const struct {
        const char *body, *said;
    } rows[] = {
        { "", "" },
        { "{", "" },
        { "null", "no AdmissionReview" },
        { "[]", "no AdmissionReview" },
        { "{'kind':'AdmissionReview'}", "no AdmissionReview" },
        { "{'apiVersion':'admission.k8s.io/v2','kind':'AdmissionReview','request':{'uid':'u'"
          "}}",
          "no AdmissionReview" },
        { "{'apiVersion':'admission.k8s.io/v1','kind':'Pod','request':{'uid':'u'}}",
          "no AdmissionReview" },
        { REVIEW("'request':null"), "no request with a uid" },
        { REVIEW("'request':{}"), "no request with a uid" },
        { REVIEW("'request':{'uid':''}"), "no request with a uid" },
        { REVIEW("'request':{'uid':7}"), "no request with a uid" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct reply reply = rig_send(&rig, ADMIT_VALIDATE, str_of(quoted(&rig, rows[i].body)));

        assert_int_equal(reply.answer.status, 400);
        assert_int_equal(reply.answer.verdict, ADMIT_UNREADABLE);
        assert_non_null(strstr(reply.text, rows[i].said));
        assert_int_equal(reply.text[strlen(reply.text) - 1], '\n');
    }
}

static void a_uid_has_a_greatest_length(void **state)
{
    char uid[258];

    memset(uid, 'u', sizeof(uid) - 1);
    uid[257] = '\0';
    for (int length = 257; length >= 256; length--) {
        const char *text =
            quoted(&rig, arena_printf(&rig.arena, REVIEW("'request':{'uid':'%.*s'}"), length, uid));
        struct reply reply = rig_send(&rig, ADMIT_VALIDATE, str_of(text));

        assert_int_equal(reply.answer.status, length == 257 ? 400 : 200);
    }
}

static void a_review_has_a_greatest_size(void **state)
{
    auto_buf struct buf body = { .max = ADMIT_MAX_BODY + 1 };

    buf_add_text(&body, quoted(&rig, REVIEW("'request':{'uid':'u'}")));
    while (body.len < ADMIT_MAX_BODY)
        buf_add_char(&body, ' ');
    assert_int_equal(rig_send(&rig, ADMIT_MUTATE, buf_str(&body)).answer.status, 200);
    buf_add_char(&body, ' ');
    assert_int_equal(rig_send(&rig, ADMIT_MUTATE, buf_str(&body)).answer.status, 413);
}

static void what_is_no_pod_is_refused_with_what_is_wrong(void **state)
{
    static const struct {
        const char *pod, *said;
    } rows[] = {
        { NULL, "the review has no pod" },
        { "null", "the review has no pod" },
        { "7", "the review has no pod" },
        { "{}", "metadata is " },
        { "{'metadata':{}}", "spec is " },
        { "{'metadata':{},'spec':[]}", "spec is array where object is wanted" },
        { "{'metadata':{'labels':[]},'spec':{}}", "metadata.labels is array" },
        { "{'metadata':{'labels':{'a':1}},'spec':{}}", "a value of metadata.labels is no string" },
        { "{'metadata':{'annotations':{'a':{}}},'spec':{}}",
          "a value of metadata.annotations is no string" },
        { "{'metadata':{'finalizers':{}},'spec':{}}", "metadata.finalizers is object" },
        { "{'metadata':{'ownerReferences':{}},'spec':{}}", "metadata.ownerReferences is object" },
        { "{'metadata':{},'spec':{'tolerations':{}}}", "spec.tolerations is object" },
        { "{'metadata':{},'spec':{'nodeName':1}}", "spec.nodeName is number" },
        { "{'metadata':{},'spec':{'schedulerName':1}}", "spec.schedulerName is number" },
        { "{'metadata':{},'spec':{'containers':'x'}}", "spec.containers is string" },
        { "{'metadata':{},'spec':{'resources':'x'}}", "spec.resources is string" },
        { "{'metadata':{},'spec':{},'status':[]}", "status is array" },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (int hook = ADMIT_MUTATE; hook <= ADMIT_VALIDATE; hook++) {
            struct reply reply =
                rig_ask(&rig, (enum admit_hook)hook, (struct call){ .pod = rows[i].pod });

            assert_int_equal(reply.answer.status, 200);
            assert_int_equal(reply.answer.verdict, ADMIT_UNREADABLE);
            assert_int_equal(reply.code, 400);
            if (!strstr(reply.message, rows[i].said))
                fail_msg("%s: %s", rows[i].pod, reply.message);
        }
}

static void an_annotation_too_long_to_be_given_is_refused(void **state)
{
    char *value = arena_alloc(&rig.arena, (300 << 10) + 1);
    struct reply reply;

    memset(value, 'x', 300 << 10);
    rig_see(&rig, rig.jobs, arena_printf(&rig.arena, JOB("'annotations':{" GANG ":'%s'},"), value));
    assert_null(gang_of(OF_JOB, &reply));
    assert_int_equal(reply.answer.verdict, ADMIT_REFUSED);
}

static void every_verdict_has_a_name(void **state)
{
    for (int verdict = 0; verdict < ADMIT_VERDICTS; verdict++)
        assert_non_null(admit_verdict_name((enum admit_verdict)verdict));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_of_a_managed_namespace_gets_all_it_needs_at_once),
        TEST(what_a_pod_has_stays_in_its_place),
        TEST(a_pod_that_has_all_is_not_touched),
        TEST(null_lists_are_as_good_as_none),
        TEST(only_an_equal_toleration_will_do),
        TEST(a_named_node_is_taken_away),
        TEST(a_pod_of_another_scheduler_keeps_it_and_gets_no_finalizer),
        TEST(only_new_pods_are_changed),
        TEST(a_pod_that_names_our_scheduler_is_ours_anywhere),
        TEST(a_pod_elsewhere_is_not_touched),
        TEST(who_made_it_is_written_whatever_was_written_there),
        TEST(a_pod_gets_its_creator_and_its_gang_in_one_patch),
        TEST(the_pods_own_namespace_counts_where_the_request_names_none),
        TEST(pods_that_the_daemonset_controller_makes_are_left_alone),
        TEST(an_owner_that_somebody_else_wrote_makes_no_daemonset_of_a_pod),
        TEST(mirror_pods_of_the_kubelet_are_left_alone),
        TEST(a_mirror_pod_of_anybody_else_is_a_pod_like_others),
        TEST(a_mirror_pod_without_a_node_is_no_kubelets),
        TEST(a_pod_of_ours_is_ours_whatever_is_written_on_it),
        TEST(pods_of_daemonsets_that_are_there_may_be_changed),
        TEST(a_daemonset_that_names_our_scheduler_means_it_but_keeps_its_node),
        TEST(what_we_do_not_know_is_allowed),
        TEST(a_pod_is_known_by_group_and_name),
        TEST(a_pod_that_shares_its_node_claims_its_cores_with_all_containers),
        TEST(the_claim_of_cores_comes_after_those_of_the_pod),
        TEST(a_pod_that_was_copied_gets_a_claim_of_its_own),
        TEST(a_pod_that_brings_the_entry_is_pinned_with_all_containers),
        TEST(only_pods_that_share_nodes_and_ask_for_no_cores_are_pinned),
        TEST(a_selector_decides_by_the_labels_of_the_namespace),
        TEST(an_empty_selector_takes_every_namespace_and_the_list_counts_no_more),
        TEST(a_namespace_that_was_not_seen_is_asked_for_again),
        TEST(our_schedulers_name_needs_no_namespace),
        TEST(without_a_cache_a_selector_decides_nothing),
        TEST(a_name_longer_than_any_is_no_namespace),
        TEST(a_pod_takes_the_word_of_its_job),
        TEST(a_pod_takes_the_word_of_the_jobset_above_its_job),
        TEST(a_pod_is_pinned_when_its_job_or_jobset_shares_nodes),
        TEST(a_pod_is_pinned_as_the_object_says_that_counts_for_its_job),
        TEST(of_several_objects_the_last_one_that_says_it_counts),
        TEST(the_nearest_word_counts),
        TEST(a_job_that_says_nothing_leaves_its_pods_alone),
        TEST(a_job_that_was_not_seen_yet_makes_the_answer_an_early_one),
        TEST(a_jobset_that_was_not_seen_yet_makes_the_answer_an_early_one),
        TEST(jobs_that_were_never_read_are_not_taken_for_none),
        TEST(without_caches_of_owners_no_word_is_looked_for),
        TEST(what_is_no_review_is_answered_in_text),
        TEST(a_uid_has_a_greatest_length),
        TEST(a_review_has_a_greatest_size),
        TEST(what_is_no_pod_is_refused_with_what_is_wrong),
        TEST(an_annotation_too_long_to_be_given_is_refused),
        TEST(every_verdict_has_a_name),
    };

    return cmocka_run_group_tests_name("admit", tests, NULL, NULL);
}
