/* test_nodeset_revision.c - the revision of a NodeSet: its bytes, its hash, and which stored one is
 * kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixtures.h"
#include "made.h"
#include "operator/nodeset_data.h"
#include "operator/nodeset_revision.h"

enum { MAX_TEXT = 1 << 20 };

static void assert_data(const struct kube_object *nodeset, const char *wanted)
{
    auto_buf struct buf data = { .max = MAX_TEXT };

    assert_int_equal(nodeset_data(nodeset, NULL, &data, NULL), 0);
    assert_string_equal(buf_text(&data), wanted);
}

static void assert_hash(const struct kube_object *nodeset, size_t length, const char *wanted)
{
    auto_buf struct buf data = { .max = MAX_TEXT };
    char hash[REVISION_HASH_MAX];

    assert_int_equal(nodeset_data(nodeset, NULL, &data, NULL), 0);
    nodeset_revision_hash(buf_str(&data), 0, hash);
    if (data.len != length || strcmp(hash, wanted) != 0)
        fail_msg("%zu bytes with hash %s, not %zu with %s: %s", data.len, hash, length, wanted,
                 buf_text(&data));
}

static void choose(struct desk *desk, const struct kube_object *nodeset,
                   struct nodeset_revision *ret_revision)
{
    struct err err = { 0 };

    if (nodeset_revision_choose(desk->world.revisions, desk->world.pods_by_owner, &desk->arena,
                                nodeset, NULL, ret_revision, &err) < 0)
        fail_msg("%s", err.text);
}

/* What nodeset_revision_object gives, put into the world. */
static void store(struct desk *desk, const struct kube_object *nodeset,
                  const struct nodeset_revision *revision)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *object;

    assert_int_equal(nodeset_revision_object(build, nodeset, revision, &object, NULL), 0);
    json_put_text(build, object, "kind", "ControllerRevision");
    doc = json_freeze(object);
    (void)made_json(desk, json_root(doc));
}

/* ---- bytes and hash ---- */

static void an_empty_nodeset_has_the_hash_of_the_contract(void **state)
{
    struct desk desk;
    const struct kube_object *nodeset;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{'controllerRef':{'name':'slurm'},'replicas':3}");
    assert_data(nodeset,
                "{\"spec\":{\"ordinalPadding\":0,\"oversubscribeNode\":false,\"slurmd\":{"
                "\"$patch\":\"replace\",\"name\":\"\",\"resources\":{}},\"template\":{\"$patch\":"
                "\"replace\",\"metadata\":{},\"spec\":{\"containers\":null}}}}");
    assert_hash(nodeset, 183, "d6457cd55");
    desk_done(&desk);
}

/* A value that the field has not by default; NULL: its fields have rows of their own. */
static const char *other_value(const struct spec_field *field)
{
    static const char *const of_types[][2] = {
        { "boolean", "true" },
        { "string", "\"x\"" },
        { "line", "\"x\"" },
        { "time", "\"2026-01-01T00:00:00Z\"" },
        { "count", "7" },
        { "amount", "7" },
        { "Ref", "{\"name\":\"x\"}" },
        { "KeyRef", "{\"name\":\"x\",\"key\":\"y\"}" },
        { "[]string", "[\"x\"]" },
        { "[]PersistentVolumeClaim", "[{\"spec\":{}}]" },
        { "object", NULL },
        { "Container", "{\"image\":\"x\"}" },
        { "PodTemplate", "{\"spec\":{\"hostname\":\"x\"}}" },
    };

    if (field->absent && strcmp(field->absent, "true") == 0)
        return "false";
    if (strncmp(field->type, "one of ", 7) == 0)
        return "\"other\"";
    for (size_t i = 0; i < sizeof(of_types) / sizeof(of_types[0]); i++)
        if (strcmp(of_types[i][0], field->type) == 0)
            return of_types[i][1];
    fail_msg("%s has the type %s, of which this test knows no value", field->path, field->type);
    return NULL;
}

/* Whether the row or the one of an object around it says that a change replaces workers. */
static bool rolls(const struct spec_field *field)
{
    for (const struct spec_field *row = spec_nodeset; row->path; row++) {
        size_t length = strlen(row->path);

        if (row->traits & SPEC_ROLLS && strncmp(row->path, field->path, length) == 0 &&
            (field->path[length] == '\0' || field->path[length] == '.'))
            return true;
    }
    return false;
}

static void a_field_is_part_of_the_revision_if_its_row_says_so_and_not_otherwise(void **state)
{
    auto_buf struct buf without = { .max = MAX_TEXT };
    struct desk desk;
    unsigned yes = 0, no = 0;

    desk_init(&desk);
    assert_int_equal(nodeset_data(made_nodeset(&desk, "{}"), NULL, &without, NULL), 0);
    for (const struct spec_field *field = spec_nodeset; field->path; field++) {
        auto_json_build struct json_build *build = json_build_new();
        auto_json_doc struct json_doc *value = NULL, *spec = NULL;
        struct json_mut *object = json_new_object(build), *at = object;
        struct str rest = str_of(field->path), step;
        auto_buf struct buf text = { .max = MAX_TEXT }, data = { .max = MAX_TEXT };

        if (!other_value(field))
            continue;
        assert_int_equal(json_parse(str_of(other_value(field)), MAX_TEXT, &value, NULL), 0);
        while (str_next(&rest, '.', &step))
            at =
                json_put_key(build, at, step,
                             rest.at ? json_new_object(build) : json_copy(build, json_root(value)));
        spec = json_freeze(object);
        json_write(json_root(spec), &text);
        assert_int_equal(nodeset_data(made_nodeset(&desk, buf_text(&text)), NULL, &data, NULL), 0);
        if ((strcmp(buf_text(&data), buf_text(&without)) != 0) != rolls(field))
            fail_msg("%s: %s", field->path, rolls(field) ? "is not in it" : "is in it");
        *(rolls(field) ? &yes : &no) += 1;
    }
    assert_true(yes >= 9 && no >= 15);
    desk_done(&desk);
}

#define CHART_NODESET(chart)                                                                       \
    "{'ordinalPadding':0,'oversubscribeNode':false,"                                               \
    "'slurmd':{'image':'slurmd:1','imagePullPolicy':'IfNotPresent','args':[],'env':[]},"           \
    "'logfile':{'image':'alpine:1','imagePullPolicy':'IfNotPresent','resources':{}},"              \
    "'template':{'metadata':{'labels':{'app.kubernetes.io/managed-by':'Helm',"                     \
    "'app.kubernetes.io/part-of':'slurm','app.kubernetes.io/version':'26.05',"                     \
    "'helm.sh/chart':'" chart "'}},'spec':{'affinity':{},'hostname':'slinky-',"                    \
    "'initContainers':[],'nodeSelector':{'kubernetes.io/os':'linux'},'priorityClassName':'',"      \
    "'imagePullSecrets':null,'resources':{},'tolerations':[],'volumes':[]}}}"

static void a_nodeset_of_the_chart_has_the_hash_of_the_contract(void **state)
{
    struct desk desk;

    desk_init(&desk);
    assert_hash(made_nodeset(&desk, CHART_NODESET("slurm-1.2.1")), 587, "5456fb4cff");
    assert_hash(made_nodeset(&desk, CHART_NODESET("slurm-1.3.0")), 587, "6fd88cdf7f");
    desk_done(&desk);
}

static void recorded_revisions_have_their_bytes_and_hash(void **state)
{
    static const struct {
        const char *version, *hash;
        size_t length;
    } rows[] = { { "slinky-1.2.1", "6547876875", 648 }, { "slinky-main", "6d49746dd6", 652 } };

    for (size_t i = 0; i < 2; i++) {
        const struct kube_object *nodeset;
        struct desk desk;

        desk_init(&desk);
        fixtures_load(&desk, rows[i].version);
        nodeset = kube_cache_get(desk.world.nodesets, "site", "slurm-worker-slinky");
        assert_hash(nodeset, rows[i].length, rows[i].hash);
        desk_done(&desk);
    }
}

/* The third vector: without the labels that do not count. */
static void labels_of_charts_give_other_bytes(void **state)
{
    auto_json_doc struct json_doc *found =
        fixtures_find("slinky-main", "nodesets.yaml", "NodeSet", "slurm-worker-slinky");
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *copy = json_copy(build, json_root(found));
    struct json_mut *labels = json_object_at(build, copy, "spec", "template", "metadata", "labels");
    auto_json_doc struct json_doc *object = NULL;
    struct desk desk;

    json_remove(labels, STR("helm.sh/chart"));
    json_remove(labels, STR("app.kubernetes.io/version"));
    json_remove(labels, STR("app.kubernetes.io/managed-by"));
    object = json_freeze(copy);
    desk_init(&desk);
    assert_int_equal(desk_add(&desk, json_root(object), NULL), 0);
    assert_hash(kube_cache_get(desk.world.nodesets, "site", "slurm-worker-slinky"), 544,
                "6f5b5cd497");
    desk_done(&desk);
}

static void values_are_written_as_their_types_are(void **state)
{
    static const struct {
        const char *slurmd, *wanted;
    } rows[] = {
        { "{'resources':{'limits':{'cpu':2,'memory':'2048Mi'},'requests':{}}}",
          "\"name\":\"\",\"resources\":{\"limits\":{\"cpu\":\"2\",\"memory\":\"2Gi\"}}" },
        { "{'name':'x','tty':false,'stdin':true,'workingDir':''}",
          "\"name\":\"x\",\"resources\":{},\"stdin\":true" },
        { "{'securityContext':{'privileged':false,'capabilities':{}},'lifecycle':{}}",
          "\"lifecycle\":{},\"name\":\"\",\"resources\":{},\"securityContext\":{\"capabilities\":{}"
          ","
          "\"privileged\":false}" },
        { "{'env':[{'name':'A','value':''},{'name':'B','valueFrom':{'resourceFieldRef':{"
          "'resource':'limits.cpu'}}}],'typo':1}",
          "\"env\":[{\"name\":\"A\"},{\"name\":\"B\",\"valueFrom\":{\"resourceFieldRef\":{"
          "\"divisor\":\"0\",\"resource\":\"limits.cpu\"}}}],\"name\":\"\",\"resources\":{}" },
        { "{'args':['a<b>&c'],'livenessProbe':{'httpGet':{'port':0},'periodSeconds':0}}",
          "\"args\":[\"a\\u003cb\\u003e\\u0026c\"],\"livenessProbe\":{\"httpGet\":{\"port\":0}},"
          "\"name\":\"\",\"resources\":{}" },
        { "{'volumeMounts':[{'name':'v','mountPath':'/v','readOnly':false}]}",
          "\"name\":\"\",\"resources\":{},\"volumeMounts\":[{\"mountPath\":\"/"
          "v\",\"name\":\"v\"}]" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char spec[1024], wanted[1024];
        struct desk desk;

        (void)snprintf(spec, sizeof(spec), "{'slurmd':%s}", rows[i].slurmd);
        (void)snprintf(wanted, sizeof(wanted),
                       "{\"spec\":{\"ordinalPadding\":0,\"oversubscribeNode\":false,\"slurmd\":{"
                       "\"$patch\":\"replace\",%s},\"template\":{\"$patch\":\"replace\","
                       "\"metadata\":{},\"spec\":{\"containers\":null}}}}",
                       rows[i].wanted);
        desk_init(&desk);
        assert_data(made_nodeset(&desk, spec), wanted);
        desk_done(&desk);
    }
}

/* ---- the choice ---- */

static void a_recorded_revision_is_kept_when_the_chart_changes(void **state)
{
    const struct kube_object *nodeset;
    struct nodeset_revision revision;
    struct desk desk;

    desk_init(&desk);
    fixtures_load(&desk, "slinky-1.2.1");
    nodeset = kube_cache_get(desk.world.nodesets, "site", "slurm-worker-slinky");
    choose(&desk, nodeset, &revision);
    assert_string_equal(revision.hash, "6547876875");
    assert_non_null(revision.stored);
    assert_int_equal(revision.number, 1);
    desk_done(&desk);

    desk_init(&desk); /* the NodeSet of the next chart, with the revision of the last */
    fixtures_load(&desk, "slinky-main");
    {
        auto_json_doc struct json_doc *old =
            fixtures_find("slinky-1.2.1", "controllerrevisions.yaml", "ControllerRevision",
                          "slurm-worker-slinky-6547876875");
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *copy = json_copy(build, json_root(old));
        auto_json_doc struct json_doc *object = NULL;

        nodeset = kube_cache_get(desk.world.nodesets, "site", "slurm-worker-slinky");
        kube_cache_seen_gone(desk.world.revisions, "site", "slurm-worker-slinky-6d49746dd6",
                             UINT64_MAX);
        json_put_at(build, copy,
                    json_format(build,
                                "[{'apiVersion':'slinky.slurm.net/v1beta1','kind':'NodeSet',"
                                "'name':%s,'uid':%s,'controller':true}]",
                                nodeset->name, nodeset->uid),
                    "metadata", "ownerReferences");
        object = json_freeze(copy);
        assert_int_equal(desk_add(&desk, json_root(object), NULL), 0);
    }
    choose(&desk, nodeset, &revision);
    assert_string_equal(revision.hash, "6547876875");
    assert_true(nodeset_revision_is_current(&revision, STR("6547876875")));
    assert_false(nodeset_revision_is_current(&revision, STR("6d49746dd6")));
    desk_done(&desk);
}

static void what_means_the_same_makes_no_new_revision(void **state)
{
    static const struct {
        const char *before, *after;
        bool is_same;
    } rows[] = {
        { CHART_NODESET("slurm-1.2.1"), CHART_NODESET("slurm-1.3.0"), true },
        { "{'template':{'spec':{'affinity':{},'hostNetwork':false}}}", "{}", true },
        { "{'slurmd':{'resources':{'limits':{'cpu':'1000m'}}}}",
          "{'slurmd':{'resources':{'limits':{'cpu':1}}}}", true },
        { "{'replicas':1,'partition':{'enabled':true}}", "{'replicas':2,'minReadySeconds':3}",
          true },
        { "{'template':{'metadata':{'labels':{'a':'b'}}}}", "{}", false },
        { "{}", "{'slurmd':{'securityContext':{'privileged':false}}}", false },
        { "{}", "{'slurmd':{'image':'x'}}", false },
        { "{}", "{'logfile':{'image':'x'}}", false },
        { "{}", "{'extraConf':'Gres=gpu:1'}", false },
        { "{}", "{'ordinalPadding':3}", false },
        { "{}", "{'oversubscribeNode':true}", false },
        { "{}", "{'ssh':{'enabled':true,'sssdConfRef':{'name':'s','key':'k'}}}", false },
        { "{'template':{'spec':{'tolerations':[{'key':'a'}]}}}",
          "{'template':{'spec':{'tolerations':[{'key':'b'}]}}}", false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nodeset_revision before, after;
        const struct kube_object *nodeset;
        struct desk desk;

        desk_init(&desk);
        nodeset = made_nodeset(&desk, rows[i].before);
        choose(&desk, nodeset, &before);
        assert_null(before.stored);
        store(&desk, nodeset, &before);
        nodeset = made_nodeset(&desk, rows[i].after);
        choose(&desk, nodeset, &after);
        if ((strcmp(before.hash, after.hash) == 0) != rows[i].is_same)
            fail_msg("%s and %s", rows[i].before, rows[i].after);
        assert_int_equal(after.number, rows[i].is_same ? 1 : 2);
        desk_done(&desk);
    }
}

/* The old operator was in the middle of an update to a new chart: neither half is outdated. */
static void all_stored_revisions_of_the_same_meaning_are_current(void **state)
{
    struct nodeset_revision revision;
    const struct kube_object *nodeset;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, CHART_NODESET("slurm-1.2.1"));
    choose(&desk, nodeset, &revision);
    store(&desk, nodeset, &revision);
    nodeset = made_nodeset(&desk, CHART_NODESET("slurm-1.3.0"));
    (void)snprintf(revision.hash, sizeof(revision.hash), "6fd88cdf7f");
    revision.name = "n-6fd88cdf7f";
    revision.number = 2;
    store(&desk, nodeset, &revision);
    choose(&desk, nodeset, &revision);
    assert_string_equal(revision.hash, "6fd88cdf7f");
    assert_int_equal(revision.number, 2);
    assert_true(nodeset_revision_is_current(&revision, STR("5456fb4cff")));
    assert_true(nodeset_revision_is_current(&revision, STR("6fd88cdf7f")));
    assert_false(nodeset_revision_is_current(&revision, STR("")));
    desk_done(&desk);
}

static void going_back_takes_the_old_revision_with_a_new_number(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct nodeset_revision first, second, again;
    const struct kube_object *nodeset;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{'extraConf':'A=1'}");
    choose(&desk, nodeset, &first);
    store(&desk, nodeset, &first);
    choose(&desk, nodeset, &again);
    assert_null(nodeset_revision_patch(build, nodeset, &again));
    nodeset = made_nodeset(&desk, "{'extraConf':'A=2'}");
    choose(&desk, nodeset, &second);
    assert_int_equal(second.number, 2);
    store(&desk, nodeset, &second);
    nodeset = made_nodeset(&desk, "{'extraConf':'A=1'}");
    choose(&desk, nodeset, &again);
    assert_string_equal(again.hash, first.hash);
    assert_int_equal(again.number, 3);
    assert_json(nodeset_revision_patch(build, nodeset, &again), "{'revision':3}");
    desk_done(&desk);
}

static void a_revision_of_the_old_operator_gets_the_labels_to_find_it_by(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct nodeset_revision revision;
    const struct kube_object *nodeset;
    struct desk desk;

    desk_init(&desk);
    fixtures_load(&desk, "slinky-main");
    nodeset = kube_cache_get(desk.world.nodesets, "site", "slurm-worker-slinky");
    choose(&desk, nodeset, &revision);
    assert_json(nodeset_revision_patch(build, nodeset, &revision),
                "{'metadata':{'labels':{'app.kubernetes.io/instance':'slurm-worker-slinky',"
                "'app.kubernetes.io/name':'slurmd'}}}");
    desk_done(&desk);
}

static void add_taken_name(struct desk *desk, const char *owner, const char *data)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = parsed(data), *object = NULL;
    struct json_mut *copy =
        json_format(build,
                    "{'kind':'ControllerRevision','metadata':{'name':'n-d6457cd55'},"
                    "'revision':1,'data':%j}",
                    json_root(doc));

    if (owner)
        json_put_text(build, copy, "owner", owner);
    object = json_freeze(copy);
    assert_int_equal(desk_add(desk, json_root(object), NULL), 0);
}

static void a_name_that_is_taken_raises_the_collision_count(void **state)
{
    struct nodeset_revision revision;
    struct desk desk;

    desk_init(&desk);
    add_taken_name(&desk, "NodeSet other", "{'spec':{}}");
    choose(&desk, made_nodeset(&desk, "{}"), &revision);
    assert_int_equal(revision.collision_count, 1);
    assert_string_not_equal(revision.hash, "d6457cd55");
    assert_null(revision.stored);
    desk_done(&desk);
}

static void an_orphan_of_the_same_meaning_is_adopted(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct nodeset_revision revision;
    const struct kube_object *nodeset;
    struct desk desk;

    desk_init(&desk);
    add_taken_name(&desk, NULL, "{'spec':{'slurmd':{},'template':{}}}");
    nodeset = made_nodeset(&desk, "{}");
    choose(&desk, nodeset, &revision);
    assert_string_equal(revision.hash, "d6457cd55");
    assert_non_null(revision.stored);
    assert_non_null(json_mut_get(
        json_mut_get(nodeset_revision_patch(build, nodeset, &revision), STR("metadata")),
        STR("ownerReferences")));
    desk_done(&desk);
}

static void the_object_is_found_by_its_labels_and_owner(void **state)
{
    auto_json_build struct json_build *build = json_build_new();
    struct nodeset_revision revision;
    const struct kube_object *nodeset;
    struct json_mut *object;
    struct desk desk;

    desk_init(&desk);
    nodeset = made_nodeset(&desk, "{'template':{'metadata':{'labels':{'a':'b'}}}}");
    choose(&desk, nodeset, &revision);
    assert_int_equal(nodeset_revision_object(build, nodeset, &revision, &object, NULL), 0);
    json_remove(object, STR("data"));
    json_put_at(build, object, json_new_str(build, STR("H")), "metadata", "labels",
                "controller.kubernetes.io/hash");
    json_put_at(build, object, json_new_str(build, STR("n-H")), "metadata", "name");
    assert_json(object, "{'metadata':{'name':'n-H','labels':{'a':'b',"
                        "'app.kubernetes.io/instance':'n','app.kubernetes.io/name':'slurmd',"
                        "'controller.kubernetes.io/hash':'H'},'ownerReferences':[{"
                        "'apiVersion':'slinky.slurm.net/v1beta1','kind':'NodeSet','name':'n',"
                        "'uid':'uid-NodeSet-n','controller':true,'blockOwnerDeletion':true}]},"
                        "'revision':1}");
    desk_done(&desk);
}

/* ---- history ---- */

static void history_ends_where_no_pod_and_no_limit_holds_it(void **state)
{
    const struct kube_object *surplus[NODESET_MAX_REVISIONS], *pods[1];
    auto_json_doc struct json_doc *pod = NULL;
    auto_json_build struct json_build *build = json_build_new();
    struct nodeset_revision revisions[4];
    const struct kube_object *nodeset = NULL;
    struct desk desk;
    char spec[128];

    desk_init(&desk);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(spec, sizeof(spec), "{'revisionHistoryLimit':%d,'extraConf':'A=%d'}",
                       i == 3 ? 1 : 0, i);
        nodeset = made_nodeset(&desk, spec);
        choose(&desk, nodeset, &revisions[i]);
        store(&desk, nodeset, &revisions[i]);
    }
    choose(&desk, nodeset, &revisions[3]);
    pod = json_freeze(json_format(build,
                                  "{'kind':'Pod','metadata':{'name':'n-0','labels':{"
                                  "'controller.kubernetes.io/hash':%s}}}",
                                  revisions[1].hash));
    assert_int_equal(desk_add(&desk, json_root(pod), NULL), 0);
    pods[0] = kube_cache_get(desk.world.pods, "site", "n-0");
    /* 3 is current, a pod has 1, the limit keeps 2 */
    assert_int_equal(nodeset_revision_surplus(desk.world.revisions, desk.world.pods_by_owner,
                                              nodeset, &revisions[3], pods, 1, surplus),
                     1);
    assert_string_equal(surplus[0]->name, revisions[0].name);
    assert_int_equal(nodeset_revision_surplus(desk.world.revisions, desk.world.pods_by_owner,
                                              nodeset, &revisions[3], pods, 0, surplus),
                     2);
    desk_done(&desk);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_nodeset_has_the_hash_of_the_contract),
        cmocka_unit_test(a_field_is_part_of_the_revision_if_its_row_says_so_and_not_otherwise),
        cmocka_unit_test(a_nodeset_of_the_chart_has_the_hash_of_the_contract),
        cmocka_unit_test(recorded_revisions_have_their_bytes_and_hash),
        cmocka_unit_test(labels_of_charts_give_other_bytes),
        cmocka_unit_test(values_are_written_as_their_types_are),
        cmocka_unit_test(a_recorded_revision_is_kept_when_the_chart_changes),
        cmocka_unit_test(what_means_the_same_makes_no_new_revision),
        cmocka_unit_test(all_stored_revisions_of_the_same_meaning_are_current),
        cmocka_unit_test(going_back_takes_the_old_revision_with_a_new_number),
        cmocka_unit_test(a_revision_of_the_old_operator_gets_the_labels_to_find_it_by),
        cmocka_unit_test(a_name_that_is_taken_raises_the_collision_count),
        cmocka_unit_test(an_orphan_of_the_same_meaning_is_adopted),
        cmocka_unit_test(the_object_is_found_by_its_labels_and_owner),
        cmocka_unit_test(history_ends_where_no_pod_and_no_limit_holds_it),
    };

    fixtures_folder = argc > 1 ? argv[1] : fixtures_folder;
    return cmocka_run_group_tests_name("nodeset_revision", tests, NULL, NULL);
}
