/* hashes.h - the hashes that stand in annotations of pod templates: a change restarts the pods. */
#ifndef SLINC_OPERATOR_HASHES_H
#define SLINC_OPERATOR_HASHES_H

#include "codec/digest.h"
#include "operator/world.h"

/* Of a map of texts: all values one after the other, in the order of their keys; "" for none.
 * is_base64: the values are base64, as in Secrets. */
int hash_map(const struct json *data, bool is_base64, char ret_hash[DIGEST_HEX], struct err *err);

/* Of the whole data of the Secret that spec.<ref> names, in the object's namespace.
 * -ERR_NOT_FOUND when there is no such Secret. */
int hash_secret_ref(const struct operator_world *world, const struct kube_object *object,
                    const char *ref, char ret_hash[DIGEST_HEX], struct err *err);

/* Of the file that a reference to a key of a Secret names. The Secret may come later: the hash is
 * that of nothing until then. */
int hash_sssd(const struct operator_world *world, const char *ns, const struct json *ref,
              char ret_hash[DIGEST_HEX], struct err *err);

/* The members of a Controller's spec that list ConfigMaps with files for /etc/slurm. */
extern const char *const config_ref_lists[];
extern const size_t config_ref_list_count;

/* The name of the member with the reference to the JWT key: jwtKeyRef, or the older
 * jwtHs256KeyRef where only that is given. */
const char *jwt_key_ref(const struct kube_object *object);

#endif
