/* lint.c - reads a page as Prometheus does. */
#include "lint.h"

#include "base/map.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>

enum { MAX_SERIES = 1 << 22 };

struct lint {
    struct map families, series; /* names seen; families: the last one is open */
    struct str family, type;
    bool has_help, has_samples, loose;
};

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!islower((unsigned char)name.at[i]) && name.at[i] != '_' &&
            (i == 0 || !isdigit((unsigned char)name.at[i])))
            return false;
    return name.len > 0;
}

static int check_family_name(const struct lint *lint, struct err *err)
{
    static const char *const reserved[] = { "_bucket",    "_sum",     "_count",     "_milliseconds",
                                            "_ms",        "_minutes", "_hours",     "_mib",
                                            "_megabytes", "_percent", "_info_total" };
    bool is_total = str_ends(lint->family, STR("_total"));

    if (lint->loose)
        return 0;
    if (is_total != str_is(lint->type, "counter"))
        return err_set(err, ERR_INVALID, STR_FMT ": _total is the suffix of counters",
                       STR_ARG(lint->family));
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (str_ends(lint->family, str_of(reserved[i])))
            return err_set(err, ERR_INVALID, STR_FMT ": a suffix that it must not have",
                           STR_ARG(lint->family));
    return 0;
}

static int take_comment(struct lint *lint, struct str line, struct err *err)
{
    struct str word, name, rest;

    (void)str_cut(str_sub(line, 2, line.len), ' ', &word, &rest);
    if (!str_cut(rest, ' ', &name, &rest) || rest.len == 0 || !is_name(name))
        return err_set(err, ERR_INVALID, "a comment without name or text: " STR_FMT, STR_ARG(line));
    if (str_is(word, "HELP")) {
        if (map_put(&lint->families, name, NULL, NULL) < 0 || str_eq(lint->family, name))
            return err_set(err, ERR_INVALID, STR_FMT " comes twice", STR_ARG(name));
        if (lint->family.len > 0 && !lint->has_samples)
            return err_set(err, ERR_INVALID, STR_FMT " has no samples", STR_ARG(lint->family));
        lint->family = name;
        lint->has_help = true;
        lint->has_samples = false;
        return 0;
    }
    if (!str_is(word, "TYPE") || !str_eq(name, lint->family) || lint->has_samples)
        return err_set(err, ERR_INVALID, "a type out of its place: " STR_FMT, STR_ARG(line));
    lint->type = rest;
    return check_family_name(lint, err);
}

/* The length of the series in front of the value: quotes may hold spaces and braces. */
static size_t series_length(struct str line)
{
    bool in_quotes = false;

    for (size_t i = 0; i < line.len; i++) {
        if (in_quotes && line.at[i] == '\\')
            i++;
        else if (line.at[i] == '"')
            in_quotes = !in_quotes;
        else if (!in_quotes && line.at[i] == ' ')
            return i;
    }
    return line.len;
}

static bool belongs(const struct lint *lint, struct str name)
{
    struct str rest;

    if (str_eq(name, lint->family))
        return !str_is(lint->type, "histogram");
    if (!str_is(lint->type, "histogram") || !str_starts(name, lint->family))
        return false;
    rest = str_sub(name, lint->family.len, name.len);
    return str_is(rest, "_bucket") || str_is(rest, "_sum") || str_is(rest, "_count");
}

static int take_sample(struct lint *lint, struct str line, struct err *err)
{
    size_t length = series_length(line);
    struct str series = str_sub(line, 0, length), name = series, labels;
    char *end;

    (void)str_cut(series, '{', &name, &labels);
    if (!belongs(lint, name))
        return err_set(err, ERR_INVALID, "a sample out of its place: " STR_FMT, STR_ARG(line));
    if (map_has(&lint->series, series))
        return err_set(err, ERR_INVALID, "a series twice: " STR_FMT, STR_ARG(series));
    (void)map_put(&lint->series, series, NULL, NULL);
    (void)strtod(line.at + length + 1, &end);
    if (length + 1 >= line.len || end != line.at + line.len)
        return err_set(err, ERR_INVALID, "a value that is no number: " STR_FMT, STR_ARG(line));
    lint->has_samples = true;
    return 0;
}

int lint_page(struct str text, bool loose, struct err *err)
{
    struct lint lint = { .family = STR(""), .type = STR(""), .loose = loose };
    struct str rest = text, line;
    int result = 0;

    map_init(&lint.families, &(struct map_options){ .max = MAX_SERIES });
    map_init(&lint.series, &(struct map_options){ .max = MAX_SERIES });
    if (!str_is_utf8(text) || (text.len > 0 && text.at[text.len - 1] != '\n'))
        result = err_set(err, ERR_INVALID, "no UTF-8, or no newline at the end");
    while (result == 0 && rest.len > 0 && str_next(&rest, '\n', &line)) {
        size_t before = lint.families.count;

        result = str_starts(line, STR("# ")) ? take_comment(&lint, line, err)
                                             : take_sample(&lint, line, err);
        if (result == 0 && str_starts(line, STR("# HELP ")) && lint.families.count == before)
            result = err_set(err, ERR_INVALID, "a family twice: " STR_FMT, STR_ARG(line));
    }
    map_done(&lint.families);
    map_done(&lint.series);
    return result;
}
