/* test_reload.c - files that change, vanish, come back and are swapped under us. */
#include "base/mem.h"
#include "io/reload.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECOND_US = 1000000, MAX = 64 };

struct world {
    struct clock clock;
    struct loop *loop;
    struct reload_file *file;
    char folder[32], path[64];
    unsigned changes, stales;
    char content[MAX + 1];
    int class;
    bool free_in_callback;
};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void on_changed(void *context, struct str content)
{
    struct world *world = context;

    world->changes++;
    snprintf(world->content, sizeof(world->content), STR_FMT, STR_ARG(content));
    if (world->free_in_callback) {
        reload_file_free(world->file);
        world->file = NULL;
    }
}

static void on_stale(void *context, const struct err *why)
{
    struct world *world = context;

    world->stales++;
    world->class = why->class;
}

static int begin(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));

    clock_init_virtual(&world->clock, 0);
    world->loop = loop_new_virtual(&world->clock);
    snprintf(world->folder, sizeof(world->folder), "/tmp/slinc-reload-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    snprintf(world->path, sizeof(world->path), "%s/token", world->folder);
    write_text(world->path, "one");
    *state = world;
    return 0;
}

static int end(void **state)
{
    struct world *world = *state;
    char command[96];

    reload_file_free(world->file);
    loop_free(world->loop);
    snprintf(command, sizeof(command), "rm -rf %s", world->folder);
    assert_int_equal(system(command), 0);
    mem_free(world);
    return 0;
}

static void watch(struct world *world)
{
    struct reload_options options = {
        .path = world->path,
        .max = MAX,
        .period_us = SECOND_US,
        .changed = on_changed,
        .stale = on_stale,
        .context = world,
    };

    assert_int_equal(reload_file_new(world->loop, &options, &world->file, NULL), 0);
}

static void look(struct world *world)
{
    assert_true(loop_step(world->loop));
}

static void the_first_read_is_there_at_once_and_is_no_change(void **state)
{
    struct world *world = *state;

    watch(world);
    assert_true(str_is(reload_file_content(world->file), "one"));
    look(world);
    assert_int_equal(world->changes + world->stales, 0);
}

static void new_content_is_told_once(void **state)
{
    struct world *world = *state;

    watch(world);
    write_text(world->path, "two"); /* same size, and within the same tick */
    look(world);
    look(world);
    assert_int_equal(world->changes, 1);
    assert_string_equal(world->content, "two");
    write_text(world->path, "two"); /* touched only */
    look(world);
    assert_int_equal(world->changes, 1);
}

static void a_look_can_be_had_before_its_time(void **state)
{
    struct world *world = *state;

    watch(world);
    write_text(world->path, "two");
    reload_file_look(world->file);
    assert_int_equal(world->changes, 1);
}

static void a_file_that_vanishes_keeps_its_content_and_is_stale_until_it_returns(void **state)
{
    struct world *world = *state;

    watch(world);
    unlink(world->path);
    look(world);
    look(world);
    assert_int_equal(world->stales, 1); /* told once */
    assert_int_equal(world->class, ERR_NOT_FOUND);
    assert_true(str_is(reload_file_content(world->file), "one"));

    write_text(world->path, "one"); /* as it was: fresh again, and no change */
    look(world);
    assert_int_equal(world->changes, 0);
    unlink(world->path);
    look(world);
    assert_int_equal(world->stales, 2);
    write_text(world->path, "two");
    look(world);
    assert_string_equal(world->content, "two");
}

static void unusable_content_leaves_the_last_good_one(void **state)
{
    struct world *world = *state;
    char big[MAX + 2];

    memset(big, 'x', sizeof(big));
    big[MAX + 1] = '\0';
    watch(world);
    write_text(world->path, "");
    look(world);
    assert_int_equal(world->class, ERR_INVALID);
    write_text(world->path, big);
    look(world);
    assert_int_equal(world->class, ERR_TOO_BIG);
    unlink(world->path);
    assert_int_equal(mkdir(world->path, 0700), 0);
    look(world);
    assert_int_equal(world->class, ERR_INVALID);
    rmdir(world->path);
    assert_int_equal(mkfifo(world->path, 0600), 0);
    look(world); /* does not hang */
    assert_int_equal(world->class, ERR_INVALID);
    assert_true(str_is(reload_file_content(world->file), "one"));
    assert_int_equal(world->changes, 0);
    unlink(world->path);
    big[MAX] = '\0';
    write_text(world->path, big); /* just as long as allowed */
    look(world);
    assert_string_equal(world->content, big);
}

/* token -> ..data/token, ..data -> ..1: the kubelet makes ..2 and renames a new link over ..data.
 */
static void the_symlink_swap_of_a_mounted_secret_is_a_change(void **state)
{
    struct world *world = *state;
    char first[64], second[64], data[64], fresh[64], file[96];

    snprintf(first, sizeof(first), "%s/..1", world->folder);
    snprintf(second, sizeof(second), "%s/..2", world->folder);
    snprintf(data, sizeof(data), "%s/..data", world->folder);
    snprintf(fresh, sizeof(fresh), "%s/..data_tmp", world->folder);
    unlink(world->path);
    assert_int_equal(mkdir(first, 0700) + mkdir(second, 0700), 0);
    snprintf(file, sizeof(file), "%s/token", first);
    write_text(file, "old");
    snprintf(file, sizeof(file), "%s/token", second);
    write_text(file, "new");
    assert_int_equal(symlink("..1", data) + symlink("..data/token", world->path), 0);
    watch(world);
    assert_true(str_is(reload_file_content(world->file), "old"));
    assert_int_equal(symlink("..2", fresh) + rename(fresh, data), 0);
    look(world);
    assert_int_equal(world->changes, 1);
    assert_string_equal(world->content, "new");
}

static void a_file_may_be_freed_in_its_callback(void **state)
{
    struct world *world = *state;

    watch(world);
    world->free_in_callback = true;
    write_text(world->path, "two");
    look(world);
    assert_null(world->file);
    assert_false(loop_step(world->loop));
}

static void a_file_that_cannot_be_read_at_first_is_an_error(void **state)
{
    struct world *world = *state;
    struct reload_options options = { .path = "/nonexistent/x" };
    struct reload_file *file = NULL;
    struct err err = { 0 };

    assert_int_equal(reload_file_new(world->loop, &options, &file, &err), -ERR_NOT_FOUND);
    assert_string_equal(err.text, "open /nonexistent/x: no such file");
    assert_null(file);
    reload_file_free(NULL);
}

static void the_period_has_a_default(void **state)
{
    struct world *world = *state;
    struct reload_options options = { .path = world->path };
    int64_t before_us = loop_now_us(world->loop);

    assert_int_equal(reload_file_new(world->loop, &options, &world->file, NULL), 0);
    write_text(world->path, "two"); /* nobody to tell */
    look(world);
    assert_int_equal(loop_now_us(world->loop) - before_us, 10 * SECOND_US);
    assert_true(str_is(reload_file_content(world->file), "two"));
    unlink(world->path);
    look(world);
    assert_true(str_is(reload_file_content(world->file), "two"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_first_read_is_there_at_once_and_is_no_change),
        TEST(new_content_is_told_once),
        TEST(a_look_can_be_had_before_its_time),
        TEST(a_file_that_vanishes_keeps_its_content_and_is_stale_until_it_returns),
        TEST(unusable_content_leaves_the_last_good_one),
        TEST(the_symlink_swap_of_a_mounted_secret_is_a_change),
        TEST(a_file_may_be_freed_in_its_callback),
        TEST(a_file_that_cannot_be_read_at_first_is_an_error),
        TEST(the_period_has_a_default),
    };

    return cmocka_run_group_tests_name("io/reload", tests, NULL, NULL);
}
