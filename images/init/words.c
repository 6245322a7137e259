/* words.c - argument lists, and the expansion of environment variables in them. */
#include "words.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

void words_done(struct words *words)
{
    words_remove(words, 0, words->count);
    mem_free(words->at);
    words->at = NULL;
}

int words_add(struct words *words, const char *word, struct err *err)
{
    if (words->count == WORDS_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d arguments", WORDS_MAX);
    words->at = mem_resize_array(words->at, words->count + 2, sizeof *words->at);
    words->at[words->count++] = mem_strdup(word);
    words->at[words->count] = NULL;
    return 0;
}

void words_remove(struct words *words, size_t from, size_t count)
{
    if (from >= words->count)
        return;
    if (count > words->count - from)
        count = words->count - from;
    for (size_t i = from; i < from + count; i++)
        mem_free(words->at[i]);
    for (size_t i = from; i + count <= words->count; i++) /* the closing NULL moves too */
        words->at[i] = words->at[i + count];
    words->count -= count;
}

static bool is_name_char(char c, bool first)
{
    if (c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
        return true;
    return !first && c >= '0' && c <= '9';
}

static size_t name_length(struct str s)
{
    size_t length = 0;

    while (length < s.len && is_name_char(s.at[length], length == 0))
        length++;
    return length;
}

static struct str value_of(struct str name)
{
    auto_free char *text = mem_strndup(name.at, name.len);

    return str_of(getenv(text));
}

/* Reads one "$..." at the start of `s` into buf and returns how many bytes of `s` that was. */
static size_t expand_dollar(struct str s, struct buf *buf)
{
    struct str rest = str_sub(s, 1, s.len), name;
    size_t length;

    if (str_starts(rest, STR("$"))) {
        buf_add_char(buf, '$');
        return 2;
    }
    if (str_starts(rest, STR("{"))) {
        name = str_sub(rest, 1, rest.len);
        length = name_length(name);
        if (length > 0 && length < name.len && name.at[length] == '}') {
            buf_add_str(buf, value_of(str_sub(name, 0, length)));
            return length + 3;
        }
    }
    length = name_length(rest);
    if (length > 0)
        buf_add_str(buf, value_of(str_sub(rest, 0, length)));
    else
        buf_add_char(buf, '$'); /* a dollar that starts no name stands for itself */
    return length + 1;
}

static int expand_inside(struct words *words, struct str word, struct err *err)
{
    auto_buf struct buf buf;
    int rc;

    buf_init(&buf, WORD_MAX_BYTES);
    for (size_t i = 0; i < word.len;) {
        if (word.at[i] == '$') {
            i += expand_dollar(str_sub(word, i, word.len), &buf);
        } else {
            buf_add_char(&buf, word.at[i++]);
        }
    }
    rc = buf_check(&buf, "argument", err);
    return rc ? rc : words_add(words, buf_text(&buf), err);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Reads one word of `value` from *at on, quotes taken off; *at ends behind it. */
static int next_word(struct str value, size_t *at, struct buf *buf, struct err *err)
{
    char quote = 0;

    for (; *at < value.len && (quote || !is_blank(value.at[*at])); (*at)++) {
        char c = value.at[*at];

        if (quote && c == quote)
            quote = 0;
        else if (!quote && (c == '\'' || c == '"'))
            quote = c;
        else
            buf_add_char(buf, c);
    }
    if (quote)
        return err_set(err, ERR_INVALID, "a quote %c is not closed", quote);
    return buf_check(buf, "argument", err);
}

static int split_value(struct words *words, struct str value, struct err *err)
{
    auto_buf struct buf buf;

    buf_init(&buf, WORD_MAX_BYTES);
    for (size_t at = 0; at < value.len;) {
        int rc;

        if (is_blank(value.at[at])) {
            at++;
            continue;
        }
        buf_clear(&buf);
        rc = next_word(value, &at, &buf, err);
        if (!rc)
            rc = words_add(words, buf_text(&buf), err);
        if (rc)
            return rc;
    }
    return 0;
}

int words_expand(struct words *words, const char *word, struct err *err)
{
    struct str s = str_of(word), name = str_sub(s, 1, s.len);

    if (!str_starts(s, STR("$")) || name.len == 0 || name_length(name) != name.len)
        return expand_inside(words, s, err);
    if (split_value(words, value_of(name), err))
        return err_wrap(err, "%s", word);
    return 0;
}
