/* external.c - writes the documents of external.metrics.k8s.io. */
#include "exporter/external.h"

#include "codec/selector.h"
#include "codec/timestamp.h"
#include "exporter/families.h"

#include <math.h>

static bool is_external(const struct family *family)
{
    return family->write && family->row.type == METRIC_GAUGE && family->page == FAMILY_CLUSTER &&
           ((family->row.labels[0] && (str_is(str_of(family->row.labels[0]), "partition") ||
                                       str_is(str_of(family->row.labels[0]), "nodeset"))) ||
            str_starts(str_of(family->row.name), STR("slinc_cluster_")));
}

int external_parse(struct str path, struct external_question *ret_question, struct err *err)
{
    struct str rest = str_sub(path, strlen(EXTERNAL_PATH), path.len), part;
    struct str parts[6];
    size_t count = 0;

    if (str_ends(rest, STR("/")))
        rest = str_sub(rest, 0, rest.len - 1);
    *ret_question = (struct external_question){ .ns = STR(""), .metric = STR("") };
    while (count < 6 && rest.len > 0 && str_next(&rest, '/', &part))
        parts[count++] = part;
    if (str_starts(path, STR(EXTERNAL_PATH)) && (count == 0 || parts[0].len == 0)) {
        if (count == 0)
            return 0; /* the group */
        if (count == 2 && str_is(parts[1], "v1beta1")) {
            ret_question->kind = EXTERNAL_IS_LIST;
            return 0;
        }
        if (count == 5 && str_is(parts[1], "v1beta1") && str_is(parts[2], "namespaces") &&
            parts[3].len > 0 && parts[4].len > 0) {
            *ret_question = (struct external_question){ .kind = EXTERNAL_IS_VALUE,
                                                        .ns = parts[3],
                                                        .metric = parts[4] };
            return 0;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "the server could not find the requested resource");
}

void external_write_group(struct buf *out)
{
    buf_add_text(out, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"" EXTERNAL_GROUP
                      "\",\"versions\":[{\"groupVersion\":\"" EXTERNAL_GROUP
                      "/v1beta1\",\"version\":\"v1beta1\"}],\"preferredVersion\":{"
                      "\"groupVersion\":\"" EXTERNAL_GROUP "/v1beta1\",\"version\":\"v1beta1\"}}");
}

void external_write_list(struct buf *out)
{
    const char *between = "";

    buf_add_text(
        out,
        "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"" EXTERNAL_GROUP
        "/v1beta1\",\"resources\":[");
    for (size_t i = 0; i < family_count; i++) {
        if (!is_external(&families[i]))
            continue;
        buf_printf(out,
                   "%s{\"name\":\"%s\",\"singularName\":\"\",\"namespaced\":true,"
                   "\"kind\":\"ExternalMetricValueList\",\"verbs\":[\"get\"]}",
                   between, families[i].row.name);
        between = ",";
    }
    buf_add_text(out, "]}");
}

/* ---- values ---- */

struct item { /* the labels of one sample */
    const struct family *family;
    const char *const *values;
};

static bool find_label(const void *data, struct str key, struct str *ret_value)
{
    const struct item *item = data;

    for (unsigned i = 0; i < METRICS_MAX_LABELS && item->family->row.labels[i]; i++) {
        if (str_is(key, item->family->row.labels[i])) {
            *ret_value = str_of(item->values[i]);
            return true;
        }
    }
    return false;
}

struct items {
    const struct selector *selector;
    struct buf *out;
    const char *timestamp, *between;
};

static void take_sample(void *context, const struct family *family, const char *const *values,
                        double value)
{
    struct items *items = context;
    const struct item item = { family, values };
    const char *between = "";

    if (!selector_matches(items->selector, (struct selector_subject){ find_label, &item }))
        return;
    buf_printf(items->out, "%s{\"metricName\":\"%s\",\"metricLabels\":{", items->between,
               family->row.name);
    for (unsigned i = 0; i < METRICS_MAX_LABELS && family->row.labels[i]; i++) {
        buf_printf(items->out, "%s\"%s\":", between, family->row.labels[i]);
        json_escape(items->out, str_of(values[i]));
        between = ",";
    }
    buf_printf(items->out, "},\"timestamp\":\"%s\",\"value\":\"%.0f\"}", items->timestamp,
               ceil(value));
    items->between = ",";
}

int external_write_value(const struct tally *tally, struct str metric, struct str selector,
                         struct buf *out, struct err *err)
{
    struct items items = { .out = out, .between = "" };
    const struct family *family = NULL;
    struct page page = { .take = take_sample, .context = &items };
    auto_buf struct buf time;
    int result;

    buf_init(&time, 64);
    for (size_t i = 0; i < family_count; i++)
        if (is_external(&families[i]) && str_is(metric, families[i].row.name))
            family = &families[i];
    if (!family)
        return err_set(err, ERR_NOT_FOUND, "there is no metric " STR_FMT, STR_ARG(metric));
    if (selector_parse(tally->arena, selector, &items.selector, err) < 0)
        return err_wrap(err, "labelSelector");
    if (!family_is_shown(family, tally->view))
        return err_set(err, ERR_UNAVAILABLE,
                       "Slurm is not read now, or hides what %s would tell: see "
                       "slinc_slurm_up and slinc_slurm_restricted",
                       family->row.name);
    if ((result = timestamp_print(tally->view->now_s * TIMESTAMP_SECOND, &time, err)) < 0)
        return result;
    items.timestamp = buf_text(&time);
    page.family = family;
    buf_add_text(out, "{\"kind\":\"ExternalMetricValueList\",\"apiVersion\":\"" EXTERNAL_GROUP
                      "/v1beta1\",\"metadata\":{},\"items\":[");
    family->write(&page, tally);
    buf_add_text(out, "]}");
    return buf_check(out, "the answer", err);
}

void external_write_status(int code, const char *message, struct buf *out)
{
    static const struct {
        int code;
        const char *reason;
    } reasons[] = { { 400, "BadRequest" },        { 401, "Unauthorized" },
                    { 403, "Forbidden" },         { 404, "NotFound" },
                    { 405, "MethodNotAllowed" },  { 500, "InternalError" },
                    { 503, "ServiceUnavailable" } };
    const char *reason = "";

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].code == code)
            reason = reasons[i].reason;
    buf_add_text(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                      "\"status\":\"Failure\",\"message\":");
    json_escape(out, str_of(message));
    buf_printf(out, ",\"reason\":\"%s\",\"code\":%d}", reason, code);
}
