/* fuzz_quantity.c - a quantity that is read prints as a text of the same value. */
#include "codec/quantity.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* A thousand times the units are the thousandths, rounded up to a thousand. */
static void check_rounding(const struct quantity *quantity)
{
    int64_t units, milli, mib;

    if (quantity_ceil_units(quantity, &units, NULL) < 0)
        return;
    if (quantity_ceil_milli(quantity, &milli, NULL) == 0)
        check(milli / 1000 + (milli % 1000 > 0) == units);
    check(quantity_ceil_mib(quantity, &mib, NULL) == 0);
    check(units / (1 << 20) + (units % (1 << 20) > 0) == mib);
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
    return 0;
}
