/* test_error.c - every situation that slurmrestd can put us in has one class; what is not known is
 * never taken for a fact. */
#include "slurm/error.h"

#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct expected {
    const char *recording;
    enum slurm_verb verb;
    enum slurm_endpoint endpoint;
    enum slurm_class class;
    int number;
    bool nothing_done;
};

/* What a real Slurm 26.05.5 answered. */
static const struct expected recorded[] = {
    { "no_token", SLURM_GET, SLURM_PING, SLURM_AUTH, 0, true },
    { "user_name_only", SLURM_GET, SLURM_PING, SLURM_AUTH, 0, true },
    { "bad_token_read", SLURM_GET, SLURM_NODES, SLURM_AUTH, 1007, true },
    { "bad_token_submit", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_AUTH, 1007, true },
    { "bad_token_ping", SLURM_GET, SLURM_PING, SLURM_DONE, 0, false },
    { "unknown_version", SLURM_GET, SLURM_PING, SLURM_NOT_SUPPORTED, 0, true },
    { "unknown_path", SLURM_GET, SLURM_LICENSES, SLURM_NOT_SUPPORTED, 0, true },
    { "unknown_method", SLURM_POST, SLURM_NODES, SLURM_NOT_SUPPORTED, 0, true },
    { "slurmdb_off", SLURM_GET, SLURM_DB_ACCOUNTS, SLURM_NOT_SUPPORTED, 0, true },
    { "conf_v44", SLURM_GET, SLURM_CONF, SLURM_NOT_SUPPORTED, 0, true },
    { "body_not_json", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 0, true },
    { "body_unknown_type", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 0, true },
    { "jobs_bad_flag", SLURM_GET, SLURM_JOBS, SLURM_INVALID, 9207, true },
    { "jobs_state_comma", SLURM_GET, SLURM_JOBS_STATE, SLURM_UNAVAILABLE, 0, true },

    { "job_get_absent", SLURM_GET, SLURM_JOB, SLURM_NOT_FOUND, 2017, true },
    { "job_update_absent", SLURM_POST, SLURM_JOB, SLURM_NOT_FOUND, 2017, true },
    { "job_cancel_absent", SLURM_DELETE, SLURM_JOB, SLURM_NOT_FOUND, 2017, true },
    { "resources_absent", SLURM_GET, SLURM_RESOURCES, SLURM_NOT_FOUND, 2017, true },
    { "job_cancel_ended", SLURM_DELETE, SLURM_JOB, SLURM_DONE, 2021, true },
    { "job_cancel_done", SLURM_DELETE, SLURM_JOB, SLURM_DONE, 0, false },
    { "job_update_ended", SLURM_POST, SLURM_JOB, SLURM_INVALID, 2084, true },
    { "jobs_cancel_mixed", SLURM_DELETE, SLURM_JOBS, SLURM_DONE, 2021, false },
    { "job_cancel_forbidden", SLURM_DELETE, SLURM_JOB, SLURM_UNKNOWN, 1, false },
    { "job_cancel_ctld_down", SLURM_DELETE, SLURM_JOB, SLURM_UNKNOWN, 1, false },

    { "node_get_absent", SLURM_GET, SLURM_NODE, SLURM_NOT_FOUND, 0, true },
    { "node_update_absent", SLURM_POST, SLURM_NODE, SLURM_NOT_FOUND, 2018, true },
    { "nodes_update_absent", SLURM_POST, SLURM_NODES, SLURM_UNKNOWN_NODE, 2018, false },
    { "node_delete_absent", SLURM_DELETE, SLURM_NODE, SLURM_NOT_FOUND, 2018, false },
    { "node_create_done", SLURM_POST, SLURM_NEW_NODE, SLURM_DONE, 0, false },
    { "node_create_exists", SLURM_POST, SLURM_NEW_NODE, SLURM_EXISTS, 2168, true },
    { "node_create_bad_state", SLURM_POST, SLURM_NEW_NODE, SLURM_INVALID, 2028, true },
    { "node_create_bad_gres", SLURM_POST, SLURM_NEW_NODE, SLURM_INVALID, 22, true },
    { "node_create_bad_key", SLURM_POST, SLURM_NEW_NODE, SLURM_INVALID, -1, true },
    { "node_create_forbidden", SLURM_POST, SLURM_NEW_NODE, SLURM_FORBIDDEN, 2010, true },
    { "node_update_forbidden", SLURM_POST, SLURM_NODE, SLURM_FORBIDDEN, 2010, true },
    { "node_delete_busy", SLURM_DELETE, SLURM_NODE, SLURM_BUSY, 2016, false },

    { "partition_absent", SLURM_GET, SLURM_PARTITION, SLURM_NOT_FOUND, 0, true },
    { "reservation_get_absent", SLURM_GET, SLURM_RESERVATION, SLURM_NOT_FOUND, 0, true },
    { "reservation_delete_absent", SLURM_DELETE, SLURM_RESERVATION, SLURM_NOT_FOUND, 2053, true },
    { "reservation_delete_done", SLURM_DELETE, SLURM_RESERVATION, SLURM_DONE, 0, false },
    { "reservation_create_wrong", SLURM_POST, SLURM_NEW_RESERVATION, SLURM_INVALID, 2053, true },
    { "reservation_create_forbidden", SLURM_POST, SLURM_NEW_RESERVATION, SLURM_FORBIDDEN, 2010,
      true },
    { "reservation_create_done", SLURM_POST, SLURM_NEW_RESERVATION, SLURM_DONE, 0, false },
    { "reservation_exists", SLURM_POST, SLURM_NEW_RESERVATION, SLURM_DONE, 0, false },

    { "submit_done", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_DONE, 0, false },
    { "submit_unknown_field", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_DONE, 0, false },
    { "submit_as_nobody", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 6010, true },
    { "submit_unsatisfiable", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_UNSATISFIABLE, 2014, true },
    { "submit_normal_on_external", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_UNSATISFIABLE, 2014, true },
    { "submit_external_with_script", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2189, true },
    { "submit_no_script", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 9000, true },
    { "submit_no_environment", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2127, true },
    { "submit_bad_partition", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2000, true },
    { "submit_excluded_unknown", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_UNKNOWN_NODE, 2018, true },
    { "submit_required_unknown", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_UNKNOWN_NODE, 2018, true },
    { "submit_bad_reservation", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2053, true },
    { "submit_bad_license", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2048, true },
    { "submit_bad_gres", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2072, true },
    { "submit_bad_feature", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2029, true },
    { "submit_user_unknown", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2166, true },
    { "submit_array", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2081, true },
    { "submit_extra_too_long", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 2012, true },
    { "submit_v42", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_INVALID, 9207, true },
    { "submit_timeout", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_UNKNOWN, 5004, false },
    { "submit_ctld_down", SLURM_POST, SLURM_JOB_SUBMIT, SLURM_UNAVAILABLE, 1800, false },
    { "allocate_done", SLURM_POST, SLURM_JOB_ALLOCATE, SLURM_DONE, 0, false },
    { "allocate_busy", SLURM_POST, SLURM_JOB_ALLOCATE, SLURM_BUSY, 2016, true },
    { "allocate_not_now", SLURM_POST, SLURM_JOB_ALLOCATE, SLURM_BUSY, 2015, true },
    { "allocate_not_first", SLURM_POST, SLURM_JOB_ALLOCATE, SLURM_BUSY, 2013, true },

    { "nodes_list_timeout", SLURM_GET, SLURM_NODES, SLURM_TIMEOUT, 5004, true },
    { "nodes_list_ctld_down", SLURM_GET, SLURM_NODES, SLURM_UNAVAILABLE, 1800, true },
    { "ping_ctld_down", SLURM_GET, SLURM_PING, SLURM_DONE, 0, false },
    { "nodes_unchanged", SLURM_GET, SLURM_NODES, SLURM_NOT_MODIFIED, 0, true },
    { "partitions_unchanged", SLURM_GET, SLURM_PARTITIONS, SLURM_NOT_MODIFIED, 0, true },
    { "reservations_unchanged", SLURM_GET, SLURM_RESERVATIONS, SLURM_NOT_MODIFIED, 0, true },
    { "jobs_unchanged", SLURM_GET, SLURM_JOBS, SLURM_NOT_MODIFIED, 0, true },

    { "ping", SLURM_GET, SLURM_PING, SLURM_DONE, 0, false },
    { "jobs_list", SLURM_GET, SLURM_JOBS, SLURM_DONE, 0, false },
    { "jobs_state", SLURM_GET, SLURM_JOBS_STATE, SLURM_DONE, 0, false },
    { "job_get", SLURM_GET, SLURM_JOB, SLURM_DONE, 0, false },
    { "nodes_list", SLURM_GET, SLURM_NODES, SLURM_DONE, 0, false },
    { "node_get", SLURM_GET, SLURM_NODE, SLURM_DONE, 0, false },
    { "partitions_list", SLURM_GET, SLURM_PARTITIONS, SLURM_DONE, 0, false },
    { "reservations_list", SLURM_GET, SLURM_RESERVATIONS, SLURM_DONE, 0, false },
    { "resources", SLURM_GET, SLURM_RESOURCES, SLURM_DONE, 0, false },
    { "diag", SLURM_GET, SLURM_DIAG, SLURM_DONE, 0, false },
    { "licenses", SLURM_GET, SLURM_LICENSES, SLURM_DONE, 0, false },
    { "conf", SLURM_GET, SLURM_CONF, SLURM_DONE, 0, false },
    { "reconfigure", SLURM_GET, SLURM_RECONFIGURE, SLURM_DONE, 0, false },
};

static void check(const char *what, const struct slurm_error *error, enum slurm_class class,
                  int number, bool nothing_done)
{
    if (error->class != class || error->number != number || error->nothing_done != nothing_done)
        fail_msg("%s: %s, number %d, %s (%s)", what, slurm_class_name(error->class), error->number,
                 error->nothing_done ? "nothing done" : "perhaps done", error->text);
    if (class != SLURM_DONE && class != SLURM_NOT_MODIFIED && !error->text[0])
        fail_msg("%s: no words", what);
}

static void check_recorded(const struct expected *row, const struct recording *recording,
                           int status)
{
    struct slurm_reply reply = { row->verb,
                                 row->endpoint,
                                 status,
                                 recording->content_type,
                                 json_root(recording->doc),
                                 str_of(recording->text) };
    struct slurm_error error;

    slurm_classify(&reply, &error);
    check(row->recording, &error, row->class, row->number, row->nothing_done);
    assert_int_equal(error.http, status);
}

static void every_recorded_answer_has_its_class(void **state)
{
    for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
        struct recording recording = recording_of(recorded[i].recording);

        check_recorded(&recorded[i], &recording, recording.status);
        recording_done(&recording);
    }
}

/* slurmrestd 25.11 gave 500 where 26.05 gives 422. */
static void every_refusal_is_known_by_its_number_on_25_11_too(void **state)
{
    unsigned count = 0;

    for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
        struct recording recording = recording_of(recorded[i].recording);

        if (recording.status == 422) {
            check_recorded(&recorded[i], &recording, 500);
            count++;
        }
        recording_done(&recording);
    }
    assert_true(count > 20);
}

/* An answer made to fit one row of the table, and whether that row takes it. */
static struct slurm_error classify_text(enum slurm_verb verb, enum slurm_endpoint endpoint,
                                        int status, const char *type, const char *body)
{
    struct slurm_reply reply = { verb, endpoint, status, type, NULL, str_of(body) };
    struct slurm_error error;
    struct json_doc *doc = NULL;

    json_parse(str_of(body), 1 << 20, &doc, NULL);
    reply.body = json_root(doc);
    slurm_classify(&reply, &error);
    json_doc_free(doc);
    return error;
}

static enum slurm_verb verb_for(const struct slurm_situation *row)
{
    return row->verb == 'D'                       ? SLURM_DELETE
           : row->verb == 'P' || row->verb == 'w' ? SLURM_POST
                                                  : SLURM_GET;
}

static enum slurm_endpoint endpoint_for(const struct slurm_situation *row)
{
    if (row->endpoints == 0)
        return row->verb == 'P' || row->verb == 'w' ? SLURM_NODE : SLURM_NODES;
    return (enum slurm_endpoint)__builtin_ctzll(row->endpoints);
}

static void body_for(const struct slurm_situation *row, const char *array, char *body, size_t size)
{
    int number = row->number == SLURM_ANY_NUMBER ? 4711 : row->number;
    char errors[128] = "", list[64] = "", status[64] = "";

    if (row->facts & SLURM_FACT_ERRORS)
        snprintf(errors, sizeof(errors), "{\"error_number\":%d,\"error\":\"e\"}", number);
    if (row->facts & SLURM_FACT_STATUS)
        snprintf(status, sizeof(status), ",\"status\":[{\"error\":{\"code\":%d}}]", number);
    if (array && !(row->facts & SLURM_FACT_NO_ARRAY))
        snprintf(list, sizeof(list), ",\"%s\":[%s]", array,
                 row->facts & SLURM_FACT_EMPTY ? "" : "{}");
    snprintf(body, size, "{\"errors\":[%s],\"warnings\":[%s]%s%s%s%s}", errors,
             row->facts & SLURM_FACT_WARNINGS ? "{}" : "", list, status,
             row->facts & SLURM_FACT_UNCHANGED ? ",\"last_update\":{\"number\":0}" : "",
             row->facts & SLURM_FACT_NO_JOB_ID ? "" : ",\"job_id\":7");
}

static void every_row_of_the_table_takes_the_answer_that_it_describes(void **state)
{
    size_t count;
    const struct slurm_situation *rows = slurm_situations(&count);

    for (size_t i = 0; i < count; i++) {
        const struct slurm_situation *row = &rows[i];
        enum slurm_endpoint endpoint = endpoint_for(row);
        int status = row->status ? row->status : 418;
        const char *type = row->facts & SLURM_FACT_TEXT ? "text/plain" : "application/json";
        char body[512], what[300];
        struct slurm_error error;

        body_for(row, slurm_endpoint(endpoint)->array, body, sizeof(body));
        if (row->facts & SLURM_FACT_BROKEN)
            body[strlen(body) / 2] = '\0';
        error = classify_text(verb_for(row), endpoint, status, type, body);
        snprintf(what, sizeof(what), "row %zu (%s)", i, row->words);
        if (error.class != row->class || error.nothing_done != row->nothing_done)
            fail_msg("%s: %s instead of %s", what, slurm_class_name(error.class),
                     slurm_class_name(row->class));
    }
}

static void what_is_not_known_is_unavailable_for_a_read_and_unknown_for_a_write(void **state)
{
    static const struct {
        int status;
        const char *type, *body;
    } answers[] = {
        { 200, "application/json", "" },
        { 200, "application/json", "{\"nodes\":[{\"na" },
        { 200, "application/json", "[]" },
        { 200, "application/json", "null" },
        { 200, "text/html", "<html>log in</html>" },
        { 200, "", "{\"nodes\":[]}" },
        { 200, "application/json", "{\"nodes\":[],\"errors\":[{\"error_number\":9999}]}" },
        { 200, "application/json", "{\"nodes\":[],\"errors\":[{}]}" },
        { 500, "application/json", "{\"errors\":[{\"error_number\":104}]}" },
        { 500, "application/json", "{\"errors\":[{\"error_number\":1802}]}" },
        { 503, "text/plain", "upstream" },
        { 502, "text/html", "<html>" },
        { 302, "", "" },
        { 404, "application/json", "{\"errors\":[]}" },
        { 0, "", "" },
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct slurm_error read = classify_text(SLURM_GET, SLURM_NODES, answers[i].status,
                                                answers[i].type, answers[i].body);
        struct slurm_error write = classify_text(SLURM_DELETE, SLURM_NODE, answers[i].status,
                                                 answers[i].type, answers[i].body);

        check(answers[i].body, &read, SLURM_UNAVAILABLE, read.number, true);
        check(answers[i].body, &write, SLURM_UNKNOWN, write.number, false);
    }
}

static void a_refusal_that_no_row_names_does_not_prove_that_nothing_was_done(void **state)
{
    struct slurm_error error =
        classify_text(SLURM_POST, SLURM_JOB_SUBMIT, 422, "application/json",
                      "{\"errors\":[{\"error_number\":7777,\"error\":\"no\"}]}");

    check("422 with number 7777", &error, SLURM_INVALID, 7777, false);
}

static void a_list_without_its_array_is_no_empty_list(void **state)
{
    struct slurm_error error =
        classify_text(SLURM_GET, SLURM_JOBS, 200, "application/json", "{\"errors\":[]}");

    assert_int_equal(error.class, SLURM_UNAVAILABLE);
    error = classify_text(SLURM_GET, SLURM_NODES, 200, "application/json",
                          "{\"nodes\":null,\"errors\":[]}");
    assert_int_equal(error.class, SLURM_UNAVAILABLE);
}

static void an_empty_list_with_a_time_is_an_empty_list(void **state)
{
    struct slurm_error error =
        classify_text(SLURM_GET, SLURM_JOBS, 200, "application/json; charset=utf-8",
                      "{\"jobs\":[],\"last_update\":{\"set\":true,\"number\":5},\"errors\":[]}");

    assert_int_equal(error.class, SLURM_DONE);
}

static void an_empty_answer_about_one_object_does_not_say_that_it_is_gone(void **state)
{
    static const struct {
        enum slurm_endpoint endpoint;
        const char *body;
    } rows[] = {
        { SLURM_JOB, "{\"jobs\":[],\"errors\":[]}" },
        { SLURM_NODE, "{\"nodes\":[],\"errors\":[]}" },
        { SLURM_NODE, "{\"errors\":[]}" },
        { SLURM_NODE, "{\"errors\":[{\"error_number\":1800}]}" },
        { SLURM_PARTITION, "{\"errors\":[]}" },
        { SLURM_RESERVATION, "{\"errors\":[]}" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(
            classify_text(SLURM_GET, rows[i].endpoint, 200, "application/json", rows[i].body).class,
            SLURM_UNAVAILABLE);
}

static void a_submit_without_a_job_id_is_unknown(void **state)
{
    static const char *const bodies[] = { "{\"errors\":[]}", "{\"job_id\":0,\"errors\":[]}",
                                          "{\"job_id\":-5,\"errors\":[]}",
                                          "{\"job_id\":\"7\",\"errors\":[]}" };

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(
            classify_text(SLURM_POST, SLURM_JOB_SUBMIT, 200, "application/json", bodies[i]).class,
            SLURM_UNKNOWN);
}

static void the_words_are_slurms_own(void **state)
{
    struct recording recording = recording_of("submit_unsatisfiable");
    struct slurm_error error = classify_text(SLURM_POST, SLURM_JOB_SUBMIT, recording.status,
                                             recording.content_type, recording.text);

    assert_string_equal(
        error.text, "Batch job submission failed: Requested node configuration is not available");
    recording_done(&recording);
    error = classify_text(SLURM_GET, SLURM_PING, 401, "text/plain", "Authentication\nfailure\x01");
    assert_string_equal(error.text, "Authentication failure ");
    error = classify_text(SLURM_GET, SLURM_NODES, 502, "", "");
    assert_string_equal(error.text, "an answer that is not understood");
    error = classify_text(SLURM_POST, SLURM_JOB_SUBMIT, 422, "application/json",
                          "{\"errors\":[{\"error_number\":2000,\"error\":\"No partition\"}],"
                          "\"job_submit_user_msg\":\"use p2\"}");
    assert_string_equal(error.text, "No partition: use p2");
}

static void long_words_are_cut_between_characters(void **state)
{
    char body[1400] = "{\"errors\":[{\"error_number\":2000,\"description\":\"";
    struct slurm_error error;

    for (unsigned i = 0; i < 300; i++)
        snprintf(body + strlen(body), sizeof(body) - strlen(body), "\xc3\xa4");
    snprintf(body + strlen(body), sizeof(body) - strlen(body), "\",\"error\":\"x\"}]}");
    error = classify_text(SLURM_POST, SLURM_JOB_SUBMIT, 422, "application/json", body);
    assert_true(strlen(error.text) > 230);
    assert_true(str_is_utf8(str_of(error.text)));
}

static void a_call_without_answer_is_classed_by_what_is_certain(void **state)
{
    static const struct {
        int why;
        enum slurm_class read, write;
        bool unsent;
    } rows[] = {
        { ERR_UNAVAILABLE, SLURM_UNAVAILABLE, SLURM_UNAVAILABLE, true },
        { ERR_TIMEOUT, SLURM_TIMEOUT, SLURM_TIMEOUT, true },
        { ERR_DENIED, SLURM_AUTH, SLURM_AUTH, true },
        { ERR_INVALID, SLURM_INVALID, SLURM_INVALID, true },
        { ERR_SYSTEM, SLURM_UNAVAILABLE, SLURM_UNAVAILABLE, true },
        { ERR_UNKNOWN, SLURM_UNAVAILABLE, SLURM_UNKNOWN, false },
        { ERR_TOO_BIG, SLURM_INVALID, SLURM_UNKNOWN, false },
        { ERR_BUG, SLURM_UNAVAILABLE, SLURM_UNKNOWN, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err why = { rows[i].why, "the cable is out" };
        struct slurm_error error;

        slurm_classify_failure(SLURM_GET, SLURM_JOBS, &why, &error);
        assert_int_equal(error.class, rows[i].read);
        assert_true(error.nothing_done);
        slurm_classify_failure(SLURM_POST, SLURM_JOB_SUBMIT, &why, &error);
        assert_int_equal(error.class, rows[i].write);
        assert_int_equal(error.unsent, rows[i].unsent);
        assert_int_equal(error.nothing_done, rows[i].unsent);
        assert_string_equal(error.text, "the cable is out");
        slurm_classify_failure(SLURM_GET, SLURM_RECONFIGURE, &why, &error);
        assert_int_equal(error.class, rows[i].write);
    }
}

static void cancelling_many_tells_of_each_one(void **state)
{
    struct recording recording = recording_of("jobs_cancel_mixed");
    const struct json *status = json_get(json_root(recording.doc), "status");
    struct slurm_error error;
    struct json_doc *odd;

    slurm_classify_status(json_item(status, 0), &error);
    assert_int_equal(error.class, SLURM_DONE);
    slurm_classify_status(json_item(status, 1), &error);
    assert_int_equal(error.class, SLURM_NOT_FOUND);
    assert_int_equal(error.number, 2017);
    slurm_classify_status(NULL, &error);
    assert_int_equal(error.class, SLURM_UNKNOWN);
    assert_int_equal(json_parse(STR("{\"error\":{\"code\":2010}}"), 100, &odd, NULL), 0);
    slurm_classify_status(json_root(odd), &error);
    assert_int_equal(error.class, SLURM_UNKNOWN);
    json_doc_free(odd);
    assert_int_equal(json_parse(STR("{\"error\":{\"code\":0}}"), 100, &odd, NULL), 0);
    slurm_classify_status(json_root(odd), &error);
    assert_int_equal(error.class, SLURM_DONE);
    json_doc_free(odd);
    recording_done(&recording);
}

static void every_class_has_a_name_and_a_result(void **state)
{
    for (int class = 0; class < SLURM_CLASSES; class ++) {
        struct slurm_error error = { .class = (enum slurm_class) class, .number = 5, .text = "x" };
        struct err err = { 0 };
        bool good = class == SLURM_DONE || class == SLURM_NOT_MODIFIED;

        assert_true(strlen(slurm_class_name((enum slurm_class) class)) > 3);
        assert_int_equal(slurm_error_to_err(&error, &err) == 0, good);
        if (!good)
            assert_string_equal(err.text, "x (Slurm error 5)");
    }
    assert_string_equal(slurm_class_name(SLURM_CLASSES), "no class");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_answer_has_its_class),
        cmocka_unit_test(every_refusal_is_known_by_its_number_on_25_11_too),
        cmocka_unit_test(every_row_of_the_table_takes_the_answer_that_it_describes),
        cmocka_unit_test(what_is_not_known_is_unavailable_for_a_read_and_unknown_for_a_write),
        cmocka_unit_test(a_refusal_that_no_row_names_does_not_prove_that_nothing_was_done),
        cmocka_unit_test(a_list_without_its_array_is_no_empty_list),
        cmocka_unit_test(an_empty_list_with_a_time_is_an_empty_list),
        cmocka_unit_test(an_empty_answer_about_one_object_does_not_say_that_it_is_gone),
        cmocka_unit_test(a_submit_without_a_job_id_is_unknown),
        cmocka_unit_test(the_words_are_slurms_own),
        cmocka_unit_test(long_words_are_cut_between_characters),
        cmocka_unit_test(a_call_without_answer_is_classed_by_what_is_certain),
        cmocka_unit_test(cancelling_many_tells_of_each_one),
        cmocka_unit_test(every_class_has_a_name_and_a_result),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
