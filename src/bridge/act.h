/* act.h - what the rules of place.c do: each action adds to the plan, and decides nothing. */
#ifndef SLINC_BRIDGE_ACT_H
#define SLINC_BRIDGE_ACT_H

#include "bridge/situation.h"

void act_end_jobs(const struct situation *s, struct plan *plan);
void act_adopt(const struct situation *s, struct plan *plan);
void act_read_job(const struct situation *s, struct plan *plan);
void act_read_jobs(const struct situation *s, struct plan *plan);
void act_cancel_others(const struct situation *s, struct plan *plan);
void act_cancel_given_up(const struct situation *s, struct plan *plan);
void act_require_nodes(const struct situation *s, struct plan *plan);
void act_read_calmly(const struct situation *s, struct plan *plan);
void act_cancel_stray(const struct situation *s, struct plan *plan);
void act_end_pods(const struct situation *s, struct plan *plan);
void act_keep_bound(const struct situation *s, struct plan *plan);
void act_restore_claims(const struct situation *s, struct plan *plan);
void act_submit(const struct situation *s, struct plan *plan);
void act_rebook(const struct situation *s, struct plan *plan);
void act_cancel_small(const struct situation *s, struct plan *plan);
void act_cancel_replaced(const struct situation *s, struct plan *plan);
void act_read_again(const struct situation *s, struct plan *plan);
void act_sync(const struct situation *s, struct plan *plan);
void act_read_neighbours(const struct situation *s, struct plan *plan);
void act_give_back(const struct situation *s, struct plan *plan);
void act_give_forgotten_back(const struct situation *s, struct plan *plan);
void act_cancel_few_places(const struct situation *s, struct plan *plan);
void act_cancel_refused(const struct situation *s, struct plan *plan);
void act_cancel_volumes(const struct situation *s, struct plan *plan);
void act_bind_volumes(const struct situation *s, struct plan *plan);
void act_wait_for_place(const struct situation *s, struct plan *plan);
void act_read_layout(const struct situation *s, struct plan *plan);
void act_cancel_claim(const struct situation *s, struct plan *plan);
void act_give_device_back(const struct situation *s, struct plan *plan);
void act_wait_for_devices(const struct situation *s, struct plan *plan);
void act_write_claims(const struct situation *s, struct plan *plan);
void act_bind(const struct situation *s, struct plan *plan);

#endif
