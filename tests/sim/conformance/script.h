/* script.h - what the players of conformance scripts share: reading one, and the values that
 * earlier calls have saved. Whatever is wrong with a script ends the program. */
#ifndef SLINC_SIM_CONFORMANCE_SCRIPT_H
#define SLINC_SIM_CONFORMANCE_SCRIPT_H

#include "base/map.h"
#include "codec/json.h"

enum { SCRIPT_MAX_TEXT = 4 << 20 };

void script_die(const char *what, const char *detail) __attribute__((noreturn));
struct json_doc *script_read(const char *path);

void script_values_init(struct map *values); /* name -> char * */
void script_save(struct map *values, struct str name, struct str value);
/* "$name" becomes what was saved under it; the longest name that fits counts. */
void script_fill_in(const struct map *values, struct str text, struct buf *out);

#endif
