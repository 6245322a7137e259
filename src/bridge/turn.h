/* turn.h - whether it is a unit's turn: of units that decide each other's places one is asked for
 * after the other. */
#ifndef SLINC_BRIDGE_TURN_H
#define SLINC_BRIDGE_TURN_H

#include "bridge/unit.h"

/* For a unit that could be asked for now. False: others come first; the pods are told, and the plan
 * looks again. */
bool turn_has_come(const struct bridge_world *world, const struct unit *unit, struct plan *plan);

#endif
