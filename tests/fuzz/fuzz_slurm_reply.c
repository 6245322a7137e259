/* fuzz_slurm_reply.c - whatever slurmrestd answers has one class, and facts are never made up.
 *
 * The first three bytes choose verb, endpoint and status; the rest is the body. */
#include "slurm/error.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int statuses[] = { 200, 304, 400, 401, 403, 404, 415, 422, 500, 502, 504, 511, 0 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_error(const struct slurm_reply *reply, const struct slurm_error *error)
{
    bool object = json_is_object(reply->body);
    bool write = slurm_is_write(reply->verb, reply->endpoint);

    check((unsigned)error->class < SLURM_CLASSES);
    check(str_is_utf8(str_of(error->text)));
    check(error->class == SLURM_DONE || error->class == SLURM_NOT_MODIFIED || error->text[0]);
    check(object || (error->class != SLURM_NOT_FOUND && error->class != SLURM_DONE));
    check(error->class != SLURM_NOT_FOUND || reply->status == 200 || reply->status == 404 ||
          reply->status == 422);
    check(error->class != SLURM_DONE || reply->status == 200);
    check(error->class != SLURM_UNKNOWN || write);
    check(error->class != SLURM_UNKNOWN || !error->nothing_done);
    if (reply->endpoint == SLURM_JOB_SUBMIT && reply->verb == SLURM_POST &&
        error->class == SLURM_DONE)
        check(json_i64_or(json_get(reply->body, "job_id"), 0) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct slurm_error first, second;
    struct slurm_reply reply;

    if (size < 3)
        return 0;
    reply = (struct slurm_reply){
        .verb = (enum slurm_verb)(data[0] % 3),
        .endpoint = (enum slurm_endpoint)(data[1] % SLURM_ENDPOINTS),
        .status = statuses[data[2] % (sizeof(statuses) / sizeof(statuses[0]))],
        .content_type = data[2] & 0x80 ? "text/plain" : "application/json",
        .raw = { (const char *)data + 3, size - 3 },
    };
    json_parse(reply.raw, size, &doc, NULL);
    reply.body = json_root(doc);
    slurm_classify(&reply, &first);
    slurm_classify(&reply, &second);
    check(memcmp(&first, &second, sizeof(first)) == 0);
    check_error(&reply, &first);
    slurm_classify_status(json_item(json_get(reply.body, "status"), 0), &first);
    return 0;
}
