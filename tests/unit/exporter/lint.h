/* lint.h - the rules that `promtool check metrics` has, for pages of the exporter. */
#ifndef SLINC_TESTS_EXPORTER_LINT_H
#define SLINC_TESTS_EXPORTER_LINT_H

#include "base/err.h"
#include "base/str.h"

/* Whether a page is one that Prometheus takes and promtool has nothing to say about: each family
 * once, with help and type before its samples; no series twice; names, suffixes and units as they
 * should be. loose: suffixes are not looked at (the old names). */
int lint_page(struct str text, bool loose, struct err *err);

#endif
