/* test_eligible_turns.c - which pods that wait depend on which, and in what order they go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eligible_rig.h"

#include "base/rand.h"

enum { SEEDS = 40, STEPS = 160, PODS = 9, TEXT = 4096 };

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define APP(name) "labelSelector: {matchLabels: {app: " name "}}"
#define PORT(number, more)                                                                         \
    "spec: {containers: [{ports: [{hostPort: " number ", protocol: TCP" more "}]}]}"
#define AWAY(name)                                                                                 \
    "spec: {affinity: {podAntiAffinity: {" REQUIRED ": [{topologyKey: host, " APP(name) "}]}}}"
#define SPREAD(name)                                                                               \
    "spec: {topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule, topologyKey: host, "    \
    "maxSkew: 1, " APP(name) "}]}"

/* ---- telling ---- */

static void tell_rivals(const struct eligible *eligible, const struct kube_object *object,
                        struct buf *out)
{
    struct eligible_rivals walk = eligible_rivals(eligible, kube_pod_of(object));
    const struct kube_pod *rival;

    while ((rival = eligible_next_rival(&walk)) != NULL)
        buf_printf(out, "%s%s/%u", buf_str(out).len > 0 ? " " : "", rival->object.name,
                   eligible_rival_distance(&walk));
}

static void expect_rivals(struct rig *rig, const char *what, const char *pod, const char *rivals)
{
    const struct kube_object *object = kube_cache_get(rig->caches[RIG_PODS], "d", pod);
    auto_buf struct buf text;

    assert_non_null(object);
    buf_init(&text, TEXT);
    tell_rivals(rig->eligible, object, &text);
    if (strcmp(buf_text(&text), rivals) != 0)
        fail_msg("%s: the rivals of %s are \"%s\", not \"%s\"", what, pod, buf_text(&text), rivals);
}

/* ---- who ---- */

static void pods_depend_on_those_that_may_take_their_place(void **state)
{
    static const struct {
        const char *what, *pods, *rivals; /* of p: names and distances */
    } cases[] = {
        { "nothing is said", "{pod: p}, {pod: q}", "" },
        { "the same port", "{pod: p, " PORT("80", "") "}, {pod: q, " PORT("80", "") "}", "q/1" },
        { "other ports", "{pod: p, " PORT("80", "") "}, {pod: q, " PORT("81", "") "}", "" },
        { "another address of the host",
          "{pod: p, " PORT("80", ", hostIP: 10.0.0.1") "}, {pod: q, " PORT("80", ", hostIP: "
                                                                                 "10.0.0.2") "}",
          "" },
        { "all addresses",
          "{pod: p, " PORT("80", ", hostIP: 10.0.0.1") "}, {pod: q, " PORT("80", "") "}", "q/1" },
        { "a port of another namespace",
          "{pod: p, " PORT("80", "") "}, {pod: q, ns: e, " PORT("80", "") "}", "q/1" },
        { "it wants others away",
          "{pod: p, " AWAY("x") "}, {pod: q, labels: {app: x}, " AWAY("w") "}", "q/1" },
        { "others want it away",
          "{pod: p, labels: {app: w}, " AWAY("x") "}, {pod: q, " AWAY("w") "}", "q/1" },
        { "others want others away",
          "{pod: p, labels: {app: z}, " AWAY("x") "}, {pod: q, " AWAY("w") "}", "" },
        { "both want each other away, and each has a line",
          "{pod: p, labels: {app: w}, " AWAY("x") "}, {pod: q, labels: {app: x}, " AWAY("w") "}",
          "q/1 q/1" },
        { "of another namespace",
          "{pod: p, labels: {app: x}, " AWAY("x") "}, {pod: q, ns: e, labels: {app: x}, " AWAY(
              "x") "}",
          "" },
        { "it is spread among others",
          "{pod: p, " SPREAD("x") "}, {pod: q, labels: {app: x}, " SPREAD("w") "}", "q/1" },
        { "others are spread, and it counts for them",
          "{pod: p, labels: {app: x}, " PORT("80", "") "}, {pod: q, " SPREAD("x") "}", "" },
        { "whoever says nothing stands in no line",
          "{pod: p, labels: {app: x}, " AWAY("x") "}, {pod: q, labels: {app: x}}", "" },
        { "it is placed", "{pod: p, " PORT("80", "") "}, {pod: q, at: n1, " PORT("80", "") "}",
          "" },
        { "it is ending",
          "{pod: p, " PORT("80", "") "}, {pod: q, ending: true, " PORT("80", "") "}", "" },
        { "it is held back",
          "{pod: p, " PORT("80", "") "}, {pod: q, spec: {schedulingGates: [{name: g}], containers: "
                                     "[{ports: [{hostPort: 80, protocol: TCP}]}]}}",
          "" },
        { "it is over",
          "{pod: p, " PORT("80", "") "}, {pod: q, status: {phase: Failed}, " PORT("80", "") "}",
          "" },
        { "it is of another scheduler",
          "{pod: p, " PORT("80", "") "}, {pod: q, by: others, " PORT("80", "") "}", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = rig_new();
        char text[TEXT];

        (void)snprintf(text, sizeof(text), "[%s]", cases[i].pods);
        rig_put(rig, text);
        expect_rivals(rig, cases[i].what, "p", cases[i].rivals);
        rig_free(rig);
    }
}

static void the_order_is_that_of_priority_age_and_name(void **state)
{
    struct rig *rig = rig_new();

    (void)state;
    rig_put(rig, "[{pod: c, " PORT("80", "") "}, {pod: a, " PORT("80", "") "}, {pod: b, " PORT(
                     "80", "") "}, {pod: z, spec: {priority: 5, containers: [{ports: [{hostPort: "
                               "80, protocol: TCP}]}]}}]");
    expect_rivals(rig, "by name", "b", "z/2 a/1 c/1");
    expect_rivals(rig, "the last", "c", "z/3 a/2 b/1");
    rig_put(rig, "[{pod: a, at: n1, " PORT("80", "") "}]");
    expect_rivals(rig, "one is placed", "c", "z/2 b/1");
    rig_put(rig, "[{pod: a, uid: other, " PORT("80", "") "}]");
    expect_rivals(rig, "and comes back as another", "c", "z/3 a/2 b/1");
    rig_free(rig);
}

static void labels_that_change_change_the_line(void **state)
{
    struct rig *rig = rig_new();

    (void)state;
    rig_put(rig, "[{pod: p, labels: {app: x}, " AWAY("x") "}, {pod: q, " AWAY("x") "}]");
    expect_rivals(rig, "it is seen", "q", "p/1");
    rig_put(rig, "[{pod: p, labels: {app: w}, " AWAY("x") "}]");
    expect_rivals(rig, "and is not", "q", "");
    rig_free(rig);
}

static void those_with_the_same_rivals_are_alike(void **state)
{
    struct rig *rig = rig_new();
    const struct kube_pod *pods[5];
    char name[8];

    (void)state;
    rig_put(rig, "[{pod: p0, " PORT("80", "") "}, {pod: p1, " PORT("80", "") "}, {pod: p2, " PORT(
                     "81", "") "}, {pod: p3}, {pod: p4}]");
    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof(name), "p%u", i);
        pods[i] = kube_pod_of(kube_cache_get(rig->caches[RIG_PODS], "d", name));
    }
    assert_true(eligible_are_alike(rig->eligible, pods[0], pods[1]));
    assert_false(eligible_are_alike(rig->eligible, pods[0], pods[2]));
    assert_false(eligible_are_alike(rig->eligible, pods[0], pods[3]));
    assert_true(eligible_are_alike(rig->eligible, pods[3], pods[4]));
    rig_free(rig);
}

/* ---- lines that lived through any changes are those that new ones would be ---- */

/* What a pod says of others never changes: another uid is another pod. */
static void change(struct rig *rig, struct rand *rand)
{
    static const char *const specs[] = { AWAY("x"),   AWAY("w"),      SPREAD("x"),
                                         SPREAD("w"), PORT("80", ""), "spec: {}" };
    static const char *const labels[] = { "", "app: x", "app: w" };
    unsigned number = (unsigned)rand_below(rand, PODS), uid = (unsigned)rand_below(rand, 2);
    char text[TEXT], name[8];

    (void)snprintf(name, sizeof(name), "p%u", number);
    if (rand_chance(rand, 250)) {
        rig_drop(rig, RIG_PODS, "d", name);
        return;
    }
    (void)snprintf(text, sizeof(text), "[{pod: %s, uid: u%u, labels: {%s}, %s %s}]", name, uid,
                   labels[rand_below(rand, 3)], rand_chance(rand, 300) ? "at: n1," : "",
                   specs[(number + uid) % 6]);
    rig_put(rig, text);
}

/* In other lines the rivals may come in another order: of lines the older comes first. */
static void sort_words(struct buf *words)
{
    char *list[2 * PODS * 8] = { NULL }, copy[TEXT];
    unsigned count = 0;
    struct str rest, word;

    (void)snprintf(copy, sizeof(copy), "%s", buf_text(words));
    rest = str_of(copy);
    while (rest.len > 0 && str_next(&rest, ' ', &word)) {
        unsigned at = count++;
        char *own = mem_strndup(word.at, word.len);

        for (; at > 0 && strcmp(list[at - 1], own) > 0; at--)
            list[at] = list[at - 1];
        list[at] = own;
    }
    buf_clear(words);
    for (unsigned i = 0; i < count; i++) {
        buf_printf(words, "%s ", list[i]);
        mem_free(list[i]);
    }
}

static void compare(struct rig *rig, uint64_t seed, unsigned step)
{
    struct rig *other = rig_new();
    struct kube_cache_walk walk = kube_cache_walk(rig->caches[RIG_PODS]);
    const struct kube_object *object;

    while ((object = kube_cache_next(&walk)) != NULL)
        kube_cache_seen(other->caches[RIG_PODS], object);
    walk = kube_cache_walk(rig->caches[RIG_PODS]);
    while ((object = kube_cache_next(&walk)) != NULL) {
        auto_buf struct buf has, wants;

        buf_init(&has, TEXT);
        buf_init(&wants, TEXT);
        tell_rivals(rig->eligible, object, &has);
        tell_rivals(other->eligible, object, &wants);
        sort_words(&has);
        sort_words(&wants);
        if (strcmp(buf_text(&has), buf_text(&wants)) != 0)
            fail_msg("seed %u step %u: %s has %s, not %s", (unsigned)seed, step, object->name,
                     buf_text(&has), buf_text(&wants));
    }
    rig_free(other);
}

static void lines_are_those_that_a_new_view_would_make(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = rig_new();
        struct rand rand;

        rand_init(&rand, seed);
        for (unsigned step = 0; step < STEPS; step++) {
            change(rig, &rand);
            if (step % 8 == 7)
                compare(rig, seed, step);
        }
        rig_free(rig);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_depend_on_those_that_may_take_their_place),
        cmocka_unit_test(the_order_is_that_of_priority_age_and_name),
        cmocka_unit_test(labels_that_change_change_the_line),
        cmocka_unit_test(those_with_the_same_rivals_are_alike),
        cmocka_unit_test(lines_are_those_that_a_new_view_would_make),
    };

    return cmocka_run_group_tests_name("eligible_turns", tests, NULL, NULL);
}
