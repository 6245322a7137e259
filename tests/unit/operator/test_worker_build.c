/* test_worker_build.c - the pod of a worker and what NodeSets share, compared with the objects that
 * the Slinky operator made, and rule by rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/covers.h"
#include "codec/digest.h"
#include "fixtures.h"
#include "made.h"
#include "operator/names.h"
#include "operator/nodeset_revision.h"
#include "operator/worker_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TEXT = 1 << 20 };

static const char no_hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void assert_covers(const struct json *live, const struct json *wanted, const char *what)
{
    auto_buf struct buf is = { .max = MAX_TEXT }, should_be = { .max = MAX_TEXT };

    if (json_covers(live, wanted))
        return;
    json_write_pretty(live, &is);
    json_write_pretty(wanted, &should_be);
    fail_msg("%s: recorded %s\nbuilt %s", what, buf_text(&is), buf_text(&should_be));
}

static int template_of(struct desk *desk, const struct kube_object *nodeset,
                       const struct kube_object *controller, const char *revision,
                       struct json_doc **ret_template, struct err *err)
{
    const struct worker_input input = { .world = &desk->world,
                                        .arena = &desk->arena,
                                        .nodeset = nodeset,
                                        .controller = controller,
                                        .revision = revision };

    return worker_template(&input, ret_template, err);
}

/* ---- recorded objects ---- */

/* What we want otherwise: both names of the topology, no "Topology=" in the arguments, a deadline
 * for the hook that ends the node, and scripts of our own. The API server adds two tolerations. */
static struct json_doc *with_known_differences(const struct json *built, const struct json *live)
{
    const struct json *container = json_item(json_at(live, "spec", "containers"), 0);
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *copy = json_copy(build, built);
    struct json_mut *spec = json_object_at(build, copy, "spec");
    struct json_mut *slurmd = json_mut_item(json_mut_get(spec, STR("containers")), 0);
    struct json_mut *logfile = json_mut_item(json_mut_get(spec, STR("initContainers")), 0);

    json_replace_item(json_mut_get(slurmd, STR("args")), 4,
                      json_copy(build, json_item(json_get(container, "args"), 4)));
    json_put(build, slurmd, "env", json_copy(build, json_get(container, "env")));
    json_put(build, slurmd, "lifecycle", json_copy(build, json_get(container, "lifecycle")));
    json_put(build, logfile, "command",
             json_copy(build,
                       json_get(json_item(json_at(live, "spec", "initContainers"), 0), "command")));
    json_put(build, spec, "tolerations", json_copy(build, json_at(live, "spec", "tolerations")));
    return json_freeze(copy);
}

static void check_recorded_pod(struct desk *desk, const char *version, int64_t ordinal)
{
    const struct kube_object *nodeset =
        kube_cache_get(desk->world.nodesets, "site", "slurm-worker-slinky");
    const struct kube_object *controller = kube_cache_get(desk->world.controllers, "site", "slurm");
    const char *name = ordinal == 0 ? "slurm-worker-slinky-0" : "slurm-worker-slinky-1";
    auto_json_doc struct json_doc *live = fixtures_find(version, "pods.yaml", "Pod", name);
    auto_json_doc struct json_doc *template = NULL, *pod = NULL, *adapted = NULL;
    auto_json_build struct json_build *build = json_build_new();
    struct nodeset_revision revision;
    struct worker_identity worker;
    const struct json *live_env, *spec, *slurmd;

    assert_int_equal(nodeset_revision_choose(desk->world.revisions, desk->world.pods_by_owner,
                                             &desk->arena, nodeset, NULL, &revision, NULL),
                     0);
    assert_int_equal(template_of(desk, nodeset, controller, revision.hash, &template, NULL), 0);
    assert_int_equal(worker_of_ordinal(&desk->arena, nodeset, ordinal, NULL, &worker, NULL), 0);
    pod = json_freeze(worker_pod(build, &desk->arena, nodeset, template, &worker, false));
    adapted = with_known_differences(json_root(pod), json_root(live));
    assert_covers(json_root(live), json_root(adapted), version);

    spec = json_get(json_root(pod), "spec");
    slurmd = json_item(json_get(spec, "containers"), 0);
    live_env = json_get(json_item(json_at(json_root(live), "spec", "containers"), 0), "env");
    assert_int_equal(json_len(json_get(spec, "tolerations")), 1);
    assert_covers(json_item(json_at(json_root(live), "spec", "tolerations"), 0),
                  json_item(json_get(spec, "tolerations"), 0), "toleration");
    assert_string_equal(json_str(json_item(json_get(slurmd, "args"), 4)).at, "'Features=slinky'");
    assert_int_equal(json_len(json_get(slurmd, "env")), json_len(live_env) + 1);
    assert_true(json_equal(json_get(json_item(json_get(slurmd, "env"), 0), "valueFrom"),
                           json_get(json_item(live_env, 0), "valueFrom")));
    for (size_t i = 1; i < json_len(live_env); i++)
        assert_true(json_equal(json_item(json_get(slurmd, "env"), i + 1), json_item(live_env, i)));
    assert_string_equal(json_str(json_at(json_root(pod), "metadata", "generateName")).at,
                        "slurm-worker-slinky-");
}

static void pods_are_as_the_slinky_operator_made_them(void **state)
{
    static const char *const versions[] = { "slinky-1.2.1", "slinky-main" };

    for (size_t i = 0; i < 2; i++) {
        struct desk desk;

        desk_init(&desk);
        fixtures_load(&desk, versions[i]);
        check_recorded_pod(&desk, versions[i], 0);
        check_recorded_pod(&desk, versions[i], 1);
        desk_done(&desk);
    }
}

static void shared_objects_are_as_the_slinky_operator_made_them(void **state)
{
    static const char *const versions[] = { "slinky-1.2.1", "slinky-main" };

    for (size_t i = 0; i < 2; i++) {
        auto_json_doc struct json_doc *service =
            fixtures_find(versions[i], "services.yaml", "Service", "slurm-workers-slurm");
        auto_json_doc struct json_doc *budget =
            fixtures_find(versions[i], "poddisruptionbudgets.yaml", "PodDisruptionBudget",
                          "slurm-workers-pdb-slurm");
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *our_service = NULL, *our_budget = NULL;
        const struct kube_object *controller;
        struct desk desk;

        desk_init(&desk);
        fixtures_load(&desk, versions[i]);
        controller = kube_cache_get(desk.world.controllers, "site", "slurm");
        our_service = json_freeze(worker_service(build, controller));
        our_budget = json_freeze(worker_budget(
            build, controller,
            kube_cache_get(desk.world.budgets, "site", "slurm-workers-pdb-slurm"), false));
        assert_covers(json_root(service), json_root(our_service), "Service");
        assert_covers(json_root(budget), json_root(our_budget), "PodDisruptionBudget");
        desk_done(&desk);
    }
}

/* ---- rule by rule ---- */

struct bench {
    struct desk desk;
    struct json_build *build;
    const struct kube_object *nodeset, *controller;
    struct json_doc *template, *pod;
    const struct json *spec, *slurmd; /* of the pod */
};

#define CONTROLLER                                                                                 \
    "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{"                                    \
    "'slurmKeyRef':{'name':'keys','key':'k'}}}"

static void bench_init(struct bench *bench, const char *spec)
{
    *bench = (struct bench){ .build = json_build_new() };
    desk_init(&bench->desk);
    bench->nodeset = made_nodeset(&bench->desk, spec);
    bench->controller = made(&bench->desk, CONTROLLER);
}

static void bench_pod(struct bench *bench, const struct worker_identity *worker, bool was_there)
{
    struct err err = { 0 };

    if (template_of(&bench->desk, bench->nodeset, bench->controller, "H", &bench->template, &err) <
        0)
        fail_msg("%s", err.text);
    bench->pod = json_freeze(worker_pod(bench->build, &bench->desk.arena, bench->nodeset,
                                        bench->template, worker, was_there));
    bench->spec = json_get(json_root(bench->pod), "spec");
    bench->slurmd = json_item(json_get(bench->spec, "containers"), 0);
}

/* Worker 0 of a NodeSet with this spec. */
static void bench_start(struct bench *bench, const char *spec)
{
    struct worker_identity worker;

    bench_init(bench, spec);
    assert_int_equal(worker_of_ordinal(&bench->desk.arena, bench->nodeset, 0, NULL, &worker, NULL),
                     0);
    bench_pod(bench, &worker, false);
}

static void bench_stop(struct bench *bench)
{
    json_doc_free(bench->template);
    json_doc_free(bench->pod);
    json_build_free(bench->build);
    desk_done(&bench->desk);
}

static void assert_value(const struct json *value, const char *wanted)
{
    auto_json_doc struct json_doc *doc = parsed(wanted);
    auto_buf struct buf text = { .max = MAX_TEXT };

    json_write(value, &text);
    if (!json_equal(value, json_root(doc)))
        fail_msg("%s is not %s", buf_text(&text), wanted);
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define ONE_EACH                                                                                   \
    "{'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchExpressions':[{'key':"         \
    "'app.kubernetes.io/name','operator':'In','values':['slurmd']}]}}"

static void one_worker_on_each_node_unless_the_user_wants_more(void **state)
{
    struct bench bench;

    bench_start(&bench, "{'template':{'spec':{'affinity':{'podAntiAffinity':{'" REQUIRED
                        "':[{'topologyKey':'zone'}]}}}}}");
    assert_value(json_at(bench.spec, "affinity", "podAntiAffinity", REQUIRED),
                 "[{'topologyKey':'zone'}," ONE_EACH "]");
    bench_stop(&bench);
    bench_start(&bench, "{'oversubscribeNode':true}");
    assert_null(json_get(bench.spec, "affinity"));
    bench_stop(&bench);
}

static void a_worker_of_a_node_is_bound_to_it_and_stays(void **state)
{
    struct worker_identity worker;
    struct bench bench;

    bench_init(&bench, "{'scalingMode':'DaemonSet','oversubscribeNode':true,'template':{'spec':{"
                       "'nodeName':'x','affinity':{'nodeAffinity':{'" REQUIRED
                       "':{'nodeSelectorTerms':[{'matchExpressions':[]}]}}}}}}");
    assert_int_equal(worker_of_node(&bench.desk.arena, bench.nodeset,
                                    made(&bench.desk, "{'kind':'Node','metadata':{'name':'a.b'}}"),
                                    0, &worker, NULL),
                     0);
    bench_pod(&bench, &worker, false);
    assert_value(json_get(bench.spec, "affinity"),
                 "{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':[{'matchFields':[{'key':"
                 "'metadata.name','operator':'In','values':['a.b']}]}]}}}");
    assert_null(json_get(bench.spec, "nodeName"));
    assert_value(json_get(bench.spec, "hostname"), "'a'");
    assert_value(json_get(bench.spec, "tolerations"),
                 "[{'key':'nodeset.slinky.slurm.net/worker','operator':'Equal','effect':"
                 "'NoExecute'},{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':"
                 "'NoExecute'},{'key':'node.kubernetes.io/unreachable','operator':'Exists',"
                 "'effect':'NoExecute'}]");
    assert_value(json_at(json_root(bench.pod), "metadata", "labels",
                         "nodeset.slinky.slurm.net/scaling-mode"),
                 "'DaemonSet'");
    assert_null(
        json_at(json_root(bench.pod), "metadata", "labels", "nodeset.slinky.slurm.net/pod-index"));
    assert_value(json_at(json_root(bench.pod), "metadata", "generateName"), "'n-'");
    bench_stop(&bench);
}

static void a_worker_that_was_there_tolerates_the_cordon(void **state)
{
    struct worker_identity worker;
    struct bench bench;

    bench_init(&bench, "{'template':{'spec':{'tolerations':[{'operator':'Exists'}]}}}");
    assert_int_equal(worker_of_ordinal(&bench.desk.arena, bench.nodeset, 3,
                                       made(&bench.desk, "{'kind':'Node','metadata':{'name':'a'}}"),
                                       &worker, NULL),
                     0);
    bench_pod(&bench, &worker, true);
    assert_value(json_get(bench.spec, "tolerations"),
                 "[{'key':'nodeset.slinky.slurm.net/worker','operator':'Equal','effect':"
                 "'NoExecute'},{'operator':'Exists'},{'key':'node.kubernetes.io/unschedulable',"
                 "'operator':'Exists','effect':'NoSchedule'}]");
    assert_value(
        json_at(json_root(bench.pod), "metadata", "labels", "nodeset.slinky.slurm.net/pod-index"),
        "'3'");
    assert_non_null(json_at(bench.spec, "affinity", "nodeAffinity", REQUIRED));
    bench_stop(&bench);
}

static void limits_are_told_to_the_image(void **state)
{
    static const struct {
        const char *spec, *cpus, *memory;
    } rows[] = {
        { "{}", "0", "0" },
        { "{'slurmd':{'resources':{'limits':{'cpu':'2500m','memory':'3Gi'}}}}", "3", "3072" },
        { "{'template':{'spec':{'resources':{'limits':{'cpu':4,'memory':1048577}}}}}", "4", "1" },
        { "{'slurmd':{'resources':{'limits':{'cpu':1.5}}}}", "2", "0" },
        { "{'slurmd':{'resources':{'limits':{'cpu':'1'}}},"
          "'template':{'spec':{'resources':{'limits':{'cpu':4,'memory':'1Gi'}}}}}",
          "1", "1024" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench bench;

        bench_start(&bench, rows[i].spec);
        assert_string_equal(
            json_str(json_get(json_item(json_get(bench.slurmd, "env"), 2), "value")).at,
            rows[i].cpus);
        assert_string_equal(
            json_str(json_get(json_item(json_get(bench.slurmd, "env"), 3), "value")).at,
            rows[i].memory);
        bench_stop(&bench);
    }
}

static void topology_is_given_once(void **state)
{
    struct bench bench;

    bench_start(&bench, "{'extraConf':'Topology=a:b'}");
    assert_value(json_item(json_get(bench.slurmd, "args"), 4), "'\\u0027Features=n Topology=a:b"
                                                               "\\u0027'");
    assert_value(json_get(bench.slurmd, "env"), "[{'name':'POD_CPUS','value':'0'},"
                                                "{'name':'POD_MEMORY','value':'0'}]");
    bench_stop(&bench);
}

static void privileges_go_as_far_as_the_user_lets_them(void **state)
{
    static const char caps[] = "{'add':['BPF','NET_ADMIN','SYS_ADMIN','SYS_NICE']}";
    struct bench bench;

    bench_start(&bench, "{'slurmd':{'securityContext':{'privileged':false}}}");
    assert_value(json_at(bench.slurmd, "securityContext", "privileged"), "false");
    assert_value(json_at(bench.slurmd, "securityContext", "capabilities"), caps);
    bench_stop(&bench);
    bench_start(&bench, "{'slurmd':{'securityContext':{'allowPrivilegeEscalation':false,"
                        "'runAsUser':0}}}");
    assert_value(json_get(bench.slurmd, "securityContext"),
                 "{'allowPrivilegeEscalation':false,'runAsUser':0}");
    bench_stop(&bench);
}

static void ssh_brings_its_port_files_and_hashes(void **state)
{
    static const char spec[] = "{'ssh':{'enabled':true,'extraSshdConfig':'Banner /b',"
                               "'sssdConfRef':{'name':'sssd','key':'sssd.conf'}}}";
    static const char config[] = "#\n### GENERAL ###\nInclude /etc/ssh/sshd_config.d/*.conf\n"
                                 "UsePAM yes\nSubsystem sftp internal-sftp\n"
                                 "AuthenticationMethods publickey password\n"
                                 "#\n### EXTRA CONFIG ###\nBanner /b\n";
    auto_json_doc struct json_doc *map = NULL;
    const struct json *annotations;
    char hash[DIGEST_HEX];
    struct bench bench;

    bench_start(&bench, spec);
    map = json_freeze(worker_ssh_config(bench.build, bench.nodeset, bench.controller));
    assert_string_equal(json_str(json_at(json_root(map), "data", "sshd_config")).at, config);
    assert_value(json_at(json_root(map), "metadata", "name"), "'n-ssh-config'");
    assert_value(json_at(json_root(map), "metadata", "labels", "slinky.slurm.net/cluster"),
                 "'slurm'");
    assert_value(json_item(json_get(bench.slurmd, "ports"), 1),
                 "{'name':'ssh','containerPort':22,'protocol':'TCP'}");
    assert_value(json_item(json_get(bench.spec, "volumes"), 2),
                 "{'name':'ssh-config','projected':{'defaultMode':384,'sources':[{'configMap':{"
                 "'name':'n-ssh-config','items':[{'key':'sshd_config','path':'sshd_config','mode':"
                 "384}]}}]}}");
    assert_value(json_item(json_get(bench.spec, "volumes"), 3),
                 "{'name':'sssd-conf','projected':{'defaultMode':384,'sources':[{'secret':{"
                 "'name':'sssd','items':[{'key':'sssd.conf','path':'sssd.conf','mode':384}]}}]}}");
    assert_int_equal(json_len(json_get(bench.slurmd, "volumeMounts")), 4);
    annotations = json_at(json_root(bench.pod), "metadata", "annotations");
    digest_sha256(str_of(config), hash);
    assert_string_equal(json_str(json_get(annotations, "slinky.slurm.net/sshd-conf-hash")).at,
                        hash);
    assert_string_equal(json_str(json_get(annotations, "slinky.slurm.net/sssd-conf-hash")).at,
                        no_hash);
    bench_stop(&bench);
}

static void claims_come_before_other_volumes_and_win(void **state)
{
    struct bench bench;

    bench_start(&bench, "{'ordinalPadding':2,'volumeClaimTemplates':[{'metadata':{'name':'data'}},"
                        "{'metadata':{'name':'tmp'}}],'template':{'spec':{'volumes':["
                        "{'name':'tmp','emptyDir':{}},{'name':'mine','emptyDir':{}}]}}}");
    assert_value(json_item(json_get(bench.spec, "volumes"), 0),
                 "{'name':'data','persistentVolumeClaim':{'claimName':'data-n-00'}}");
    assert_value(json_item(json_get(bench.spec, "volumes"), 1),
                 "{'name':'tmp','persistentVolumeClaim':{'claimName':'tmp-n-00'}}");
    assert_value(json_item(json_get(bench.spec, "volumes"), 2), "{'name':'mine','emptyDir':{}}");
    assert_int_equal(json_len(json_get(bench.spec, "volumes")), 5);
    bench_stop(&bench);
}

static void a_server_that_means_something_to_a_shell_is_refused(void **state)
{
    auto_json_doc struct json_doc *template = NULL;
    struct err err = { 0 };
    struct bench bench;

    bench_init(&bench, "{}");
    bench.controller =
        made(&bench.desk, "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{"
                          "'external':true,'externalConfig':{'host':'a;id','port':1}}}");
    assert_int_equal(
        template_of(&bench.desk, bench.nodeset, bench.controller, "H", &template, &err),
        -ERR_INVALID);
    assert_true(strstr(err.text, "externalConfig.host") != NULL);
    bench_stop(&bench);
}

static void labels_of_charts_are_put_onto_running_pods(void **state)
{
    const struct kube_object *pod;
    struct bench bench;

    bench_init(&bench, "{'template':{'metadata':{'labels':{'helm.sh/chart':'slurm-2','x':'y'}}}}");
    pod = made(&bench.desk, "{'kind':'Pod','metadata':{'name':'n-0','labels':{"
                            "'helm.sh/chart':'slurm-1'}}}");
    assert_json(worker_chart_labels(bench.build, bench.nodeset, pod),
                "{'metadata':{'labels':{'helm.sh/chart':'slurm-2'}}}");
    pod = made(&bench.desk, "{'kind':'Pod','metadata':{'name':'n-0','labels':{"
                            "'helm.sh/chart':'slurm-2'}}}");
    assert_null(worker_chart_labels(bench.build, bench.nodeset, pod));
    bench_stop(&bench);
}

static void a_budget_moves_to_a_minimum_and_never_back(void **state)
{
    static const char selector[] =
        "'selector':{'matchLabels':{'nodeset.slinky.slurm.net/pod-protect':'true',"
        "'slinky.slurm.net/cluster':'slurm'}}";
    static const struct {
        const char *live;
        bool counts_less;
        const char *wanted;
    } rows[] = {
        { NULL, false, "'minAvailable':1000000" },
        { "{'maxUnavailable':0}", false, "'maxUnavailable':0" },
        { "{'maxUnavailable':3}", false, "'maxUnavailable':0" },
        { "{'maxUnavailable':0}", true, "'minAvailable':1000000" },
        { "{'minAvailable':1000000}", false, "'minAvailable':1000000" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct kube_object *live = NULL;
        struct bench bench;
        char text[512];

        bench_init(&bench, "{}");
        (void)snprintf(text, sizeof(text),
                       "{'kind':'PodDisruptionBudget','metadata':{'name':'b'},'spec':%s}",
                       rows[i].live ? rows[i].live : "{}");
        if (rows[i].live)
            live = made(&bench.desk, text);
        (void)snprintf(text, sizeof(text),
                       "{'metadata':{'name':'slurm-workers-pdb-slurm'},'spec':{%s,%s}}", selector,
                       rows[i].wanted);
        assert_json(worker_budget(bench.build, bench.controller, live, rows[i].counts_less), text);
        bench_stop(&bench);
    }
}

/* ---- the hook that ends the node ---- */

static void put_program(const char *folder, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\n%s\n", text) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* What the last program wrote when a shell ran the hook with the programs of this folder. */
static void run_hook(const char *folder, const char *hook, char said[256])
{
    char path[160], *const argv[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)hook, NULL };
    char *const environment[] = { path, NULL };
    pid_t child = fork();
    FILE *file;
    int status;

    (void)snprintf(path, sizeof(path), "PATH=%s", folder);
    if (child == 0) {
        (void)execve("/bin/sh", argv, environment);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)snprintf(path, sizeof(path), "%s/said", folder);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(said, 256, file));
    assert_int_equal(fclose(file), 0);
}

static void the_hook_sets_the_node_down_and_waits_ten_seconds_at_most(void **state)
{
    static const char set_down[] = "update nodename=w-0 state=down reason=" REASON_TERMINATING "\n";
    char folder[] = "/tmp/slinc-hook-XXXXXX", text[128], said[256];
    auto_json_doc struct json_doc *template = NULL;
    const struct kube_object *nodeset, *controller;
    const char *hook;
    struct desk desk;

    (void)state;
    desk_init(&desk);
    controller = made(&desk, "{'kind':'Controller','metadata':{'name':'slurm'},'spec':{}}");
    nodeset = made_nodeset(&desk, "{}");
    assert_int_equal(template_of(&desk, nodeset, controller, "r", &template, NULL), 0);
    hook =
        json_str(json_item(json_at(json_item(json_at(json_root(template), "spec", "containers"), 0),
                                   "lifecycle", "preStop", "exec", "command"),
                           2))
            .at;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(text, sizeof(text), "echo \"$*\" >%s/said", folder);
    put_program(folder, "hostname", "echo w-0");
    put_program(folder, "scontrol", text);
    run_hook(folder, hook, said); /* an image without `timeout` */
    assert_string_equal(said, set_down);
    put_program(folder, "timeout", text);
    run_hook(folder, hook, said);
    assert_true(str_starts(str_of(said), STR("10 scontrol ")));
    assert_string_equal(said + strlen("10 scontrol "), set_down);
    (void)snprintf(text, sizeof(text), "rm -r %s", folder);
    assert_int_equal(system(text), 0);
    desk_done(&desk);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_as_the_slinky_operator_made_them),
        cmocka_unit_test(shared_objects_are_as_the_slinky_operator_made_them),
        cmocka_unit_test(one_worker_on_each_node_unless_the_user_wants_more),
        cmocka_unit_test(a_worker_of_a_node_is_bound_to_it_and_stays),
        cmocka_unit_test(a_worker_that_was_there_tolerates_the_cordon),
        cmocka_unit_test(limits_are_told_to_the_image),
        cmocka_unit_test(topology_is_given_once),
        cmocka_unit_test(privileges_go_as_far_as_the_user_lets_them),
        cmocka_unit_test(ssh_brings_its_port_files_and_hashes),
        cmocka_unit_test(claims_come_before_other_volumes_and_win),
        cmocka_unit_test(a_server_that_means_something_to_a_shell_is_refused),
        cmocka_unit_test(the_hook_sets_the_node_down_and_waits_ten_seconds_at_most),
        cmocka_unit_test(labels_of_charts_are_put_onto_running_pods),
        cmocka_unit_test(a_budget_moves_to_a_minimum_and_never_back),
    };

    fixtures_folder = argc > 1 ? argv[1] : fixtures_folder;
    return cmocka_run_group_tests_name("worker_build", tests, NULL, NULL);
}
