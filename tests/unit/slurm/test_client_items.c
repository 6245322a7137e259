/* test_client_items.c - the elements of a list handed on one by one; a body that outlives its
 * callback. */
#include "world.h"

struct taken {
    struct world *world;
    struct buf names;
    int64_t sent_us;
    struct json_doc *kept;
};

static void on_item(void *context, const struct json *item, int64_t sent_us)
{
    struct taken *taken = context;

    buf_add_str(&taken->names, json_str(json_get(item, "name")));
    taken->sent_us = sent_us;
}

static void on_done(void *context, const struct slurm_answer *answer)
{
    struct taken *taken = context;

    world_done(taken->world, answer);
    taken->kept = slurm_answer_take(answer);
    assert_null(slurm_answer_take(answer)); /* it is ours now */
}

static int set_up(void **state)
{
    struct taken *taken = mem_alloc(sizeof(*taken));
    void *world;

    world_up(&world);
    taken->world = world;
    buf_init(&taken->names, 4096);
    *state = taken;
    return 0;
}

static int tear_down(void **state)
{
    struct taken *taken = *state;
    void *world = taken->world;

    json_doc_free(taken->kept);
    buf_done(&taken->names);
    mem_free(taken);
    return world_down(&world);
}

static enum slurm_class list(struct taken *taken, enum slurm_endpoint endpoint)
{
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = endpoint, .item = on_item };

    slurm_send(taken->world->client, &request, on_done, taken);
    return world_ends(taken->world);
}

static void answer(struct taken *taken, const char *path, int status, const char *body)
{
    fake_answer(taken->world->fake, "GET", path,
                (struct fake_answer){
                    .status = status, .body = body, .ends = true, .delay_us = SECOND_US });
}

#define TWO "[{\"name\":\"a\"},{\"name\":\"b\"}],\"last_update\":{\"set\":true,\"number\":4}}"

static void a_long_list_is_handed_on_and_the_body_lacks_its_elements(void **state)
{
    struct taken *taken = *state;

    answer(taken, V45 "/nodes/", 200, "{\"nodes\":" TWO);
    assert_int_equal(list(taken, SLURM_NODES), SLURM_DONE);
    assert_string_equal(buf_text(&taken->names), "ab");
    assert_int_equal(taken->sent_us, taken->world->answer.sent_us);
    assert_int_equal(taken->world->answer.bytes, strlen("{\"nodes\":" TWO));
    assert_true(fake_last_sent(taken->world->fake)->stream);
    assert_int_equal(json_len(json_get(json_root(taken->kept), "nodes")), 0);
    assert_int_equal(json_i64_or(json_at(json_root(taken->kept), "last_update", "number"), 0), 4);
}

static void a_short_list_is_handed_on_from_its_tree(void **state)
{
    struct taken *taken = *state;

    answer(taken, V45 "/partitions/", 200, "{\"partitions\":" TWO);
    assert_int_equal(list(taken, SLURM_PARTITIONS), SLURM_DONE);
    assert_string_equal(buf_text(&taken->names), "ab");
    assert_false(fake_last_sent(taken->world->fake)->stream);
    assert_int_equal(json_len(json_get(json_root(taken->kept), "partitions")), 2);
}

static void nothing_new_and_refusals_hand_nothing_on(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum slurm_class class;
    } cases[] = {
        { 304, "", SLURM_NOT_MODIFIED },
        { 500, "{\"nodes\":" TWO, SLURM_UNAVAILABLE },
        { 502, "{\"errors\":[{\"error_number\":1800}]}", SLURM_UNAVAILABLE },
        { 200, "{\"nodes\":", SLURM_UNAVAILABLE },
        { 200, "{\"errors\":[]}", SLURM_UNAVAILABLE },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct taken *taken;
        void *fresh;

        set_up(&fresh);
        taken = fresh;
        answer(taken, V45 "/nodes/", cases[i].status, cases[i].body);
        assert_int_equal(list(taken, SLURM_NODES), cases[i].class);
        assert_string_equal(buf_text(&taken->names), "");
        assert_int_equal(taken->world->answer.tries, 1); /* once */
        tear_down(&fresh);
    }
    (void)state;
}

static void a_refused_token_is_renewed_before_anything_is_handed_on(void **state)
{
    struct taken *taken = *state;

    answer(taken, V45 "/nodes/", 511, "{\"nodes\":[],\"errors\":[{\"error_number\":1007}]}");
    answer(taken, V45 "/nodes/", 200, "{\"nodes\":" TWO);
    assert_int_equal(list(taken, SLURM_NODES), SLURM_DONE);
    assert_string_equal(buf_text(&taken->names), "ab");
    assert_int_equal(taken->world->answer.tries, 2);
}

static void a_list_under_way_is_cancelled_silently(void **state)
{
    struct taken *taken = *state;
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = SLURM_NODES, .item = on_item };
    struct slurm_call *call = slurm_send(taken->world->client, &request, on_done, taken);

    fake_answer(taken->world->fake, "GET", V45 "/nodes/",
                (struct fake_answer){ .status = 200, .body = "{\"nodes\":[{\"name\":\"a\"}," });
    fake_run_for(taken->world->fake, SECOND_US);
    assert_string_equal(buf_text(&taken->names), "a");
    slurm_call_cancel(call);
    loop_run(taken->world->loop);
    assert_int_equal(taken->world->ends, 0);
    assert_true(fake_last_sent(taken->world->fake)->cancelled);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_long_list_is_handed_on_and_the_body_lacks_its_elements),
        TEST(a_short_list_is_handed_on_from_its_tree),
        cmocka_unit_test(nothing_new_and_refusals_hand_nothing_on),
        TEST(a_refused_token_is_renewed_before_anything_is_handed_on),
        TEST(a_list_under_way_is_cancelled_silently),
    };

    return cmocka_run_group_tests_name("slurm client items", tests, NULL, NULL);
}
