/* conf.c - writes the slurm.conf of the agent from its flags.
 *
 * The node and the partition exist for the parser's sake.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "conf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { MAX_NAME = 253, MAX_PATH = 512, SLURM_PORT = 6817 };

static int check_name(struct str name, const char *what, struct err *err)
{
    bool is_good = name.len > 0 && name.len <= MAX_NAME;

    for (size_t i = 0; i < name.len && is_good; i++)
        is_good = str_is_alnum(name.at[i]) || strchr("-._", name.at[i]);
    if (is_good)
        return 0;
    return err_set(err, ERR_INVALID, "%s: '" STR_FMT "' is not a name", what,
                   STR_ARG(str_sub(name, 0, 60)));
}

static int write_hosts(struct str list, struct buf *out, uint64_t *ret_port, struct err *err)
{
    struct str rest = list, one;
    bool is_first = true;

    while (str_next(&rest, ',', &one)) {
        struct str host = one, port = STR("");
        uint64_t number = SLURM_PORT;

        if ((str_cut(one, ':', &host, &port) &&
             str_to_u64(port, 1, UINT16_MAX, &number, NULL) < 0) ||
            (!is_first && number != *ret_port))
            return err_set(err, ERR_INVALID,
                           "--slurmctld: wants host or host:port, all with one port");
        if (check_name(host, "--slurmctld", err) < 0)
            return -ERR_INVALID;
        /* The first is a name, which nothing looks up, and the second where it is. */
        buf_printf(out, "SlurmctldHost=" STR_FMT "(" STR_FMT ")\n", STR_ARG(host), STR_ARG(host));
        *ret_port = number;
        is_first = false;
    }
    return 0;
}

int conf_write(const struct conf_ask *ask, struct buf *out, struct err *err)
{
    uint64_t port = SLURM_PORT;

    if (check_name(str_of(ask->cluster), "--cluster-name", err) < 0)
        return -ERR_INVALID;
    buf_printf(out, "ClusterName=%s\n", ask->cluster);
    if (write_hosts(str_of(ask->slurmctld), out, &port, err) < 0)
        return -ERR_INVALID;
    buf_printf(out, "SlurmctldPort=%" PRIu64 "\n", port);
    buf_printf(out, "MessageTimeout=%" PRId64 "\n", ask->message_timeout_s);
    buf_add_text(out, "AuthType=auth/jwt\nNodeName=none\nPartitionName=none Nodes=none\n");
    return buf_check(out, "slurm.conf", err);
}

int conf_save(const char *path, struct str text, struct err *err)
{
    char part[MAX_PATH];
    ssize_t written;
    int fd, number;

    if ((size_t)snprintf(part, sizeof(part), "%s.part", path) >= sizeof(part))
        return err_set(err, ERR_INVALID, "the path %s is too long", path);
    (void)unlink(part);
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_system(err, errno, "%s", part);
    written = write(fd, text.at, text.len);
    number = errno;
    (void)close(fd);
    if (written != (ssize_t)text.len || rename(part, path) < 0)
        return err_system(err, written < 0 ? number : errno, "%s", path);
    return 0;
}
