/* test_top.c - which names are shown: the largest, steadily, and the exact rest under "other". */
#include "base/mem.h"
#include "exporter/top.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MANY = 10000, SHOWN = 200 };

struct rig {
    struct arena arena;
    struct top top;
    struct tally_view view;
    struct tally tally;
    size_t folded;
};

static int set_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));

    arena_init(&rig->arena, 256 << 20);
    top_init(&rig->top);
    tally_init(&rig->tally, &rig->view, &rig->arena);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    tally_done(&rig->tally);
    top_done(&rig->top);
    arena_done(&rig->arena);
    mem_free(rig);
    return 0;
}

static void add(struct rig *rig, const char *name, double cpus)
{
    struct tally_owner *owner = arena_alloc(&rig->arena, sizeof(*owner));

    owner->name = arena_strdup(&rig->arena, name);
    owner->cpus[TALLY_RUNS] = cpus;
    owner->jobs[TALLY_RUNS] = 1;
    assert_int_equal(map_put(&rig->tally.owners[TALLY_USER], str_of(owner->name), owner, NULL), 0);
}

static const struct map *choose(struct rig *rig, size_t max)
{
    top_choose(&rig->top, &rig->tally, TALLY_USER, max, &rig->folded);
    return &rig->tally.owners[TALLY_USER];
}

static void ten_thousand_users_give_201_values_and_the_exact_rest(void **state)
{
    struct rig *rig = *state;
    const struct map *owners;
    const struct tally_owner *other;
    double rest = 0;
    char name[16];

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "u%d", i);
        add(rig, name, i);
        rest += i < MANY - SHOWN ? i : 0;
    }
    owners = choose(rig, SHOWN);
    other = map_get(owners, STR("other"));
    assert_int_equal(owners->count, SHOWN + 1);
    assert_true(other->cpus[TALLY_RUNS] == rest);
    assert_true(other->jobs[TALLY_RUNS] == MANY - SHOWN);
    assert_int_equal(rig->folded, MANY - SHOWN);
    assert_true(map_has(owners, STR("u9999")));
    assert_false(map_has(owners, STR("u9799")));
}

/* Twenty users; of 10 places nine are for the first nine, and the tenth is kept by whoever has it
 * while it is among the first eleven. */
static void a_name_that_is_shown_stays_until_it_falls_clearly_behind(void **state)
{
    struct rig *rig = *state;
    const struct map *owners;
    char name[16];

    for (unsigned round = 0; round < 3; round++) {
        map_clear(&rig->tally.owners[TALLY_USER]);
        for (int i = 0; i < 20; i++) {
            (void)snprintf(name, sizeof(name), "u%02d", i);
            add(rig, name, 100 - i);
        }
        if (round > 0) { /* the 10th and the 11th change places */
            struct tally_owner *tenth = map_get(&rig->tally.owners[TALLY_USER], STR("u09"));

            tenth->cpus[TALLY_RUNS] = round == 1 ? 89.5 : 50;
        }
        owners = choose(rig, 10);
        assert_int_equal(owners->count, 11);
        assert_int_equal(map_has(owners, STR("u09")), round < 2);
        assert_int_equal(map_has(owners, STR("u10")), round == 2);
    }
}

static void few_names_are_all_shown_and_there_is_no_rest(void **state)
{
    struct rig *rig = *state;
    const struct map *owners;

    add(rig, "anna", 0);
    add(rig, "bert", 5);
    owners = choose(rig, SHOWN);
    assert_int_equal(owners->count, 2);
    assert_int_equal(rig->folded, 0);
}

static void somebody_named_other_is_counted_with_the_rest(void **state)
{
    struct rig *rig = *state;
    const struct tally_owner *other;

    add(rig, "other", 100);
    add(rig, "anna", 50);
    add(rig, "bert", 5);
    other = map_get(choose(rig, 1), STR("other"));
    assert_true(other->cpus[TALLY_RUNS] == 155);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ten_thousand_users_give_201_values_and_the_exact_rest),
        TEST(a_name_that_is_shown_stays_until_it_falls_clearly_behind),
        TEST(few_names_are_all_shown_and_there_is_no_rest),
        TEST(somebody_named_other_is_counted_with_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
