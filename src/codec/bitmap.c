/* bitmap.c - bits in 64-bit words, lowest first.
 *
 * Holds: bits past the end of the last word are zero, so that counting, comparing and printing need
 * no masks; the parsers write their result only when the whole text was right. */
#include "codec/bitmap.h"

#include "base/mem.h"

#include <assert.h>

enum { WORD = 64 };

static size_t words_for(size_t bits)
{
    return (bits + WORD - 1) / WORD;
}

static uint64_t mask_of(size_t bit)
{
    return UINT64_C(1) << (bit % WORD);
}

/* The word at this index, zero past the end. */
static uint64_t word_at(const struct bitmap *map, size_t index)
{
    return index < words_for(map->bits) ? map->words[index] : 0;
}

void bitmap_init(struct bitmap *map, size_t bits)
{
    assert(bits <= BITMAP_MAX_BITS);
    *map = (struct bitmap){ mem_alloc_array(words_for(bits), sizeof(uint64_t)), bits };
}

void bitmap_done(struct bitmap *map)
{
    if (!map)
        return;
    mem_free(map->words);
    *map = (struct bitmap){ 0 };
}

void bitmap_copy(struct bitmap *to, const struct bitmap *from)
{
    bitmap_init(to, from->bits);
    bitmap_or(to, from);
}

void bitmap_set(struct bitmap *map, size_t bit)
{
    assert(bit < map->bits);
    map->words[bit / WORD] |= mask_of(bit);
}

void bitmap_set_range(struct bitmap *map, size_t first, size_t last)
{
    for (size_t bit = first; bit <= last;) {
        if (bit % WORD == 0 && last - bit >= WORD - 1 && last < map->bits) {
            map->words[bit / WORD] = UINT64_MAX;
            bit += WORD;
        } else {
            bitmap_set(map, bit++);
        }
    }
}

void bitmap_clear(struct bitmap *map, size_t bit)
{
    if (bit < map->bits)
        map->words[bit / WORD] &= ~mask_of(bit);
}

bool bitmap_test(const struct bitmap *map, size_t bit)
{
    return bit < map->bits && (map->words[bit / WORD] & mask_of(bit)) != 0;
}

void bitmap_and(struct bitmap *map, const struct bitmap *other)
{
    for (size_t i = 0; i < words_for(map->bits); i++)
        map->words[i] &= word_at(other, i);
}

void bitmap_andnot(struct bitmap *map, const struct bitmap *other)
{
    for (size_t i = 0; i < words_for(map->bits); i++)
        map->words[i] &= ~word_at(other, i);
}

static void grow(struct bitmap *map, size_t bits)
{
    size_t old = words_for(map->bits), new = words_for(bits);

    map->words = mem_resize_array(map->words, new, sizeof(uint64_t));
    memset(map->words + old, 0, (new - old) * sizeof(uint64_t));
    map->bits = bits;
}

void bitmap_or(struct bitmap *map, const struct bitmap *other)
{
    if (other->bits > map->bits)
        grow(map, other->bits);
    for (size_t i = 0; i < words_for(other->bits); i++)
        map->words[i] |= other->words[i];
}

size_t bitmap_count(const struct bitmap *map)
{
    size_t count = 0;

    for (size_t i = 0; i < words_for(map->bits); i++)
        count += (size_t)__builtin_popcountll(map->words[i]);
    return count;
}

bool bitmap_equal(const struct bitmap *a, const struct bitmap *b)
{
    size_t bits = a->bits > b->bits ? a->bits : b->bits;

    for (size_t i = 0; i < words_for(bits); i++)
        if (word_at(a, i) != word_at(b, i))
            return false;
    return true;
}

bool bitmap_next(const struct bitmap *map, size_t from, size_t *ret_bit)
{
    if (from >= map->bits)
        return false;

    size_t index = from / WORD;
    uint64_t word = map->words[index] & (UINT64_MAX << (from % WORD));

    while (word == 0) {
        if (++index >= words_for(map->bits))
            return false;
        word = map->words[index];
    }
    *ret_bit = index * WORD + (size_t)__builtin_ctzll(word);
    return true;
}

/* Sets the bits of one digit, whose lowest bit is `low`; false when one of them does not fit. */
static bool set_digit(struct bitmap *map, size_t low, int digit)
{
    for (size_t i = 0; i < 4; i++) {
        if (!(digit >> i & 1))
            continue;
        if (low + i >= map->bits)
            return false;
        bitmap_set(map, low + i);
    }
    return true;
}

int bitmap_parse_hex(struct str text, size_t bits, struct bitmap *ret_map, struct err *err)
{
    size_t start = str_starts(text, STR("0x")) || str_starts(text, STR("0X")) ? 2 : 0;
    auto_bitmap struct bitmap map = { 0 };

    if (text.len == start)
        return err_set(err, ERR_INVALID, "a hexadecimal bitmap without digits");
    bitmap_init(&map, bits);
    for (size_t i = start; i < text.len; i++) {
        int digit = str_hex_digit(text.at[i]);

        if (digit < 0)
            return err_set(err, ERR_INVALID, "not a hexadecimal digit at byte %zu of a bitmap", i);
        if (!set_digit(&map, (text.len - 1 - i) * 4, digit))
            return err_set(err, ERR_TOO_BIG, "a bitmap has bits past the %zu that there are", bits);
    }
    *ret_map = map;
    map = (struct bitmap){ 0 };
    return 0;
}

/* One part of a range text: "8" or "0-3". */
static int set_part(struct bitmap *map, struct str part, size_t position, struct err *err)
{
    struct str low = part, high = part;
    uint64_t first, last;

    str_cut(part, '-', &low, &high);
    if (str_to_u64(low, 0, UINT64_MAX, &first, NULL) < 0 ||
        str_to_u64(high, 0, UINT64_MAX, &last, NULL) < 0)
        return err_set(err, ERR_INVALID, "not a number or range at byte %zu", position);
    if (first > last)
        return err_set(err, ERR_INVALID, "range at byte %zu runs backwards", position);
    if (last >= map->bits)
        return err_set(err, ERR_TOO_BIG, "range at byte %zu has %llu, there are %zu", position,
                       (unsigned long long)last, map->bits);
    bitmap_set_range(map, first, last);
    return 0;
}

int bitmap_parse_ranges(struct str text, size_t bits, struct bitmap *ret_map, struct err *err)
{
    auto_bitmap struct bitmap map = { 0 };
    struct str rest = text, part;

    bitmap_init(&map, bits);
    while (text.len > 0 && str_next(&rest, ',', &part)) {
        int status = set_part(&map, part, (size_t)(part.at - text.at), err);

        if (status < 0)
            return status;
    }
    *ret_map = map;
    map = (struct bitmap){ 0 };
    return 0;
}

void bitmap_print_hex(const struct bitmap *map, struct buf *out)
{
    size_t digits = (map->bits + 3) / 4;

    buf_add_text(out, digits > 0 ? "0x" : "0x0");
    for (size_t i = digits; i-- > 0;) {
        unsigned digit = (unsigned)(map->words[i * 4 / WORD] >> (i * 4 % WORD)) & 15;

        buf_add_char(out, "0123456789ABCDEF"[digit]);
    }
}

/* The last bit of the run of set bits that starts at `first`. */
static size_t run_end(const struct bitmap *map, size_t first)
{
    while (bitmap_test(map, first + 1))
        first++;
    return first;
}

void bitmap_print_ranges(const struct bitmap *map, struct buf *out)
{
    const char *separator = "";

    for (size_t bit = 0; bitmap_next(map, bit, &bit); bit++) {
        size_t last = run_end(map, bit);

        buf_printf(out, "%s%zu", separator, bit);
        if (last > bit)
            buf_printf(out, "-%zu", last);
        separator = ",";
        bit = last;
    }
}
