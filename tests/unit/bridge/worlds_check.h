/* worlds_check.h - what may stand in a world, so that a word that nobody reads is refused.
 *
 * Refused are: keys that a world, one of its rows or an expected action does not have, values of
 * another type, an expected patch or update that does not say what is written, and an empty
 * expectation that names neither what the unit waits for nor the state that it is in. */
#ifndef SLINC_TESTS_BRIDGE_WORLDS_CHECK_H
#define SLINC_TESTS_BRIDGE_WORLDS_CHECK_H

#include "base/err.h"
#include "codec/json.h"

int world_check(const struct json *root, struct err *err);
/* The `given` part alone. */
int world_check_given(const struct json *given, struct err *err);

#endif
