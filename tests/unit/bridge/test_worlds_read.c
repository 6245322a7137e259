/* test_worlds_read.c - what is refused in a file of worlds, and how the error names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../worlds_read.h"
#include "worlds_check.h"

#include <stdio.h>

/* What a world needs beside its name. */
#define REST "given: {pods: [{name: a}]}\nexpect: [submit default/a]\n"

/* Reads the text as the file w.yaml and expects this error; NULL: none. */
static void expect_read(const char *text, const char *error)
{
    static struct written_worlds all;
    struct err err = { .class = 0 };
    int rc;

    all.check = world_check;
    rc = worlds_read_text(&all, "w.yaml", str_of(text), &err);

    worlds_read_done(&all);
    if (!error) {
        if (rc < 0)
            fail_msg("%s", err.text);
        return;
    }
    assert_int_equal(rc, -ERR_INVALID);
    assert_string_equal(err.text, error);
}

/* Of a world with the name one. */
static void expect_refused(const char *world, const char *error)
{
    char text[512], message[512];

    (void)snprintf(text, sizeof(text), "name: one\n%s", world);
    (void)snprintf(message, sizeof(message), "w.yaml: 'one': %s", error);
    expect_read(text, message);
}

static void every_document_is_a_world(void **state)
{
    static struct written_worlds all;
    struct err err = { .class = 0 };

    (void)state;
    all.check = world_check;
    assert_int_equal(worlds_read_text(&all, "w.yaml",
                                      STR("---\nname: one\n" REST "---\nname: two\n" REST), &err),
                     0);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.worlds[0].name, "one");
    assert_string_equal(all.worlds[1].name, "two");
    worlds_read_done(&all);
}

static void a_world_without_a_name_is_refused(void **state)
{
    (void)state;
    expect_read("given: {}\n", "w.yaml: a world without a name");
}

static void two_worlds_of_one_name_are_refused(void **state)
{
    (void)state;
    expect_read("name: one\n" REST "---\nname: one\n" REST, "w.yaml: there are two worlds 'one'");
}

/* Every list and object of a world has its own keys. */
static void an_unknown_key_is_refused(void **state)
{
    static const struct {
        const char *world, *error;
    } cases[] = {
        { "given: {}\ncolour: red\n", "unknown key 'colour' in the world" },
        { "given: {colour: red}\n", "unknown key 'colour' in given" },
        { "given: {facts: {colour: red}}\n", "unknown key 'colour' in facts" },
        { "given: {pods: [{name: a}, {colour: red}]}\n", "unknown key 'colour' in pods" },
        { "given: {pods: [{owner: {colour: red}}]}\n", "unknown key 'colour' in owner" },
        { "given: {pods: [{conditions: [{colour: red}]}]}\n",
          "unknown key 'colour' in conditions" },
        { "given: {nodes: [{colour: red}]}\n", "unknown key 'colour' in nodes" },
        { "given: {owners: [{colour: red}]}\n", "unknown key 'colour' in owners" },
        { "given: {groups: [{colour: red}]}\n", "unknown key 'colour' in groups" },
        { "given: {claims: [{colour: red}]}\n", "unknown key 'colour' in claims" },
        { "given: {volumes: [{colour: red}]}\n", "unknown key 'colour' in volumes" },
        { "given: {classes: [{colour: red}]}\n", "unknown key 'colour' in classes" },
        { "given: {slurm_nodes: [{colour: red}]}\n", "unknown key 'colour' in slurm_nodes" },
        { "given: {jobs: [{colour: red}]}\n", "unknown key 'colour' in jobs" },
        { "given: {submits: [{colour: red}]}\n", "unknown key 'colour' in submits" },
        { "given: {pods: [{name: a}]}\nexpect: [{do: submit default/a, colour: red}]\n",
          "unknown key 'colour' in expect" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(cases[i].world, cases[i].error);
}

/* YAML makes a boolean of no, and of y. */
static void a_value_of_another_type_is_refused(void **state)
{
    (void)state;
    expect_refused("given: {submits: [{text: no}]}\n",
                   "'text' in submits has a value of another type");
    expect_refused("given: {submits: [{misfits: [x, y]}]}\n",
                   "'misfits' in submits has a value of another type");
    expect_refused("given: {pods: [{created: soon}]}\n",
                   "'created' in pods has a value of another type");
    expect_refused("given: {pods: {name: a}}\n", "'pods' in given has a value of another type");
    expect_refused("given: {pods: [a]}\n", "a row of pods is no object");
}

static void an_unknown_state_is_refused(void **state)
{
    (void)state;
    expect_refused("given: {submits: [{state: lost}]}\n",
                   "'state' in submits has the unknown value 'lost'");
    expect_refused("given: {facts: {sees: some}}\n",
                   "'sees' in facts has the unknown value 'some'");
    expect_refused("given: {pods: [{name: a}]}\nstate: asleep\n",
                   "'state' in the world has the unknown value 'asleep'");
}

static void a_patch_that_does_not_say_what_is_written_is_refused(void **state)
{
    (void)state;
    expect_refused("given: {pods: [{name: a}]}\nexpect: [patch pod default/a]\n",
                   "'patch pod default/a' does not say what is written: has");
    expect_refused("given: {pods: [{name: a}]}\nexpect: [{do: update job 7, has: []}]\n",
                   "'update job 7' does not say what is written: has");
    expect_refused("given: {pods: [{name: a}]}\nexpect: [{do: patch pod default/a, has: ['']}]\n",
                   "'has' in expect has a value of another type");
}

static void an_empty_expectation_without_a_reason_is_refused(void **state)
{
    (void)state;
    expect_refused("given: {pods: [{name: a}]}\n",
                   "nothing is expected, and neither 'waits' nor 'state' says why");
    expect_read("name: one\ngiven: {pods: [{name: a}]}\nwaits: it is gated\n", NULL);
    expect_read("name: one\ngiven: {pods: [{name: a}]}\nstate: bound\n", NULL);
}

static void the_pod_that_is_planned_is_named_unless_it_is_the_only_one(void **state)
{
    (void)state;
    expect_refused("given: {pods: [{name: a}, {name: b}]}\nstate: bound\n",
                   "it has not one pod, and no 'plan' that names one");
    expect_read("name: one\ngiven: {pods: [{name: a}, {name: b}]}\nplan: b\nstate: bound\n", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_document_is_a_world),
        cmocka_unit_test(a_world_without_a_name_is_refused),
        cmocka_unit_test(two_worlds_of_one_name_are_refused),
        cmocka_unit_test(an_unknown_key_is_refused),
        cmocka_unit_test(a_value_of_another_type_is_refused),
        cmocka_unit_test(an_unknown_state_is_refused),
        cmocka_unit_test(a_patch_that_does_not_say_what_is_written_is_refused),
        cmocka_unit_test(an_empty_expectation_without_a_reason_is_refused),
        cmocka_unit_test(the_pod_that_is_planned_is_named_unless_it_is_the_only_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
