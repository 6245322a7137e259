/* drive_time.c - answers lines about durations and points in time for tests/diff/test_time.py. */
#include "codec/duration.h"
#include "codec/timestamp.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static void answer_duration(struct str line)
{
    int64_t nanos;

    if (duration_parse(line, &nanos, NULL) < 0)
        puts("error");
    else
        printf("ok\t%lld\n", (long long)nanos);
}

static void answer_timestamp(struct str line)
{
    auto_buf struct buf seconds, micros;
    int64_t time;

    buf_init(&seconds, 64);
    buf_init(&micros, 64);
    if (timestamp_parse(line, &time, NULL) < 0) {
        puts("error");
        return;
    }
    timestamp_print(time, &seconds, NULL);
    timestamp_print_micro(time, &micros, NULL);
    printf("ok\t%lld\t%s\t%s\n", (long long)time, buf_text(&seconds), buf_text(&micros));
}

int main(int argc, char **argv)
{
    bool durations = argc == 2 && str_is(str_of(argv[1]), "duration");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    while ((length = getline(&line, &size, stdin)) > 0) {
        struct str text = { line, (size_t)length - 1 };

        if (durations)
            answer_duration(text);
        else
            answer_timestamp(text);
    }
    free(line);
    return 0;
}
