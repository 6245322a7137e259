/* test_job_desc.c - the annotations of a job, the request that is made of it, its hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/unit/job_desc.h"
#include "bridge/world/names.h"

static struct arena arena;

static int set_up(void **state)
{
    arena_init(&arena, 1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    arena_done(&arena);
    return 0;
}

static int annotate(struct job_desc *desc, const char *suffix, struct str value, struct err *err)
{
    const char *key = arena_printf(&arena, "%s%s", BRIDGE_ANNOTATION_PREFIX, suffix);
    const struct kube_pair pair = { str_of(key), value };
    const struct kube_pairs pairs = { &pair, 1 };

    return job_desc_annotate(desc, &arena, &pairs, err);
}

static const char *written(const struct job_desc *desc)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_buf struct buf out = { .max = 1 << 16 };

    json_mut_write(job_desc_json(build, desc), &out);
    return arena_strdup(&arena, buf_text(&out));
}

/* One member of the request, "" when it is absent. */
static const char *field_of(const struct job_desc *desc, const char *field)
{
    auto_json_doc struct json_doc *doc = NULL;
    auto_buf struct buf out = { .max = 1 << 16 };
    const struct json *value;

    assert_int_equal(json_parse(str_of(written(desc)), 1 << 16, &doc, NULL), 0);
    value = json_get(json_root(doc), field);
    if (value)
        json_write(value, &out);
    return arena_strdup(&arena, buf_text(&out));
}

static void an_ask_that_says_nothing_sends_only_what_is_always_sent(void **state)
{
    struct job_desc desc;

    job_desc_init(&desc);
    assert_string_equal(written(&desc),
                        "{\"current_working_directory\":\"/tmp\",\"flags\":[\"EXTERNAL_JOB\"],"
                        "\"shared\":[\"none\"],"
                        "\"nodes\":\"1\"}");
}

static void an_ask_that_says_all_sends_all(void **state)
{
    struct job_desc desc = { .name = "n",
                             .account = "a",
                             .partition = "p",
                             .qos = "q",
                             .reservation = "r",
                             .wckey = "w",
                             .constraints = "c",
                             .prefer = "f",
                             .licenses = "l",
                             .gres = "gres/gpu=1",
                             .gres_per_task = "gres/gpu=2",
                             .dependency = "d",
                             .comment = "o",
                             .network = "e",
                             .user_id = "u",
                             .group_id = "7",
                             .mcs_label = "m",
                             .excluded_nodes = "n[1-3],x",
                             .required_nodes = "y",
                             .nodes = 4,
                             .min_nodes = 2,
                             .max_nodes = 5,
                             .tasks_per_node = 1,
                             .cpus_per_task = 3,
                             .memory = 100,
                             .time_limit = 60,
                             .priority = 0,
                             .begin_time = 1800000000,
                             .deadline = 1900000000,
                             .nice = -5,
                             .segment_size = 8,
                             .switches = 2,
                             .switch_wait = 60,
                             .tasks = -1,
                             .gang = JOB_DESC_GANG_ALL,
                             .exclusive = false };

    assert_string_equal(
        written(&desc),
        "{\"current_working_directory\":\"/tmp\",\"flags\":[\"EXTERNAL_JOB\"],\"account\":\"a\","
        "\"begin_time\":{\"set\":true,\"number\":1800000000},"
        "\"comment\":\"o\",\"constraints\":\"c\",\"cpus_per_task\":3,\"deadline\":1900000000,"
        "\"dependency\":\"d\",\"shared\":[],\"tres_per_node\":\"gres/gpu=1\","
        "\"group_id\":\"7\",\"name\":\"n\",\"licenses\":\"l\",\"maximum_nodes\":5,"
        "\"memory_per_node\":{\"set\":true,\"number\":100},\"minimum_nodes\":2,"
        "\"network\":\"e\",\"nice\":-5,"
        "\"partition\":\"p\",\"priority\":{\"set\":true,\"number\":0},"
        "\"qos\":\"q\",\"reservation\":\"r\","
        "\"segment_size\":{\"set\":true,\"number\":8},"
        "\"required_switches\":{\"set\":true,\"number\":2},"
        "\"time_limit\":{\"set\":true,\"number\":60},\"user_id\":\"u\","
        "\"wckey\":\"w\",\"prefer\":\"f\",\"mcs_label\":\"m\",\"nodes\":\"4\",\"tasks_per_node\":1,"
        "\"tres_per_task\":\"gres/gpu=2\",\"wait_for_switch\":60,"
        "\"excluded_nodes\":[\"n[1-3],x\"],\"required_nodes\":[\"y\"]}");
}

static void pods_that_share_nodes_are_asked_for_as_tasks(void **state)
{
    struct job_desc desc;

    job_desc_init(&desc);
    desc.nodes = 4;
    desc.tasks = 4;
    desc.tasks_per_node = 2;
    desc.min_nodes = 2;
    desc.max_nodes = 2;
    desc.memory = 50;
    assert_string_equal(written(&desc),
                        "{\"current_working_directory\":\"/tmp\",\"flags\":[\"EXTERNAL_JOB\"],"
                        "\"shared\":[\"none\"],\"maximum_nodes\":2,"
                        "\"memory_per_node\":{\"set\":true,\"number\":50},"
                        "\"minimum_nodes\":2,"
                        "\"nodes\":\"2-2\",\"tasks\":4,"
                        "\"tasks_per_node\":2}");
}

#define LIMIT(number) "{\"set\":true,\"number\":" number "}"

static void every_annotation_reaches_its_field(void **state)
{
    static const struct {
        const char *suffix, *value, *field, *want;
    } cases[] = {
        { "account", "physics", "account", "\"physics\"" },
        { "constraints", "a&b", "constraints", "\"a&b\"" },
        { "licenses", "x:2", "licenses", "\"x:2\"" },
        { "partition", "gpu", "partition", "\"gpu\"" },
        { "partition", "", "partition", "" }, /* Slurm's default, in place of the configured one */
        { "qos", "high", "qos", "\"high\"" },
        { "reservation", "r", "reservation", "\"r\"" },
        { "wckey", "w", "wckey", "\"w\"" },
        { "job-name", "my job", "name", "\"my job\"" },
        { "gres", "gpu:2", "tres_per_node", "\"gpu:2\"" },
        { "user-id", "1000", "user_id", "\"1000\"" },
        { "user-id", "alice", "user_id", "\"alice\"" },
        { "group-id", "100", "group_id", "\"100\"" },
        { "min-nodes", "2", "minimum_nodes", "2" },
        { "max-nodes", "2147483647", "maximum_nodes", "2147483647" },
        { "max-nodes", "+3", "maximum_nodes", "3" },
        { "priority", "0", "priority", LIMIT("0") },
        { "priority", "100", "priority", LIMIT("100") },
        { "timelimit", "90", "time_limit", LIMIT("90") },
        { "timelimit", "007", "time_limit", LIMIT("7") },
        { "cpu-per-task", "2", "cpus_per_task", "2" },
        { "cpu-per-task", "200m", "cpus_per_task", "1" },
        { "cpu-per-task", "1100m", "cpus_per_task", "2" },
        { "cpu-per-task", "65533", "cpus_per_task", "65533" },
        { "cpu-per-task", "1k", "cpus_per_task", "1000" },
        { "mem-per-node", "100Mi", "memory_per_node", LIMIT("100") },
        { "mem-per-node", "100M", "memory_per_node", LIMIT("96") }, /* 95.4 */
        { "mem-per-node", "1", "memory_per_node", LIMIT("1") },
        { "mem-per-node", "1Mi", "memory_per_node", LIMIT("1") },
        { "mem-per-node", "1048577", "memory_per_node", LIMIT("2") },
        { "mem-per-node", "4Gi", "memory_per_node", LIMIT("4096") },
        { "mem-per-node", "0", "memory_per_node", LIMIT("0") }, /* all of the node's, as Slurm */
        { "mem-per-node", "0Gi", "memory_per_node", LIMIT("0") },
        { "begin-time", "2027-01-15T08:00:00Z", "begin_time", LIMIT("1800000000") },
        { "begin-time", "2027-01-15T09:00:00.9+01:00", "begin_time", LIMIT("1800000000") },
        { "begin-time", "+1h30m", "begin_time", LIMIT("1700005400") },
        { "begin-time", "+0", "begin_time", LIMIT("1700000000") },
        { "begin-time", "+1ms", "begin_time", LIMIT("1700000001") },
        { "begin-time", "9999-12-31T23:59:59Z", "begin_time", LIMIT("253402300799") },
        { "deadline", "2027-01-15T08:00:00Z", "deadline", "1800000000" },
        { "dependency", "afterok:12:13,after:14+30?singleton", "dependency",
          "\"afterok:12:13,after:14+30?singleton\"" },
        { "dependency", "aftercorr:7_*", "dependency", "\"aftercorr:7_*\"" },
        { "dependency", "", "dependency", "" },
        { "nice", "100", "nice", "100" },
        { "nice", "-100", "nice", "-100" },
        { "nice", "0", "nice", "" },
        { "nice", "2147483645", "nice", "2147483645" },
        { "nice", "-2147483645", "nice", "-2147483645" },
        { "comment", "run \xc3\xa9 7", "comment", "\"run \xc3\xa9 7\"" },
        { "segment-size", "1", "segment_size", LIMIT("1") },
        { "segment-size", "65533", "segment_size", LIMIT("65533") },
        { "switches", "2", "required_switches", LIMIT("2") },
        { "switches", "2", "wait_for_switch", "" },
        { "switches", "1@30m", "required_switches", LIMIT("1") },
        { "switches", "1@30m", "wait_for_switch", "1800" },
        { "switches", "1@0", "wait_for_switch", "0" },
        { "network", "type=sn_all", "network", "\"type=sn_all\"" },
        { "gang", "true", "gang", "" }, /* is for us, not for Slurm */
        { "exclusive", "false", "shared", "[]" },
        { "exclusive", " False\n", "shared", "[]" },
        { "exclusive", "FALSE", "shared", "[]" },
        { "exclusive", "true", "shared", "[\"none\"]" },
        { "exclusive", "", "shared", "[\"none\"]" },
        { "exclusive", "no", "shared", "[\"none\"]" },
        { "exclusive", "0", "shared", "[\"none\"]" },
        { "exclusive", "falsey", "shared", "[\"none\"]" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = { 0 };
        struct job_desc desc;

        job_desc_init(&desc);
        desc.partition = "configured";
        desc.created = 1700000000;
        if (annotate(&desc, cases[i].suffix, str_of(cases[i].value), &err) < 0)
            fail_msg("%s=%s: %s", cases[i].suffix, cases[i].value, err.text);
        if (strcmp(field_of(&desc, cases[i].field), cases[i].want) != 0)
            fail_msg("%s=%s: %s is %s", cases[i].suffix, cases[i].value, cases[i].field,
                     field_of(&desc, cases[i].field));
    }
}

static void a_gang_is_all_or_so_many_or_none(void **state)
{
    static const struct {
        const char *value;
        int64_t want;
    } cases[] = {
        { "true", JOB_DESC_GANG_ALL },
        { "false", JOB_DESC_GANG_NO },
        { "1", 1 },
        { "4", 4 },
        { "65535", 65535 },
    };
    struct job_desc desc;

    job_desc_init(&desc);
    assert_int_equal(desc.gang, JOB_DESC_GANG_NO);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(annotate(&desc, "gang", str_of(cases[i].value), NULL), 0);
        assert_int_equal(desc.gang, cases[i].want);
    }
}

static void a_later_word_on_switches_forgets_the_wait_of_the_one_before(void **state)
{
    struct job_desc desc;

    job_desc_init(&desc);
    assert_int_equal(annotate(&desc, "switches", STR("1@5m"), NULL), 0);
    assert_int_equal(annotate(&desc, "switches", STR("2"), NULL), 0);
    assert_int_equal(desc.switches, 2);
    assert_int_equal(desc.switch_wait, -1);
}

static void what_waits_for_more_than_nodes_or_is_anothers_must_queue(void **state)
{
    static const struct {
        const char *suffix, *value;
        bool must;
    } cases[] = {
        { "priority", "0", true },
        { "priority", "1", false },
        { "begin-time", "+1h", true },
        { "dependency", "singleton", true },
        { "dependency", "", false },
        { "reservation", "r", true },
        { "deadline", "2027-01-15T08:00:00Z", false },
        { "nice", "5", false },
        { "user-id", "alice", true },
        { "group-id", "100", true },
        { "account", "physics", false },
        { "qos", "high", false },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job_desc desc;

        job_desc_init(&desc);
        assert_false(job_desc_must_queue(&desc));
        assert_int_equal(annotate(&desc, cases[i].suffix, str_of(cases[i].value), NULL), 0);
        if (job_desc_must_queue(&desc) != cases[i].must)
            fail_msg("%s=%s", cases[i].suffix, cases[i].value);
    }
}

static void what_prefers_some_nodes_must_queue(void **state)
{
    struct job_desc desc;

    job_desc_init(&desc);
    desc.prefer = "west";
    assert_true(job_desc_must_queue(&desc));
}

static void pods_that_run_wait_for_nothing(void **state)
{
    static const char *const waits[][2] = {
        { "priority", "0" },     { "begin-time", "+1h" }, { "deadline", "2027-01-15T08:00:00Z" },
        { "segment-size", "4" }, { "switches", "1@5m" },  { "dependency", "afterok:7" },
    };
    struct job_desc desc, plain;

    job_desc_init(&plain);
    job_desc_init(&desc);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        assert_int_equal(annotate(&desc, waits[i][0], str_of(waits[i][1]), NULL), 0);
    desc.prefer = "west";
    job_desc_drop_waits(&desc);
    assert_false(job_desc_must_queue(&desc));
    assert_true(job_desc_hash(&desc) == job_desc_hash(&plain));

    assert_int_equal(annotate(&desc, "priority", STR("5"), NULL), 0);
    job_desc_drop_waits(&desc);
    assert_int_equal(desc.priority, 5);
}

static void a_kept_ask_outlives_its_texts(void **state)
{
    char partition[] = "p", network[] = "n";
    struct job_desc desc;

    job_desc_init(&desc);
    desc.partition = partition;
    desc.network = network;
    job_desc_keep(&desc, &arena);
    partition[0] = network[0] = 'x';
    assert_string_equal(desc.partition, "p");
    assert_string_equal(desc.network, "n");
    assert_string_equal(desc.comment, "");
}

static void exclusive_wins_over_a_default_of_sharing(void **state)
{
    struct job_desc desc;

    job_desc_init(&desc);
    desc.exclusive = false;
    assert_int_equal(annotate(&desc, "exclusive", STR("yes"), NULL), 0);
    assert_true(desc.exclusive);
}

#define P      "slurmjob.slinky.slurm.net/"
#define COUNT  " is not a whole number from 1 to 2147483647"
#define CPUS   " is not a Kubernetes quantity above 0 and up to 65533, as 2 or 1500m"
#define MEMORY " is not a Kubernetes quantity of bytes below 8Ei, as 4Gi; 0: all of the node's"
#define TEXT   " is not a text of at most 4096 bytes without control characters"
#define TIME   " is not a time, as 2027-01-31T08:00:00Z"
#define BEGIN  TIME ", or a duration, as +1h30m"
#define LIST   " is not a list of letters, digits and `:,?_+*-`, as afterok:12:13"
#define NICE   " is not a whole number from -2147483645 to 2147483645"
#define GANG   " is not `true`, `false` or a whole number from 1 to 65535"
#define SWITCH COUNT ", or that with a wait, as 2@30m"
#define TEN    "0123456789"

static void a_bad_value_is_named_with_the_form_that_is_allowed(void **state)
{
    static const struct {
        const char *suffix;
        struct str value;
        const char *want;
    } cases[] = {
        { "min-nodes", STR("two"), P "min-nodes: \"two\"" COUNT },
        { "min-nodes", STR(""), P "min-nodes: \"\"" COUNT },
        { "min-nodes", STR("0"), P "min-nodes: \"0\"" COUNT },
        { "min-nodes", STR("-1"), P "min-nodes: \"-1\"" COUNT },
        { "min-nodes", STR("+-1"), P "min-nodes: \"+-1\"" COUNT },
        { "min-nodes", STR("++1"), P "min-nodes: \"++1\"" COUNT },
        { "min-nodes", STR("1\n"), P "min-nodes: \"1?\"" COUNT },
        { "max-nodes", STR("2147483648"), P "max-nodes: \"2147483648\"" COUNT },
        { "max-nodes", STR("1.5"), P "max-nodes: \"1.5\"" COUNT },
        { "max-nodes", STR("0x2"), P "max-nodes: \"0x2\"" COUNT },
        { "timelimit", STR("0"), P "timelimit: \"0\"" COUNT },
        { "timelimit", STR("1:00:00"), P "timelimit: \"1:00:00\"" COUNT },
        { "timelimit", STR(" 5"), P "timelimit: \" 5\"" COUNT },
        { "priority", STR("high"),
          P "priority: \"high\" is not a whole number from 0 to 2147483647" },
        { "priority", STR("-1"), P "priority: \"-1\" is not a whole number from 0 to 2147483647" },
        { "cpu-per-task", STR("two"), P "cpu-per-task: \"two\"" CPUS },
        { "cpu-per-task", STR(""), P "cpu-per-task: \"\"" CPUS },
        { "cpu-per-task", STR("0"), P "cpu-per-task: \"0\"" CPUS },
        { "cpu-per-task", STR("-2"), P "cpu-per-task: \"-2\"" CPUS },
        { "cpu-per-task", STR("65534"), P "cpu-per-task: \"65534\"" CPUS },
        { "cpu-per-task", STR("65533001m"), P "cpu-per-task: \"65533001m\"" CPUS },
        { "cpu-per-task", STR("1e30"), P "cpu-per-task: \"1e30\"" CPUS },
        { "mem-per-node", STR("4GB"), P "mem-per-node: \"4GB\"" MEMORY },
        { "mem-per-node", STR("-1"), P "mem-per-node: \"-1\"" MEMORY },
        { "mem-per-node", STR("-1Gi"), P "mem-per-node: \"-1Gi\"" MEMORY },
        { "mem-per-node", STR("8Ei"), P "mem-per-node: \"8Ei\"" MEMORY },
        { "mem-per-node", STR("1e30"), P "mem-per-node: \"1e30\"" MEMORY },
        { "account", STR("a\nb"), P "account: \"a?b\"" TEXT },
        { "job-name", STR("a\0b"), P "job-name: \"a?b\"" TEXT },
        { "begin-time", STR(""), P "begin-time: \"\"" BEGIN },
        { "begin-time", STR("tomorrow"), P "begin-time: \"tomorrow\"" BEGIN },
        { "begin-time", STR("1h"), P "begin-time: \"1h\"" BEGIN },
        { "begin-time", STR("+"), P "begin-time: \"+\"" BEGIN },
        { "begin-time", STR("+-1h"), P "begin-time: \"+-1h\"" BEGIN },
        { "begin-time", STR("+300000000h"), P "begin-time: \"+300000000h\"" BEGIN },
        { "begin-time", STR("1970-01-01T00:00:00Z"),
          P "begin-time: \"1970-01-01T00:00:00Z\"" BEGIN },
        { "deadline", STR("2027-01-15"), P "deadline: \"2027-01-15\"" TIME },
        { "deadline", STR("+1h"), P "deadline: \"+1h\"" TIME },
        { "deadline", STR("1969-12-31T23:59:59Z"), P "deadline: \"1969-12-31T23:59:59Z\"" TIME },
        { "dependency", STR("afterok 12"), P "dependency: \"afterok 12\"" LIST },
        { "dependency", STR("after:1;x"), P "dependency: \"after:1;x\"" LIST },
        { "dependency", STR("a\0b"), P "dependency: \"a?b\"" LIST },
        { "nice", STR("2147483646"), P "nice: \"2147483646\"" NICE },
        { "nice", STR("-2147483646"), P "nice: \"-2147483646\"" NICE },
        { "nice", STR("low"), P "nice: \"low\"" NICE },
        { "comment", STR("a\tb"), P "comment: \"a?b\"" TEXT },
        { "segment-size", STR("0"), P "segment-size: \"0\" is not a whole number from 1 to 65533" },
        { "segment-size", STR("65534"),
          P "segment-size: \"65534\" is not a whole number from 1 to 65533" },
        { "switches", STR("0"), P "switches: \"0\"" SWITCH },
        { "switches", STR("@5m"), P "switches: \"@5m\"" SWITCH },
        { "switches", STR("2@"), P "switches: \"2@\"" SWITCH },
        { "switches", STR("2@5"), P "switches: \"2@5\"" SWITCH },
        { "switches", STR("2@-5m"), P "switches: \"2@-5m\"" SWITCH },
        { "switches", STR("2@600000h"), P "switches: \"2@600000h\"" SWITCH },
        { "network", STR("a\x7f"), P "network: \"a?\"" TEXT },
        { "gang", STR(""), P "gang: \"\"" GANG },
        { "gang", STR("True"), P "gang: \"True\"" GANG },
        { "gang", STR("yes"), P "gang: \"yes\"" GANG },
        { "gang", STR("0"), P "gang: \"0\"" GANG },
        { "gang", STR("65536"), P "gang: \"65536\"" GANG },
        /* long values are cut, between characters */
        { "min-nodes", STR(TEN TEN TEN TEN TEN),
          P "min-nodes: \"" TEN TEN TEN TEN "01234567...\"" COUNT },
        { "min-nodes", STR(TEN TEN TEN TEN "0123456\xc3\xa9x"),
          P "min-nodes: \"" TEN TEN TEN TEN "0123456...\"" COUNT },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job_desc desc, before;
        struct err err = { 0 };

        job_desc_init(&desc);
        before = desc;
        assert_int_equal(annotate(&desc, cases[i].suffix, cases[i].value, &err), -ERR_INVALID);
        if (strcmp(err.text, cases[i].want) != 0)
            fail_msg("says \"%s\", not \"%s\"", err.text, cases[i].want);
        assert_memory_equal(&desc, &before, sizeof(desc));
    }
}

static void a_text_has_a_bound(void **state)
{
    auto_buf struct buf text = { .max = 5000 };
    struct job_desc desc;

    job_desc_init(&desc);
    for (unsigned i = 0; i < 4096; i++)
        buf_add_char(&text, 'x');
    assert_int_equal(annotate(&desc, "gres", buf_str(&text), NULL), 0);
    assert_int_equal(strlen(desc.gres), 4096);
    buf_add_char(&text, 'x');
    assert_int_equal(annotate(&desc, "gres", buf_str(&text), NULL), -ERR_INVALID);
}

static void other_annotations_are_ignored(void **state)
{
    static const struct kube_pair pairs[] = {
        { STR("account"), STR("1") },
        { STR("slinky.slurm.net/job-name"), STR("1") },
        { STR("slurmjob.slinky.slurm.net"), STR("1") },
        { STR(P), STR("1") },
        { STR(P "Account"), STR("1") },
        { STR(P "accounts"), STR("1") },
        { STR(P "nodes"), STR("x") },
        { STR(P "tres_per_node"), STR("1") },
        { STR("x" P "account"), STR("1") },
    };
    struct job_desc desc, before;

    job_desc_init(&desc);
    before = desc;
    assert_int_equal(
        job_desc_annotate(&desc, &arena,
                          &(struct kube_pairs){ pairs, sizeof(pairs) / sizeof(pairs[0]) }, NULL),
        0);
    assert_memory_equal(&desc, &before, sizeof(desc));
}

static void one_bad_annotation_among_good_ones_changes_nothing(void **state)
{
    static const struct kube_pair pairs[] = {
        { STR(P "account"), STR("a") },
        { STR(P "min-nodes"), STR("x") },
        { STR(P "qos"), STR("q") },
    };
    struct job_desc desc;

    job_desc_init(&desc);
    assert_int_equal(job_desc_annotate(&desc, &arena, &(struct kube_pairs){ pairs, 3 }, NULL),
                     -ERR_INVALID);
    assert_string_equal(desc.account, "");
    assert_string_equal(desc.qos, "");
}

/* ---- the hash ---- */

static void equal_asks_have_equal_hashes_wherever_their_texts_are(void **state)
{
    char text[] = "p", other[] = "p";
    struct job_desc a, b;

    job_desc_init(&a);
    job_desc_init(&b);
    a.partition = text;
    b.partition = other;
    assert_true(job_desc_hash(&a) == job_desc_hash(&b));
    other[0] = 'q';
    assert_false(job_desc_hash(&a) == job_desc_hash(&b));
}

static void the_hash_is_the_same_in_every_build(void **state)
{
    struct job_desc desc;

    job_desc_init(&desc);
    desc.partition = "p";
    desc.memory = 4096;
    assert_true(job_desc_hash(&desc) == UINT64_C(0x38b45823ce753ee7));
}

static void every_member_changes_the_hash(void **state)
{
#define TEXT_AT(member) offsetof(struct job_desc, member)
    static const size_t texts[] = {
        TEXT_AT(name),           TEXT_AT(account),
        TEXT_AT(partition),      TEXT_AT(qos),
        TEXT_AT(wckey),          TEXT_AT(reservation),
        TEXT_AT(licenses),       TEXT_AT(constraints),
        TEXT_AT(gres),           TEXT_AT(user_id),
        TEXT_AT(group_id),       TEXT_AT(mcs_label),
        TEXT_AT(excluded_nodes), TEXT_AT(required_nodes),
        TEXT_AT(gres_per_task),  TEXT_AT(dependency),
        TEXT_AT(comment),        TEXT_AT(network),
        TEXT_AT(prefer),
    };
    static const size_t numbers[] = {
        TEXT_AT(nodes),          TEXT_AT(min_nodes),     TEXT_AT(max_nodes),   TEXT_AT(tasks),
        TEXT_AT(tasks_per_node), TEXT_AT(cpus_per_task), TEXT_AT(memory),      TEXT_AT(time_limit),
        TEXT_AT(priority),       TEXT_AT(begin_time),    TEXT_AT(deadline),    TEXT_AT(nice),
        TEXT_AT(segment_size),   TEXT_AT(switches),      TEXT_AT(switch_wait), TEXT_AT(gang),
    };
    enum {
        TEXTS = sizeof(texts) / sizeof(texts[0]),
        NUMBERS = sizeof(numbers) / sizeof(numbers[0]),
        ALL = TEXTS + NUMBERS + 2
    };
    uint64_t seen[ALL];
    struct job_desc desc;

    job_desc_init(&desc);
    seen[0] = job_desc_hash(&desc);
    desc.exclusive = false;
    seen[1] = job_desc_hash(&desc);
    for (unsigned i = 2; i < ALL; i++) {
        job_desc_init(&desc);
        if (i - 2 < TEXTS)
            *(const char **)(void *)((char *)&desc + texts[i - 2]) = "x";
        else
            *(int64_t *)(void *)((char *)&desc + numbers[i - 2 - TEXTS]) = 77;
        seen[i] = job_desc_hash(&desc);
    }
    for (unsigned i = 0; i < ALL; i++)
        for (unsigned k = 0; k < i; k++)
            if (seen[i] == seen[k])
                fail_msg("members %u and %u give the same hash", i, k);
    /* All of the struct is covered, but for padding and `created`. */
    assert_int_equal(TEXTS * sizeof(char *) + NUMBERS * sizeof(int64_t) + 2 * sizeof(int64_t),
                     sizeof(struct job_desc));
    job_desc_init(&desc);
    desc.created = 77;
    assert_true(job_desc_hash(&desc) == seen[0]);
}

static void the_reference_has_all_annotations(void **state)
{
    static const char *const suffixes[] = {
        "account",    "begin-time", "comment",      "constraints", "cpu-per-task", "deadline",
        "dependency", "exclusive",  "gang",         "gres",        "group-id",     "job-name",
        "licenses",   "max-nodes",  "mem-per-node", "min-nodes",   "network",      "nice",
        "partition",  "priority",   "qos",          "reservation", "segment-size", "switches",
        "timelimit",  "user-id",    "wckey",
    };
    auto_buf struct buf out = { .max = 100000 };
    size_t rows = 0;

    job_desc_reference(&out);
    for (const char *at = buf_text(&out); (at = strchr(at, '\n')); at++)
        rows++;
    assert_int_equal(rows, 2 + sizeof(suffixes) / sizeof(suffixes[0]));
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (!strstr(buf_text(&out), arena_printf(&arena, "\n| `" P "%s` | ", suffixes[i])))
            fail_msg("no row for %s", suffixes[i]);
    assert_non_null(strstr(buf_text(&out),
                           "\n| `" P "timelimit` | a whole number from 1 to 2147483647 | "
                           "`time_limit` | time limit in minutes |\n"));
    assert_non_null(strstr(buf_text(&out),
                           "\n| `" P "gang` | `true`, `false` or a whole number from "
                           "1 to 65535 |  | of a Job"));
}

static void only_slurm_can_say_where_a_job_of_many_wishes_fits(void **state)
{
    struct job_desc plain, odd[9];
    struct capacity_need need;
    size_t count = 0;

    job_desc_init(&plain);
    plain.partition = "p";
    plain.cpus_per_task = 3;
    assert_true(job_desc_need(&plain, &need));
    assert_int_equal(need.cpus, 3);
    assert_int_equal(need.memory, 0);
    plain.tasks_per_node = 2;
    assert_true(job_desc_need(&plain, &need));
    assert_int_equal(need.cpus, 6);
    plain.tasks_per_node = INT64_MAX;
    assert_true(job_desc_need(&plain, &need));
    assert_true(need.cpus > INT32_MAX);
    for (size_t i = 0; i < 9; i++)
        odd[i] = plain;
    odd[count++].gres_per_task = "gres/gpu=1";
    odd[count++].constraints = "a100";
    odd[count++].licenses = "x";
    odd[count++].reservation = "r";
    odd[count++].required_nodes = "n1";
    odd[count++].nodes = 2;
    odd[count++].min_nodes = 2;
    odd[count++].max_nodes = 2;
    odd[count++].partition = "";
    while (count > 0)
        assert_false(job_desc_need(&odd[--count], &need));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ask_that_says_nothing_sends_only_what_is_always_sent),
        cmocka_unit_test(an_ask_that_says_all_sends_all),
        cmocka_unit_test(pods_that_share_nodes_are_asked_for_as_tasks),
        cmocka_unit_test(every_annotation_reaches_its_field),
        cmocka_unit_test(a_gang_is_all_or_so_many_or_none),
        cmocka_unit_test(a_later_word_on_switches_forgets_the_wait_of_the_one_before),
        cmocka_unit_test(what_waits_for_more_than_nodes_or_is_anothers_must_queue),
        cmocka_unit_test(what_prefers_some_nodes_must_queue),
        cmocka_unit_test(pods_that_run_wait_for_nothing),
        cmocka_unit_test(a_kept_ask_outlives_its_texts),
        cmocka_unit_test(exclusive_wins_over_a_default_of_sharing),
        cmocka_unit_test(a_bad_value_is_named_with_the_form_that_is_allowed),
        cmocka_unit_test(a_text_has_a_bound),
        cmocka_unit_test(other_annotations_are_ignored),
        cmocka_unit_test(one_bad_annotation_among_good_ones_changes_nothing),
        cmocka_unit_test(equal_asks_have_equal_hashes_wherever_their_texts_are),
        cmocka_unit_test(the_hash_is_the_same_in_every_build),
        cmocka_unit_test(every_member_changes_the_hash),
        cmocka_unit_test(only_slurm_can_say_where_a_job_of_many_wishes_fits),
        cmocka_unit_test(the_reference_has_all_annotations),
    };

    return cmocka_run_group_tests_name("job ask", tests, set_up, tear_down);
}
