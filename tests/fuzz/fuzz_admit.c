/* fuzz_admit.c - any bytes, to either hook, get a 4xx with a line of text, or a review that can be
 * read: with the request's uid, and words where it denies. A patch fits the pod, and the pod that
 * it makes needs no other. The first byte chooses hook and config. */
#include "admit/admit.h"
#include "codec/base64.h"
#include "codec/patch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static struct admit *new_admit(struct bridge_config *config, bool by_selector)
{
    struct admit *admit;

    must(bridge_config_parse(by_selector ? STR("managedNamespaceSelector: {}") : STR(""), config,
                             NULL) == 0);
    must(admit_new(config, NULL, &admit, NULL) == 0);
    return admit;
}

static void check_denial(const struct json *response)
{
    const struct json *status = json_get(response, "status");
    int64_t code = json_i64_or(json_get(status, "code"), 0);

    must(code == 400 || code == 403 || code == 503);
    must(json_str(json_get(status, "message")).len > 0);
    must(!json_get(response, "patch"));
}

/* The review, of the pod with the patch applied. */
static void write_patched(const struct json *review, struct str patch, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    auto_json_doc struct json_doc *ops = NULL;
    struct json_mut *root, *request, *pod;

    must(json_parse(patch, 1 << 20, &ops, NULL) == 0);
    must(json_len(json_root(ops)) > 0);
    must(patch_json_apply(build, json_at(review, "request", "object"), json_root(ops), &pod,
                          NULL) == 0);
    root = json_copy(build, review);
    request = json_mut_get(root, STR("request"));
    json_put(build, request, "object", pod);
    json_mut_write(root, out);
}

static void check_change(const struct admit *admit, const struct json *review,
                         const struct json *response)
{
    auto_buf struct buf patch = { .max = 1 << 20 }, again = { .max = ADMIT_MAX_BODY };
    auto_buf struct buf out = { .max = ADMIT_MAX_ANSWER };

    must(base64_decode(json_str(json_get(response, "patch")), 0, &patch, NULL) == 0);
    write_patched(review, buf_str(&patch), &again);
    if (!again.overflowed)
        must(admit_review(admit, ADMIT_MUTATE, buf_str(&again), &out).verdict == ADMIT_ALLOWED);
}

static void check(const struct admit *admit, enum admit_hook hook, struct str body)
{
    auto_json_doc struct json_doc *review = NULL, *doc = NULL;
    auto_buf struct buf out = { .max = ADMIT_MAX_ANSWER };
    struct admit_answer answer = admit_review(admit, hook, body, &out);
    const struct json *response;
    bool is_allowed;

    must(!out.overflowed && out.len > 0);
    if (answer.status != 200) {
        must(answer.status == 400 || answer.status == 413);
        must(answer.verdict == ADMIT_UNREADABLE && out.data[out.len - 1] == '\n');
        return;
    }
    must(json_parse(body, ADMIT_MAX_BODY, &review, NULL) == 0);
    must(json_parse(buf_str(&out), ADMIT_MAX_ANSWER, &doc, NULL) == 0);
    response = json_get(json_root(doc), "response");
    is_allowed = json_bool_or(json_get(response, "allowed"), false);
    must(str_eq(json_str(json_get(response, "uid")),
                json_str(json_at(json_root(review), "request", "uid"))));
    must(is_allowed == (answer.verdict == ADMIT_ALLOWED || answer.verdict == ADMIT_CHANGED));
    if (!is_allowed)
        check_denial(response);
    if (answer.verdict == ADMIT_CHANGED)
        check_change(admit, json_root(review), response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bridge_config config;
    struct admit *admit;

    if (size == 0)
        return 0;
    admit = new_admit(&config, data[0] & 2);
    check(admit, data[0] & 1 ? ADMIT_VALIDATE : ADMIT_MUTATE,
          (struct str){ (const char *)data + 1, size - 1 });
    admit_free(admit);
    bridge_config_done(&config);
    return 0;
}
