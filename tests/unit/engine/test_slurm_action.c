/* test_slurm_action.c - a call to Slurm is plain data in a plan, shown in full by plan_write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/slurm_nodes.h"

struct bench {
    struct arena arena;
    struct plan plan;
    struct json_build *build;
};

static int up(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));

    arena_init(&bench->arena, 16 << 20);
    plan_init(&bench->plan, &bench->arena);
    bench->build = json_build_new();
    *state = bench;
    return 0;
}

static int down(void **state)
{
    struct bench *bench = *state;

    json_build_free(bench->build);
    arena_done(&bench->arena);
    mem_free(bench);
    return 0;
}

/* The detail and the name of the only action. */
static void shows(const struct bench *bench, const char *what, const char *type, const char *detail)
{
    auto_buf struct buf text = { .max = 1 << 20 };
    auto_buf struct buf own = { .max = 1 << 20 };
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *action;

    plan_write(&bench->plan, &text);
    assert_int_equal(json_parse(buf_str(&text), 1 << 20, &doc, NULL), 0);
    assert_int_equal(json_len(json_get(json_root(doc), "actions")), 1);
    action = json_item(json_get(json_root(doc), "actions"), 0);
    json_write_canonical(json_get(action, "detail"), &own);
    assert_string_equal(json_str(json_get(action, "what")).at, what);
    assert_string_equal(json_str(json_get(action, "type")).at, type);
    assert_string_equal(buf_text(&own), detail);
}

static void a_new_node_shows_what_is_said_of_it(void **state)
{
    struct bench *bench = *state;
    char name[] = "n1";

    plan_slurm_create_node(&bench->plan, &(struct slurm_node_ask){ .names = name,
                                                                   .address = "10.0.0.1",
                                                                   .cpus = 4,
                                                                   .memory = 1000,
                                                                   .features = "a,b",
                                                                   .gres = "gpu:1",
                                                                   .gres_conf = "count=1" });
    name[0] = '#';
    shows(bench, "create slurm node n1", "slurm-node",
          "{\"line\":\"NodeName=n1 NodeAddr=10.0.0.1 CPUs=4 RealMemory=1000 State=EXTERNAL "
          "Feature=a,b Gres=gpu:1 GresConf=count=1\",\"node\":\"n1\"}");
}

static void an_update_of_a_node_shows_its_fields(void **state)
{
    struct bench *bench = *state;
    struct json_mut *fields = json_new_object(bench->build);

    json_put_text(bench->build, fields, "extra", "ours");
    plan_slurm_update_node(&bench->plan, "n1", fields);
    shows(bench, "update slurm node n1", "slurm-node",
          "{\"fields\":{\"extra\":\"ours\"},\"node\":\"n1\"}");
}

static void a_deletion_shows_what_must_be_gone(void **state)
{
    struct bench *bench = *state;

    plan_slurm_delete_node(
        &bench->plan, "n1",
        &(struct action_unless){ .resource = &kube_nodes, .name = "n1", .uid = "u" });
    shows(bench, "delete slurm node n1", "slurm-node",
          "{\"node\":\"n1\",\"unless\":{\"path\":\"/api/v1/nodes/n1\",\"uid\":\"u\"}}");
}

static void fields_that_are_too_big_are_no_json(void **state)
{
    struct bench *bench = *state;
    struct json_mut *fields = json_new_object(bench->build);
    auto_buf struct buf text = { .max = 4 << 20 };

    for (size_t i = 0; i < 2 << 20; i++) /* a comment may double when it is quoted */
        buf_add_char(&text, 'x');
    json_put_str(bench->build, fields, "extra", buf_str(&text));
    plan_slurm_update_node(&bench->plan, "n1", fields);
    shows(bench, "update slurm node n1", "slurm-node", "{\"fields\":\"!\",\"node\":\"n1\"}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_node_shows_what_is_said_of_it),
        TEST(an_update_of_a_node_shows_its_fields),
        TEST(a_deletion_shows_what_must_be_gone),
        TEST(fields_that_are_too_big_are_no_json),
    };

    return cmocka_run_group_tests_name("slurm_action", tests, NULL, NULL);
}
