/* ui_view.h - the cluster as the page shows it: who holds which cores, who waits and why.
 *
 * A look turns a tally into rows of JSON text, which are kept: the next look then knows which rows
 * changed, and viewers are told only these. A node shows the very cores of each holder where Slurm
 * says which they are (layouts.h); else how many each holder has, pods first, from the left.
 *
 *     snapshot
 * {"cluster","names","hidden","ages","holders":[[kind,name,job,user,submitted,started]],
 *                "nodes":[[name,cores,gpus,partition,state,cores held,gpus held,reason,exact]],
 *                "queue":[[job,kind,name,user,account,partition,nodes,cpus,gpus,since,class,reason,
 *                start,text]],"totals":{},"partitions":[[name,nodes,cores,used,waiting]],"history":[[]]}
 *     delta     {"h":[[index, holder...]],"n":[[index,state,cores held,gpus held,reason,exact]],
 *                and of queue, totals, partitions, ages and sample what changed}
 *
 * "0-15:0,16-19:1" says that 16 cores belong to the first holder and 4 to the second. */
#ifndef SLINC_EXPORTER_UI_VIEW_H
#define SLINC_EXPORTER_UI_VIEW_H

#include "exporter/layouts.h"
#include "exporter/tally.h"

enum {
    UI_VIEW_MAX_TEXT = 64 << 20,
    UI_VIEW_MAX_NODES = 100000,
    UI_VIEW_MAX_HOLDERS = 100000, /* then all viewers begin anew */
    UI_VIEW_OLD_HOLDERS = 1000,   /* the same when so many, and more than those that hold, do not */
    UI_VIEW_MAX_CELLS = 65536,    /* cores of one node */
    UI_VIEW_QUEUE = 200,          /* waiting jobs that are shown */
    UI_VIEW_SAMPLES = 24 * 60 * 4,
    UI_VIEW_SAMPLE_S = 15,
};

struct ui_view;

struct ui_view *ui_view_new(const struct layouts *layouts); /* borrowed; NULL: none is known */
void ui_view_free(struct ui_view *view);                    /* takes NULL */

/* Takes a look. True: viewers need a snapshot, because nodes came or went. Jobs and nodes that the
 * tally does not have because they are stale stay as they were; their age tells. While jobs are
 * hidden, or were never read, what is in use of a node belongs to one holder without a name. */
bool ui_view_look(struct ui_view *view, const struct tally *tally);

/* Nothing changed but the time: only the ages are new. */
void ui_view_look_at_ages(struct ui_view *view, const struct tally *tally);

void ui_view_write_snapshot(const struct ui_view *view, struct buf *out);
void ui_view_write_delta(const struct ui_view *view, struct buf *out); /* since the look before */

#endif
