/* rules.h - what a pod of ours may not ask for, as a table of rules with words for its
 * author.
 *
 * The first rule that is broken is told. An update is refused for what it brings: what was wrong
 * with the pod before it does not keep anybody from mending or removing it. */
#ifndef SLINC_ADMIT_RULES_H
#define SLINC_ADMIT_RULES_H

#include "base/buf.h"

#include <stdbool.h>

struct admit_request;

/* True when every rule holds; else `why` is what to tell. The pod was checked (admit_pod_check). */
bool admit_rules_allow(const struct admit_request *request, struct buf *why);

/* The rules as Markdown: when, what, message. */
void admit_rules_reference(struct buf *out);

#endif
