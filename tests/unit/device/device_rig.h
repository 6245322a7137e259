/* device_rig.h - a table of devices and the caches of the DRA API, from short YAML. */
#ifndef SLINC_TESTS_DEVICE_RIG_H
#define SLINC_TESTS_DEVICE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../codec/parsed.h"
#include "base/mem.h"
#include "device/names.h"
#include "device/view.h"

struct rig {
    struct clock clock;
    struct arena arena;
    struct device_table table;
    struct kube_cache *slices, *claims;
    struct device_view view;
};

static inline void rig_see(struct kube_cache *cache, const char *text)
{
    auto_json_doc struct json_doc *doc = parsed_yaml(text);
    const struct kube_object *object;

    assert_int_equal(kube_object_decode(kube_cache_kind(cache), json_root(doc), &object, NULL), 0);
    kube_cache_seen(cache, object);
    kube_object_unref(object);
}

static inline int rig_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    auto_json_doc struct json_doc *rows =
        parsed_yaml("[{class: gpu.example.com, gres: gpu, type: a},"
                    " {class: other.example.com, gres: gpu, type: b},"
                    " {class: " DEVICE_CORES_DRIVER ", gres: cpu}]");

    clock_init_virtual(&rig->clock, 0);
    arena_init(&rig->arena, 1 << 20);
    assert_int_equal(device_table_read(&rig->arena, json_root(rows), &rig->table, NULL), 0);
    rig->slices = kube_cache_new(&device_slice_kind, &rig->clock);
    rig->claims = kube_cache_new(&device_claim_kind, &rig->clock);
    rig->view = (struct device_view){ .table = &rig->table,
                                      .slices = rig->slices,
                                      .claims = rig->claims,
                                      .indexes = device_add_indexes(rig->slices, rig->claims) };
    *state = rig;
    return 0;
}

static inline int rig_down(void **state)
{
    struct rig *rig = *state;

    kube_cache_free(rig->slices);
    kube_cache_free(rig->claims);
    arena_done(&rig->arena);
    mem_free(rig);
    return 0;
}

#endif
