/* reload.c - reading a file again and again, and telling when it changed.
 *
 * Every look reads the whole file and compares the bytes. These files are a few kilobytes, so that
 * costs nothing, and it cannot be fooled by times that stand still: two writes within one tick of
 * the file system's clock, or a swap that keeps size and mtime.
 *
 * Holds: content is always a whole good read; bytes that are given up are wiped. */
#include "io/reload.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_MAX = 1 << 20, DEFAULT_PERIOD_US = 10 * 1000000 };

struct reload_file {
    struct loop *loop;
    struct loop_timer timer;
    char *path;
    size_t max;
    int64_t period_us;
    void (*changed)(void *context, struct str content);
    void (*stale)(void *context, const struct err *why);
    void *context;
    char *bytes;
    size_t length;
    struct err why; /* of the last failed look; class 0 while the file is fresh */
};

/* Up to `room` bytes or the end of the file; -1 with errno. */
static ssize_t read_up_to(int fd, char *bytes, size_t room)
{
    size_t got = 0;

    while (got < room) {
        ssize_t part = read(fd, bytes + got, room - got);

        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return -1;
        if (part == 0)
            break;
        got += (size_t)part;
    }
    return (ssize_t)got;
}

static int read_open(int fd, const char *path, size_t max, char **ret_bytes, size_t *ret_length,
                     struct err *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return err_system(err, errno, "stat %s", path);
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_INVALID, "%s is not a regular file", path);
    if (status.st_size < 0 || (uintmax_t)status.st_size > max)
        return err_set(err, ERR_TOO_BIG, "%s is longer than %zu bytes", path, max);

    /* One byte more than it should have: if that gets filled, the file is being written now. */
    size_t room = (size_t)status.st_size + 1;
    char *bytes = mem_alloc(room + 1);
    ssize_t got = read_up_to(fd, bytes, room);
    int number = errno;

    if (got > 0 && (size_t)got < room) {
        /* A file that shrank meanwhile leaves room behind the NUL; the owner wipes len + 1. */
        *ret_bytes = bytes;
        *ret_length = (size_t)got;
        return 0;
    }
    mem_free_secret(bytes, room + 1);
    if (got < 0)
        return err_system(err, number, "read %s", path);
    if (got == 0)
        return err_set(err, ERR_INVALID, "%s is empty", path);
    return err_set(err, ERR_UNAVAILABLE, "%s is being written", path);
}

int reload_read(const char *path, size_t max, char **ret_bytes, size_t *ret_length, struct err *err)
{
    /* Not to hang on a FIFO that somebody put in its place. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return err_set(err, ERR_NOT_FOUND, "open %s: no such file", path);
        return err_system(err, errno, "open %s", path);
    }

    int result = read_open(fd, path, max, ret_bytes, ret_length, err);

    close(fd);
    return result;
}

static void on_timer(void *context);

static void plan_next_look(struct reload_file *file)
{
    loop_timer_start(file->loop, &file->timer, file->period_us, on_timer, file);
}

static void take(struct reload_file *file, char *bytes, size_t length)
{
    if (file->bytes)
        mem_free_secret(file->bytes, file->length + 1);
    file->bytes = bytes;
    file->length = length;
}

static void note_failure(struct reload_file *file, const struct err *why)
{
    bool news = why->class != file->why.class || strcmp(why->text, file->why.text) != 0;

    file->why = *why;
    if (news && file->stale)
        file->stale(file->context, why);
}

/* The callbacks come last: they may free the file. */
void reload_file_look(struct reload_file *file)
{
    struct err why = { .class = 0 };
    char *bytes;
    size_t length;

    plan_next_look(file);
    if (reload_read(file->path, file->max, &bytes, &length, &why) < 0) {
        note_failure(file, &why);
        return;
    }
    file->why = (struct err){ .class = 0 };

    bool same = length == file->length && memcmp(bytes, file->bytes, length) == 0;

    take(file, bytes, length);
    if (!same && file->changed)
        file->changed(file->context, reload_file_content(file));
}

static void on_timer(void *context)
{
    reload_file_look(context);
}

int reload_file_new(struct loop *loop, const struct reload_options *options,
                    struct reload_file **ret_file, struct err *err)
{
    size_t max = options->max ? options->max : DEFAULT_MAX;
    char *bytes;
    size_t length;
    int result = reload_read(options->path, max, &bytes, &length, err);

    if (result < 0)
        return result;

    struct reload_file *file = mem_alloc(sizeof(*file));

    *file = (struct reload_file){
        .loop = loop,
        .path = mem_strdup(options->path),
        .max = max,
        .period_us = options->period_us > 0 ? options->period_us : DEFAULT_PERIOD_US,
        .changed = options->changed,
        .stale = options->stale,
        .context = options->context,
    };
    take(file, bytes, length);
    plan_next_look(file);
    *ret_file = file;
    return 0;
}

void reload_file_free(struct reload_file *file)
{
    if (!file)
        return;
    loop_timer_stop(&file->timer);
    take(file, NULL, 0);
    mem_free(file->path);
    mem_free(file);
}

struct str reload_file_content(const struct reload_file *file)
{
    return (struct str){ file->bytes, file->length };
}
