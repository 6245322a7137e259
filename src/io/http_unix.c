/* http_unix.c - a server on a unix socket: how the socket is made, and who may connect.
 *
 * Holds: nobody but this user can connect to the socket, from the moment it exists. */
#include "io/http_server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* What is left of a server that was killed. Anything but a socket stays, and bind says so. */
static void remove_old(const char *path)
{
    struct stat found;

    if (lstat(path, &found) == 0 && S_ISSOCK(found.st_mode))
        (void)unlink(path);
}

int http_unix_listen(const char *path, int *ret_fd, struct err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strlen(path);
    mode_t mask;
    int fd, bound, number;

    if (length == 0 || length >= sizeof(address.sun_path))
        return err_set(err, ERR_INVALID, "the path of a socket has 1 to %zu bytes",
                       sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, length + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_system(err, errno, "socket");
    remove_old(path);
    mask = umask(0177);
    bound = bind(fd, (const struct sockaddr *)&address, sizeof(address));
    number = errno;
    (void)umask(mask);
    if (bound < 0) {
        (void)close(fd);
        return err_system(err, number, "listen on %s", path);
    }
    *ret_fd = fd;
    return 0;
}

bool http_unix_is_allowed(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    int domain = AF_UNIX;
    socklen_t domain_length = sizeof(domain);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_length) == 0 && domain != AF_UNIX)
        return true;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}
