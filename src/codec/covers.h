/* covers.h - whether an object in the API server already says all that we want of it.
 *
 * The server fills in defaults, so a live object has more than was sent. `live` covers `wanted`
 * when every value of `wanted` is there too:
 *
 *   objects   each member of wanted is covered by the member of the same name
 *   arrays    the same number of items, each covered by the item at the same place
 *   scalars   equal; quantities by amount ("1000m" is "1") below the keys that hold quantities
 *   nothing   null, false, 0, "", [] and objects of nothing else are covered by an absent value:
 *             the server leaves a field out when it has its zero value
 *
 * A null in wanted is covered only by an absent value or null: the field must not be there.
 * A wanted that is absent itself wants nothing. */
#ifndef SLINC_CODEC_COVERS_H
#define SLINC_CODEC_COVERS_H

#include "codec/json.h"

bool json_covers(const struct json *live, const struct json *wanted);

#endif
