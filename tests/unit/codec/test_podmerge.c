/* test_podmerge.c - a user's container or pod spec over ours: a table of both and of the result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/podmerge.h"
#include "parsed.h"

static const struct {
    const char *about, *ours, *users, *merged;
} cases[] = {
    { "nothing of the user's", "{'image':'a'}", "{}", "{'image':'a'}" },
    { "the user's scalar wins", "{'image':'a','tty':true}", "{'image':'b'}",
      "{'image':'b','tty':true}" },
    { "an explicit false or 0 counts", "{'privileged':true,'grace':30}",
      "{'privileged':false,'grace':0}", "{'privileged':false,'grace':0}" },
    { "null, empty texts, maps and lists do not", "{'image':'a','args':['x'],'affinity':{'k':'v'}}",
      "{'image':'','args':[],'affinity':{},'priority':null}",
      "{'image':'a','args':['x'],'affinity':{'k':'v'}}" },
    { "not even below an object that we do not have", "{}",
      "{'securityContext':{'capabilities':{},'runAsUser':0},'resources':{'limits':{}}}",
      "{'securityContext':{'runAsUser':0}}" },
    { "items of lists stay as the user wrote them", "{}",
      "{'volumes':[{'name':'v','emptyDir':{}}]}", "{'volumes':[{'name':'v','emptyDir':{}}]}" },
    { "objects merge", "{'resources':{'limits':{'cpu':'1'}}}",
      "{'resources':{'limits':{'memory':'1Gi'}}}",
      "{'resources':{'limits':{'cpu':'1','memory':'1Gi'}}}" },
    { "arguments follow ours, also twice", "{'args':['-a']}", "{'args':['-a','-b']}",
      "{'args':['-a','-a','-b']}" },
    { "containers follow ours", "{'containers':[{'name':'a'}]}", "{'containers':[{'name':'b'}]}",
      "{'containers':[{'name':'a'},{'name':'b'}]}" },
    { "tolerations are added once", "{'tolerations':[{'key':'a'}]}",
      "{'tolerations':[{'key':'b'},{'key':'a'}]}", "{'tolerations':[{'key':'a'},{'key':'b'}]}" },
    { "searches are added", "{'dnsConfig':{'searches':['a']}}", "{'dnsConfig':{'searches':['b']}}",
      "{'dnsConfig':{'searches':['a','b']}}" },
    { "a command is replaced", "{'command':['a','b']}", "{'command':['c']}", "{'command':['c']}" },
    { "ports merge by their number",
      "{'ports':[{'name':'ssh','containerPort':22,'protocol':'TCP'}]}",
      "{'ports':[{'containerPort':22,'hostPort':2222}]}",
      "{'ports':[{'name':'ssh','containerPort':22,'protocol':'TCP','hostPort':2222}]}" },
    { "a variable has one source", "{'env':[{'name':'A','valueFrom':{'x':1}}]}",
      "{'env':[{'name':'A','value':'b'}]}", "{'env':[{'name':'A','value':'b'}]}" },
    { "a volume has one source", "{'volumes':[{'name':'run','emptyDir':{'medium':'Memory'}}]}",
      "{'volumes':[{'name':'run','hostPath':{'path':'/x'}}]}",
      "{'volumes':[{'name':'run','hostPath':{'path':'/x'}}]}" },
    { "a probe's times alone leave its handler",
      "{'livenessProbe':{'httpGet':{'path':'/livez','port':'slurmctld'},'periodSeconds':10}}",
      "{'livenessProbe':{'periodSeconds':30}}",
      "{'livenessProbe':{'httpGet':{'path':'/livez','port':'slurmctld'},'periodSeconds':30}}" },
    { "a probe has one handler",
      "{'readinessProbe':{'tcpSocket':{'port':6820},'periodSeconds':10}}",
      "{'readinessProbe':{'exec':{'command':['true']}}}",
      "{'readinessProbe':{'periodSeconds':10,'exec':{'command':['true']}}}" },
    { "the same handler merges", "{'readinessProbe':{'httpGet':{'path':'/a','port':1}}}",
      "{'readinessProbe':{'httpGet':{'port':'named'}}}",
      "{'readinessProbe':{'httpGet':{'path':'/a','port':'named'}}}" },
};

static void the_users_values_lie_over_ours(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        auto_json_doc struct json_doc *ours = parsed(cases[i].ours),
                                      *users = parsed(cases[i].users);
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *merged = NULL;
        struct err err = { 0 };

        print_message("# %s\n", cases[i].about);
        if (podmerge(build, json_root(ours), json_root(users), &merged, &err) < 0)
            fail_msg("%s: %s", cases[i].about, err.text);
        assert_json(merged, cases[i].merged);
    }
}

/* "B1 B2" as a list of mounts. */
static struct json_doc *mounts(const char *names)
{
    char text[512] = "{'volumeMounts':[";
    struct str rest = str_of(names), name;
    const char *comma = "";

    while (str_next(&rest, ' ', &name)) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       "%s{'mountPath':'" STR_FMT "'}", comma, STR_ARG(name));
        comma = ",";
    }
    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "]}");
    return parsed(text);
}

static void lists_by_key_have_the_order_of_a_strategic_merge(void **state)
{
    static const char *const vectors[][2] = {
        { "U1 U2", "U1 U2 B1 B2 B3" },
        { "U1 B2 U2", "U1 B1 B2 U2 B3" },
        { "B3 B1", "B2 B3 B1" },
        { "B3 U1 B1 U2", "B2 B3 U1 B1 U2" },
    };

    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        auto_json_doc struct json_doc *ours = mounts("B1 B2 B3"), *users = mounts(vectors[i][0]);
        auto_json_doc struct json_doc *wanted = mounts(vectors[i][1]);
        auto_json_build struct json_build *build = json_build_new();
        auto_buf struct buf is = { .max = 4096 }, should_be = { .max = 4096 };
        struct json_mut *merged = NULL;

        assert_int_equal(podmerge(build, json_root(ours), json_root(users), &merged, NULL), 0);
        json_mut_write(merged, &is);
        json_write(json_root(wanted), &should_be);
        assert_string_equal(buf_text(&is), buf_text(&should_be));
    }
}

static void a_wrong_type_is_named_by_its_path(void **state)
{
    static const char *const wrong[][3] = {
        { "{'resources':{'limits':{}},'a':1}", "{'resources':'big'}",
          "resources: wants object, found string" },
        { "{'env':[{'name':'A'}]}", "{'env':'A=1'}", "env: wants array, found string" },
        { "{}", "{'env':{'A':1}}", "env: wants array, found object" },
        { "{'env':[{'name':'A'}]}", "{'env':[{'name':'B'},'A=1']}",
          "env[1]: wants object, found string" },
        { "{'env':[{'name':'A'}]}", "{'env':[{'value':'1'}]}", "env[0]: name is missing" },
        { "{'securityContext':{'runAsUser':401}}", "{'securityContext':{'runAsUser':'root'}}",
          "securityContext.runAsUser: wants number, found string" },
        { "{'ports':[{'containerPort':22,'name':'ssh'}]}",
          "{'ports':[{'containerPort':22,'name':7}]}",
          "ports[0].name: wants string, found number" },
        { "{'image':'a'}", "['a']", "wants object, found array" },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        auto_json_doc struct json_doc *ours = parsed(wrong[i][0]), *users = parsed(wrong[i][1]);
        auto_json_build struct json_build *build = json_build_new();
        struct json_mut *merged = NULL;
        struct err err = { 0 };

        assert_int_equal(podmerge(build, json_root(ours), json_root(users), &merged, &err),
                         -ERR_INVALID);
        assert_string_equal(err.text, wrong[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_values_lie_over_ours),
        cmocka_unit_test(lists_by_key_have_the_order_of_a_strategic_merge),
        cmocka_unit_test(a_wrong_type_is_named_by_its_path),
    };

    return cmocka_run_group_tests_name("podmerge", tests, NULL, NULL);
}
