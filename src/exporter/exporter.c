/* exporter.c - pages from the caches. */
#include "exporter/exporter.h"

#include "base/mem.h"
#include "exporter/demand.h"
#include "exporter/families.h"
#include "exporter/legacy.h"
#include "exporter/native.h"

#include <stdio.h>

#define AUTOSCALE_PATH "/autoscale/v1/"

enum { DEFAULT_NAMES = 200, PASS_MEMORY = 2047 << 20, MAX_ANSWER = 4096 };

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

void exporter_pass(struct exporter *exporter, struct exporter_pass *ret_pass)
{
    struct tally_view *view = &ret_pass->view;

    arena_init(&ret_pass->arena, PASS_MEMORY);
    source_view(exporter->source, &ret_pass->health, view);
    tally_init(&ret_pass->tally, view, &ret_pass->arena);
    if (view->nodes)
        tally_nodes(&ret_pass->tally);
    if (!view->jobs)
        return;
    tally_jobs(&ret_pass->tally);
    for (unsigned i = 0; i < TALLY_OWNER_KINDS; i++)
        top_choose(&exporter->top[i], &ret_pass->tally, (enum tally_owner_kind)i,
                   exporter->options.max_names, &ret_pass->health.folded[i]);
}

void exporter_pass_done(struct exporter_pass *pass)
{
    tally_done(&pass->tally);
    arena_done(&pass->arena);
}

struct source *exporter_source(const struct exporter *exporter)
{
    return exporter->source;
}

static void build(struct exporter *exporter, enum exporter_page page, struct buf *out)
{
    struct exporter_pass pass;

    exporter_pass(exporter, &pass);
    if (page == EXPORTER_LEGACY)
        legacy_write(&pass.view, &pass.tally, out);
    else if (page == EXPORTER_NATIVE)
        native_write(&pass.tally, out);
    else
        families_write(&pass.tally, page == EXPORTER_NODES ? FAMILY_NODES : FAMILY_CLUSTER, out);
    if (page == EXPORTER_CLUSTER)
        metrics_write(exporter->metrics, out);
    exporter_pass_done(&pass);
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

/* ---- for KEDA ---- */

static void write_autoscale(const struct exporter_pass *pass, const struct tally_group *group,
                            struct buf *out)
{
    double wanted = tally_nodes_wanted(group), waiting = 0, usable = 0;
    double age_s = pass->health.kinds[KIND_JOBS].age_s;

    for (unsigned class = 0; class < SLURM_REASON_CLASSES; class ++)
        if (slurm_reason_wants_nodes((enum slurm_reason_class) class))
            waiting += group->pending[class].jobs;
    for (unsigned state = 0; state < TALLY_NODE_STATES; state++)
        if (tally_node_is_usable((enum tally_node_state)state))
            usable += group->nodes[state];
    buf_printf(out,
               "{\"wanted\":%.0f,\"workers\":%.0f,\"busy\":%.0f,\"age_seconds\":%.3f,\"why\":"
               "\"%.0f jobs wait that more nodes would help\"}",
               wanted, usable, group->size.busy, age_s, waiting);
}

static void serve_autoscale(void *context, const struct http_view *view,
                            struct http_responder *responder)
{
    struct exporter *exporter = context;
    struct str name = str_sub(str_of(view->path), strlen(AUTOSCALE_PATH), SIZE_MAX), kind = name;
    const struct tally_group *group = NULL;
    struct exporter_pass pass;
    auto_buf struct buf out;

    buf_init(&out, MAX_ANSWER);
    exporter_pass(exporter, &pass);
    (void)str_cut(name, '/', &kind, &name);
    if (str_is(kind, "partitions"))
        group = map_get(&pass.tally.partitions, name);
    else if (str_is(kind, "nodesets"))
        group = map_get(&pass.tally.nodesets, name);
    if (!pass.view.jobs || !pass.view.nodes) {
        http_respond_json(responder, 503,
                          STR("{\"error\":\"Slurm is not read now, or hides jobs or nodes\"}"));
    } else if (!group) {
        http_respond_json(responder, 404,
                          STR("{\"error\":\"Slurm has no such partition or NodeSet\"}"));
    } else {
        write_autoscale(&pass, group, &out);
        http_respond_json(responder, 200, buf_str(&out));
    }
    exporter_pass_done(&pass);
}

size_t exporter_routes(struct exporter *exporter, struct http_route ret_routes[EXPORTER_ROUTES])
{
    static const char *const paths[EXPORTER_PAGES] = { "/metrics", "/metrics/nodes",
                                                       "/metrics/slinky", "/metrics/native" };
    const char *legacy_path = exporter->options.legacy_path;
    size_t count = 0;

    if (legacy_path && legacy_path[0])
        ret_routes[count++] = (struct http_route){ .path = legacy_path,
                                                   .handle = serve,
                                                   .context = &exporter->pages[EXPORTER_LEGACY] };
    ret_routes[count++] = (struct http_route){ .path = "/metrics/cluster",
                                               .handle = serve,
                                               .context = &exporter->pages[EXPORTER_CLUSTER] };
    ret_routes[count++] = (struct http_route){
        .path = AUTOSCALE_PATH, .is_prefix = true, .handle = serve_autoscale, .context = exporter
    };
    for (unsigned i = 0; i < EXPORTER_PAGES; i++)
        ret_routes[count++] = (struct http_route){ .path = paths[i],
                                                   .handle = serve,
                                                   .context = &exporter->pages[i] };
    return count;
}
