/* ui_rows.h - members of the page's messages that are written anew from the sums: the queue,
 * totals, partitions, ages, and what is said of the whole. Pure; compared and sent by ui_view.c. */
#ifndef SLINC_EXPORTER_UI_ROWS_H
#define SLINC_EXPORTER_UI_ROWS_H

#include "exporter/tally.h"

void ui_write_queue(const struct tally *tally, struct buf *out);
void ui_write_totals(const struct tally *tally, struct buf *out);
void ui_write_partitions(const struct tally *tally, struct buf *out);
void ui_write_ages(const struct tally *tally, struct buf *out);
void ui_write_about(const struct tally *tally, struct buf *out);

/* ---- of one job or node ---- */

void ui_write_name(const struct slurm_job *job, struct buf *out); /* its pod, or its name */
const char *ui_user(const struct tally *tally, const struct slurm_job *job); /* "": not shown */
int64_t ui_gpus(const struct tres *tres);

#endif
