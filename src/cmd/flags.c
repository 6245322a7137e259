/* flags.c - command lines from a table. */
#include "cmd/flags.h"

#include "base/str.h"

#include <string.h>

static bool is_bool(const struct flag *flag)
{
    return flag->type == FLAG_BOOL || flag->type == FLAG_IGNORED_BOOL;
}

static int read_bool(struct str text, bool *ret_value, struct err *err)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {
        { "true", true }, { "false", false }, { "1", true },    { "0", false },
        { "t", true },    { "f", false },     { "T", true },    { "F", false },
        { "TRUE", true }, { "FALSE", false }, { "True", true }, { "False", false },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (str_is(text, words[i].word)) {
            *ret_value = words[i].value;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "wants true or false, not '" STR_FMT "'", STR_ARG(text));
}

static int set_value(const struct flag *flag, const char *text, void *values, struct err *err)
{
    char *at = (char *)values + flag->offset;

    switch (flag->type) {
    case FLAG_TEXT:
        *(const char **)(void *)at = text;
        return 0;
    case FLAG_BOOL:
        return read_bool(str_of(text), (bool *)(void *)at, err);
    case FLAG_NUMBER:
        return str_to_i64(str_of(text), 0, INT32_MAX, (int64_t *)(void *)at, err);
    case FLAG_IGNORED:
    case FLAG_IGNORED_BOOL:
        return 0;
    }
    return err_set(err, ERR_BUG, "a flag of no type");
}

static const struct flag *find_flag(const struct flag *flags, struct str name)
{
    for (; flags->name; flags++)
        if (str_is(name, flags->name))
            return flags;
    return NULL;
}

/* Cuts one or two dashes off; false for what is no flag. */
static bool cut_dashes(const char *argument, struct str *ret_rest)
{
    if (argument[0] != '-' || !argument[1])
        return false;
    *ret_rest = str_of(argument + (argument[1] == '-' ? 2 : 1));
    return ret_rest->len > 0;
}

/* *at is the argument's place; moves on when the value is the next one. */
static int take_flag(const struct flag *flags, struct str rest, int argc, char *const *argv,
                     int *at, void *values, struct err *err)
{
    struct str name = rest, value = { "", 0 };
    bool has_value = str_cut(rest, '=', &name, &value);
    const struct flag *flag = find_flag(flags, name);
    int result;

    if (!flag)
        return err_set(err, ERR_INVALID, "unknown flag --" STR_FMT "; see --help", STR_ARG(name));
    if (!has_value && is_bool(flag)) {
        value = STR("true");
    } else if (!has_value) {
        if (*at + 1 >= argc)
            return err_set(err, ERR_INVALID, "--%s wants a value", flag->name);
        value = str_of(argv[++*at]);
    }
    /* Values stand at the end of an argument, and so at its NUL. */
    result = set_value(flag, value.at, values, err);
    return result < 0 ? err_wrap(err, "--%s", flag->name) : 0;
}

static int set_fallbacks(const struct flag *flags, void *values, struct err *err)
{
    for (; flags->name; flags++) {
        int result = flags->fallback ? set_value(flags, flags->fallback, values, err) : 0;

        if (result < 0)
            return err_wrap(err, "--%s", flags->name);
    }
    return 0;
}

int flags_parse(const struct flag *flags, int argc, char *const *argv, void *ret_values,
                bool *ret_help, struct err *err)
{
    int count;

    return flags_parse_mixed(flags, argc, (char **)(uintptr_t)argv, ret_values, ret_help, NULL, 0,
                             &count, err);
}

int flags_parse_mixed(const struct flag *flags, int argc, char **argv, void *ret_values,
                      bool *ret_help, char **ret_words, int max_words, int *ret_count,
                      struct err *err)
{
    int result = set_fallbacks(flags, ret_values, err);
    bool only_words = false;

    *ret_help = false;
    *ret_count = 0;
    for (int i = 0; result == 0 && i < argc; i++) {
        struct str rest;

        if (max_words > 0 && !only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
            continue;
        }
        if (only_words || !cut_dashes(argv[i], &rest)) {
            if (max_words == 0)
                return err_set(err, ERR_INVALID, "'%s' is no flag; see --help", argv[i]);
            if (*ret_count == max_words)
                return err_set(err, ERR_INVALID, "too many words; see --help");
            ret_words[(*ret_count)++] = argv[i];
            continue;
        }
        if (str_is(rest, "help") || str_is(rest, "h")) {
            *ret_help = true;
            return 0;
        }
        result = take_flag(flags, rest, argc, argv, &i, ret_values, err);
    }
    return result;
}

void flags_help(const struct flag *flags, struct buf *out)
{
    for (; flags->name; flags++) {
        bool is_letter = flags->name[1] == '\0';

        buf_printf(out, is_letter ? "  -%-29s %s" : "  --%-28s %s", flags->name, flags->help);
        if (flags->fallback && flags->fallback[0])
            buf_printf(out, " (default %s)", flags->fallback);
        buf_add_char(out, '\n');
    }
}
