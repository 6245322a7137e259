/* fuzz_tres.c - amounts of resources: whatever the text, few kinds come out, none twice, and no
 * count is negative. */
#include "exporter/tres.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct tres *tres)
{
    if (tres->gres_count > TRES_MAX_GRES || tres->cpus < 0 || tres->nodes < 0 ||
        tres->billing < 0 || !(tres->memory_bytes >= 0))
        abort();
    for (unsigned i = 0; i < tres->gres_count; i++) {
        if (tres->gres[i].name.len == 0 || tres->gres[i].count < 0)
            abort();
        for (unsigned k = 0; k < i; k++)
            if (str_eq(tres->gres[i].name, tres->gres[k].name))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct tres tres;

    tres_read(text, &tres);
    check(&tres);
    tres_add_gres(&tres, text, 3);
    check(&tres);
    return 0;
}
