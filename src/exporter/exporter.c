/* exporter.c - pages from the caches. */
#include "exporter/exporter.h"

#include "base/mem.h"
#include "exporter/families.h"
#include "exporter/legacy.h"

#include <stdio.h>

enum { DEFAULT_NAMES = 200, PASS_MEMORY = 2047 << 20 };

struct kept_page {
    struct exporter *exporter;
    enum exporter_page page;
    struct buf text;
    int64_t built_us; /* 0: never */
};

struct exporter {
    struct loop *loop;
    struct metrics *metrics;
    struct exporter_options options;
    struct source *source;
    struct top top[TALLY_OWNER_KINDS];
    struct kept_page pages[EXPORTER_PAGES];
};

struct exporter *exporter_new(struct loop *loop, struct http_transport *transport,
                              struct slurm_token *token, struct metrics *metrics,
                              const struct exporter_options *options)
{
    struct exporter *exporter = mem_alloc(sizeof(*exporter));

    exporter->loop = loop;
    exporter->metrics = metrics;
    exporter->options = *options;
    if (exporter->options.max_names == 0)
        exporter->options.max_names = DEFAULT_NAMES;
    exporter->source = source_new(loop, transport, token, metrics, &options->source);
    for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++)
        top_init(&exporter->top[i]);
    for (unsigned i = 0; i < EXPORTER_PAGES; i++) {
        exporter->pages[i] =
            (struct kept_page){ .exporter = exporter, .page = (enum exporter_page)i };
        buf_init(&exporter->pages[i].text, EXPORTER_MAX_PAGE);
    }
    return exporter;
}

void exporter_start(struct exporter *exporter)
{
    source_start(exporter->source);
}

void exporter_free(struct exporter *exporter)
{
    if (!exporter)
        return;
    for (unsigned i = 0; i < EXPORTER_PAGES; i++)
        buf_done(&exporter->pages[i].text);
    for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++)
        top_done(&exporter->top[i]);
    source_free(exporter->source);
    mem_free(exporter);
}

static void build(struct exporter *exporter, enum exporter_page page, struct buf *out)
{
    auto_arena struct arena arena;
    struct tally_health health;
    struct tally_view view;
    struct tally tally;

    arena_init(&arena, PASS_MEMORY);
    source_view(exporter->source, &health, &view);
    tally_init(&tally, &view, &arena);
    if (view.jobs && page != EXPORTER_NODES) {
        tally_jobs(&tally);
        for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++)
            top_choose(&exporter->top[i], &tally, (enum tally_owner_kind)i,
                       exporter->options.max_names, &health.folded[i]);
    }
    if (view.nodes && page != EXPORTER_LEGACY)
        tally_nodes(&tally);
    if (page == EXPORTER_LEGACY)
        legacy_write(&view, &tally, out);
    else
        families_write(&tally, page == EXPORTER_NODES ? FAMILY_NODES : FAMILY_CLUSTER, out);
    if (page == EXPORTER_CLUSTER)
        metrics_write(exporter->metrics, out);
    tally_done(&tally);
}

int exporter_page(struct exporter *exporter, enum exporter_page page, struct str *ret_text,
                  struct err *err)
{
    struct kept_page *kept = &exporter->pages[page];
    int64_t now_us = loop_now_us(exporter->loop);
    int result;

    if (kept->built_us == 0 || now_us - kept->built_us >= EXPORTER_KEEP_US) {
        buf_clear(&kept->text);
        build(exporter, page, &kept->text);
        kept->built_us = now_us;
    }
    result = buf_check(&kept->text, "the page", err);
    if (result == 0)
        *ret_text = buf_str(&kept->text);
    return result;
}

static void serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    const struct kept_page *kept = context;
    struct err err = { .class = 0 };
    struct str text = STR("");

    (void)view;
    if (exporter_page(kept->exporter, kept->page, &text, &err) < 0)
        http_respond_text(responder, 500, err.text);
    else
        http_respond(responder, 200, "text/plain; version=0.0.4; charset=utf-8", text);
}

size_t exporter_routes(struct exporter *exporter, struct http_route ret_routes[EXPORTER_ROUTES])
{
    static const char *const paths[EXPORTER_PAGES] = { "/metrics", "/metrics/nodes",
                                                       "/metrics/slinky" };
    const char *legacy_path = exporter->options.legacy_path;
    size_t count = 0;

    if (legacy_path && legacy_path[0])
        ret_routes[count++] = (struct http_route){ .path = legacy_path,
                                                   .handle = serve,
                                                   .context = &exporter->pages[EXPORTER_LEGACY] };
    ret_routes[count++] = (struct http_route){ .path = "/metrics/cluster",
                                               .handle = serve,
                                               .context = &exporter->pages[EXPORTER_CLUSTER] };
    for (unsigned i = 0; i < EXPORTER_PAGES; i++)
        ret_routes[count++] = (struct http_route){ .path = paths[i],
                                                   .handle = serve,
                                                   .context = &exporter->pages[i] };
    return count;
}
