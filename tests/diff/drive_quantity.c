/* drive_quantity.c - answers lines about quantities for tests/diff/test_quantity.py. */
#include "codec/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

typedef int convert_fn(const struct quantity *quantity, int64_t *ret_value, struct err *err);

static void answer_text(const struct quantity *quantity)
{
    auto_buf struct buf text;

    buf_init(&text, QUANTITY_TEXT_MAX);
    quantity_print(quantity, &text);
    printf("%s", text.overflowed ? "overflow" : buf_text(&text));
}

static void answer_quantity(struct str line)
{
    static convert_fn *const converts[] = {
        quantity_ceil_units,
        quantity_ceil_milli,
        quantity_ceil_mib,
    };
    struct quantity quantity;

    if (quantity_parse(line, &quantity, NULL) < 0) {
        puts("error");
        return;
    }
    printf("ok\t");
    answer_text(&quantity);
    for (size_t i = 0; i < sizeof(converts) / sizeof(converts[0]); i++) {
        int64_t value;

        if (converts[i](&quantity, &value, NULL) < 0)
            printf("\ttoo big");
        else
            printf("\t%lld", (long long)value);
    }
    putchar('\n');
}

/* a and b, between them a tab: how a compares with b. */
static void answer_pair(struct str line)
{
    struct str first, second;
    struct quantity a, b;

    if (!str_cut(line, '\t', &first, &second) || quantity_parse(first, &a, NULL) < 0 ||
        quantity_parse(second, &b, NULL) < 0)
        puts("error");
    else
        printf("%d\n", quantity_cmp(&a, &b));
}

int main(int argc, char **argv)
{
    bool pairs = argc == 2 && str_is(str_of(argv[1]), "pair");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    while ((length = getline(&line, &size, stdin)) > 0) {
        struct str text = { line, (size_t)length - 1 };

        if (pairs)
            answer_pair(text);
        else
            answer_quantity(text);
    }
    free(line);
    return 0;
}
