/* pin_record.c - the files in which the hook tells what it pinned. */
#include "dra/pin_record.h"

#include "dra/cpuset.h"
#include "dra/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RECORD = 64 * 1024, MAX_NAME = 128 };

void pin_record_init(struct pin_record *record)
{
    buf_init(&record->cgroup, FILES_MAX_PATH);
    buf_init(&record->claims, FILES_MAX_PATH);
    bitmap_init(&record->cpus, CPUSET_MAX_CPUS);
}

void pin_record_done(struct pin_record *record)
{
    buf_done(&record->cgroup);
    buf_done(&record->claims);
    bitmap_done(&record->cpus);
}

bool pin_record_is_name(struct str name)
{
    if (name.len == 0 || name.len > MAX_NAME || name.at[0] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

static int read_line(struct pin_record *record, struct str key, struct str value, struct err *err)
{
    if (str_is(key, "cgroup")) {
        buf_clear(&record->cgroup);
        buf_add_str(&record->cgroup, value);
    } else if (str_is(key, "claims")) {
        buf_clear(&record->claims);
        buf_add_str(&record->claims, value);
    } else if (str_is(key, "cpus")) {
        bitmap_done(&record->cpus);
        return bitmap_parse_ranges(value, CPUSET_MAX_CPUS, &record->cpus, err);
    }
    return 0;
}

int pin_record_read(const char *folder, const char *container, struct pin_record *record,
                    struct err *err)
{
    auto_buf struct buf path, text;
    struct str rest, line, key, value;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_RECORD);
    if ((result = file_read(path_join(&path, folder, container), &text, err)) < 0)
        return result;
    rest = buf_str(&text);
    while (result == 0 && str_next(&rest, '\n', &line))
        if (str_cut(line, ' ', &key, &value))
            result = read_line(record, key, value, err);
    if (result == 0 && (record->cgroup.len == 0 || bitmap_count(&record->cpus) == 0))
        return err_set(err, ERR_INVALID, "%s is no record of a container", buf_text(&path));
    return result < 0 ? err_wrap(err, "%s", buf_text(&path)) : 0;
}

int pin_record_write(const char *folder, const char *container, const struct pin_record *record,
                     struct err *err)
{
    auto_buf struct buf path, text;
    int result;

    buf_init(&path, FILES_MAX_PATH);
    buf_init(&text, MAX_RECORD);
    buf_printf(&text, "cgroup %s\ncpus ", buf_text(&record->cgroup));
    bitmap_print_ranges(&record->cpus, &text);
    buf_printf(&text, "\nclaims %s\n", buf_text(&record->claims));
    if ((result = buf_check(&text, "the record of the container", err)) < 0)
        return result;
    return file_replace(path_join(&path, folder, container), buf_str(&text), S_IRUSR | S_IWUSR,
                        err);
}

int pin_records_lock(const char *folder, bool wait, int *ret_fd, struct err *err)
{
    auto_buf struct buf path;
    int fd;

    buf_init(&path, FILES_MAX_PATH);
    fd = open(path_join(&path, folder, PIN_RECORDS_LOCK), O_RDWR | O_CREAT | O_CLOEXEC,
              S_IRUSR | S_IWUSR);
    if (fd < 0)
        return err_system(err, errno, "open %s", buf_text(&path));
    while (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0) {
        int why = errno;

        if (why == EINTR)
            continue;
        (void)close(fd);
        return why == EWOULDBLOCK ? err_set(err, ERR_UNAVAILABLE, "%s is held", buf_text(&path))
                                  : err_system(err, why, "lock %s", buf_text(&path));
    }
    *ret_fd = fd;
    return 0;
}
