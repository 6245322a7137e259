/* raw_client.h - clients that say exactly the bytes of a test, driven from the thread of the
 * server: sockets that never block. */
#ifndef SLINC_TESTS_IO_RAW_CLIENT_H
#define SLINC_TESTS_IO_RAW_CLIENT_H

#include "exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define RAW_UNUSED __attribute__((unused))

/* To 127.0.0.1, from this address: all of 127.0.0.0/8 is ours. */
RAW_UNUSED static int raw_open(uint16_t port, in_addr_t from)
{
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(from) };
    struct sockaddr_in there = { .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct linger at_once = { .l_onoff = 1 }; /* no TIME_WAIT: ports are finite */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
    return fd;
}

RAW_UNUSED static void raw_say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads until the server closes, with the loop running; what came is cut to the buffer. */
RAW_UNUSED static void raw_read_to_end(struct loop *loop, int fd, char *text, size_t size)
{
    int64_t limit_us = loop_now_us(loop) + (int64_t)15 * SECOND_US;
    size_t got = 0;

    for (;;) {
        char piece[4096];
        ssize_t part = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

        if (part == 0 || (part < 0 && errno != EAGAIN))
            break;
        for (ssize_t i = 0; i < part && got + 1 < size; i++)
            text[got++] = piece[i];
        if (part < 0)
            run_for(loop, MS_US);
        assert_true(loop_now_us(loop) < limit_us);
    }
    text[got] = '\0';
}

/* Until the text has come; the connection stays open. */
RAW_UNUSED static void raw_read_until(struct loop *loop, int fd, const char *wanted)
{
    int64_t limit_us = loop_now_us(loop) + (int64_t)15 * SECOND_US;
    char text[4096] = "";
    size_t got = 0;

    while (!strstr(text, wanted)) {
        ssize_t part = recv(fd, text + got, sizeof(text) - 1 - got, MSG_DONTWAIT);

        assert_int_not_equal(part, 0);
        if (part > 0)
            got += (size_t)part;
        text[got] = '\0';
        if (part < 0)
            run_for(loop, MS_US);
        assert_true(loop_now_us(loop) < limit_us);
    }
}

#endif
