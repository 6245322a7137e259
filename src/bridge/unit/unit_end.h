/* unit_end.h - how a unit ended, for its job in Slurm. Pure. */
#ifndef SLINC_BRIDGE_UNIT_END_H
#define SLINC_BRIDGE_UNIT_END_H

#include "bridge/unit/unit.h"
#include "engine/pod_end.h"

/* Of a unit that is over and has members. ret_pod: whose end it is. */
struct pod_end unit_end_of(const struct unit *unit, const struct kube_pod **ret_pod);

#endif
