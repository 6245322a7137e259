/* fuzz_str.c - splitting, number reading and UTF-8 checks on any bytes.
 *
 * Checks: the parts of a split, joined again, are the text; a number that was read prints and reads
 * back as itself; a text is UTF-8 exactly when it decodes, character by character, to allowed
 * numbers whose shortest form it is. */
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_split(struct str text, char separator)
{
    struct str rest = text, part = { NULL, 0 };
    size_t at = 0, parts = 0;

    while (str_next(&rest, separator, &part)) {
        must(part.at == text.at + at);
        must(part.len == 0 || !memchr(part.at, separator, part.len));
        at += part.len;
        must(at == text.len || text.at[at] == separator);
        at += 1;
        parts++;
    }
    must(parts > 0 && at == text.len + 1);
}

static void check_cut_and_trim(struct str text, char separator)
{
    struct str before, after, trimmed = str_trim(text);

    if (str_cut(text, separator, &before, &after)) {
        must(before.len + 1 + after.len == text.len);
        must(before.at[before.len] == separator);
        must(str_starts(text, before) && str_ends(text, after));
    } else {
        must(text.len == 0 || !memchr(text.at, separator, text.len));
    }
    must(str_eq(str_trim(trimmed), trimmed));
    must(str_cmp(text, trimmed) != 0 || text.len == trimmed.len);
}

static void check_unsigned(struct str text)
{
    uint64_t value = 0, again = 0;
    char printed[32];

    if (str_to_u64(text, 0, UINT64_MAX, &value, NULL) != 0)
        return;
    snprintf(printed, sizeof(printed), "%" PRIu64, value);
    must(str_to_u64(str_of(printed), value, value, &again, NULL) == 0 && again == value);
    must(str_ends(text, str_of(printed)));
}

static void check_signed(struct str text)
{
    struct err err = { 0 };
    int64_t value = 0, again = 0;
    char printed[32];

    if (str_to_i64(text, INT64_MIN, INT64_MAX, &value, &err) != 0) {
        must(err.class == ERR_INVALID && err.text[0] != '\0');
        return;
    }
    must(err.class == 0);
    snprintf(printed, sizeof(printed), "%" PRId64, value);
    must(str_to_i64(str_of(printed), value, value, &again, NULL) == 0 && again == value);
}

/* UTF-8 read the other way round: decode by the lead bits alone, then judge the number. */
static size_t decode_loosely(struct str s, uint32_t *ret_character)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char lead = (unsigned char)s.at[0];
    size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;

    if (length == 0 || length > s.len || lead >= 0xf8)
        return 0;

    uint32_t character = length == 1 ? lead : lead & (0x7fu >> length);

    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)s.at[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | ((unsigned char)s.at[i] & 0x3f);
    }
    *ret_character = character;
    return character >= least[length] ? length : 0;
}

static void check_utf8(struct str text)
{
    bool valid = true;

    for (struct str s = text; s.len > 0;) {
        uint32_t character = 0;
        size_t length = decode_loosely(s, &character);

        if (character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff))
            length = 0;
        must(str_utf8_char(s) == length);
        valid = valid && length > 0;
        s = str_sub(s, length > 0 ? length : 1, s.len);
    }
    must(str_is_utf8(text) == valid);
}

/* The first byte is the separator, the rest the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;

    char separator = (char)data[0];
    struct str text = { (const char *)data + 1, size - 1 };

    check_split(text, separator);
    check_cut_and_trim(text, separator);
    check_unsigned(text);
    check_signed(text);
    check_utf8(text);
    must(str_eq_secret(text, text));
    return 0;
}
