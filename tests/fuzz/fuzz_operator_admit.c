/* fuzz_operator_admit.c - any bytes, to the webhook of any custom resource, get a 4xx with a line
 * of text, or a review that can be read: with the request's uid, and words where it denies. The
 * first byte chooses the kind and what is known of objects that are named. */
#include "operator/admit.h"

#include <stdlib.h>

static const char *const kinds[] = { "Controller", "Accounting", "RestApi",
                                     "LoginSet",   "NodeSet",    "Token" };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static enum review_known find(void *context, struct str uid, const struct kube_resource *resource,
                              struct str ns, struct str name, const struct json **ret_object)
{
    const enum review_known *known = context;

    *ret_object = NULL;
    return *known;
}

static void check_answer(const struct json *response)
{
    const struct json *status = json_get(response, "status");
    int64_t code = json_i64_or(json_get(status, "code"), 0);

    must(json_str(json_get(response, "uid")).len > 0);
    if (json_bool_or(json_get(response, "allowed"), false))
        return;
    must(code == 400 || code == 403);
    must(json_str(json_get(status, "message")).len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf out = { .max = WEBHOOK_MAX_ANSWER };
    auto_json_doc struct json_doc *doc = NULL;
    enum review_known known;
    struct webhook_answer answer;

    if (size == 0)
        return 0;
    known = (enum review_known)(data[0] >> 4 & 3);
    answer = operator_admit_review(
        kinds[data[0] % 6], (struct str){ (const char *)data + 1, size - 1 }, find, &known, &out);
    must(!out.overflowed);
    if (answer.status != 200) {
        must(answer.status == 400 || answer.status == 413);
        must(str_ends(buf_str(&out), STR("\n")));
        return 0;
    }
    must(json_parse(buf_str(&out), WEBHOOK_MAX_ANSWER, &doc, NULL) == 0);
    check_answer(json_get(json_root(doc), "response"));
    return 0;
}
