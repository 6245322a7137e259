/* families_nodes.c - writers of the families that count nodes, or that have a sample per node,
 * reservation or license. */
#include "exporter/demand.h"
#include "exporter/families.h"

enum { MAX_REASON = 80 };

static const double mib = 1048576.0;

void write_wanted(struct page *page, const struct tally *tally)
{
    map_each (item, &tally->partitions)
        page_sample(page, tally_nodes_wanted(item->value), item->key.at);
}

void write_nodeset_wanted(struct page *page, const struct tally *tally)
{
    map_each (item, &tally->nodesets)
        page_sample(page, tally_nodes_wanted(item->value), item->key.at);
}

void write_node_state(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < tally->node_count; i++)
        page_sample(page, 1, tally->nodes[i].node->name,
                    tally_node_state_names[tally->nodes[i].state]);
}

static int64_t whole(const void *object, size_t offset)
{
    return *(const int64_t *)(const void *)((const char *)object + offset);
}

void write_node_total(struct page *page, const struct tally *tally)
{
    double unit = page->family->unit[0] ? mib : 1;

    for (size_t i = 0; i < tally->node_count; i++)
        page_sample(page, unit * (double)whole(tally->nodes[i].node, page->family->at),
                    tally->nodes[i].node->name);
}

void write_node_by_holder(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < tally->node_count; i++) {
        const struct tally_node *node = &tally->nodes[i];
        const double *shares =
            (const double *)(const void *)((const char *)node + page->family->at);

        page_sample(page, shares[TALLY_POD], node->node->name, tally_holder_names[TALLY_POD]);
        page_sample(page, shares[TALLY_JOB], node->node->name, tally_holder_names[TALLY_JOB]);
    }
}

static void write_gres_of(struct page *page, const struct tally_node *node, const struct tres *tres,
                          struct arena *arena)
{
    for (unsigned i = 0; i < tres->gres_count; i++)
        page_sample(page, (double)tres->gres[i].count, node->node->name,
                    arena_strndup(arena, tres->gres[i].name.at, tres->gres[i].name.len));
}

void write_node_gres(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < tally->node_count; i++)
        write_gres_of(page, &tally->nodes[i], &tally->nodes[i].has, tally->arena);
}

void write_node_gres_used(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < tally->node_count; i++)
        write_gres_of(page, &tally->nodes[i], &tally->nodes[i].used, tally->arena);
}

void write_node_reason(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < tally->node_count; i++) {
        const struct slurm_node *node = tally->nodes[i].node;
        struct str rest = str_of(node->reason);
        size_t kept = 0, step;

        while ((step = str_utf8_char(rest)) > 0 && kept + step <= MAX_REASON) {
            kept += step;
            rest = str_sub(rest, step, rest.len);
        }
        if (kept > 0)
            page_sample(page, 1, node->name, arena_strndup(tally->arena, node->reason, kept));
    }
}

void write_node_reason_time(struct page *page, const struct tally *tally)
{
    for (size_t i = 0; i < tally->node_count; i++)
        if (tally->nodes[i].node->reason[0] && tally->nodes[i].node->reason_time > 0)
            page_sample(page, (double)tally->nodes[i].node->reason_time,
                        tally->nodes[i].node->name);
}

/* A time that Slurm does not give is absent, not 1970. */
void write_reservation(struct page *page, const struct tally *tally)
{
    struct slurm_cache_walk walk = slurm_cache_walk(tally->view->reservations);
    const struct slurm_object *object;

    while ((object = slurm_cache_next(&walk))) {
        int64_t value = whole(object, page->family->at);

        if (value > 0 || !page->family->unit[0])
            page_sample(page, (double)value, slurm_reservation_of(object)->name);
    }
}

void write_license(struct page *page, const struct tally *tally)
{
    struct json_iter iter = json_iter(json_get(tally->view->licenses, "licenses"));
    const struct json *license;

    while (json_next_item(&iter, &license)) {
        struct slurm_number value = slurm_number_of(json_get(license, page->family->from));
        struct str name = json_str(json_get(license, "LicenseName"));

        if (value.set && name.len > 0)
            page_sample(page, (double)value.number, arena_strndup(tally->arena, name.at, name.len));
    }
}
