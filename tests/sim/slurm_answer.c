/* slurm_answer.c - how slurmrestd writes: values, errors, and the frame around both.
 *
 * Answers are written as text, in order; a refusal throws away what was written before it. */
#include "io/http_text.h"
#include "slurm_private.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- values ---- */

void ctld_put(struct buf *out, const char *key)
{
    if (out->len > 0 && out->data[out->len - 1] != '{' && out->data[out->len - 1] != '[')
        buf_add_char(out, ',');
    if (key)
        buf_printf(out, "\"%s\":", key);
}

void ctld_put_text(struct buf *out, const char *key, const char *text)
{
    ctld_put(out, key);
    json_escape(out, str_of(text));
}

void ctld_put_int(struct buf *out, const char *key, int64_t value)
{
    ctld_put(out, key);
    buf_printf(out, "%" PRId64, value);
}

void ctld_put_bool(struct buf *out, const char *key, bool value)
{
    ctld_put(out, key);
    buf_add_text(out, value ? "true" : "false");
}

void ctld_put_number(struct buf *out, const char *key, int64_t value)
{
    ctld_put(out, key);
    buf_printf(out, "{\"set\":true,\"infinite\":false,\"number\":%" PRId64 "}", value);
}

void ctld_put_unset(struct buf *out, const char *key)
{
    ctld_put(out, key);
    buf_add_text(out, "{\"set\":false,\"infinite\":false,\"number\":0}");
}

void ctld_put_infinite(struct buf *out, const char *key)
{
    ctld_put(out, key);
    buf_add_text(out, "{\"set\":false,\"infinite\":true,\"number\":0}");
}

void ctld_put_words(struct buf *out, const char *key, const char *list)
{
    struct str rest = str_of(list), word;

    ctld_put(out, key);
    buf_add_char(out, '[');
    while (rest.len > 0 && str_next(&rest, ',', &word)) {
        ctld_put(out, NULL);
        json_escape(out, word);
    }
    buf_add_char(out, ']');
}

/* ---- errors ---- */

static const struct {
    int number, status;
    const char *words;
} errors[] = {
    { -1, 500, "Unspecified error" },
    { 0, 200, "No error" },
    { 1, 403, "Operation not permitted" },
    { 22, 500, "Invalid argument" },
    { 1007, 511, "Protocol authentication error" },
    { 1800, 502, "Unable to contact slurm controller (connect failure)" },
    { 2000, 422, "Invalid partition name specified" },
    { 2002, 422, "Access/permission denied" },
    { 2004, 422, "Requested nodes not in this partition" },
    { 2006, 422, "Node count specification invalid" },
    { 2007, 422, "Slurm temporarily unable to accept job, sleeping and retrying" },
    { 2010, 422, "Invalid user id" },
    { 2012, 422, "Pathname of a file, directory or other parameter too long" },
    { 2013, 422, "Immediate execution impossible, insufficient priority" },
    { 2014, 422, "Requested node configuration is not available" },
    { 2015, 422, "Requested partition configuration not available now" },
    { 2016, 422, "Requested nodes are busy" },
    { 2017, 404, "Invalid job id specified" },
    { 2018, 422, "Invalid node name specified" },
    { 2021, 422, "Job/step already completing or completed" },
    { 2028, 422, "Invalid node state specified" },
    { 2029, 422, "Invalid feature specification" },
    { 2031, 422, "Active features not subset of available features" },
    { 2048, 422, "Invalid license specification" },
    { 2053, 422, "Requested reservation is invalid" },
    { 2055, 422, "Requested reservation is in use" },
    { 2066, 422, "Invalid qos specification" },
    { 2068, 422, "Required node not available (down, drained or reserved)" },
    { 2070, 422, "Job submission denied, partition is not available" },
    { 2071, 422, "Job is in held state, pending scheduler release" },
    { 2072, 422, "Invalid generic resource (gres) specification" },
    { 2081, 422, "Invalid job array specification" },
    { 2084, 422, "Job has already finished" },
    { 2083, 422, "Job is no longer pending execution" },
    { 2085, 422, "Job is not running" },
    { 2101, 422, "Partition is in a down state" },
    { 2113, 422, "Invalid group id" },
    { 2127, 422, "Environment is missing in job" },
    { 2137, 422, "JobID can not be zero" },
    { 2164, 422, "Unable to resolve group ID to group name" },
    { 2166, 422, "Unable to resolve user ID to user name" },
    { 2168, 422, "Node already exists in the node table" },
    { 2169, 422, "Node table is currently full" },
    { 2180, 422, "Invalid node state transition" },
    { 2189, 500, "Invalid configuration for external job" },
    { 5004, 504, "Socket timed out on send/recv operation" },
    { 6010, 500, "Rejecting authentication of user nobody or group nobody" },
    { 9000, 422, "Query empty or not RFC7320 compliant" },
    { 9200, 422, "Unable to resolve path" },
    { 9207, 500, "Data parser unable to parse invalid flag" },
};

/* What slurmrestd itself could not read (9000 and more) was 422 before 26.05, too. */
int ctld_error_status(const struct slurm_store *store, int number)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].number == number)
            return errors[i].status == 422 && store->options.refuses_with_500 && number < 9000
                       ? 500
                       : errors[i].status;
    return 500;
}

const char *ctld_error_words(int number)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].number == number)
            return errors[i].words;
    return "Unspecified error";
}

/* ---- the frame ---- */

void ctld_plain(struct slurm_store_answer *answer, int status, const char *text)
{
    buf_clear(&answer->body);
    buf_add_text(&answer->body, text);
    answer->status = status;
    answer->content_type = text[0] ? "text/plain" : "";
}

void ctld_begin(struct ctld_call *call)
{
    buf_clear(&call->answer->body);
    call->answer->status = 200;
    call->answer->content_type = "application/json";
    buf_add_char(&call->answer->body, '{');
}

static void put_warnings(struct ctld_call *call)
{
    struct buf *out = &call->answer->body;

    ctld_put(out, "warnings");
    buf_printf(out, "[%s]}", buf_text(&call->warnings));
}

void ctld_finish(struct ctld_call *call)
{
    ctld_put(&call->answer->body, "errors");
    buf_add_text(&call->answer->body, "[]");
    put_warnings(call);
}

static void put_error(struct buf *out, int number, const char *what, const char *source)
{
    ctld_put(out, NULL);
    buf_add_char(out, '{');
    ctld_put_text(out, "description", what);
    ctld_put_int(out, "error_number", number);
    ctld_put_text(out, "error", ctld_error_words(number));
    ctld_put_text(out, "source", source);
    buf_add_char(out, '}');
}

void ctld_finish_error(struct ctld_call *call, int number, const char *what, const char *source)
{
    struct buf *out = &call->answer->body;

    ctld_put(out, "errors");
    buf_add_char(out, '[');
    put_error(out, number, what, source);
    if (call->second.what)
        put_error(out, call->second.number, call->second.what, call->second.source);
    buf_add_char(out, ']');
    put_warnings(call);
    call->answer->status = ctld_error_status(call->store, number);
}

void ctld_refuse_as(struct ctld_call *call, int number, const char *what, const char *source)
{
    ctld_begin(call);
    if (call->route->before)
        buf_add_text(&call->answer->body, call->route->before);
    ctld_finish_error(call, number, what, source);
}

void ctld_refuse(struct ctld_call *call, int number)
{
    auto_buf struct buf what;
    const char *place;

    buf_init(&what, 4096);
    if (!call->route->what) { /* the one that fails without a word */
        ctld_begin(call);
        ctld_finish(call);
        call->answer->status = ctld_error_status(call->store, number);
        return;
    }
    place = strstr(call->route->what, "%s");
    if (place) {
        buf_add(&what, call->route->what, (size_t)(place - call->route->what));
        buf_printf(&what, "%s%s", call->name, place + 2);
    } else {
        buf_add_text(&what, call->route->what);
    }
    ctld_refuse_as(call, number, buf_text(&what), call->route->source);
}

void ctld_refuse_request(struct ctld_call *call, const char *part, const char *source)
{
    char what[80];

    (void)snprintf(what, sizeof(what), "Rejecting request. Failure parsing %s", part);
    ctld_begin(call);
    ctld_finish_error(call, 9000, what, source);
}

void ctld_warn(struct ctld_call *call, const char *source, const char *format, ...)
{
    auto_buf struct buf text;
    va_list args;

    buf_init(&text, 4096);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    buf_add_text(&call->warnings, call->warnings.len > 0 ? ",{" : "{");
    ctld_put_text(&call->warnings, "description", buf_text(&text));
    ctld_put_text(&call->warnings, "source", source);
    buf_add_char(&call->warnings, '}');
}

/* ---- lists ---- */

struct str ctld_query(const struct ctld_call *call, const char *name)
{
    auto_buf struct buf value;

    buf_init(&value, 1u << 20);
    if (http_query_get(call->query, name, &value, NULL) < 0)
        return STR("");
    return (struct str){ arena_strndup(call->arena, buf_text(&value), value.len), value.len };
}

/* Times are whole seconds there: a change in the second of the last look counts as new. */
bool ctld_is_unchanged(const struct ctld_call *call, enum ctld_table table)
{
    int64_t since;

    if (str_to_i64(ctld_query(call, "update_time"), 0, INT64_MAX, &since, NULL) < 0 || since == 0)
        return false;
    return call->store->changed_us[table] / CTLD_SECOND <= since - 1;
}

void ctld_put_last_update(struct ctld_call *call)
{
    ctld_put_number(&call->answer->body, "last_update", ctld_wall_us(call->store) / CTLD_SECOND);
}
