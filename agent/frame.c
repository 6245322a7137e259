/* frame.c - frames on a socket that blocks.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "frame.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static int read_bytes(int fd, char *at, size_t length, struct err *err)
{
    while (length > 0) {
        ssize_t got = read(fd, at, length);

        if (got == 0)
            return err_set(err, ERR_NOT_FOUND, "the other side has closed the connection");
        if (got < 0 && errno != EINTR)
            return err_system(err, errno, "read");
        if (got > 0) {
            at += got;
            length -= (size_t)got;
        }
    }
    return 0;
}

static int write_bytes(int fd, const char *at, size_t length, struct err *err)
{
    while (length > 0) {
        ssize_t put = send(fd, at, length, MSG_NOSIGNAL);

        if (put < 0 && errno != EINTR)
            return err_system(err, errno, "write");
        if (put > 0) {
            at += put;
            length -= (size_t)put;
        }
    }
    return 0;
}

int frame_read(int fd, struct frame *ret_frame, struct buf *ret_text, struct err *err)
{
    struct frame frame;
    char bytes[16384];
    int result = read_bytes(fd, (char *)&frame, sizeof(frame), err);

    if (result < 0)
        return result;
    if (frame.length > FRAME_MAX)
        return err_set(err, ERR_TOO_BIG, "a frame of %u bytes", (unsigned)frame.length);
    for (size_t left = frame.length; left > 0;) {
        size_t part = left < sizeof(bytes) ? left : sizeof(bytes);

        result = read_bytes(fd, bytes, part, err);
        if (result < 0)
            return result;
        buf_add(ret_text, bytes, part);
        left -= part;
    }
    *ret_frame = frame;
    return buf_check(ret_text, "frame", err);
}

int frame_write(int fd, uint32_t word, struct str text, struct err *err)
{
    struct frame frame = { .word = word, .length = (uint32_t)text.len };
    int result = write_bytes(fd, (const char *)&frame, sizeof(frame), err);

    return result < 0 ? result : write_bytes(fd, text.at, text.len, err);
}
