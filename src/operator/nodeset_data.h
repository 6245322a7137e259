/* nodeset_data.h - the part of a NodeSet that its revisions hold. */
#ifndef SLINC_OPERATOR_NODESET_DATA_H
#define SLINC_OPERATOR_NODESET_DATA_H

#include "operator/kinds.h"

/* The data of the revision that the NodeSet wants now: {"spec":{...}}, byte for byte as the Slinky
 * operator writes it. mounted: a hash that becomes an annotation of the template; NULL: none. */
int nodeset_data(const struct kube_object *nodeset, const char *mounted, struct buf *out,
                 struct err *err);

/* What the data of a revision means for pods. Two that mean the same are json_equal. */
struct json_doc *nodeset_data_meaning(const struct json *data);

#endif
