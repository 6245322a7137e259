/* ui.h - the live page: one file, the stream of what it shows, and the story of one job.
 *
 *     /ui/           the page; it asks nothing of any other server, and holds no facts
 *     /ui/?watch=1   server-sent events: a snapshot, then what changed, once a second
 *     /ui/?job=ID    one job as a JSON document, with its life
 *
 * A tick looks at the caches once for all viewers, and only when they changed; without viewers only
 * the samples of the last day are taken. The message of a tick is written once and sent to all. A
 * viewer that does not read is ended. Nobody who looks causes a request to Slurm.
 *
 * Who may look is the caller's business: api_page.h asks the API server, `--ui-bind-address` asks
 * nobody. */
#ifndef SLINC_EXPORTER_UI_H
#define SLINC_EXPORTER_UI_H

#include "exporter/source.h"
#include "exporter/ui_view.h"
#include "io/http_server.h"
#include "kube/client.h"

enum {
    UI_ROUTES = 2,
    UI_MAX_VIEWERS = 100,
    UI_MAX_BEHIND = 1 << 20, /* bytes, besides the viewer's last snapshot */
    UI_TICK_US = 1000000,
};

struct ui;

/* All are borrowed. kube may be NULL; else a pod's part of a life is read there. */
struct ui *ui_new(struct loop *loop, struct source *source, struct kube_client *kube);
void ui_free(struct ui *ui); /* takes NULL; ends all streams */

enum ui_kind { UI_IS_PAGE, UI_IS_STREAM, UI_IS_JOB };
struct ui_question { /* what a query asks for */
    enum ui_kind kind;
    int64_t job;
};
/* -ERR_INVALID for a job that is no number. */
int ui_parse(const struct http_view *view, struct ui_question *ret_question, struct err *err);
void ui_answer(struct ui *ui, const struct ui_question *question, struct http_responder *responder);

/* For everybody who gets there. */
size_t ui_routes(struct ui *ui, struct http_route ret_routes[UI_ROUTES]);
size_t ui_viewers(const struct ui *ui);

#endif
