/* families_health.c - writers of the families that say how well Slurm is heard. */
#include "exporter/families.h"

const char *const tally_hidden_names[TALLY_HIDDEN] = {
    [HIDES_JOBS] = "jobs",   [HIDES_NODES] = "nodes",     [HIDES_RESERVATIONS] = "reservations",
    [HIDES_USERS] = "users", [HIDES_UNKNOWN] = "unknown",
};

static const char *const kinds[TALLY_KINDS] = {
    [KIND_JOBS] = "jobs",
    [KIND_NODES] = "nodes",
    [KIND_PARTITIONS] = "partitions",
    [KIND_RESERVATIONS] = "reservations",
    [KIND_DIAG] = "diag",
    [KIND_LICENSES] = "licenses",
};

void write_up(struct page *page, const struct tally *tally)
{
    for (unsigned i = 0; i < TALLY_KINDS; i++)
        page_sample(page, tally->view->health->kinds[i].is_up, kinds[i]);
}

/* A kind that was never read has no age. */
void write_age(struct page *page, const struct tally *tally)
{
    for (unsigned i = 0; i < TALLY_KINDS; i++)
        if (tally->view->health->kinds[i].age_s >= 0)
            page_sample(page, tally->view->health->kinds[i].age_s, kinds[i]);
}

void write_restricted(struct page *page, const struct tally *tally)
{
    for (unsigned i = 0; tally->view->health->knows_hidden && i < TALLY_HIDDEN; i++)
        page_sample(page, tally->view->health->hides[i], tally_hidden_names[i]);
}

void write_info(struct page *page, const struct tally *tally)
{
    const struct tally_health *health = tally->view->health;

    if (health->parser[0])
        page_sample(page, 1, health->cluster, health->version, health->parser);
}

void write_folded(struct page *page, const struct tally *tally)
{
    static const char *const labels[TALLY_OWNER_KINDS] = {
        [TALLY_ACCOUNT] = "account", [TALLY_USER] = "user", [TALLY_QOS] = "qos"
    };

    for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++)
        page_sample(page, (double)tally->view->health->folded[i], labels[i]);
}
