/* admit.c - reads a review of a custom resource, has it checked, and writes the answer. */
#include "operator/admit.h"

#include "base/mem.h"
#include "engine/admission.h"
#include "operator/kinds.h"
#include "operator/names.h"

#include <ctype.h>
#include <stdio.h>

enum {
    SECOND_US = 1000000,
    HOLD_US = 3 * SECOND_US, /* for objects that are being read; the API server waits 10 s */
    MAX_MESSAGE = 16 << 10,
    MAX_ARENA = 16 << 20,
    MAX_HOOKS = 16,
    MAX_PATH = 128,
};

const struct metric_family operator_admit_metrics[] = {
    { .name = "slinc_operator_admissions_total",
      .help = "Answers of the webhook: allowed, refused or unreadable.",
      .type = METRIC_COUNTER,
      .labels = { "webhook", "verdict" } },
    { .name = "slinc_operator_admissions_held_total",
      .help = "Answers that waited for an object to be read.",
      .type = METRIC_COUNTER,
      .labels = { "webhook" } },
};
const size_t operator_admit_metric_count =
    sizeof(operator_admit_metrics) / sizeof(operator_admit_metrics[0]);

/* ---- one review ---- */

/* The main resource of this kind, new or changed: everything else passes. */
static bool is_our_business(const struct kube_resource *kind,
                            const struct admission_request *request)
{
    if (!str_is(request->group, OPERATOR_GROUP) || request->subresource.len > 0 ||
        !json_is_object(request->object))
        return false;
    return (str_is(request->operation, "CREATE") || str_is(request->operation, "UPDATE")) &&
           str_is(request->resource, kind->plural);
}

static struct str joined(const struct admit_findings *findings, struct buf *out)
{
    for (unsigned i = 0; i < findings->count; i++)
        buf_printf(out, "%s" STR_FMT, i > 0 ? "; " : "", STR_ARG(findings->at[i]));
    return buf_str(out);
}

static const char *answer_check(const struct admission_request *request,
                                const struct admit_check *check, struct buf *out)
{
    auto_buf struct buf message = { .max = MAX_MESSAGE };
    struct admission_answer answer = { .warnings = check->warnings.at,
                                       .warning_count = check->warnings.count };

    if (check->mistyped.count > 0) {
        answer.code = ADMISSION_BAD_REQUEST;
        answer.message = joined(&check->mistyped, &message);
    } else if (check->denials.count > 0) {
        answer.code = ADMISSION_FORBIDDEN;
        answer.message = joined(&check->denials, &message);
    }
    admission_write(request, &answer, out);
    return answer.code == 0 ? "allowed" : "refused";
}

struct webhook_answer operator_admit_review(const char *kind, struct str body, review_find find,
                                            void *find_context, struct buf *out)
{
    struct webhook_answer answer = { .status = 200, .result = "allowed" };
    auto_arena struct arena arena;
    auto_json_doc struct json_doc *doc = NULL;
    struct admission_request request;
    struct err err = { .class = 0 };
    struct admit_check check;

    arena_init(&arena, MAX_ARENA);
    if (json_parse(body, WEBHOOK_MAX_BODY, &doc, &err) < 0 ||
        admission_read(json_root(doc), &request, &err) < 0) {
        buf_printf(out, "%s\n", err.text);
        return (struct webhook_answer){ err.class == ERR_TOO_BIG ? ADMISSION_TOO_LARGE
                                                                 : ADMISSION_BAD_REQUEST,
                                        "unreadable", false };
    }
    check = (struct admit_check){ .kind = kind,
                                  .uid = request.uid,
                                  .ns = request.ns,
                                  .name = request.name,
                                  .object = request.object,
                                  .arena = &arena,
                                  .find = find,
                                  .find_context = find_context };
    if (str_is(request.operation, "UPDATE"))
        check.old = request.old;
    if (is_our_business(operator_kind_of(kind)->resource, &request))
        admit_check(&check);
    answer.result = answer_check(&request, &check, out);
    answer.is_early = check.is_early;
    return answer;
}

/* ---- the server ---- */

struct hook {
    struct operator_admit *admit;
    const struct kube_resource *kind;
    char path[MAX_PATH];
};

struct operator_admit {
    struct review_reads *reads;
    struct hook hooks[MAX_HOOKS];
    struct webhook_path paths[MAX_HOOKS];
    unsigned count;
    struct webhook_server *server;
};

static struct webhook_answer review(void *context, struct str body, struct buf *out)
{
    const struct hook *hook = context;

    return operator_admit_review(hook->kind->kind, body, review_reads_find, hook->admit->reads,
                                 out);
}

/* "/validate-slinky-slurm-net-v1beta1-controller": the webhooks of all charts name it so. */
static void add_hook(struct operator_admit *admit, const struct kube_resource *kind)
{
    struct hook *hook = &admit->hooks[admit->count];

    *hook = (struct hook){ .admit = admit, .kind = kind };
    (void)snprintf(hook->path, sizeof(hook->path), "/validate-%s-%s-%s", kind->group, kind->version,
                   kind->kind);
    for (char *c = hook->path; *c; c++)
        *c = (char)(*c == '.' ? '-' : tolower((unsigned char)*c));
    admit->paths[admit->count++] = (struct webhook_path){ hook->path, review, hook };
}

int operator_admit_new(const struct operator_admit_options *options,
                       struct operator_admit **ret_admit, struct err *err)
{
    struct operator_admit *admit = mem_alloc(sizeof(*admit));
    struct webhook_options server = { .paths = admit->paths,
                                      .metrics = options->metrics,
                                      .results = &operator_admit_metrics[0],
                                      .held = &operator_admit_metrics[1],
                                      .address = options->address,
                                      .port = options->port,
                                      .folder = options->folder,
                                      .hold_us = HOLD_US,
                                      .is_needed = options->is_needed };
    int result;

    admit->reads = review_reads_new(options->client);
    for (size_t i = 0; i < operator_kind_count && admit->count < MAX_HOOKS; i++)
        if (strcmp(operator_kinds[i].kind->resource->group, OPERATOR_GROUP) == 0)
            add_hook(admit, operator_kinds[i].kind->resource);
    server.path_count = admit->count;
    result = webhook_server_new(kube_client_loop(options->client), &server, &admit->server, err);
    if (result < 0)
        operator_admit_free(admit);
    else
        *ret_admit = admit;
    return result;
}

void operator_admit_free(struct operator_admit *admit)
{
    if (!admit)
        return;
    webhook_server_free(admit->server);
    review_reads_free(admit->reads);
    mem_free(admit);
}

void operator_admit_add_health(struct operator_admit *admit, struct health *health)
{
    webhook_server_add_health(admit->server, health);
}
