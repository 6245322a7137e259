/* test_log.c - lines are whole, bounded and honest, for people and for machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static struct clock test_clock;
static struct buf caught;

static void catch_line(void *context, struct str line)
{
    buf_add_str(context, line);
}

/* From here on, lines go into `caught`, at one second and 2.003 ms past New Year 2026. */
static void catch_lines(enum log_format format, enum log_level level)
{
    clock_init_virtual(&test_clock, 1767225600000000);
    clock_advance_us(&test_clock, 1002003);
    buf_clear(&caught);
    log_setup(&(struct log_options){
        .level = level,
        .format = format,
        .clock = &test_clock,
        .sink = catch_line,
        .context = &caught,
    });
}

static void assert_caught(const char *line)
{
    assert_string_equal(buf_text(&caught), line);
    buf_clear(&caught);
}

static void a_machine_gets_one_object_per_line(void **state)
{
    struct err err = { 0 };

    err_set(&err, ERR_TIMEOUT, "slurmrestd did not \"answer\"");
    catch_lines(LOG_FORMAT_AUTO, LOG_LEVEL_INFO);
    log_info("bound pod", LOG_STR("pod", STR("ns/a")), LOG_I64("job", -7),
             LOG_U64("bytes", UINT64_MAX), LOG_BOOL("again", true), LOG_BOOL("first", false),
             LOG_TEXT("node", "n1"), LOG_ERROR(&err), LOG_SECRET("token"));
    assert_caught(
        "{\"level\":\"info\",\"ts\":\"2026-01-01T00:00:01.002003Z\",\"msg\":\"bound pod\","
        "\"pod\":\"ns/a\",\"job\":-7,\"bytes\":18446744073709551615,\"again\":true,"
        "\"first\":false,\"node\":\"n1\","
        "\"error\":\"slurmrestd did not \\\"answer\\\"\",\"token\":\"<hidden>\"}\n");
}

static void a_person_gets_words(void **state)
{
    struct err err = { 0 };

    err_set(&err, ERR_TIMEOUT, "no answer");
    catch_lines(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    log_warn("bound pod", LOG_STR("pod", STR("ns/a")), LOG_I64("job", 7), LOG_U64("n", 8),
             LOG_BOOL("again", true), LOG_TEXT("empty", ""), LOG_TEXT("none", NULL),
             LOG_TEXT("pair", "a=b"), LOG_TEXT("path", "c:\\d"), LOG_ERROR(&err),
             LOG_SECRET("token"));
    assert_caught(
        "2026-01-01T00:00:01.002Z warn  bound pod pod=ns/a job=7 n=8 again=true empty=\"\" "
        "none=\"\" pair=\"a=b\" path=\"c:\\\\d\" error=\"no answer\" token=<hidden>\n");
}

static void a_message_needs_no_fields(void **state)
{
    catch_lines(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    log_error("stopped");
    assert_caught("2026-01-01T00:00:01.002Z error stopped\n");
    catch_lines(LOG_FORMAT_JSON, LOG_LEVEL_INFO);
    log_error("stopped");
    assert_caught(
        "{\"level\":\"error\",\"ts\":\"2026-01-01T00:00:01.002003Z\",\"msg\":\"stopped\"}\n");
}

static int evaluated;

static int64_t count_evaluation(void)
{
    return ++evaluated;
}

static void only_levels_that_are_on_are_written(void **state)
{
    static const struct {
        enum log_level level;
        const char *lines;
    } cases[] = {
        { LOG_LEVEL_ERROR, "e" },
        { LOG_LEVEL_WARN, "ew" },
        { LOG_LEVEL_INFO, "ewi" },
        { LOG_LEVEL_DEBUG, "ewid" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        catch_lines(LOG_FORMAT_TEXT, cases[i].level);
        evaluated = 0;
        log_error("x", LOG_I64("n", count_evaluation()));
        log_warn("x", LOG_I64("n", count_evaluation()));
        log_info("x", LOG_I64("n", count_evaluation()));
        log_debug("x", LOG_I64("n", count_evaluation()));
        assert_int_equal(evaluated, strlen(cases[i].lines));

        struct str rest = buf_str(&caught), line;

        for (const char *initial = cases[i].lines; *initial; initial++) {
            assert_true(str_next(&rest, '\n', &line));
            assert_int_equal(line.at[strlen("2026-01-01T00:00:01.002Z ")], *initial);
        }
        assert_int_equal(rest.len, 0);
    }
}

static void nothing_in_a_value_can_steer_the_reader(void **state)
{
    static const struct {
        struct str raw;
        const char *escaped;
    } cases[] = {
        { STR("a\nb\tc\rd"), "a\\nb\\tc\\u000dd" },
        { STR("\033[2J"), "\\u001b[2J" },
        { STR("a\0b\x7f"), "a\\u0000b\\u007f" },
        { STR("\xc2\x9b"), "\\u009b" },     /* CSI in one character */
        { STR("\xe2\x80\xa8"), "\\u2028" }, /* line separator */
        { STR("\xe2\x80\xae"), "\\u202e" }, /* right-to-left override */
        { STR("\xe2\x81\xa6"), "\\u2066" }, /* left-to-right isolate */
        { STR("\"\\"), "\\\"\\\\" },
        { STR("\xff\xc3"), "\xef\xbf\xbd\xef\xbf\xbd" },
        { STR("a\xed\xa0\x80"), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8e"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8e" },
    };
    static const enum log_format formats[] = { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
    static const char *const before[] = { " v=\"", ",\"v\":\"" };
    static const char *const behind[] = { "\"\n", "\"}\n" };

    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t j = 0; j < COUNT(formats); j++) {
            auto_buf struct buf expected;

            buf_init(&expected, 1000);
            buf_printf(&expected, "%s%s%s", before[j], cases[i].escaped, behind[j]);
            catch_lines(formats[j], LOG_LEVEL_INFO);
            log_info("m", LOG_STR("v", cases[i].raw));
            assert_true(str_ends(buf_str(&caught), buf_str(&expected)));
        }
    }
}

static void a_message_cannot_forge_a_line(void **state)
{
    catch_lines(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    log_info("a \"b\"\n2026 error \033[31mforged");
    assert_caught("2026-01-01T00:00:01.002Z info  a \"b\"\\n2026 error \\u001b[31mforged\n");
}

static void a_long_value_is_cut_with_dots(void **state)
{
    char text[5000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    catch_lines(LOG_FORMAT_JSON, LOG_LEVEL_INFO);
    log_info("m", LOG_TEXT("v", text), LOG_I64("n", 1));
    assert_true(str_ends(buf_str(&caught), STR("xxx...\",\"n\":1}\n")));
    assert_in_range(caught.len, 1024, 1200);
    buf_clear(&caught);
    log_info(text);
    assert_true(str_ends(buf_str(&caught), STR("xxx...\"}\n")));
}

static void a_line_without_room_leaves_fields_out_and_says_so(void **state)
{
    char text[1001];

    memset(text, '\001', sizeof(text) - 1); /* six bytes each when written */
    text[sizeof(text) - 1] = '\0';
    catch_lines(LOG_FORMAT_JSON, LOG_LEVEL_INFO);
    log_info("m", LOG_TEXT("a", text), LOG_TEXT("b", text), LOG_TEXT("c", text),
             LOG_TEXT("d", text), LOG_I64("n", 1));
    assert_in_range(caught.len, 3000, LOG_LINE_MAX);
    assert_true(str_ends(buf_str(&caught), STR("...\",\"n\":1,\"cut\":true}\n")));
    catch_lines(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    log_info("m", LOG_TEXT("a", text), LOG_TEXT("b", text), LOG_TEXT("c", text),
             LOG_TEXT("d", text), LOG_I64("n", 1));
    assert_in_range(caught.len, 3000, LOG_LINE_MAX);
    assert_true(str_ends(buf_str(&caught), STR("...\" n=1 ...\n")));
}

/* Fills a line to every length around its end: it must stay whole at each of them. */
static void no_length_breaks_a_line(void **state)
{
    char text[1001];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
        const char *end = format == LOG_FORMAT_JSON ? "}\n" : "\n";

        for (size_t length = 0; length <= 1000; length++) {
            catch_lines((enum log_format)format, LOG_LEVEL_INFO);
            log_info("m", LOG_TEXT("a", text), LOG_TEXT("b", text), LOG_TEXT("c", text),
                     LOG_STR("d", ((struct str){ text, length })), LOG_BOOL("e", true));
            assert_true(caught.len <= LOG_LINE_MAX);
            assert_true(str_ends(buf_str(&caught), str_of(end)));
            assert_ptr_equal(memchr(caught.data, '\n', caught.len), caught.data + caught.len - 1);
        }
    }
}

static void logging_leaves_errno_alone(void **state)
{
    catch_lines(LOG_FORMAT_JSON, LOG_LEVEL_INFO);
    errno = EAGAIN;
    log_info("m");
    assert_int_equal(errno, EAGAIN);
}

static void times_before_1970_are_written_too(void **state)
{
    catch_lines(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
    clock_set_wall_us(&test_clock, -1);
    log_info("m");
    assert_caught("1969-12-31T23:59:59.999Z info  m\n");
}

static void level_names_are_read(void **state)
{
    static const struct {
        const char *text;
        enum log_level level;
    } cases[] = {
        { "error", LOG_LEVEL_ERROR }, { "warn", LOG_LEVEL_WARN },   { "info", LOG_LEVEL_INFO },
        { "debug", LOG_LEVEL_DEBUG }, { "INFO", LOG_LEVEL_INFO },   { "Warning", LOG_LEVEL_WARN },
        { "panic", LOG_LEVEL_ERROR }, { "fatal", LOG_LEVEL_ERROR }, { "dpanic", LOG_LEVEL_ERROR },
        { "0", LOG_LEVEL_INFO },      { "1", LOG_LEVEL_DEBUG },     { "5", LOG_LEVEL_DEBUG },
        { "127", LOG_LEVEL_DEBUG },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum log_level level = (enum log_level)99;

        assert_int_equal(log_level_parse(str_of(cases[i].text), &level, NULL), 0);
        assert_int_equal(level, cases[i].level);
    }
    assert_string_equal(log_level_name(LOG_LEVEL_WARN), "warn");
    assert_string_equal(log_level_name(LOG_LEVEL_DEBUG), "debug");
}

static void unknown_levels_are_refused(void **state)
{
    static const char *const cases[] = { "", "verbose", "-1", "128", "info ", "inf", "1.5" };

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum log_level level = LOG_LEVEL_WARN;
        struct err err = { 0 };

        assert_int_equal(log_level_parse(str_of(cases[i]), &level, &err), -ERR_INVALID);
        assert_int_equal(level, LOG_LEVEL_WARN);
        assert_non_null(strstr(err.text, "is not a log level"));
    }
}

/* ---- stderr ---- */

static int kept_stderr;

static void put_stderr(int fd)
{
    kept_stderr = dup(STDERR_FILENO);
    assert_true(kept_stderr >= 0 && dup2(fd, STDERR_FILENO) >= 0);
}

static void restore_stderr(void)
{
    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
}

/* What `log_info` writes when stderr is `fd`, read back from `reader`. */
static void log_through(int fd, int reader, char *ret_line, size_t size)
{
    put_stderr(fd);
    log_setup(&(struct log_options){ .clock = &test_clock });
    log_info("hello", LOG_I64("n", 1));
    log_setup(NULL);
    restore_stderr();

    ssize_t length = read(reader, ret_line, size - 1);

    assert_true(length > 0);
    ret_line[length] = '\0';
}

static void a_pipe_gets_json(void **state)
{
    char line[1000];
    int ends[2];

    clock_init_virtual(&test_clock, 0);
    assert_int_equal(pipe(ends), 0);
    log_through(ends[1], ends[0], line, sizeof(line));
    assert_string_equal(line, "{\"level\":\"info\",\"ts\":\"1970-01-01T00:00:00.000000Z\","
                              "\"msg\":\"hello\",\"n\":1}\n");
    close(ends[0]);
    close(ends[1]);
}

static int open_terminal(int *ret_master)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip(); /* a sandbox without pseudo terminals */
    *ret_master = master;
    return open(ptsname(master), O_RDWR | O_NOCTTY);
}

static void a_terminal_gets_colored_text(void **state)
{
    char line[1000];
    int master = -1, terminal = open_terminal(&master);

    clock_init_virtual(&test_clock, 0);
    unsetenv("NO_COLOR");
    log_through(terminal, master, line, sizeof(line));
    assert_string_equal(line, "1970-01-01T00:00:00.000Z \033[32minfo \033[0m hello "
                              "\033[2mn=\033[0m1\r\n");
    close(terminal);
    close(master);
}

static void no_color_is_obeyed(void **state)
{
    char line[1000];
    int master = -1, terminal = open_terminal(&master);

    clock_init_virtual(&test_clock, 0);
    setenv("NO_COLOR", "1", 1);
    log_through(terminal, master, line, sizeof(line));
    unsetenv("NO_COLOR");
    assert_string_equal(line, "1970-01-01T00:00:00.000Z info  hello n=1\r\n");
    close(terminal);
    close(master);
}

static int set_up(void **state)
{
    buf_init(&caught, 1 << 16);
    return 0;
}

static int tear_down(void **state)
{
    log_setup(NULL);
    buf_done(&caught);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_gets_one_object_per_line),
        cmocka_unit_test(a_person_gets_words),
        cmocka_unit_test(a_message_needs_no_fields),
        cmocka_unit_test(only_levels_that_are_on_are_written),
        cmocka_unit_test(nothing_in_a_value_can_steer_the_reader),
        cmocka_unit_test(a_message_cannot_forge_a_line),
        cmocka_unit_test(a_long_value_is_cut_with_dots),
        cmocka_unit_test(a_line_without_room_leaves_fields_out_and_says_so),
        cmocka_unit_test(no_length_breaks_a_line),
        cmocka_unit_test(logging_leaves_errno_alone),
        cmocka_unit_test(times_before_1970_are_written_too),
        cmocka_unit_test(level_names_are_read),
        cmocka_unit_test(unknown_levels_are_refused),
        cmocka_unit_test(a_pipe_gets_json),
        cmocka_unit_test(a_terminal_gets_colored_text),
        cmocka_unit_test(no_color_is_obeyed),
    };

    return cmocka_run_group_tests_name("log", tests, set_up, tear_down);
}
