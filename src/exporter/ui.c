/* ui.c - serves the page and its stream. */
#include "exporter/ui.h"

#include "base/list.h"
#include "base/mem.h"
#include "exporter/page.h"

enum { PASS_MEMORY = 512 << 20, KEEP_ALIVE_TICKS = 10 };

struct viewer {
    struct list link;
    struct ui *ui;
    struct http_responder *responder;
    bool is_gone;
};

struct ui {
    struct loop *loop;
    struct source *source;
    struct ui_view *view;
    struct list viewers;
    size_t viewer_count;
    struct loop_timer timer;
    int64_t looked_us; /* loop time; 0: never */
};

/* ---- looks ---- */

/* True: viewers need a snapshot. */
static bool look(struct ui *ui)
{
    auto_arena struct arena arena;
    struct tally_health health;
    struct tally_view view;
    struct tally tally;
    bool is_new;

    arena_init(&arena, PASS_MEMORY);
    source_view(ui->source, &health, &view);
    tally_init(&tally, &view, &arena);
    if (view.jobs)
        tally_jobs(&tally);
    if (view.nodes)
        tally_nodes(&tally);
    is_new = ui_view_look(ui->view, &tally);
    tally_done(&tally);
    ui->looked_us = loop_now_us(ui->loop);
    return is_new;
}

static void write_event(struct buf *out, const char *name, const struct ui_view *view,
                        void (*write)(const struct ui_view *view, struct buf *out))
{
    buf_printf(out, "event: %s\ndata: ", name);
    write(view, out);
    buf_add_text(out, "\n\n");
}

/* ---- viewers ---- */

static void end_viewer(struct viewer *viewer)
{
    http_stream_end(viewer->responder);
    list_remove(&viewer->link);
    viewer->ui->viewer_count--;
    mem_free(viewer);
}

/* The responder must not be ended from inside: the next tick does. */
static void on_gone(void *context)
{
    struct viewer *viewer = context;

    viewer->is_gone = true;
}

static void send_to_all(struct ui *ui, struct str message)
{
    list_each (struct viewer, viewer, &ui->viewers, link)
        if (viewer->is_gone || !http_stream_send(viewer->responder, message, UI_MAX_BEHIND))
            end_viewer(viewer);
}

/* A day of samples needs a look every 15 s; viewers one every second. */
static void on_tick(void *context)
{
    struct ui *ui = context;
    auto_buf struct buf message = { .max = UI_VIEW_MAX_TEXT };
    bool is_due = loop_now_us(ui->loop) - ui->looked_us >= (int64_t)UI_VIEW_SAMPLE_S * UI_TICK_US;

    if (ui->viewer_count > 0 || is_due || ui->looked_us == 0) {
        if (look(ui))
            write_event(&message, "snap", ui->view, ui_view_write_snapshot);
        else
            write_event(&message, "delta", ui->view, ui_view_write_delta);
        if (buf_check(&message, "the message", NULL) == 0)
            send_to_all(ui, buf_str(&message));
    }
    loop_timer_start(ui->loop, &ui->timer, UI_TICK_US, on_tick, ui);
}

static void serve_stream(void *context, const struct http_view *asked,
                         struct http_responder *responder)
{
    struct ui *ui = context;
    struct viewer *viewer;
    auto_buf struct buf message = { .max = UI_VIEW_MAX_TEXT };

    (void)asked;
    if (ui->viewer_count >= UI_MAX_VIEWERS) {
        http_respond_text(responder, 503, "too many viewers\n");
        return;
    }
    /* Others get what this look finds by their next message. */
    if (ui->viewer_count == 0)
        (void)look(ui);
    viewer = mem_alloc(sizeof(*viewer));
    *viewer = (struct viewer){ .ui = ui, .responder = responder };
    list_push_back(&ui->viewers, &viewer->link);
    ui->viewer_count++;
    http_responder_on_gone(responder, on_gone, viewer);
    http_stream_begin(responder, "text/event-stream");
    write_event(&message, "snap", ui->view, ui_view_write_snapshot);
    (void)http_stream_send(responder, buf_str(&message), SIZE_MAX);
}

static void serve_snapshot(void *context, const struct http_view *asked,
                           struct http_responder *responder)
{
    struct ui *ui = context;
    auto_buf struct buf text = { .max = UI_VIEW_MAX_TEXT };

    (void)asked;
    if (ui->viewer_count == 0)
        (void)look(ui);
    ui_view_write_snapshot(ui->view, &text);
    http_respond_header(responder, "Cache-Control", "no-store");
    http_respond_json(responder, 200, buf_str(&text));
}

/* ---- the page ---- */

/* Only what is in the page itself runs, and it talks to nobody but us. */
static void serve_page(void *context, const struct http_view *asked,
                       struct http_responder *responder)
{
    (void)context;
    (void)asked;
    http_respond_header(responder, "Content-Security-Policy",
                        "default-src 'none'; script-src '" PAGE_SCRIPT_HASH
                        "'; style-src '" PAGE_STYLE_HASH
                        "'; img-src data:; connect-src 'self'; base-uri 'none'; "
                        "form-action 'self'; frame-ancestors 'none'; "
                        "require-trusted-types-for 'script'");
    http_respond_header(responder, "Referrer-Policy", "no-referrer");
    http_respond_header(responder, "Cross-Origin-Opener-Policy", "same-origin");
    http_respond_header(responder, "Cross-Origin-Resource-Policy", "same-origin");
    http_respond_header(responder, "Cache-Control", "no-cache");
    http_respond(responder, 200, "text/html; charset=utf-8",
                 (struct str){ page_html, page_html_len });
}

static void serve_redirect(void *context, const struct http_view *asked,
                           struct http_responder *responder)
{
    (void)context;
    (void)asked;
    http_respond_header(responder, "Location", "/ui/");
    http_respond_text(responder, 302, "the page is at /ui/\n");
}

/* ---- life ---- */

struct ui *ui_new(struct loop *loop, struct source *source)
{
    struct ui *ui = mem_alloc(sizeof(*ui));

    ui->loop = loop;
    ui->source = source;
    ui->view = ui_view_new();
    list_init(&ui->viewers);
    loop_timer_start(loop, &ui->timer, UI_TICK_US, on_tick, ui);
    return ui;
}

void ui_free(struct ui *ui)
{
    if (!ui)
        return;
    loop_timer_stop(&ui->timer);
    list_each (struct viewer, viewer, &ui->viewers, link)
        end_viewer(viewer);
    ui_view_free(ui->view);
    mem_free(ui);
}

size_t ui_routes(struct ui *ui, struct http_route ret_routes[UI_ROUTES])
{
    const struct http_route routes[UI_ROUTES] = {
        { "/ui/", false, serve_page, ui },
        { "/ui/stream", false, serve_stream, ui },
        { "/ui/snapshot", false, serve_snapshot, ui },
        { "/ui", false, serve_redirect, ui },
    };

    memcpy(ret_routes, routes, sizeof(routes));
    return UI_ROUTES;
}

size_t ui_viewers(const struct ui *ui)
{
    return ui->viewer_count;
}
