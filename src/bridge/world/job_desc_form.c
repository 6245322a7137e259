/* job_desc_form.c - reads the values of annotations, and says in words how they are written.
 *
 * Holds: a number that Slurm would cut to its field's width, or read as "unlimited", is not of any
 * form. */
#include "bridge/world/job_desc_form.h"

#include "codec/duration.h"
#include "codec/quantity.h"
#include "codec/timestamp.h"

#include <inttypes.h>
#include <strings.h>

enum {
    MAX_TEXT = 4096, /* bytes of one value */
    MIB = 1 << 20,
};

#define MAX_SECONDS (TIMESTAMP_MAX / TIMESTAMP_SECOND)

/* ---- numbers ---- */

static bool read_number(struct str value, struct job_range range, int64_t *ret_number)
{
    /* Go's parser, which these annotations were made for, takes a plus sign. */
    if (str_starts(value, STR("+")))
        value = str_sub(value, 1, value.len);
    return str_to_i64(value, range.least, range.most, ret_number, NULL) == 0;
}

static bool read_cpus(struct str value, int64_t *ret_cpus)
{
    struct quantity quantity;
    int64_t cpus;

    if (quantity_parse(value, &quantity, NULL) < 0 ||
        quantity_ceil_units(&quantity, &cpus, NULL) < 0 || cpus < 1 || cpus > JOB_DESC_MAX_CPUS)
        return false;
    *ret_cpus = cpus;
    return true;
}

static bool read_memory(struct str value, int64_t *ret_mib)
{
    struct quantity quantity;
    int64_t mib;

    if (quantity_parse(value, &quantity, NULL) < 0 || quantity_sign(&quantity) < 0 ||
        quantity_ceil_mib(&quantity, &mib, NULL) < 0 || mib > INT64_MAX / MIB)
        return false;
    *ret_mib = mib;
    return true;
}

/* ---- times ---- */

/* Slurm takes 0 for "not said". */
static bool read_time(struct str value, int64_t *ret_seconds)
{
    int64_t time;

    if (timestamp_parse(value, &time, NULL) < 0 || time < TIMESTAMP_SECOND)
        return false;
    *ret_seconds = timestamp_to_seconds(time);
    return true;
}

static bool read_duration(struct str value, int64_t most, int64_t *ret_seconds)
{
    int64_t nanos, seconds;

    if (duration_parse(value, &nanos, NULL) < 0 || nanos < 0)
        return false;
    seconds = nanos / DURATION_SECOND + (nanos % DURATION_SECOND > 0);
    if (seconds > most)
        return false;
    *ret_seconds = seconds;
    return true;
}

static bool read_begin(struct str value, int64_t created, int64_t *ret_seconds)
{
    int64_t after;

    if (!str_starts(value, STR("+")))
        return read_time(value, ret_seconds);
    if (!read_duration(value, MAX_SECONDS - created, &after))
        return false;
    *ret_seconds = created + after;
    return true;
}

/* ---- words of their own ---- */

static bool read_switches(struct str value, struct job_range range, struct job_value *ret_value)
{
    struct job_value said = { .wait = -1 };
    struct str count = value, wait;
    bool has_wait = str_cut(value, '@', &count, &wait);

    if (!read_number(count, range, &said.number) ||
        (has_wait && !read_duration(wait, INT32_MAX, &said.wait)))
        return false;
    *ret_value = said;
    return true;
}

static bool read_gang(struct str value, int64_t *ret_gang)
{
    if (!str_is(value, "true") && !str_is(value, "false"))
        return read_number(value, (struct job_range){ 1, JOB_DESC_MAX_GANG }, ret_gang);
    *ret_gang = str_is(value, "true") ? JOB_DESC_GANG_ALL : JOB_DESC_GANG_NO;
    return true;
}

bool job_form_is_line(struct str text, size_t most)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            return false;
    return text.len <= most;
}

/* ---- all of them ---- */

bool job_form_read(enum job_form form, struct job_range range, int64_t created, struct str value,
                   struct job_value *ret_value)
{
    switch (form) {
    case JOB_FORM_NONE:
        break;
    case JOB_FORM_TEXT:
        return job_form_is_line(value, MAX_TEXT);
    case JOB_FORM_DEPENDENCY:
        /* afterok:12:13,after:14+30?singleton */
        for (size_t i = 0; i < value.len; i++) {
            char c = value.at[i];
            bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

            if (!is_letter && !(c >= '0' && c <= '9') && (c == '\0' || !strchr(":,?_+*-", c)))
                return false;
        }
        return value.len <= MAX_TEXT;
    case JOB_FORM_NUMBER:
        return read_number(value, range, &ret_value->number);
    case JOB_FORM_CPUS:
        return read_cpus(value, &ret_value->number);
    case JOB_FORM_MEMORY:
        return read_memory(value, &ret_value->number);
    case JOB_FORM_TIME:
        return read_time(value, &ret_value->number);
    case JOB_FORM_BEGIN:
        return read_begin(value, created, &ret_value->number);
    case JOB_FORM_SWITCHES:
        return read_switches(value, range, ret_value);
    case JOB_FORM_GANG:
        return read_gang(value, &ret_value->number);
    case JOB_FORM_EXCLUSIVE:
        value = str_trim(value);
        ret_value->number = value.len != 5 || strncasecmp(value.at, "false", 5) != 0;
        return true;
    }
    return false;
}

void job_form_write(enum job_form form, struct job_range range, struct buf *out)
{
    static const char *const words[] = {
        [JOB_FORM_DEPENDENCY] = "a list of letters, digits and `:,?_+*-`, as afterok:12:13",
        [JOB_FORM_MEMORY] =
            "a Kubernetes quantity of bytes below 8Ei, as 4Gi; 0: all of the node's",
        [JOB_FORM_TIME] = "a time, as 2027-01-31T08:00:00Z",
        [JOB_FORM_BEGIN] = "a time, as 2027-01-31T08:00:00Z, or a duration, as +1h30m",
        [JOB_FORM_EXCLUSIVE] = "`false` to share nodes; anything else for whole nodes",
    };

    if (form == JOB_FORM_TEXT)
        buf_printf(out, "a text of at most %d bytes without control characters", MAX_TEXT);
    else if (form == JOB_FORM_CPUS)
        buf_printf(out, "a Kubernetes quantity above 0 and up to %d, as 2 or 1500m",
                   JOB_DESC_MAX_CPUS);
    else if (form == JOB_FORM_GANG)
        buf_printf(out, "`true`, `false` or a whole number from 1 to %d", JOB_DESC_MAX_GANG);
    else if (form == JOB_FORM_NUMBER || form == JOB_FORM_SWITCHES)
        buf_printf(out, "a whole number from %" PRId64 " to %" PRId64 "%s", range.least, range.most,
                   form == JOB_FORM_SWITCHES ? ", or that with a wait, as 2@30m" : "");
    else if (form != JOB_FORM_NONE)
        buf_add_text(out, words[form]);
}
