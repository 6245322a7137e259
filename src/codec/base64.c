/* base64.c - bytes as text of 64 characters, and back.
 *
 * Holds  decoding accepts exactly what encoding writes (and newlines, if asked to). */
#include "codec/base64.h"

#include <stdint.h>

static const char standard_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_encode(struct str bytes, unsigned options, struct buf *out)
{
    const char *alphabet = options & BASE64_URL ? url_alphabet : standard_alphabet;

    for (size_t at = 0; at < bytes.len; at += 3) {
        size_t count = bytes.len - at < 3 ? bytes.len - at : 3;
        uint32_t bits = 0;
        char text[4] = "====";

        for (size_t i = 0; i < 3; i++)
            bits = bits << 8 | (i < count ? (unsigned char)bytes.at[at + i] : 0);
        for (size_t i = 0; i <= count; i++)
            text[i] = alphabet[bits >> (18 - 6 * i) & 63];
        buf_add(out, text, options & BASE64_UNPADDED ? count + 1 : 4);
    }
}

/* The six bits of a character, or -1. */
static int value_of(char c, unsigned options)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == (options & BASE64_URL ? '-' : '+'))
        return 62;
    if (c == (options & BASE64_URL ? '_' : '/'))
        return 63;
    return -1;
}

static int unexpected(size_t position, struct err *err)
{
    return err_set(err, ERR_INVALID, "base64: unexpected character at byte %zu", position);
}

/* Up to four characters on their way to three bytes. */
struct group {
    uint32_t bits;
    unsigned count;
};

static void group_flush(struct group *group, struct buf *out)
{
    unsigned bytes = group->count * 6 / 8;
    uint32_t bits = group->bits << (24 - 6 * group->count);
    char data[3] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits };

    buf_add(out, data, bytes);
    *group = (struct group){ 0 };
}

/* Padding and stray bits of the last group, which may be empty. */
static int check_end(const struct group *group, unsigned padding, unsigned options, struct err *err)
{
    unsigned wanted = group->count == 0 || options & BASE64_UNPADDED ? 0 : 4 - group->count;
    uint32_t stray = group->count == 2 ? 15 : group->count == 3 ? 3 : 0;

    if (group->count == 1)
        return err_set(err, ERR_INVALID, "base64: the last character stands alone");
    if (padding != wanted)
        return err_set(err, ERR_INVALID, "base64: %u characters of padding in place of %u", padding,
                       wanted);
    if (group->bits & stray)
        return err_set(err, ERR_INVALID, "base64: bits are set behind the last byte");
    return 0;
}

static int decode(struct str text, unsigned options, struct buf *out, struct err *err)
{
    struct group group = { 0 };
    unsigned padding = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        int value = value_of(c, options);

        if ((c == '\n' || c == '\r') && options & BASE64_NEWLINES)
            continue;
        if (c == '=' && padding < 2) {
            padding++;
            continue;
        }
        if (value < 0 || padding > 0)
            return unexpected(i, err);
        group.bits = group.bits << 6 | (uint32_t)value;
        if (++group.count == 4)
            group_flush(&group, out);
    }

    int result = check_end(&group, padding, options, err);

    if (result == 0)
        group_flush(&group, out);
    return result;
}

int base64_decode(struct str text, unsigned options, struct buf *out, struct err *err)
{
    size_t before = out->len;
    int result = decode(text, options, out, err);

    if (result == 0)
        result = buf_check(out, "decoded base64", err);
    if (result < 0)
        buf_truncate(out, before);
    return result;
}
