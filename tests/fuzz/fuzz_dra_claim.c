/* fuzz_dra_claim.c - whatever stands in a ResourceClaim is refused in words, or gives CPUs of the
 * devices that the claim has on this node; the checkpoint reads back what was prepared. */
#include "dra/claim.h"
#include "dra/kinds.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Two sockets, each with a NUMA node of two cores with two threads. */
static struct topology_core cores[] = {
    { 0, 0, 0, { 0, 4 }, 2 },
    { 0, 0, 0, { 1, 5 }, 2 },
    { 1, 1, 2, { 2, 6 }, 2 },
    { 1, 1, 3, { 3, 7 }, 2 },
};
static const struct topology machine = { cores, 4, 2, 2, 2 };

static bool has_device(const struct json *claim, const char *device)
{
    struct json_iter iter = json_iter(json_get(claim, "devices"));
    const struct json *row;
    bool found = false;

    while (json_next_item(&iter, &row)) {
        must(str_is(json_str(json_get(row, "pool")), "n1"));
        found = found || str_is(json_str(json_get(row, "device")), device);
    }
    return found;
}

static void check_claim(const struct prepared_claim *claim)
{
    const struct json *root = json_root(claim->doc);
    struct prepared_claim *again = NULL;

    must(strcmp(claim->uid, "u1") == 0 && bitmap_count(&claim->cpus) > 0);
    for (size_t cpu = 0; bitmap_next(&claim->cpus, cpu, &cpu); cpu++) {
        must(cpu < 8);
        must(has_device(root, cpu % 4 < 2 ? "socket0-numa0" : "socket1-numa1"));
    }
    must(prepared_claim_new(json_clone(root), &again, NULL) == 0);
    must(bitmap_equal(&again->cpus, &claim->cpus));
    prepared_claim_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size };
    auto_json_doc struct json_doc *doc = NULL;
    struct prepared_claim *claim = NULL;
    struct err err = { 0 };

    if (json_parse(text, 1 << 16, &doc, NULL) < 0)
        return 0;
    if (claim_read(json_root(doc), STR("u1"), "n1", &machine, &claim, &err) < 0)
        must(err.text[0] != '\0');
    else
        check_claim(claim);
    prepared_claim_free(claim);
    claim = NULL;
    if (prepared_claim_new(json_clone(json_root(doc)), &claim, NULL) == 0)
        must(claim->uid && claim->ns && claim->name);
    prepared_claim_free(claim);
    return 0;
}
