/* test_slurmconf.c - what the writer writes, refuses, and that the reader reads as Slurm does. */
#include "codec/slurmconf.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ARENA = 64 * 1024 * 1024 };

static void an_option_is_written_with_quotes_only_where_needed(void **state)
{
    static const struct {
        const char *value, *line;
    } cases[] = {
        { "slinc", "Key=slinc\n" },
        { "", "Key=\"\"\n" },
        { "a b", "Key=\"a b\"\n" },
        { "a\tb", "Key=\"a\tb\"\n" },
        { "a#b", "Key=a\\#b\n" },
        { "#", "Key=\\#\n" },
        { "a\\b", "Key=a\\\\b\n" },
        { "\\", "Key=\\\\\n" },
        { "\\#", "Key=\\\\\\#\n" },
        { "x # y\\", "Key=\"x \\# y\\\\\"\n" },
        { "a=b,c='d'", "Key=a=b,c='d'\n" },
        { "a\"b\"", "Key=a\"b\"\n" },
        { "gr\xc3\xbc\xc3\x9f", "Key=\"gr\xc3\xbc\xc3\x9f\"\n" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out;
        struct conf conf;
        struct err err = { 0 };

        buf_init(&out, 1024);
        conf_begin(&conf, &out);
        if (conf_option(&conf, "Key", str_of(cases[i].value), &err) < 0)
            fail_msg("\"%s\": %s", cases[i].value, err.text);
        assert_string_equal(buf_text(&out), cases[i].line);
        assert_int_equal(conf_end(&conf, NULL), 0);
    }
}

static void what_cannot_be_expressed_is_refused_naming_key_and_character(void **state)
{
    static const struct {
        const char *key;
        struct str value;
        const char *text;
    } cases[] = {
        { "Key", { "a\nb", 3 }, "Key: the value has byte 0x0a at 1" },
        { "Key", { "\r", 1 }, "Key: the value has byte 0x0d at 0" },
        { "Key", { "a\0b", 3 }, "Key: the value has byte 0x00 at 1" },
        { "Key", { "\x7f", 1 }, "Key: the value has byte 0x7f" },
        { "Key", { "\v", 1 }, "Key: the value has byte 0x0b" },
        { "Key", { "say \"hi\"", 8 }, "Key: the value has byte 0x22 at 4 (a double quote)" },
        { "Key", { "\"hi", 3 }, "Key: the value has byte 0x22 at 0 (a double quote)" },
        { "Key", { "\xff", 1 }, "Key: the value is not UTF-8" },
        { "", { "x", 1 }, "an option's name has 0 bytes" },
        { "Ke y", { "x", 1 }, "an option's name has byte 0x20 at 2" },
        { "Key=", { "x", 1 }, "an option's name has byte 0x3d at 3" },
        { "#Key", { "x", 1 }, "an option's name has byte 0x23 at 0" },
        { "K\n", { "x", 1 }, "an option's name has byte 0x0a at 1" },
        { "INCLUDE", { "x", 1 }, "INCLUDE is not an option" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out;
        struct conf conf;
        struct err err = { 0 };

        buf_init(&out, 1024);
        conf_begin(&conf, &out);
        assert_int_equal(conf_option(&conf, cases[i].key, cases[i].value, &err), -ERR_INVALID);
        assert_int_equal(conf_option(&conf, cases[i].key, cases[i].value, NULL), -ERR_INVALID);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s", err.text);
        assert_int_equal(out.len, 0);
    }
}

static void keys_and_values_are_bounded(void **state)
{
    char key[CONF_MAX_KEY + 2] = { 0 };
    auto_free char *value = mem_alloc(CONF_MAX_VALUE + 1);
    auto_buf struct buf out;
    struct conf conf;

    buf_init(&out, 2 * CONF_MAX_VALUE);
    conf_begin(&conf, &out);
    memset(key, 'k', CONF_MAX_KEY + 1);
    memset(value, 'v', CONF_MAX_VALUE + 1);
    assert_int_equal(conf_option(&conf, key, STR("x"), NULL), -ERR_INVALID);
    key[CONF_MAX_KEY] = '\0';
    assert_int_equal(conf_option(&conf, key, STR("x"), NULL), 0);
    assert_int_equal(conf_option(&conf, key, (struct str){ value, CONF_MAX_VALUE + 1 }, NULL),
                     -ERR_TOO_BIG);
    assert_int_equal(conf_option(&conf, key, (struct str){ value, CONF_MAX_VALUE }, NULL), 0);
}

/* A look at the whole value for each quote would take minutes. */
static void a_value_of_many_quotes_takes_no_longer_than_others(void **state)
{
    auto_free char *value = mem_alloc(CONF_MAX_VALUE);
    auto_buf struct buf out;
    struct conf conf;

    buf_init(&out, 2 * CONF_MAX_VALUE);
    conf_begin(&conf, &out);
    memset(value, '"', CONF_MAX_VALUE);
    value[0] = 'v';
    assert_int_equal(conf_option(&conf, "Key", (struct str){ value, CONF_MAX_VALUE }, NULL), 0);
}

static void a_line_holds_several_pairs_or_nothing_at_all(void **state)
{
    struct conf_pair pairs[] = {
        { .key = STR("NodeName"), .value = STR("n[1-3]") },
        { .key = STR("Reason"), .value = STR("not yet") },
        { .key = STR("Parameters"), .value = STR("x"), .op = '+' },
    };
    auto_buf struct buf out;
    struct conf conf;

    buf_init(&out, 1024);
    conf_begin(&conf, &out);
    assert_int_equal(conf_line(&conf, pairs, 3, NULL), 0);
    assert_string_equal(buf_text(&out), "NodeName=n[1-3] Reason=\"not yet\" Parameters+=x\n");
    pairs[2].value = STR("x\nInclude /etc/shadow");
    assert_int_equal(conf_line(&conf, pairs, 3, NULL), -ERR_INVALID);
    pairs[2].value = STR("x");
    pairs[2].op = '\n';
    assert_int_equal(conf_line(&conf, pairs, 3, NULL), -ERR_INVALID);
    assert_string_equal(buf_text(&out), "NodeName=n[1-3] Reason=\"not yet\" Parameters+=x\n");
}

static void an_overflow_is_told_at_the_end(void **state)
{
    auto_buf struct buf out;
    struct conf conf;

    buf_init(&out, 8);
    conf_begin(&conf, &out);
    assert_int_equal(conf_option(&conf, "ClusterName", STR("slinc"), NULL), 0);
    assert_int_equal(conf_end(&conf, NULL), -ERR_TOO_BIG);
}

/* Pairs as "line:key op value;" */
static void print_pairs(struct buf *out, const struct conf_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%zu:" STR_FMT "%.*s=<" STR_FMT ">;", pairs[i].line, STR_ARG(pairs[i].key),
                   pairs[i].op ? 1 : 0, &pairs[i].op, STR_ARG(pairs[i].value));
}

static void text_is_read_as_slurm_reads_it(void **state)
{
    static const struct {
        const char *text, *pairs;
    } cases[] = {
        { "", "" },
        { "\n \n\t\n# x\n", "" },
        { "A=1", "1:A=<1>;" },
        { "A=1\nB=2\n", "1:A=<1>;2:B=<2>;" },
        { "  A  =  1  B=2\r\n", "1:A=<1>;1:B=<2>;" },
        { "A=1 # rest B=2\nC=3", "1:A=<1>;2:C=<3>;" },
        { "A=\"a b\" B=\"\"", "1:A=<a b>;1:B=<>;" },
        { "A=x\\#y # z", "1:A=<x#y>;" },
        { "A=x\\\\# z", "1:A=<x\\>;" },
        { "A=x\\\\\\#y", "1:A=<x\\#y>;" },
        { "A=\"x \\# y\"", "1:A=<x # y>;" },
        { "A=\"x # y\"", "1:A=<\"x>;" },
        { "A=1 \\\nB=2\nC=3", "1:A=<1>;1:B=<2>;3:C=<3>;" },
        { "A=1,\\ \t\n2", "1:A=<1,2>;" },
        { "A=1\\", "1:A=<1>;" },
        { "A=1\\\\\nB=2", "1:A=<1\\>;2:B=<2>;" },
        { "A=1 # c \\\nB=2", "1:A=<1>;2:B=<2>;" },
        { "A=1 \\# c \\\nB=2", NULL },
        { "A+=1 B-=2 C*=3 D/=4", "1:A+=<1>;1:B-=<2>;1:C*=<3>;1:D/=<4>;" },
        { "A==1", "1:A=<=1>;" },
        { "A=-1", "1:A=<-1>;" },
        { "A=\"b\"c", "1:A=<\"b\"c>;" },
        { "A=\"b", "1:A=<\"b>;" },
        { "A=b\"c d\"", NULL },
        { "A= B=1", "1:A=<B=1>;" },
        { "A=\\\"b\\\"", "1:A=<b>;" }, /* escapes go before quotes are looked at */
        { "a.b_C=1", "1:a.b_C=<1>;" },
        { "Include /etc/slurm/x.conf\nA=1", "1:Include=</etc/slurm/x.conf>;2:A=<1>;" },
        { "  iNCLUDE\tx", "1:iNCLUDE=<x>;" },
        { "include=x", "1:include=<x>;" },
        { "A", NULL },
        { "A=", NULL },
        { "A= # c", NULL },
        { "=1", NULL },
        { "A=1 B", NULL },
        { "A-B=1", NULL },
        { "include", NULL },
        { "include a b", NULL },
        { "- A=1", NULL },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_arena struct arena arena;
        auto_buf struct buf seen;
        const struct conf_pair *pairs = NULL;
        struct err err = { 0 };
        size_t count = 0;

        arena_init(&arena, ARENA);
        buf_init(&seen, 4096);
        int status = conf_parse(&arena, str_of(cases[i].text), &pairs, &count, &err);
        if (status != (cases[i].pairs ? 0 : -ERR_INVALID))
            fail_msg("\"%s\": %d, %s", cases[i].text, status, err.text);
        print_pairs(&seen, pairs, count);
        assert_string_equal(buf_text(&seen), cases[i].pairs ? cases[i].pairs : "");
    }
}

static void an_error_names_the_line(void **state)
{
    auto_arena struct arena arena;
    const struct conf_pair *pairs;
    struct err err = { 0 };
    size_t count;

    arena_init(&arena, ARENA);
    assert_int_equal(conf_parse(&arena, STR("A=1\nB=\\\n2\nnonsense\n"), &pairs, &count, &err),
                     -ERR_INVALID);
    assert_string_equal(err.text, "line 4: not Key=Value");
    assert_int_equal(conf_parse(&arena, STR("A=1\nB=a\0b"), &pairs, &count, &err), -ERR_INVALID);
    assert_string_equal(err.text, "line 2: a NUL byte");
}

static void a_file_is_bounded_in_bytes_and_pairs(void **state)
{
    auto_arena struct arena arena;
    auto_buf struct buf text;
    const struct conf_pair *pairs;
    size_t count;

    arena_init(&arena, ARENA);
    buf_init(&text, CONF_MAX_TEXT + 1);
    for (size_t i = 0; i < CONF_MAX_PAIRS; i++)
        buf_add_text(&text, "A=1\n");
    assert_int_equal(conf_parse(&arena, buf_str(&text), &pairs, &count, NULL), 0);
    assert_int_equal(count, CONF_MAX_PAIRS);
    assert_int_equal(pairs[count - 1].line, CONF_MAX_PAIRS);
    buf_add_text(&text, "A=1\n");
    assert_int_equal(conf_parse(&arena, buf_str(&text), &pairs, &count, NULL), -ERR_TOO_BIG);
    while (text.len < CONF_MAX_TEXT + 1)
        buf_add_char(&text, '\n');
    assert_int_equal(conf_parse(&arena, buf_str(&text), &pairs, &count, NULL), -ERR_TOO_BIG);
}

static void keys_are_compared_without_case(void **state)
{
    struct conf_pair pair = { .key = STR("NodeName") };

    assert_true(conf_key_is(&pair, "nodename"));
    assert_true(conf_key_is(&pair, "NODENAME"));
    assert_false(conf_key_is(&pair, "NodeNames"));
    assert_false(conf_key_is(&pair, "NodeNam_"));
}

static void names_that_slurm_reads_otherwise_are_refused(void **state)
{
    static const struct {
        const char *name;
        bool node, partition, features;
    } cases[] = {
        { "gpu-1", true, true, true },       { "a.b_c", true, true, true },
        { "all", false, true, true },        { "DEFAULT", false, false, true },
        { "default", false, false, true },   { "", false, false, true },
        { "a b", false, false, false },      { "a,b", false, false, true },
        { "a,", false, false, false },       { ",a", false, false, false },
        { "a,,b", false, false, false },     { "n[1-2]", false, false, false },
        { "a\nb", false, false, false },     { "-a", false, false, false },
        { "a=b", false, false, true },       { "nvidia.com/gpu:a100", false, false, true },
        { "a&b", false, false, false },      { "a|b", false, false, false },
        { "\xc3\xa9", false, false, false },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str name = str_of(cases[i].name);

        if ((conf_check_node_name(name, NULL) == 0) != cases[i].node ||
            (conf_check_partition_name(name, NULL) == 0) != cases[i].partition ||
            (conf_check_features(name, NULL) == 0) != cases[i].features)
            fail_msg("\"%s\"", cases[i].name);
    }
}

static void names_and_feature_lists_are_bounded(void **state)
{
    char name[CONF_MAX_NAME + 1];
    auto_buf struct buf list;

    memset(name, 'p', sizeof(name));
    assert_int_equal(conf_check_partition_name((struct str){ name, CONF_MAX_NAME }, NULL), 0);
    assert_int_equal(conf_check_partition_name((struct str){ name, CONF_MAX_NAME + 1 }, NULL),
                     -ERR_TOO_BIG);
    buf_init(&list, 4096);
    for (int i = 0; i < CONF_MAX_FEATURES; i++)
        buf_add_text(&list, i > 0 ? ",f" : "f");
    assert_int_equal(conf_check_features(buf_str(&list), NULL), 0);
    buf_add_text(&list, ",f");
    assert_int_equal(conf_check_features(buf_str(&list), NULL), -ERR_TOO_BIG);
    assert_int_equal(conf_check_partition_name(STR("a\0"), NULL), -ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_is_written_with_quotes_only_where_needed),
        cmocka_unit_test(what_cannot_be_expressed_is_refused_naming_key_and_character),
        cmocka_unit_test(keys_and_values_are_bounded),
        cmocka_unit_test(a_value_of_many_quotes_takes_no_longer_than_others),
        cmocka_unit_test(a_line_holds_several_pairs_or_nothing_at_all),
        cmocka_unit_test(an_overflow_is_told_at_the_end),
        cmocka_unit_test(text_is_read_as_slurm_reads_it),
        cmocka_unit_test(an_error_names_the_line),
        cmocka_unit_test(a_file_is_bounded_in_bytes_and_pairs),
        cmocka_unit_test(keys_are_compared_without_case),
        cmocka_unit_test(names_that_slurm_reads_otherwise_are_refused),
        cmocka_unit_test(names_and_feature_lists_are_bounded),
    };

    return cmocka_run_group_tests_name("slurmconf", tests, NULL, NULL);
}
