/* test_config.c - the config file: defaults of the chart, and messages that name the key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/world/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct bridge_config parsed(const char *text)
{
    struct bridge_config config;
    struct err err = { 0 };

    if (bridge_config_parse(str_of(text), &config, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return config;
}

static void an_empty_file_gives_the_defaults_of_the_chart(void **state)
{
    static const char *const empty[] = { "", "# nothing\n", "---\n", "null\n", "{}\n" };

    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        struct bridge_config config = parsed(empty[i]);

        assert_string_equal(config.scheduler_name, "slurm-bridge-scheduler");
        assert_string_equal(config.slurm_rest_api, "http://slurm-restapi.slurm:6820");
        assert_string_equal(config.mcs_label, "kubernetes");
        assert_string_equal(config.partition, "slurm-bridge");
        assert_int_equal(config.managed_namespace_count, 1);
        assert_true(str_is(config.managed_namespaces[0], "slurm-bridge"));
        assert_null(config.managed_namespace_selector);
        assert_false(config.shared);
        assert_false(config.submit_only);
        assert_int_equal(config.fence_after_s, 0);
        assert_int_equal(config.submits_per_second, 0);
        assert_int_equal(config.memory_margin, 100);
        assert_int_equal(config.resize_after_s, 60);
        assert_false(config.drains_to_resize);
        assert_int_equal(config.node_feature_count, 0);
        assert_false(config.pod_deadline);
        assert_int_equal(config.priority_count, 0);
        assert_int_equal(config.user_count, 0);
        assert_int_equal(config.trust, TRUST_ALL);
        assert_string_equal(config.jwt_key_file, "");
        assert_string_equal(config.jwt_user, "");
        assert_string_equal(config.warnings, "");
        bridge_config_done(&config);
    }
}

static void check_user(const struct bridge_user *user)
{
    assert_non_null(user);
    assert_string_equal(user->user, "u");
    assert_string_equal(user->group, "g");
    assert_string_equal(user->account, "a");
    assert_string_equal(user->qos, "q");
}

static void every_key_is_read_without_regard_to_letter_case(void **state)
{
    static const char *const texts[] = {
        "schedulerName: s\nslurmRestApi: https://h:1/p\nslurmRestCaFile: /c\nmanagedNamespaces: "
        "[a, b-1]\n"
        "managedNamespaceSelector: {matchLabels: {team: x}}\nmcsLabel: m\npartition: p\n"
        "sharedNodes: true\npinCpus: auto\nsubmitOnly: yes\nfenceAfterSeconds: "
        "300\nmaxGraceSeconds: 90\nasksPerSecond: "
        "0x10\n"
        "maxJobsPerNamespace: 12\nnodeMemoryMarginMiB: 7\nnodeResizeSeconds: 9\ndrainToResize: "
        "true\n"
        "nodeFeatures: [a/b, c]\npodDeadlineAsTimeLimit: true\ngracePeriodInTimeLimit: "
        "true\npriorityClasses: {high: '9', low: "
        "3}\n"
        "users: [{namespace: ns, serviceAccount: s, user: u, group: g, account: a, qos: q}]\n"
        "trustAnnotations: false\njwtKeyFile: /k\njwtUser: u\n",
        "SCHEDULERNAME: s\nslurmrestapi: https://h:1/p\nslurmrestcafile: /c\nmanagednamespaces: "
        "[a, b-1]\n"
        "ManagedNamespaceSelector: {matchLabels: {team: x}}\nMcsLabel: m\nPartition: p\n"
        "sharednodes: true\npincpus: auto\nSubmitOnly: true\nfenceafterseconds: "
        "300\nmaxgraceseconds: 90\nAsksPerSecond: 16\n"
        "MAXJOBSperNamespace: 12\nNodeMemoryMarginMib: 7\nnoderesizeseconds: 9\nDrainToResize: "
        "true\n"
        "NODEFEATURES: [a/b, c]\npodDeadlineAsTimelimit: true\nGracePeriodInTimelimit: "
        "true\nPriorityclasses: {high: '9', low: "
        "3}\n"
        "Users: [{NameSpace: ns, serviceaccount: s, USER: u, Group: g, Account: a, QOS: q}]\n"
        "TrustAnnotations: none\nJwtKeyFile: /k\njwtuser: u\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct bridge_config config = parsed(texts[i]);
        auto_buf struct buf selector = { .max = 1000 };

        assert_string_equal(config.scheduler_name, "s");
        assert_string_equal(config.slurm_rest_api, "https://h:1/p");
        assert_string_equal(config.slurm_rest_ca_file, "/c");
        assert_int_equal(config.managed_namespace_count, 2);
        assert_true(str_is(config.managed_namespaces[0], "a"));
        assert_true(str_is(config.managed_namespaces[1], "b-1"));
        json_write(config.managed_namespace_selector, &selector);
        assert_string_equal(buf_text(&selector), "{\"matchLabels\":{\"team\":\"x\"}}");
        assert_string_equal(config.mcs_label, "m");
        assert_string_equal(config.partition, "p");
        assert_true(config.shared);
        assert_true(config.pins_cpus);
        assert_true(config.submit_only);
        assert_int_equal(config.fence_after_s, 300);
        assert_int_equal(config.max_grace_s, 90);
        assert_int_equal(config.submits_per_second, 16);
        assert_int_equal(config.jobs_per_namespace, 12);
        assert_int_equal(config.memory_margin, 7);
        assert_int_equal(config.resize_after_s, 9);
        assert_true(config.drains_to_resize);
        assert_int_equal(config.node_feature_count, 2);
        assert_true(str_is(config.node_features[0], "a/b"));
        assert_true(str_is(config.node_features[1], "c"));
        assert_true(config.pod_deadline);
        assert_true(config.adds_grace);
        assert_string_equal(bridge_config_priority(&config, "high")->qos, "9");
        assert_int_equal(bridge_config_priority(&config, "high")->priority, -1);
        assert_string_equal(bridge_config_priority(&config, "low")->qos, "");
        assert_int_equal(bridge_config_priority(&config, "low")->priority, 3);
        assert_null(bridge_config_priority(&config, "middle"));
        check_user(bridge_config_user(&config, "ns", "s", STR("")));
        assert_int_equal(config.trust, TRUST_NONE);
        assert_string_equal(config.jwt_key_file, "/k");
        assert_string_equal(config.jwt_user, "u");
        assert_string_equal(config.warnings, "");
        bridge_config_done(&config);
    }
}

static void annotations_are_trusted_by_one_of_three_words_or_by_the_two_of_old(void **state)
{
    static const struct {
        const char *text;
        enum trust trust;
    } cases[] = {
        { "", TRUST_ALL },
        { "trustAnnotations: true", TRUST_ALL },
        { "trustAnnotations: all", TRUST_ALL },
        { "trustAnnotations: own", TRUST_OWN },
        { "trustAnnotations: none", TRUST_NONE },
        { "trustAnnotations: false", TRUST_NONE },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bridge_config config = parsed(cases[i].text);

        assert_int_equal(config.trust, cases[i].trust);
        bridge_config_done(&config);
    }
}

static void null_says_nothing_and_empty_says_none(void **state)
{
    struct bridge_config config =
        parsed("schedulerName:\nmanagedNamespaceSelector: null\nmcsLabel: \"\"\n"
               "partition: ''\nmanagedNamespaces: []\n");

    assert_string_equal(config.scheduler_name, "slurm-bridge-scheduler");
    assert_null(config.managed_namespace_selector);
    assert_string_equal(config.mcs_label, "");
    assert_string_equal(config.partition, "");
    assert_int_equal(config.managed_namespace_count, 0);
    bridge_config_done(&config);
}

static void an_empty_selector_is_there_and_selects_all(void **state)
{
    struct bridge_config config = parsed("managedNamespaceSelector: {}\n");

    assert_true(json_is_object(config.managed_namespace_selector));
    assert_int_equal(json_len(config.managed_namespace_selector), 0);
    bridge_config_done(&config);
}

#define SCHEDULER_NAME "schedulerName: wants a name of at most 63 letters, digits, '-', '_' and '.'"
#define REST_API       "slurmRestApi: wants a URL that begins with http://, https:// or unix://"
#define NAMESPACES     "managedNamespaces: wants a list of namespace names"
#define PARTITION      "partition: wants a text of one line; numbers, yes and no need quotes"
#define LABELS         "nodeFeatures: wants a list of label keys"
#define CLASSES                                                                                    \
    "priorityClasses: wants names of priority classes, each with a QOS in quotes or a priority "   \
    "from 1 to 2147483647"
#define USERS                                                                                      \
    "users: wants a list of rules: namespace, serviceAccount, creator, creatorGroup, user, "       \
    "group, account, qos, partitions, reservations"
#define QUOTES "wants a text of one line; numbers, yes and no need quotes"
#define PATTERN                                                                                    \
    "wants a name of lower case letters, digits, '-' and '.', in which * stands for any of them"
#define FENCE "fenceAfterSeconds: wants a whole number from 0 to 1000000000"

static void bad_values_name_their_key_and_what_is_allowed(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "schedulerName: ''", SCHEDULER_NAME },
        { "schedulerName: a b", SCHEDULER_NAME },
        { "schedulerName: [a]", SCHEDULER_NAME },
        { "SCHEDULERname: 7", SCHEDULER_NAME },
        { "schedulerName: "
          "a234567890123456789012345678901234567890123456789012345678901234",
          SCHEDULER_NAME },
        { "slurmRestApi: ''", REST_API },
        { "slurmRestApi: slurm:6820", REST_API },
        { "slurmRestApi: 'http://'", REST_API },
        { "slurmRestApi: 'http://a b'", REST_API },
        { "slurmRestApi: ftp://x", REST_API },
        { "slurmRestApi: {}", REST_API },
        { "managedNamespaces: slurm", NAMESPACES },
        { "managedNamespaces: {a: b}", NAMESPACES },
        { "managedNamespaces: [a, 7]", NAMESPACES "; item 2 is none" },
        { "managedNamespaces: ['']", NAMESPACES "; item 1 is none" },
        { "managedNamespaces: [a, b, -c]", NAMESPACES "; item 3 is none" },
        { "managedNamespaces: [Upper]", NAMESPACES "; item 1 is none" },
        { "managedNamespaceSelector: a=b",
          "managedNamespaceSelector: wants a label selector: matchLabels, matchExpressions" },
        { "partition: 12", PARTITION },
        { "partition: no", PARTITION },
        { "partition: \"a\\nb\"", PARTITION },
        { "partition: \"a\\0b\"", PARTITION },
        { "mcsLabel: []", "mcsLabel: wants a text of one line; numbers, yes and no need quotes" },
        { "sharedNodes: 'true'", "sharedNodes: wants true or false" },
        { "submitOnly: 1", "submitOnly: wants true or false" },
        { "pinCpus: true", "pinCpus: wants never or auto" },
        { "pinCpus: always", "pinCpus: wants never or auto" },
        { "fenceAfterSeconds: -1", FENCE },
        { "fenceAfterSeconds: 1.5", FENCE },
        { "fenceAfterSeconds: 1000000001", FENCE },
        { "fenceAfterSeconds: '5'", FENCE },
        { "asksPerSecond: many", "asksPerSecond: wants a whole number from 0 to 1000000000" },
        { "nodeFeatures: zone", LABELS },
        { "nodeFeatures: [zone, 'a b']", LABELS "; item 2 is none" },
        { "nodeFeatures: [7]", LABELS "; item 1 is none" },
        { "nodeFeatures: ['']", LABELS "; item 1 is none" },
        { "podDeadlineAsTimeLimit: maybe", "podDeadlineAsTimeLimit: wants true or false" },
        { "gracePeriodInTimeLimit: '30'", "gracePeriodInTimeLimit: wants true or false" },
        { "priorityClasses: [high]", CLASSES },
        { "priorityClasses: {high: ''}", CLASSES "; number 1 is none" },
        { "priorityClasses: {high: q, low: 0}", CLASSES "; number 2 is none" },
        { "priorityClasses: {high: -1}", CLASSES "; number 1 is none" },
        { "priorityClasses: {high: 2147483648}", CLASSES "; number 1 is none" },
        { "priorityClasses: {high: {qos: q}}", CLASSES "; number 1 is none" },
        { "priorityClasses: {'': q}", CLASSES "; number 1 is none" },
        { "priorityClasses: {high: \"a\\nb\"}", CLASSES "; number 1 is none" },
        { "users: alice", USERS },
        { "users: {namespace: a}", USERS },
        { "users: [alice]", "users: rule 1: wants words and values" },
        { "users: [{user: alice}]", "users: rule 1: wants a namespace; * stands for all" },
        { "users: [{namespace: a}, {namespace: b, sevriceAccount: c}]",
          "users: rule 2: has no \"sevriceAccount\"" },
        { "users: [{namespace: ''}]", "users: rule 1: namespace: " PATTERN },
        { "users: [{namespace: Team}]", "users: rule 1: namespace: " PATTERN },
        { "users: [{namespace: 'a[bc]'}]", "users: rule 1: namespace: " PATTERN },
        { "users: [{namespace: 7}]", "users: rule 1: namespace: " QUOTES },
        { "users: [{namespace: a, serviceAccount: 'a b'}]",
          "users: rule 1: serviceAccount: " PATTERN },
        { "users: [{namespace: a, user: 1000}]", "users: rule 1: user: " QUOTES },
        { "users: [{namespace: a, account: \"x\\ny\"}]", "users: rule 1: account: " QUOTES },
        { "users: [{namespace: a, user: x, USER: z}]",
          "users: rule 1: user: is there twice, in different letter case" },
        { "trustAnnotations: 'false'",
          "trustAnnotations: wants all, own or none (true is all, false is none)" },
        { "trustAnnotations: [own]",
          "trustAnnotations: wants all, own or none (true is all, false is none)" },
        { "slurmRestCaFile: ca.crt", "slurmRestCaFile: wants the path of a file, from the root" },
        { "jwtKeyFile: key", "jwtKeyFile: wants the path of a file, from the root" },
        { "jwtUser: 0", "jwtUser: wants a text of one line; numbers, yes and no need quotes" },
        { "partition: a\nPartition: b", "partition: is there twice, in different letter case" },
        { "[a]", "wants keys and values, and is one array" },
        { "just text", "wants keys and values, and is one string" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bridge_config config;
        struct err err = { 0 };

        assert_int_equal(bridge_config_parse(str_of(cases[i].text), &config, &err), -ERR_INVALID);
        if (strcmp(err.text, cases[i].want) != 0)
            fail_msg("%s: says \"%s\", not \"%s\"", cases[i].text, err.text, cases[i].want);
    }
}

static void the_first_rule_that_matches_says_who_a_pod_is(void **state)
{
    static const struct {
        const char *ns, *service_account, *want;
    } cases[] = {
        { "team-a", "trainer", "trainer" },
        { "team-a", "default", "a" },
        { "team-a", "", "a" },
        { "team-b", "ci.bot", "bot" },
        { "team-b", "default", "team" },
        { "team-", "x", "team" },
        { "steam-c", "x", "" },
        { "other", "x", "" },
    };
    struct bridge_config config =
        parsed("users:\n"
               "- {namespace: team-a, serviceAccount: trainer, user: trainer}\n"
               "- {namespace: team-a, serviceAccount: null, user: a}\n"
               "- {namespace: team-*, serviceAccount: '*.bot', user: bot}\n"
               "- {namespace: team-*, user: team}\n"
               "- {namespace: team-b, user: never}\n");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct bridge_user *user =
            bridge_config_user(&config, cases[i].ns, cases[i].service_account, STR(""));

        if (strcmp(user ? user->user : "", cases[i].want) != 0)
            fail_msg("%s/%s is %s", cases[i].ns, cases[i].service_account,
                     user ? user->user : "nobody");
    }
    bridge_config_done(&config);
}

static void a_rule_may_ask_who_made_a_pod(void **state)
{
    static const struct {
        const char *creator, *want;
    } cases[] = {
        { "alice@example.org\nsystem:authenticated", "alice" },
        { "bob\nsystem:authenticated\noidc:physics", "physicist" },
        { "oidc:physics\nsystem:authenticated", "guest" }, /* a user of the name of a group */
        { "malice@example.org", "guest" },
        { "", "guest" },
    };
    struct bridge_config config =
        parsed("users:\n"
               "- {namespace: '*', creator: alice@*, user: alice}\n"
               "- {namespace: '*', creatorGroup: 'oidc:phys*', user: physicist}\n"
               "- {namespace: '*', user: guest}\n");

    assert_true(config.asks_who_made_it);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(bridge_config_user(&config, "ns", "", str_of(cases[i].creator))->user,
                            cases[i].want);
    assert_true(bridge_config_is_like_any(config.controller_accounts,
                                          STR("system:serviceaccount:kube-system:job-controller")));
    assert_false(
        bridge_config_is_like_any(config.controller_accounts, STR("system:serviceaccount:team:x")));
    bridge_config_done(&config);
}

static void what_is_wrong_inside_a_selector_names_its_key_too(void **state)
{
    struct bridge_config config;
    struct err err = { 0 };

    assert_int_equal(bridge_config_parse(STR("managedNamespaceSelector: {matchLabels: {'a b': c}}"),
                                         &config, &err),
                     -ERR_INVALID);
    assert_non_null(strstr(err.text, "managedNamespaceSelector: "));
}

static void broken_yaml_is_refused_with_its_place(void **state)
{
    struct bridge_config config;
    struct err err = { 0 };

    assert_int_equal(bridge_config_parse(STR("partition: [a"), &config, &err), -ERR_INVALID);
    assert_non_null(strstr(err.text, "line"));
    assert_int_equal(bridge_config_parse(STR("a: b\n---\nc: d\n"), &config, &err), -ERR_TOO_BIG);
}

static void unknown_keys_are_told_and_ignored(void **state)
{
    struct bridge_config config = parsed("zeta: 1\npartition: p\n\"a\\nb\": {}\n");
    auto_buf struct buf many = { .max = 100000 };

    assert_string_equal(config.partition, "p");
    assert_string_equal(config.warnings,
                        "unknown key \"zeta\" is ignored\nunknown key \"a\\nb\" is ignored\n");
    bridge_config_done(&config);

    for (unsigned i = 0; i < 40; i++)
        buf_printf(&many, "key%u: x\n", i);
    config = parsed(buf_text(&many));
    assert_non_null(strstr(config.warnings, "unknown key \"key31\" is ignored\n"));
    assert_null(strstr(config.warnings, "key32"));
    assert_non_null(strstr(config.warnings, "\n8 more unknown keys are ignored\n"));
    bridge_config_done(&config);
}

static void too_much_of_anything_is_refused(void **state)
{
    auto_buf struct buf text = { .max = 4 << 20 };
    struct bridge_config config;
    struct err err = { 0 };

    buf_add_text(&text, "managedNamespaces:\n");
    for (unsigned i = 0; i < 10001; i++)
        buf_printf(&text, "- n%u\n", i);
    assert_int_equal(bridge_config_parse(buf_str(&text), &config, &err), -ERR_TOO_BIG);
    assert_string_equal(
        err.text, "managedNamespaces: more than 10000; managedNamespaceSelector has no limit");

    buf_clear(&text);
    buf_add_text(&text, "nodeFeatures:\n");
    for (unsigned i = 0; i < 65; i++)
        buf_printf(&text, "- l%u\n", i);
    assert_int_equal(bridge_config_parse(buf_str(&text), &config, &err), -ERR_TOO_BIG);
    assert_string_equal(err.text, "nodeFeatures: more than 64 labels");

    buf_clear(&text);
    buf_add_text(&text, "users:\n");
    for (unsigned i = 0; i < 10001; i++)
        buf_printf(&text, "- {namespace: n%u}\n", i);
    assert_int_equal(bridge_config_parse(buf_str(&text), &config, &err), -ERR_TOO_BIG);
    assert_string_equal(err.text, "users: more than 10000 rules");

    buf_clear(&text);
    buf_add_text(&text, "priorityClasses:\n");
    for (unsigned i = 0; i < 10001; i++)
        buf_printf(&text, "  c%u: q\n", i);
    assert_int_equal(bridge_config_parse(buf_str(&text), &config, &err), -ERR_TOO_BIG);
    assert_string_equal(err.text, "priorityClasses: more than 10000 classes");

    buf_clear(&text);
    buf_add_text(&text, "partition: ");
    for (unsigned i = 0; i < 4097; i++)
        buf_add_char(&text, 'p');
    assert_int_equal(bridge_config_parse(buf_str(&text), &config, &err), -ERR_INVALID);
    assert_string_equal(err.text, PARTITION);

    buf_clear(&text);
    for (unsigned i = 0; i < 1 << 20; i++)
        buf_add_text(&text, "# ");
    assert_int_equal(bridge_config_parse(buf_str(&text), &config, &err), -ERR_TOO_BIG);
}

/* ---- files ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void a_file_is_loaded_and_named_in_messages(void **state)
{
    char path[] = "/tmp/slinc-config-XXXXXX";
    struct bridge_config config;
    struct err err = { 0 };
    auto_buf struct buf want = { .max = 1000 };
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(bridge_config_load(path, &config, &err), 0); /* empty */
    assert_string_equal(config.partition, "slurm-bridge");
    bridge_config_done(&config);

    write_file(path, "partition: p\n");
    assert_int_equal(bridge_config_load(path, &config, &err), 0);
    assert_string_equal(config.partition, "p");
    bridge_config_done(&config);

    write_file(path, "submitOnly: 3\n");
    assert_int_equal(bridge_config_load(path, &config, &err), -ERR_INVALID);
    buf_printf(&want, "%s: submitOnly: wants true or false", path);
    assert_string_equal(err.text, buf_text(&want));

    unlink(path);
    assert_int_equal(bridge_config_load(path, &config, &err), -ERR_NOT_FOUND);
    buf_clear(&want);
    buf_printf(&want, "config: open %s: no such file", path);
    assert_string_equal(err.text, buf_text(&want));
}

static void the_reference_has_a_row_for_every_key(void **state)
{
    static const char *const keys[] = { "schedulerName",
                                        "slurmRestApi",
                                        "slurmRestCaFile",
                                        "managedNamespaces",
                                        "managedNamespaceSelector",
                                        "mcsLabel",
                                        "partition",
                                        "sharedNodes",
                                        "submitOnly",
                                        "fenceAfterSeconds",
                                        "maxGraceSeconds",
                                        "asksPerSecond",
                                        "jwtKeyFile",
                                        "jwtUser",
                                        "nodeFeatures",
                                        "podDeadlineAsTimeLimit",
                                        "priorityClasses",
                                        "users",
                                        "trustAnnotations",
                                        "pinCpus",
                                        "devices",
                                        "gracePeriodInTimeLimit",
                                        "nodeMemoryMarginMiB",
                                        "nodeResizeSeconds",
                                        "drainToResize",
                                        "maxJobsPerNamespace",
                                        "controllerAccounts" };
    auto_buf struct buf out = { .max = 100000 };
    size_t rows = 0;

    bridge_config_reference(&out);
    for (const char *at = buf_text(&out); (at = strchr(at, '\n')); at++)
        rows++;
    assert_int_equal(rows, 2 + sizeof(keys) / sizeof(keys[0]));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        auto_buf struct buf row = { .max = 100 };

        buf_printf(&row, "\n| `%s` | ", keys[i]);
        if (!strstr(buf_text(&out), buf_text(&row)))
            fail_msg("no row for %s", keys[i]);
    }
    assert_non_null(strstr(buf_text(&out), "\n| `partition` | text | `slurm-bridge` | partition of "
                                           "jobs that name none; empty for Slurm's default |\n"));
}

static void ending_nothing_or_twice_is_harmless(void **state)
{
    struct bridge_config config = parsed("managedNamespaceSelector: {}");

    bridge_config_done(&config);
    bridge_config_done(&config);
    bridge_config_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_gives_the_defaults_of_the_chart),
        cmocka_unit_test(every_key_is_read_without_regard_to_letter_case),
        cmocka_unit_test(annotations_are_trusted_by_one_of_three_words_or_by_the_two_of_old),
        cmocka_unit_test(null_says_nothing_and_empty_says_none),
        cmocka_unit_test(an_empty_selector_is_there_and_selects_all),
        cmocka_unit_test(bad_values_name_their_key_and_what_is_allowed),
        cmocka_unit_test(the_first_rule_that_matches_says_who_a_pod_is),
        cmocka_unit_test(a_rule_may_ask_who_made_a_pod),
        cmocka_unit_test(what_is_wrong_inside_a_selector_names_its_key_too),
        cmocka_unit_test(broken_yaml_is_refused_with_its_place),
        cmocka_unit_test(unknown_keys_are_told_and_ignored),
        cmocka_unit_test(too_much_of_anything_is_refused),
        cmocka_unit_test(a_file_is_loaded_and_named_in_messages),
        cmocka_unit_test(the_reference_has_a_row_for_every_key),
        cmocka_unit_test(ending_nothing_or_twice_is_harmless),
    };

    return cmocka_run_group_tests_name("bridge config", tests, NULL, NULL);
}
