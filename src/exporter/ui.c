/* ui.c - serves the page, its stream, and what it asks about one job. */
#include "exporter/ui.h"

#include "base/list.h"
#include "base/mem.h"
#include "exporter/page.h"
#include "exporter/ui_job.h"

#include <inttypes.h>
#include <stdio.h>

enum { PASS_MEMORY = 512 << 20, POD_US = 2 * 1000000, MAX_JOB_TEXT = 1 << 20 };

struct viewer {
    struct list link;
    struct ui *ui;
    struct http_responder *responder;
    size_t snapshot; /* bytes of its last one, which a slow reader takes more than a tick to read */
    bool is_gone;
};

struct pod_read { /* a question about a job that waits for its pod */
    struct list link;
    struct ui *ui;
    struct http_responder *responder;
    struct kube_call *call;
    int64_t job;
};

struct ui {
    struct loop *loop;
    struct source *source;
    struct kube_client *kube;
    struct layouts *layouts;
    struct ui_view *view;
    struct list viewers, pod_reads;
    size_t viewer_count;
    struct loop_timer timer;
    int64_t looked_us;       /* loop time; 0: never */
    uint64_t generations[3]; /* of jobs, nodes and layouts at that look */
    bool had_jobs, had_nodes, had_users;
};

/* ---- looks ---- */

struct pass {
    struct arena arena;
    struct tally_health health;
    struct tally_view view;
    struct tally tally;
};

static void pass_init(struct pass *pass, struct ui *ui)
{
    arena_init(&pass->arena, PASS_MEMORY);
    source_view(ui->source, &pass->health, &pass->view);
    tally_init(&pass->tally, &pass->view, &pass->arena);
}

static void pass_done(struct pass *pass)
{
    tally_done(&pass->tally);
    arena_done(&pass->arena);
}

static bool has_changed(struct ui *ui, const struct tally_view *view)
{
    uint64_t now[3] = { view->jobs ? slurm_cache_generation(view->jobs) : 0,
                        view->nodes ? slurm_cache_generation(view->nodes) : 0,
                        layouts_generation(ui->layouts) };
    bool is_same = ui->looked_us > 0 && memcmp(now, ui->generations, sizeof(now)) == 0 &&
                   ui->had_jobs == !!view->jobs && ui->had_nodes == !!view->nodes &&
                   ui->had_users == view->shows_users;

    memcpy(ui->generations, now, sizeof(now));
    ui->had_jobs = view->jobs;
    ui->had_nodes = view->nodes;
    ui->had_users = view->shows_users;
    return !is_same;
}

/* True: viewers need a snapshot. */
static bool look(struct ui *ui, bool is_due)
{
    struct pass pass;
    bool is_new = false;

    pass_init(&pass, ui);
    if (!has_changed(ui, &pass.view) && !is_due) {
        ui_view_look_at_ages(ui->view, &pass.tally);
    } else {
        if (pass.view.jobs)
            tally_jobs(&pass.tally);
        if (pass.view.nodes)
            tally_nodes(&pass.tally);
        is_new = ui_view_look(ui->view, &pass.tally);
        ui->looked_us = loop_now_us(ui->loop);
    }
    pass_done(&pass);
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

/* The last message says why the stream ends: "slow" or "restart". */
static void end_viewer(struct viewer *viewer, const char *why)
{
    auto_buf struct buf bye = { .max = 64 };

    buf_printf(&bye, "event: bye\ndata: {\"why\":\"%s\"}\n\n", why);
    (void)http_stream_send(viewer->responder, buf_str(&bye), SIZE_MAX);
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

static void send_to_all(struct ui *ui, struct str message, bool is_snapshot)
{
    list_each (struct viewer, viewer, &ui->viewers, link) {
        size_t max_behind = UI_MAX_BEHIND + viewer->snapshot;

        if (viewer->is_gone || !http_stream_send(viewer->responder, message, max_behind))
            end_viewer(viewer, "slow");
        else if (is_snapshot)
            viewer->snapshot = message.len;
    }
}

/* A day of samples needs a look every 15 s; viewers are told something every second, so that they
 * notice a lost connection. */
static void on_tick(void *context)
{
    struct ui *ui = context;
    auto_buf struct buf message = { .max = UI_VIEW_MAX_TEXT };
    bool is_due = loop_now_us(ui->loop) - ui->looked_us >= (int64_t)UI_VIEW_SAMPLE_S * UI_TICK_US;

    if (ui->viewer_count > 0 || is_due || ui->looked_us == 0) {
        bool is_snapshot = look(ui, is_due);

        if (is_snapshot)
            write_event(&message, "snap", ui->view, ui_view_write_snapshot);
        else
            write_event(&message, "delta", ui->view, ui_view_write_delta);
        if (buf_check(&message, "the message", NULL) == 0)
            send_to_all(ui, buf_str(&message), is_snapshot);
    }
    loop_timer_start(ui->loop, &ui->timer, UI_TICK_US, on_tick, ui);
}

static void answer_stream(struct ui *ui, struct http_responder *responder)
{
    struct viewer *viewer;
    auto_buf struct buf message = { .max = UI_VIEW_MAX_TEXT };

    if (ui->viewer_count >= UI_MAX_VIEWERS) {
        http_respond_text(responder, 503, "too many viewers\n");
        return;
    }
    /* Others get what this look finds by their next message. */
    if (ui->viewer_count == 0)
        (void)look(ui, true);
    viewer = mem_alloc(sizeof(*viewer));
    *viewer = (struct viewer){ .ui = ui, .responder = responder };
    list_push_back(&ui->viewers, &viewer->link);
    ui->viewer_count++;
    http_responder_on_gone(responder, on_gone, viewer);
    http_respond_header(responder, "Cache-Control", "no-store");
    http_stream_begin(responder, "text/event-stream");
    write_event(&message, "snap", ui->view, ui_view_write_snapshot);
    viewer->snapshot = message.len;
    (void)http_stream_send(responder, buf_str(&message), SIZE_MAX);
}

/* ---- one job ---- */

static void respond_job(struct ui *ui, int64_t id, const struct json *pod,
                        struct http_responder *responder)
{
    const struct slurm_object *job = NULL;
    auto_buf struct buf text = { .max = MAX_JOB_TEXT };
    struct pass pass;
    char key[32];

    pass_init(&pass, ui);
    (void)snprintf(key, sizeof(key), "%" PRId64, id);
    if (pass.view.jobs)
        job = slurm_cache_get(pass.view.jobs, key);
    http_respond_header(responder, "Cache-Control", "no-store");
    if (job) {
        ui_job_write(slurm_job_of(job), pod, pass.view.shows_users, &text);
        http_respond_json(responder, 200, buf_str(&text));
    } else {
        http_respond_json(responder, 404, STR("{\"message\":\"Slurm shows no such job now\"}"));
    }
    pass_done(&pass);
}

static void end_pod_read(struct pod_read *read)
{
    list_remove(&read->link);
    mem_free(read);
}

static void on_pod(void *context, const struct kube_answer *answer)
{
    struct pod_read *read = context;

    respond_job(read->ui, read->job, answer->outcome == KUBE_DONE ? answer->object : NULL,
                read->responder);
    end_pod_read(read);
}

/* The life of a pod is told by both: its job by Slurm, itself by Kubernetes. */
static void answer_job(struct ui *ui, int64_t id, struct http_responder *responder)
{
    const struct slurm_object *job = NULL;
    auto_buf struct buf ns = { .max = MAX_JOB_TEXT }, name = { .max = MAX_JOB_TEXT };
    struct pass pass;
    struct pod_read *read;
    char key[32];

    (void)snprintf(key, sizeof(key), "%" PRId64, id);
    pass_init(&pass, ui);
    if (pass.view.jobs)
        job = slurm_cache_get(pass.view.jobs, key);
    pass_done(&pass);
    if (!ui->kube || !job || !ui_job_pod(slurm_job_of(job), &ns, &name)) {
        respond_job(ui, id, NULL, responder);
        return;
    }
    read = mem_alloc(sizeof(*read));
    *read = (struct pod_read){ .ui = ui, .responder = responder, .job = id };
    list_push_back(&ui->pod_reads, &read->link);
    read->call = kube_send(ui->kube,
                           &(struct kube_request){ .verb = KUBE_GET,
                                                   .resource = &kube_pods,
                                                   .ns = buf_text(&ns),
                                                   .name = buf_text(&name),
                                                   .timeout_us = POD_US },
                           on_pod, read);
}

/* ---- the page ---- */

/* Only what is in the page itself runs, and it talks to nobody but us. */
static void answer_page(struct http_responder *responder)
{
    http_respond_header(responder, "Content-Security-Policy",
                        "default-src 'none'; script-src '" PAGE_SCRIPT_HASH
                        "'; style-src '" PAGE_STYLE_HASH
                        "'; img-src data:; connect-src 'self'; base-uri 'none'; "
                        "form-action 'self'; frame-ancestors 'none'; "
                        "require-trusted-types-for 'script'");
    http_respond_header(responder, "Referrer-Policy", "no-referrer");
    http_respond_header(responder, "X-Content-Type-Options", "nosniff");
    http_respond_header(responder, "Cross-Origin-Opener-Policy", "same-origin");
    http_respond_header(responder, "Cross-Origin-Resource-Policy", "same-origin");
    http_respond_header(responder, "Cache-Control", "no-cache");
    http_respond(responder, 200, "text/html; charset=utf-8",
                 (struct str){ page_html, page_html_len });
}

int ui_parse(const struct http_view *view, struct ui_question *ret_question, struct err *err)
{
    auto_buf struct buf text = { .max = 64 };

    *ret_question = (struct ui_question){ .kind = UI_IS_PAGE };
    if (http_view_query(view, "watch", &text, NULL) == 0) {
        ret_question->kind = UI_IS_STREAM;
        return 0;
    }
    if (http_view_query(view, "job", &text, NULL) < 0)
        return 0;
    ret_question->kind = UI_IS_JOB;
    return str_to_i64(buf_str(&text), 0, INT64_MAX, &ret_question->job, err);
}

void ui_answer(struct ui *ui, const struct ui_question *question, struct http_responder *responder)
{
    switch (question->kind) {
    case UI_IS_PAGE:
        answer_page(responder);
        return;
    case UI_IS_STREAM:
        answer_stream(ui, responder);
        return;
    case UI_IS_JOB:
        answer_job(ui, question->job, responder);
        return;
    }
}

static void serve(void *context, const struct http_view *view, struct http_responder *responder)
{
    struct ui_question question;
    struct err err = { .class = 0 };

    if (ui_parse(view, &question, &err) < 0)
        http_respond_text(responder, 400, err.text);
    else
        ui_answer(context, &question, responder);
}

/* ---- life ---- */

struct ui *ui_new(struct loop *loop, struct source *source, struct kube_client *kube)
{
    struct ui *ui = mem_alloc(sizeof(*ui));

    ui->loop = loop;
    ui->source = source;
    ui->kube = kube;
    ui->layouts = source_layouts(source);
    ui->view = ui_view_new(ui->layouts);
    list_init(&ui->viewers);
    list_init(&ui->pod_reads);
    loop_timer_start(loop, &ui->timer, UI_TICK_US, on_tick, ui);
    return ui;
}

void ui_free(struct ui *ui)
{
    if (!ui)
        return;
    loop_timer_stop(&ui->timer);
    list_each (struct viewer, viewer, &ui->viewers, link)
        end_viewer(viewer, "restart");
    list_each (struct pod_read, read, &ui->pod_reads, link) {
        kube_call_cancel(read->call);
        http_respond_text(read->responder, 503, "the exporter stops");
        end_pod_read(read);
    }
    ui_view_free(ui->view);
    mem_free(ui);
}

size_t ui_routes(struct ui *ui, struct http_route ret_routes[UI_ROUTES])
{
    ret_routes[0] = (struct http_route){ "/ui/", false, serve, ui };
    ret_routes[1] = (struct http_route){ "/ui", false, serve, ui };
    return UI_ROUTES;
}

size_t ui_viewers(const struct ui *ui)
{
    return ui->viewer_count;
}
