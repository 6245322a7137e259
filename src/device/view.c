/* view.c - the indexes of slices and claims. */
#include "device/view.h"

void device_key(struct buf *out, const char *driver, const char *pool, const char *device)
{
    buf_printf(out, "%s/%s/%s", driver, pool, device);
}

static void emit_slice_node(const struct kube_object *object, kube_index_emit emit, void *context)
{
    if (kube_slice_of(object)->node[0])
        emit(context, str_of(kube_slice_of(object)->node));
}

static void emit_claim_devices(const struct kube_object *object, kube_index_emit emit,
                               void *context)
{
    const struct kube_resource_claim *claim = kube_resource_claim_of(object);

    for (unsigned i = 0; i < claim->result_count; i++) {
        const struct claim_result *result = &claim->results[i];
        auto_buf struct buf key = { .max = 4 * KUBE_MAX_NAME };

        device_key(&key, result->driver, result->pool, result->device);
        emit(context, buf_str(&key));
    }
}

static void emit_claim_cores(const struct kube_object *object, kube_index_emit emit, void *context)
{
    const struct kube_resource_claim *claim = kube_resource_claim_of(object);

    if (claim->cores[0] && claim->node[0])
        emit(context, str_of(claim->node));
}

struct device_indexes device_add_indexes(struct kube_cache *slices, struct kube_cache *claims)
{
    return (struct device_indexes){
        .slices_by_node = kube_cache_add_index(slices, emit_slice_node),
        .claims_by_device = kube_cache_add_index(claims, emit_claim_devices),
        .claims_by_cores = kube_cache_add_index(claims, emit_claim_cores),
    };
}
