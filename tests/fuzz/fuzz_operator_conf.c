/* fuzz_operator_conf.c - extraConf of a Controller and of a NodeSet, which users write.
 *
 * Holds: the merged section has only lines of its rows, each once, and Slurm reads them back; the
 * argument of slurmd is one pair of quotes around printable text that means nothing to a shell. */
#include "codec/slurmconf.h"
#include "codec/slurmconf_merge.h"
#include "operator/slurm_conf.h"
#include "operator/worker_conf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

enum { MEMORY = 64 << 20, MAX_TEXT = 1 << 16 };

static const struct conf_merge_row rows[] = {
    { .key = "AuthAltParameters", .values = "jwt_key=/etc/slurm/jwt_hs256.key" },
    { .key = "SlurmctldParameters", .values = "enable_configless,enable_stepmgr" },
};

static void check_merge(struct str users)
{
    auto_arena struct arena arena;
    auto_buf struct buf out = { .max = 1 << 20 };
    const struct conf_pair *pairs = NULL;
    unsigned seen[2] = { 0, 0 };
    size_t count = 0;
    struct err err = { 0 };

    arena_init(&arena, MEMORY);
    if (conf_merged(rows, 2, users, &arena, &out, &err) < 0) {
        must(err.text[0] != '\0');
        return;
    }
    must(conf_parse(&arena, buf_str(&out), &pairs, &count, NULL) == 0);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 2; k++)
            if (conf_key_is(&pairs[i], rows[k].key)) {
                must(strstr(buf_text(&out), rows[k].values) || pairs[i].value.len > 0);
                seen[k]++;
            }
    must(seen[0] <= 1 && seen[1] <= 1 && seen[0] + seen[1] == count);
}

static void check_argument(const char *argument)
{
    size_t length = strlen(argument);

    must(length >= 2 && argument[0] == '\'' && argument[length - 1] == '\'');
    for (size_t i = 1; i + 1 < length; i++)
        must(argument[i] >= ' ' && argument[i] <= '~' && !strchr("'\"`$\\#", argument[i]));
}

static const struct kube_object *new_nodeset(struct str extra)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *doc = NULL;
    struct json_mut *root = json_new_object(build), *meta, *spec;
    const struct kube_object *nodeset = NULL;

    json_put_text(build, root, "apiVersion", "slinky.slurm.net/v1beta1");
    json_put_text(build, root, "kind", "NodeSet");
    meta = json_put_object(build, root, "metadata");
    json_put_text(build, meta, "name", "gpu");
    json_put_text(build, meta, "namespace", "site");
    spec = json_put_object(build, root, "spec");
    json_put_str(build, spec, "extraConf", extra);
    doc = json_freeze(root);
    must(kube_object_predicted(operator_kind_of("NodeSet"), json_root(doc), &nodeset, NULL) == 0);
    return nodeset;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { size > 0 ? (const char *)data : "", size > MAX_TEXT ? MAX_TEXT : size };
    const struct kube_object *nodeset;
    auto_arena struct arena arena;
    struct err err = { 0 };

    arena_init(&arena, MEMORY);
    check_merge(text);
    if (worker_conf_check(text, &err) < 0)
        must(err.text[0] != '\0');
    if (!str_is_utf8(text))
        return 0;
    nodeset = new_nodeset(text);
    check_argument(worker_conf(&arena, nodeset));
    must(str_starts(str_of(strstr(worker_conf(&arena, nodeset), "Features=")), STR("Features=")));
    (void)worker_conf_has_topology(&arena, nodeset);
    kube_object_unref(nodeset);
    return 0;
}
