/* ui.h - the live page: one file, and the stream of what it shows.
 *
 *     /ui/          the page; it asks nothing of any other server
 *     /ui/stream    server-sent events: a snapshot, then what changed, once a second
 *     /ui/snapshot  the snapshot as one JSON document
 *
 * A tick looks at the caches once for all viewers; without viewers only the samples of the last day
 * are taken. The message of a tick is written once and sent to all. A viewer that does not read is
 * ended. Nobody who looks causes a request to Slurm. */
#ifndef SLINC_EXPORTER_UI_H
#define SLINC_EXPORTER_UI_H

#include "exporter/source.h"
#include "exporter/ui_view.h"
#include "io/http_server.h"

enum {
    UI_ROUTES = 4,
    UI_MAX_VIEWERS = 100,
    UI_MAX_BEHIND = 1 << 20, /* bytes; of a snapshot as much as it has */
    UI_TICK_US = 1000000,
};

struct ui;

struct ui *ui_new(struct loop *loop, struct source *source); /* both borrowed */
void ui_free(struct ui *ui);                                 /* takes NULL; ends all streams */

size_t ui_routes(struct ui *ui, struct http_route ret_routes[UI_ROUTES]);
size_t ui_viewers(const struct ui *ui);

#endif
