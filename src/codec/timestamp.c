/* timestamp.c - RFC 3339 text to microseconds since the epoch and back.
 *
 * The calendar is computed here and not asked of the C library, which would bring in the zone of
 * the machine, the locale and a range that differs between systems. */
#include "codec/timestamp.h"

#include <stdbool.h>

enum {
    DAY_SECONDS = 86400,
    ERA_DAYS = 146097,  /* 400 years, after which the Gregorian calendar repeats */
    EPOCH_DAY = 719468, /* 1970-01-01, counted from 0000-03-01 */
    MAX_PRINTED = 64,
};

struct civil {
    int year, month, day;
};

struct reader {
    const char *at, *end;
    bool failed;
};

/* Days since 1970. Years begin in March here, so that the leap day is the last day of one and the
 * months before it have lengths by a formula: 153 days in each five months. */
static int64_t days_from_civil(struct civil date)
{
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t month = (date.month + 9) % 12;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * ERA_DAYS + day_of_era - EPOCH_DAY;
}

static struct civil civil_from_days(int64_t days) /* of the year 1 or later */
{
    int64_t day = days + EPOCH_DAY;
    int64_t era = day / ERA_DAYS;
    int64_t day_of_era = day % ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    int64_t year = year_of_era + era * 400 + (month >= 10);

    return (struct civil){
        .year = (int)year,
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

static int days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : days[month - 1];
}

static bool next_is_digit(const struct reader *reader)
{
    return reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9';
}

static int read_digit(struct reader *reader)
{
    if (next_is_digit(reader))
        return *reader->at++ - '0';
    reader->failed = true;
    return 0;
}

/* Exactly `width` digits, in range; 0 otherwise. */
static int read_field(struct reader *reader, int width, int min, int max)
{
    int value = 0;

    for (int i = 0; i < width; i++)
        value = value * 10 + read_digit(reader);
    if (reader->failed || value < min || value > max) {
        reader->failed = true;
        return min;
    }
    return value;
}

static bool read_one_of(struct reader *reader, const char *set, char *ret_char)
{
    if (reader->at == reader->end || *reader->at == '\0' || !strchr(set, *reader->at))
        return false;
    *ret_char = *reader->at++;
    return true;
}

static void read_char(struct reader *reader, const char *wanted)
{
    char c;

    if (!read_one_of(reader, wanted, &c))
        reader->failed = true;
}

static int read_hour(struct reader *reader)
{
    bool two = reader->end - reader->at >= 2 && reader->at[1] >= '0' && reader->at[1] <= '9';

    return read_field(reader, two ? 2 : 1, 0, 23);
}

/* [.,]digits as microseconds; nothing there is 0. */
static int64_t read_fraction(struct reader *reader)
{
    int64_t micros = 0, weight = TIMESTAMP_SECOND / 10;
    char mark;

    if (!read_one_of(reader, ".,", &mark))
        return 0;
    micros += read_digit(reader) * weight;
    while (next_is_digit(reader)) {
        weight /= 10;
        micros += read_digit(reader) * weight;
    }
    return micros;
}

/* Z or +07:00 as seconds east of UTC. Go lets 24 hours and 60 minutes pass, and so do we. */
static int64_t read_offset(struct reader *reader)
{
    char sign;

    if (!read_one_of(reader, "Z+-", &sign)) {
        reader->failed = true;
        return 0;
    }
    if (sign == 'Z')
        return 0;

    int64_t hours = read_field(reader, 2, 0, 24);

    read_char(reader, ":");

    int64_t seconds = hours * 3600 + read_field(reader, 2, 0, 60) * INT64_C(60);

    return sign == '-' ? -seconds : seconds;
}

static struct civil read_date(struct reader *reader)
{
    struct civil date;

    date.year = read_field(reader, 4, 0, 9999);
    read_char(reader, "-");
    date.month = read_field(reader, 2, 1, 12);
    read_char(reader, "-");
    date.day = read_field(reader, 2, 1, days_in_month(date.year, date.month));
    return date;
}

static int64_t read_seconds_of_day(struct reader *reader)
{
    int64_t seconds = read_hour(reader) * INT64_C(3600);

    read_char(reader, ":");
    seconds += read_field(reader, 2, 0, 59) * INT64_C(60);
    read_char(reader, ":");
    return seconds + read_field(reader, 2, 0, 59);
}

int timestamp_parse(struct str text, int64_t *ret_time, struct err *err)
{
    struct reader reader = { .at = text.at, .end = text.at + text.len };
    struct civil date = read_date(&reader);

    read_char(&reader, "T");

    int64_t seconds = days_from_civil(date) * DAY_SECONDS + read_seconds_of_day(&reader);
    int64_t micros = read_fraction(&reader);

    seconds -= read_offset(&reader);
    if (reader.failed || reader.at != reader.end)
        return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not an RFC 3339 time",
                       STR_ARG(str_sub(text, 0, 64)));

    int64_t time = seconds * TIMESTAMP_SECOND + micros;

    if (time < TIMESTAMP_MIN || time > TIMESTAMP_MAX)
        return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not in the years 0001 to 9999",
                       STR_ARG(str_sub(text, 0, 64)));
    *ret_time = time;
    return 0;
}

static int print(int64_t time, bool micro, struct buf *buf, struct err *err)
{
    if (time < TIMESTAMP_MIN || time > TIMESTAMP_MAX)
        return err_set(err, ERR_INVALID, "time %lld is not in the years 0001 to 9999",
                       (long long)time);

    int64_t since_min = time - TIMESTAMP_MIN; /* not negative, so that / and % round down */
    int64_t seconds = since_min / TIMESTAMP_SECOND;
    int64_t days = seconds / DAY_SECONDS + TIMESTAMP_MIN / TIMESTAMP_SECOND / DAY_SECONDS;
    int of_day = (int)(seconds % DAY_SECONDS);
    struct civil date = civil_from_days(days);

    buf_printf(buf, "%04d-%02d-%02dT%02d:%02d:%02d", date.year, date.month, date.day, of_day / 3600,
               of_day / 60 % 60, of_day % 60);
    if (micro)
        buf_printf(buf, ".%06d", (int)(since_min % TIMESTAMP_SECOND));
    buf_add_char(buf, 'Z');
    return 0;
}

int timestamp_print(int64_t time, struct buf *buf, struct err *err)
{
    return print(time, false, buf, err);
}

int timestamp_print_micro(int64_t time, struct buf *buf, struct err *err)
{
    return print(time, true, buf, err);
}

const char *timestamp_text(int64_t time, struct arena *arena)
{
    auto_buf struct buf text = { .max = MAX_PRINTED };

    (void)timestamp_print(time, &text, NULL);
    return arena_strdup(arena, buf_text(&text));
}

int timestamp_of_seconds(int64_t seconds, int64_t *ret_time, struct err *err)
{
    if (seconds < TIMESTAMP_MIN / TIMESTAMP_SECOND || seconds > TIMESTAMP_MAX / TIMESTAMP_SECOND)
        return err_set(err, ERR_INVALID, "time %lld s is not in the years 0001 to 9999",
                       (long long)seconds);
    *ret_time = seconds * TIMESTAMP_SECOND;
    return 0;
}

int64_t timestamp_to_seconds(int64_t time)
{
    return time / TIMESTAMP_SECOND - (time % TIMESTAMP_SECOND < 0);
}
