/* hashes.c - hashes of Secrets and ConfigMaps. */
#include "operator/hashes.h"

#include "codec/base64.h"

#include <stdlib.h>

enum { MAX_DATA = 4 << 20, MAX_KEYS = 4096 };

const char *const config_ref_lists[] = { "configFileRefs", "prologScriptRefs", "epilogScriptRefs",
                                         "prologSlurmctldScriptRefs", "epilogSlurmctldScriptRefs" };
const size_t config_ref_list_count = sizeof(config_ref_lists) / sizeof(config_ref_lists[0]);

static int compare_members(const void *a, const void *b)
{
    return str_cmp(((const struct json_member *)a)->key, ((const struct json_member *)b)->key);
}

int hash_map(const struct json *data, bool is_base64, char ret_hash[DIGEST_HEX], struct err *err)
{
    struct json_member members[MAX_KEYS];
    struct json_iter iter = json_iter(data);
    auto_buf struct buf bytes;
    size_t count = 0;
    int result = 0;

    buf_init(&bytes, MAX_DATA);
    ret_hash[0] = '\0';
    while (count < MAX_KEYS && json_next_member(&iter, &members[count].key, &members[count].value))
        count++;
    if (count == 0)
        return 0;
    qsort(members, count, sizeof(members[0]), compare_members);
    for (size_t i = 0; i < count && result == 0; i++) {
        if (is_base64)
            result = base64_decode(json_str(members[i].value), 0, &bytes, err);
        else
            buf_add_str(&bytes, json_str(members[i].value));
    }
    if (result == 0)
        result = buf_check(&bytes, "data", err);
    if (result == 0)
        digest_sha256(buf_str(&bytes), ret_hash);
    return result;
}

int hash_secret_ref(const struct operator_world *world, const struct kube_object *object,
                    const char *ref, char ret_hash[DIGEST_HEX], struct err *err)
{
    const struct kube_object *secret = operator_world_ref(world->secrets, object, ref);
    int result;

    if (!secret)
        return err_set(err, ERR_NOT_FOUND, "spec.%s: Secret %s does not exist", ref,
                       json_str(json_at(operator_spec(object), ref, "name")).at);
    result = hash_map(json_get(operator_tree(secret), "data"), true, ret_hash, err);
    return result < 0 ? err_wrap(err, "Secret %s", secret->name) : 0;
}

int hash_sssd(const struct operator_world *world, const char *ns, const struct json *ref,
              char ret_hash[DIGEST_HEX], struct err *err)
{
    struct str name = json_str(json_get(ref, "name")), key = json_str(json_get(ref, "key"));
    const struct kube_object *secret =
        name.len > 0 ? kube_cache_get(world->secrets, ns, name.at) : NULL;
    auto_buf struct buf text;

    buf_init(&text, MAX_DATA);
    if (secret &&
        base64_decode(json_str(json_get_str(json_get(operator_tree(secret), "data"), key)), 0,
                      &text, err) < 0)
        return err_wrap(err, "sssdConfRef %s", name.at);
    digest_sha256(buf_str(&text), ret_hash);
    return 0;
}

const char *jwt_key_ref(const struct kube_object *object)
{
    const struct json *spec = operator_spec(object);

    return json_exists(json_get(spec, "jwtKeyRef")) ||
                   !json_exists(json_get(spec, "jwtHs256KeyRef"))
               ? "jwtKeyRef"
               : "jwtHs256KeyRef";
}
