/* owners.c - owner references, written and read. */
#include "kube/owners.h"

#include "base/buf.h"

struct json_mut *kube_owner_reference(struct json_build *build, const struct kube_object *owner)
{
    struct json_mut *reference = json_new_object(build);
    auto_buf struct buf version;

    buf_init(&version, 512);
    kube_api_version(&version, owner->kind->resource);
    json_put_text(build, reference, "apiVersion", buf_text(&version));
    json_put_text(build, reference, "kind", owner->kind->resource->kind);
    json_put_text(build, reference, "name", owner->name);
    json_put_text(build, reference, "uid", owner->uid);
    json_put(build, reference, "controller", json_new_bool(build, true));
    json_put(build, reference, "blockOwnerDeletion", json_new_bool(build, true));
    return reference;
}

struct json_mut *kube_shared_owner_reference(struct json_build *build,
                                             const struct kube_object *owner)
{
    struct json_mut *reference = kube_owner_reference(build, owner);

    (void)json_remove(reference, STR("controller"));
    return reference;
}

bool kube_is_controlled_by(const struct kube_object *child, const struct kube_object *owner)
{
    return owner->uid[0] && strcmp(child->owner.uid, owner->uid) == 0;
}

void kube_index_by_owner(const struct kube_object *object, kube_index_emit emit, void *context)
{
    emit(context, str_of(object->owner.uid));
}
