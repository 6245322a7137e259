/* test_map.c - a map finds its values, keeps their order and frees what it owns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"

#include <stdio.h>

static const struct map_options hundred = { .max = 100 };
static const struct map_options owning = { .max = 100, .free_value = mem_free };

static void assert_order(const struct map *map, const char *keys)
{
    struct str rest = str_of(keys), key;
    size_t count = 0;

    map_each (item, map) {
        assert_true(str_next(&rest, ' ', &key));
        assert_true(str_eq(item->key, key));
        count++;
    }
    assert_int_equal(count, map->count);
    assert_false(count > 0 && str_next(&rest, ' ', &key));
}

static void put_words(struct map *map, const char *words)
{
    struct str rest = str_of(words), word;

    while (str_next(&rest, ' ', &word))
        assert_int_equal(map_put(map, word, NULL, NULL), 0);
}

/* The vectors of the SipHash paper: the key is 00 01 .. 0f, the text 00 01 .. of each length. */
static void the_hash_is_siphash_2_4(void **state)
{
    static const uint64_t secret[2] = { 0x0706050403020100U, 0x0f0e0d0c0b0a0908U };
    static const struct {
        size_t length;
        uint64_t hash;
    } cases[] = {
        { 0, 0x726fdb47dd0e0e31U },
        { 1, 0x74f839c593dc67fdU },
        { 8, 0x93f5f5799a932462U },
        { 15, 0xa129ca6149be45e5U },
    };
    char text[16];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)i;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(map_hash((struct str){ text, cases[i].length }, secret), cases[i].hash);
}

static void an_empty_map_has_nothing(void **state)
{
    auto_map struct map map;

    map_init(&map, &hundred);
    assert_int_equal(map.count, 0);
    assert_null(map_get(&map, STR("a")));
    assert_false(map_has(&map, STR("a")));
    assert_false(map_remove(&map, STR("a")));
    assert_null(map_take(&map, STR("a")));
    assert_order(&map, "");
    map_clear(&map);
    map_done(NULL);
}

static void what_was_put_is_found(void **state)
{
    auto_map struct map map;
    int one = 1, two = 2;

    map_init(&map, &hundred);
    map_put(&map, STR("one"), &one, NULL);
    map_put(&map, STR("two"), &two, NULL);
    map_put(&map, STR(""), &two, NULL);
    map_put(&map, STR("a\0b"), &one, NULL);
    map_put(&map, STR("nothing"), NULL, NULL);
    assert_int_equal(map.count, 5);
    assert_ptr_equal(map_get(&map, STR("one")), &one);
    assert_ptr_equal(map_get(&map, STR("two")), &two);
    assert_ptr_equal(map_get(&map, STR("")), &two);
    assert_ptr_equal(map_get(&map, STR("a\0b")), &one);
    assert_null(map_get(&map, STR("a")));
    assert_null(map_get(&map, STR("nothing")));
    assert_true(map_has(&map, STR("nothing")));
}

static void keys_are_copied(void **state)
{
    auto_map struct map map;
    char key[] = "abc";
    int value = 1;

    map_init(&map, &hundred);
    map_put(&map, str_of(key), &value, NULL);
    key[0] = 'x';
    assert_ptr_equal(map_get(&map, STR("abc")), &value);
    assert_null(map_get(&map, STR("xbc")));
}

static void borrowed_keys_may_live_in_the_value(void **state)
{
    const struct map_options options = {
        .max = 10,
        .borrow_keys = true,
        .free_value = mem_free,
    };
    auto_map struct map map;

    map_init(&map, &options);
    for (int i = 0; i < 3; i++) {
        char *name = mem_strdup("name"); /* each replaces the one before, key and all */

        map_put(&map, str_of(name), name, NULL);
        assert_ptr_equal(map_first(&map)->key.at, name);
    }
    assert_int_equal(map.count, 1);
    assert_true(map_remove(&map, map_first(&map)->key));

    char *other = mem_strdup("other");

    map_put(&map, str_of(other), other, NULL);
    assert_ptr_equal(map_take(&map, STR("other")), other);
    mem_free(other);
}

static void replacing_frees_the_old_value_and_keeps_the_place(void **state)
{
    auto_map struct map map;

    map_init(&map, &owning);
    map_put(&map, STR("a"), mem_strdup("1"), NULL);
    map_put(&map, STR("b"), mem_strdup("2"), NULL);
    map_put(&map, STR("a"), mem_strdup("3"), NULL);
    assert_order(&map, "a b");
    assert_string_equal(map_get(&map, STR("a")), "3");
    map_put(&map, STR("a"), map_get(&map, STR("a")), NULL); /* the same value is not freed */
    assert_string_equal(map_get(&map, STR("a")), "3");
}

static void taking_hands_the_value_over(void **state)
{
    auto_map struct map map;

    map_init(&map, &owning);
    map_put(&map, STR("a"), mem_strdup("1"), NULL);

    auto_free char *value = map_take(&map, STR("a"));

    assert_string_equal(value, "1");
    assert_int_equal(map.count, 0);
}

static void the_order_is_that_of_first_insertion(void **state)
{
    auto_map struct map map;

    map_init(&map, &hundred);
    put_words(&map, "z y x w v u t s r q p o n m l k j i h g");
    assert_order(&map, "z y x w v u t s r q p o n m l k j i h g");
    map_remove(&map, STR("z"));
    map_remove(&map, STR("q"));
    put_words(&map, "z q w");
    assert_order(&map, "y x w v u t s r p o n m l k j i h g z q");
}

static void the_secret_changes_the_hash_and_not_the_order(void **state)
{
    struct map maps[2];

    for (size_t i = 0; i < 2; i++) {
        map_set_secret(i, 7 * i);
        map_init(&maps[i], &hundred);
        put_words(&maps[i], "c a b e d");
        map_remove(&maps[i], STR("a"));
        put_words(&maps[i], "a");
        assert_order(&maps[i], "c b e d a");
    }
    assert_int_not_equal(map_first(&maps[0])->hash, map_first(&maps[1])->hash);
    assert_true(map_has(&maps[0], STR("c"))); /* a map keeps the secret it was made with */
    map_done(&maps[0]);
    map_done(&maps[1]);
}

static void a_full_map_refuses_new_keys_only(void **state)
{
    const struct map_options options = { .max = 2 };
    auto_map struct map map;
    struct err err = { 0 };
    int value = 1;

    map_init(&map, &options);
    put_words(&map, "a b");
    assert_int_equal(map_put(&map, STR("c"), &value, &err), -ERR_TOO_BIG);
    assert_string_equal(err.text, "more than 2 entries");
    assert_int_equal(map_put(&map, STR("b"), &value, &err), 0);
    assert_ptr_equal(map_get(&map, STR("b")), &value);
    map_remove(&map, STR("a"));
    assert_int_equal(map_put(&map, STR("c"), &value, &err), 0);
    assert_order(&map, "b c");
}

static void any_item_may_be_removed_during_a_walk(void **state)
{
    auto_map struct map map;
    int steps = 0;

    map_init(&map, &owning);
    put_words(&map, "a b c d e f g h i j");
    map_each (item, &map) {
        steps++;
        if (str_is(item->key, "a"))
            map_remove(&map, STR("b"));
        else if (str_is(item->key, "h"))
            map_remove(&map, STR("c"));
        else if (!str_is(item->key, "e"))
            map_remove(&map, item->key);
    }
    assert_int_equal(steps, 9);
    assert_order(&map, "a e h");
    map_each (item, &map)
        map_remove(&map, item->key);
    assert_int_equal(map.count, 0);
    assert_order(&map, "");
}

static void a_cleared_map_can_be_used_again(void **state)
{
    auto_map struct map map;

    map_init(&map, &owning);
    for (int round = 0; round < 3; round++) {
        map_put(&map, STR("a"), mem_strdup("1"), NULL);
        map_put(&map, STR("b"), mem_strdup("2"), NULL);
        assert_order(&map, "a b");
        map_clear(&map);
        assert_int_equal(map.count, 0);
        assert_null(map_get(&map, STR("a")));
    }
}

static void a_queue_of_keys_stays_small(void **state)
{
    auto_map struct map map;
    char key[16];

    map_init(&map, &hundred);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(key, sizeof(key), "%u", i);
        map_put(&map, str_of(key), NULL, NULL);
        if (map.count > 10)
            map_remove(&map, map_first(&map)->key);
    }
    assert_int_equal(map.count, 10);
    assert_true(map.capacity <= 32);
}

/* ---- against a model: a plain array of key numbers in order of insertion ---- */

enum { KEYS = 300, STEPS = 30000 };

struct model {
    unsigned key[KEYS];
    unsigned value[KEYS];
    size_t count;
};

static size_t model_find(const struct model *model, unsigned key)
{
    size_t i = 0;

    while (i < model->count && model->key[i] != key)
        i++;
    return i;
}

static void model_remove(struct model *model, size_t at)
{
    for (model->count--; at < model->count; at++) {
        model->key[at] = model->key[at + 1];
        model->value[at] = model->value[at + 1];
    }
}

static void assert_same(const struct map *map, const struct model *model)
{
    size_t i = 0;
    char key[16];

    assert_int_equal(map->count, model->count);
    map_each (item, map) {
        snprintf(key, sizeof(key), "key-%u", model->key[i]);
        assert_true(str_is(item->key, key));
        assert_int_equal(*(unsigned *)item->value, model->value[i]);
        assert_ptr_equal(map_get(map, item->key), item->value);
        i++;
    }
    assert_int_equal(i, model->count);
}

static void put_both(struct map *map, struct model *model, unsigned number, unsigned value)
{
    char key[16];
    unsigned *owned = mem_alloc(sizeof(*owned));
    size_t at = model_find(model, number);

    *owned = value;
    snprintf(key, sizeof(key), "key-%u", number);
    assert_int_equal(map_put(map, str_of(key), owned, NULL), 0);
    model->key[at] = number;
    model->value[at] = value;
    model->count += at == model->count;
}

static void remove_both(struct map *map, struct model *model, unsigned number)
{
    char key[16];
    size_t at = model_find(model, number);

    snprintf(key, sizeof(key), "key-%u", number);
    assert_int_equal(map_has(map, str_of(key)), at < model->count);
    assert_int_equal(map_remove(map, str_of(key)), at < model->count);
    if (at < model->count)
        model_remove(model, at);
}

static void a_long_random_use_agrees_with_a_plain_array(void **state)
{
    const struct map_options options = { .max = KEYS, .free_value = mem_free };
    auto_map struct map map;
    struct model model = { .count = 0 };
    struct rand rand;

    rand_init(&rand, 20260101);
    map_set_secret(1, 2);
    map_init(&map, &options);
    for (unsigned step = 0; step < STEPS; step++) {
        /* Tides: mostly in, then mostly out, so that the map grows and shrinks. */
        bool in = rand_chance(&rand, step / 2000 % 2 == 0 ? 800 : 200);
        unsigned number = (unsigned)rand_below(&rand, KEYS);

        if (in)
            put_both(&map, &model, number, step);
        else
            remove_both(&map, &model, number);
        if (step % 50 == 0)
            assert_same(&map, &model);
    }
    assert_same(&map, &model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing), /* first: it draws the secret */
        cmocka_unit_test(the_hash_is_siphash_2_4),
        cmocka_unit_test(what_was_put_is_found),
        cmocka_unit_test(keys_are_copied),
        cmocka_unit_test(borrowed_keys_may_live_in_the_value),
        cmocka_unit_test(replacing_frees_the_old_value_and_keeps_the_place),
        cmocka_unit_test(taking_hands_the_value_over),
        cmocka_unit_test(the_order_is_that_of_first_insertion),
        cmocka_unit_test(the_secret_changes_the_hash_and_not_the_order),
        cmocka_unit_test(a_full_map_refuses_new_keys_only),
        cmocka_unit_test(any_item_may_be_removed_during_a_walk),
        cmocka_unit_test(a_cleared_map_can_be_used_again),
        cmocka_unit_test(a_queue_of_keys_stays_small),
        cmocka_unit_test(a_long_random_use_agrees_with_a_plain_array),
    };

    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
