/* files.c - small files, read and written whole. */
#include "dra/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 4096 };

static void closep(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define auto_close __attribute__((cleanup(closep)))

int file_read(const char *path, struct buf *out, struct err *err)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    char piece[PIECE];
    ssize_t got;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such file", path);
    if (fd < 0)
        return err_system(err, errno, "open %s", path);
    buf_clear(out);
    while ((got = read(fd, piece, sizeof(piece))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_system(err, errno, "read %s", path);
        buf_add(out, piece, (size_t)got);
        if (out->overflowed)
            return buf_check(out, path, err);
    }
    return 0;
}

int file_write(const char *path, struct str content, struct err *err)
{
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written;

    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such file", path);
    if (fd < 0)
        return err_system(err, errno, "open %s", path);
    written = write(fd, content.at, content.len);
    if (written < 0)
        return err_system(err, errno, "write '" STR_FMT "' to %s", STR_ARG(str_trim(content)),
                          path);
    if ((size_t)written != content.len)
        return err_set(err, ERR_SYSTEM, "%s took %zd of %zu bytes", path, written, content.len);
    return 0;
}

static int write_all(int fd, struct str content)
{
    while (content.len > 0) {
        ssize_t written = write(fd, content.at, content.len);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        content = str_sub(content, (size_t)written, content.len);
    }
    return fsync(fd);
}

/* The new name of a file is on disk when its folder is. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    auto_buf struct buf folder;

    buf_init(&folder, FILES_MAX_PATH);
    buf_add(&folder, path, slash ? (size_t)(slash - path) : 0);

    auto_close int fd = open(buf_text(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        (void)fsync(fd);
}

int file_replace(const char *path, struct str content, mode_t mode, struct err *err)
{
    auto_buf struct buf scratch;

    buf_init(&scratch, FILES_MAX_PATH);
    buf_printf(&scratch, "%s.part", path);

    auto_close int fd =
        open(buf_text(&scratch), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode & 0700);

    if (fd < 0)
        return err_system(err, errno, "make %s", buf_text(&scratch));
    if (fchmod(fd, mode) < 0 || write_all(fd, content) < 0 ||
        rename(buf_text(&scratch), path) < 0) {
        int why = errno;

        (void)unlink(buf_text(&scratch));
        return err_system(err, why, "write %s", path);
    }
    sync_folder(path);
    return 0;
}

int file_remove(const char *path, struct err *err)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return err_system(err, errno, "remove %s", path);
    return 0;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int folder_make(const char *path, mode_t mode, struct err *err)
{
    auto_buf struct buf part;

    buf_init(&part, FILES_MAX_PATH);
    for (size_t i = 1; path[0]; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        buf_clear(&part);
        buf_add(&part, path, i);
        if (mkdir(buf_text(&part), mode) < 0 && errno != EEXIST)
            return err_system(err, errno, "make folder %s", buf_text(&part));
        if (path[i] == '\0')
            break;
    }
    return 0;
}

const char *path_join_parts(struct buf *out, const char *const *parts)
{
    out->max = FILES_MAX_PATH;
    buf_clear(out);
    for (size_t i = 0; parts[i]; i++) {
        if (i > 0)
            buf_add_char(out, '/');
        buf_add_text(out, parts[i]);
    }
    if (out->overflowed)
        buf_clear(out);
    return buf_text(out);
}
