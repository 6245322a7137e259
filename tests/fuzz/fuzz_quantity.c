/* fuzz_quantity.c - a quantity that is read prints as a text of the same value. */
#include "codec/quantity.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_rounding(const struct quantity *quantity)
{
    int64_t ceil, floor;

    if (quantity_ceil_units(quantity, &ceil, NULL) == 0 &&
        quantity_floor_units(quantity, &floor, NULL) == 0)
        check(floor <= ceil && ceil - floor <= 1);
    if (quantity_ceil_mib(quantity, &ceil, NULL) == 0 &&
        quantity_floor_mib(quantity, &floor, NULL) == 0)
        check(floor <= ceil && ceil - floor <= 1);
}

/* (a + a) - a = a, and 2 * a = a + a, wherever they are in range. */
static void check_arithmetic(const struct quantity *a)
{
    struct quantity sum, twice, back;

    if (quantity_add(a, a, &sum, NULL) < 0 || quantity_mul(a, 2, &twice, NULL) < 0)
        return;
    check(quantity_cmp(&sum, &twice) == 0);
    check(quantity_cmp(a, &sum) == -quantity_sign(a));
    if (quantity_sub(&sum, a, &back, NULL) == 0)
        check(quantity_cmp(&back, a) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct quantity quantity, again;
    auto_buf struct buf text;

    buf_init(&text, QUANTITY_TEXT_MAX);
    if (quantity_parse((struct str){ (const char *)data, size }, &quantity, NULL) < 0)
        return 0;
    quantity_print(&quantity, &text);
    check(!text.overflowed);
    check(quantity_parse(buf_str(&text), &again, NULL) == 0);
    check(quantity_cmp(&quantity, &again) == 0);
    check_rounding(&quantity);
    check_arithmetic(&quantity);
    return 0;
}
