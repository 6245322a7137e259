/* admit_nodeset.c - the rules that only a NodeSet has. */
#include "codec/duration.h"
#include "codec/timestamp.h"
#include "operator/admit_rules.h"
#include "operator/worker_conf.h"

enum { MAX_HOSTNAME = 253, MAX_LABEL = 63, MAX_SHOWN = 100 };

/* A number from 1 on, or a percentage that is not 0. */
static bool is_amount(const struct json *value)
{
    struct str text = json_str(value);
    uint64_t number;

    if (json_is_number(value))
        return json_i64_or(value, 0) >= 1;
    return str_ends(text, STR("%")) &&
           str_to_u64(str_sub(text, 0, text.len - 1), 1, INT32_MAX, &number, NULL) == 0;
}

void admit_max_unavailable(struct admit_check *check, const struct json *value)
{
    if (!is_amount(value))
        admit_deny(check, "spec.updateStrategy.rollingUpdate.maxUnavailable: must be a number from "
                          "1 on, or a percentage from 1%% on");
}

void admit_reservation_duration(struct admit_check *check, const struct json *value)
{
    struct err err = { .class = 0 };
    int64_t span = 0;

    if (duration_parse(json_str(value), &span, &err) < 0)
        admit_deny(check, "spec.updateStrategy.scheduledUpdate.duration: %s", err.text);
    else if (span < 60 * DURATION_SECOND)
        admit_deny(check, "spec.updateStrategy.scheduledUpdate.duration: is shorter than 1m");
}

void admit_start_time(struct admit_check *check, const struct json *value)
{
    struct err err = { .class = 0 };
    int64_t time;

    if (timestamp_parse(json_str(value), &time, &err) < 0)
        admit_deny(check, "spec.updateStrategy.scheduledUpdate.startTime: %s", err.text);
}

void admit_ssh(struct admit_check *check, const struct json *value)
{
    if (json_bool_or(json_get(value, "enabled"), false) &&
        json_str(json_at(value, "sssdConfRef", "name")).len == 0)
        admit_deny(check, "spec.ssh.sssdConfRef.name: is empty, it must name the Secret with "
                          "sssd.conf");
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_dns_label(struct str label)
{
    if (label.len == 0 || label.len > MAX_LABEL || !is_letter_or_digit(label.at[0]) ||
        !is_letter_or_digit(label.at[label.len - 1]))
        return false;
    for (size_t i = 0; i < label.len; i++)
        if (!is_letter_or_digit(label.at[i]) && label.at[i] != '-')
            return false;
    return true;
}

/* The number of a pod follows the hostname, so one dash at the end is good. */
void admit_hostname(struct admit_check *check)
{
    const struct json *value = json_at(admit_spec(check, "template"), "spec", "hostname");
    struct str name = json_str(value), rest = name, label;

    if (name.len == 0)
        return;
    if (str_ends(name, STR("-")))
        rest = str_sub(name, 0, name.len - 1);
    if (rest.len == 0 || name.len > MAX_HOSTNAME || str_ends(rest, STR("."))) {
        admit_deny(check, "spec.template.spec.hostname: \"" STR_FMT "\" is no DNS name",
                   STR_ARG(str_sub(name, 0, MAX_SHOWN)));
        return;
    }
    while (str_next(&rest, '.', &label))
        if (!is_dns_label(label)) {
            admit_deny(check,
                       "spec.template.spec.hostname: \"" STR_FMT "\" is no DNS name: it may have "
                       "lower-case letters, digits, dashes between them, and one dash at the end",
                       STR_ARG(str_sub(name, 0, MAX_SHOWN)));
            return;
        }
}

void admit_extra_conf(struct admit_check *check, const struct json *value)
{
    struct err err = { .class = 0 };

    if (worker_conf_check(json_str(value), &err) < 0)
        admit_deny(check, "%s", err.text);
}
