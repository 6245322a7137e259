/* test_slurm_health.c - what is heard of Slurm shows in /readyz, /debug/state and /metrics. */
#include "engine/slurm_health.h"

#include "codec/json.h"
#include "slurm_executor_rig.h"

struct room_with_a_view {
    struct slurm_health slurm_health;
    struct health *health;
};

static void look(struct room_with_a_view *view, struct rig *rig)
{
    slurm_health_init(&view->slurm_health, rig->metrics);
    view->health = health_new(rig->loop, rig->metrics, NULL);
    slurm_health_add_health(&view->slurm_health, view->health);
}

static bool is_ready(const struct room_with_a_view *view, const char *why)
{
    auto_buf struct buf out = { .max = 4096 };
    bool ready = health_is_ready(view->health, false, &out);

    if (!ready)
        assert_non_null(strstr(buf_text(&out), why));
    return ready;
}

static struct json_doc *state_of(const struct room_with_a_view *view)
{
    auto_buf struct buf out = { .max = 1 << 16 };
    struct json_doc *doc = NULL;

    health_write_state(view->health, &out);
    assert_int_equal(json_parse(buf_str(&out), 1 << 16, &doc, NULL), 0);
    return doc;
}

static const struct metric_family *family(const char *name)
{
    for (size_t i = 0; i < slurm_health_metric_count; i++)
        if (strcmp(slurm_health_metrics[i].name, name) == 0)
            return &slurm_health_metrics[i];
    fail_msg("no metric %s", name);
    return NULL;
}

static void without_a_poller_it_says_what_it_waits_for(void **state)
{
    struct rig *rig = *state;
    struct room_with_a_view view;

    look(&view, rig);
    assert_false(is_ready(&view, "which cluster this is"));

    auto_json_doc struct json_doc *doc = state_of(&view);

    assert_true(json_is_null(json_get(json_root(doc), "slurm")));
    health_free(view.health);
}

static void objects_suspicions_and_silence_are_shown(void **state)
{
    struct rig *rig = *state;
    struct room_with_a_view view;
    auto_buf struct buf text = { .max = 1 << 20 };

    look(&view, rig);
    view.slurm_health.poller = rig->poller;
    rig_see(rig, rig->nodes, "{\"name\":\"n1\",\"state\":[\"IDLE\"]}");
    slurm_poller_suspect(rig->poller, "a test says so");
    assert_false(is_ready(&view, "nothing heard from Slurm"));

    auto_json_doc struct json_doc *doc = state_of(&view);
    const struct json *slurm = json_get(json_root(doc), "slurm");
    const struct json *nodes = json_item(json_get(slurm, "feeds"), SLURM_FEED_NODES);

    assert_true(json_bool_or(json_get(slurm, "suspicious"), false));
    assert_true(str_is(json_str(json_get(slurm, "suspicion")), "a test says so"));
    assert_true(str_is(json_str(json_get(nodes, "kind")), "nodes"));
    assert_int_equal(json_i64_or(json_get(nodes, "objects"), 0), 1);

    metrics_write(rig->metrics, &text);
    assert_non_null(strstr(buf_text(&text), "slinc_slurm_objects{kind=\"nodes\"} 1\n"));
    assert_true(metrics_get(rig->metrics, family("slinc_slurm_age_seconds"), "jobs", NULL) < 0);
    assert_true(metrics_get(rig->metrics, family("slinc_slurm_suspicions_total"), NULL) == 1);
    assert_true(metrics_get(rig->metrics, family("slinc_slurm_suspicious"), NULL) == 1);
    health_free(view.health);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_poller_it_says_what_it_waits_for),
        TEST(objects_suspicions_and_silence_are_shown),
    };

    return cmocka_run_group_tests_name("feeds", tests, NULL, NULL);
}
