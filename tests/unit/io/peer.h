/* peer.h - the other end of a connection, played by a thread with a script.
 *
 * A script is a plain function that accepts, reads and writes with blocking calls, so that a test
 * can say exactly what the peer does and when: answer half, hang, hang up. Every blocking call ends
 * when the test closes the peer, or after ten seconds. */
#ifndef SLINC_TESTS_IO_PEER_H
#define SLINC_TESTS_IO_PEER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PEER_UNUSED __attribute__((unused))

struct peer {
    int listener;
    uint16_t port;
    SSL_CTX *tls; /* NULL: plain */
    void (*script)(struct peer *peer);
    void *context;
    pthread_t thread;
    int go;     /* eventfd: peer_let_go wakes one peer_wait */
    int closed; /* eventfd: readable once the test is over */
    atomic_int arrivals, connections;
    char last[8192]; /* the last request, head and body */
};

struct peer_conn {
    struct peer *peer;
    int fd; /* -1: no connection */
    SSL *ssl;
};

/* True when fd is ready, false when the test is over or ten seconds have passed. */
PEER_UNUSED static bool peer_ready(struct peer *peer, int fd, short events)
{
    struct pollfd polled[2] = { { .fd = fd, .events = events },
                                { .fd = peer->closed, .events = POLLIN } };

    return poll(polled, 2, 10000) > 0 && polled[0].revents != 0 && polled[1].revents == 0;
}

PEER_UNUSED static void *peer_main(void *context)
{
    struct peer *peer = context;

    peer->script(peer);
    return NULL;
}

PEER_UNUSED static void peer_start_on(struct peer *peer, int listener,
                                      void (*script)(struct peer *peer), void *context)
{
    peer->listener = listener;
    peer->script = script;
    peer->context = context;
    peer->go = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    peer->closed = eventfd(0, EFD_CLOEXEC);
    if (listen(listener, 64) < 0 || pthread_create(&peer->thread, NULL, peer_main, peer) != 0)
        abort();
}

PEER_UNUSED static void peer_start(struct peer *peer, SSL_CTX *tls,
                                   void (*script)(struct peer *peer), void *context)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *peer = (struct peer){ .tls = tls };
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        abort();
    peer->port = ntohs(address.sin_port);
    peer_start_on(peer, listener, script, context);
}

PEER_UNUSED static void peer_start_unix(struct peer *peer, const char *path,
                                        void (*script)(struct peer *peer), void *context)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *peer = (struct peer){ .tls = NULL };
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0)
        abort();
    peer_start_on(peer, listener, script, context);
}

PEER_UNUSED static void peer_let_go(struct peer *peer)
{
    eventfd_write(peer->go, 1);
}

/* Until the test says go on. */
PEER_UNUSED static bool peer_wait(struct peer *peer)
{
    eventfd_t value;

    return peer_ready(peer, peer->go, POLLIN) && eventfd_read(peer->go, &value) == 0;
}

PEER_UNUSED static void peer_stop(struct peer *peer)
{
    eventfd_write(peer->closed, 1);
    pthread_join(peer->thread, NULL);
    close(peer->listener);
    close(peer->go);
    close(peer->closed);
}

/* --- what scripts do --- */

PEER_UNUSED static void peer_close(struct peer_conn *conn)
{
    SSL_free(conn->ssl);
    if (conn->fd >= 0)
        close(conn->fd);
    *conn = (struct peer_conn){ .peer = conn->peer, .fd = -1 };
}

/* With a reset instead of an orderly end. */
PEER_UNUSED static void peer_reset(struct peer_conn *conn)
{
    struct linger linger = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    peer_close(conn);
}

PEER_UNUSED static bool peer_accept(struct peer *peer, struct peer_conn *conn)
{
    *conn = (struct peer_conn){ .peer = peer, .fd = -1 };
    if (!peer_ready(peer, peer->listener, POLLIN))
        return false;
    conn->fd = accept(peer->listener, NULL, NULL);
    if (conn->fd < 0)
        return false;

    struct timeval limit = { .tv_sec = 10 };

    setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(conn->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    atomic_fetch_add(&peer->connections, 1);
    if (!peer->tls)
        return true;
    conn->ssl = SSL_new(peer->tls);
    SSL_set_fd(conn->ssl, conn->fd);
    if (SSL_accept(conn->ssl) == 1)
        return true;
    peer_close(conn);
    return false;
}

PEER_UNUSED static ssize_t peer_read(struct peer_conn *conn, char *into, size_t room)
{
    if (conn->ssl)
        return SSL_read(conn->ssl, into, (int)room);
    if (!peer_ready(conn->peer, conn->fd, POLLIN))
        return -1;
    return recv(conn->fd, into, room, 0);
}

PEER_UNUSED static bool peer_write(struct peer_conn *conn, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = conn->ssl ? SSL_write(conn->ssl, bytes, (int)length)
                                 : send(conn->fd, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

PEER_UNUSED static bool peer_say(struct peer_conn *conn, const char *text)
{
    return peer_write(conn, text, strlen(text));
}

PEER_UNUSED static size_t peer_body_length(const char *head)
{
    const char *field = strcasestr(head, "\r\nContent-Length:");
    size_t length = 0;

    if (field && sscanf(field + 17, "%zu", &length) != 1)
        abort();
    return length;
}

/* One whole request into peer->last; false when the connection ended before. */
PEER_UNUSED static bool peer_read_request(struct peer_conn *conn)
{
    struct peer *peer = conn->peer;
    char *text = peer->last;
    size_t got = 0;

    for (;;) {
        ssize_t part = peer_read(conn, text + got, sizeof(peer->last) - 1 - got);

        if (part <= 0)
            return false;
        got += (size_t)part;
        text[got] = '\0';

        const char *end = strstr(text, "\r\n\r\n");

        if (end && got >= (size_t)(end - text) + 4 + peer_body_length(text))
            break;
        if (got + 1 >= sizeof(peer->last))
            return false;
    }
    atomic_fetch_add(&peer->arrivals, 1);
    return true;
}

PEER_UNUSED static bool peer_answer(struct peer_conn *conn, int status, const char *body)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "HTTP/1.1 %d X\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s", status,
             strlen(body), body);
    return peer_say(conn, text);
}

/* Waits until the other side hangs up. */
PEER_UNUSED static void peer_read_to_end(struct peer_conn *conn)
{
    char junk[4096];

    while (peer_read(conn, junk, sizeof(junk)) > 0)
        ;
}

PEER_UNUSED static bool peer_is_over(struct peer *peer)
{
    return poll(&(struct pollfd){ .fd = peer->closed, .events = POLLIN }, 1, 0) > 0;
}

/* A whole script: everything is answered with 200 "ok", on one connection after the other. */
PEER_UNUSED static void peer_answers_ok(struct peer *peer)
{
    struct peer_conn conn;

    while (!peer_is_over(peer)) {
        if (!peer_accept(peer, &conn))
            continue;
        while (peer_read_request(&conn) && peer_answer(&conn, 200, "ok"))
            ;
        peer_close(&conn);
    }
}

#endif
