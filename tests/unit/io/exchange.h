/* exchange.h - sends requests in a test and waits, on the loop, for how they end. */
#ifndef SLINC_TESTS_IO_EXCHANGE_H
#define SLINC_TESTS_IO_EXCHANGE_H

#include "io/http.h"
#include "io/http_client.h"
#include "io/loop_real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define EXCHANGE_UNUSED __attribute__((unused))

enum { SECOND_US = 1000000, MS_US = 1000 };

struct exchange {
    struct loop *loop;
    struct http_transport *transport;
    struct http_call *call;
    unsigned ends, heads; /* answered or failed; on_head */
    int status;           /* of the answer, or of on_head */
    int class;            /* when failed */
    char why[240];
    char body[4096]; /* cut */
    size_t body_length;
    int64_t retry_after_us;
    char content_type[128];
    bool cancel_on_head, cancel_on_data;
    struct exchange *other; /* cancelled together with this one */
};

static void exchange_cancel(struct exchange *exchange)
{
    http_cancel(exchange->transport, exchange->call);
    if (exchange->other)
        http_cancel(exchange->other->transport, exchange->other->call);
    loop_stop(exchange->loop);
}

static void exchange_keep(struct exchange *exchange, struct str piece)
{
    size_t room = sizeof(exchange->body) - 1;

    if (exchange->body_length < room) {
        size_t length =
            piece.len < room - exchange->body_length ? piece.len : room - exchange->body_length;

        memcpy(exchange->body + exchange->body_length, piece.at, length);
    }
    exchange->body_length += piece.len;
}

static void exchange_head(void *context, int status)
{
    struct exchange *exchange = context;

    assert_int_equal(exchange->ends, 0);
    exchange->heads++;
    exchange->status = status;
    if (exchange->cancel_on_head)
        exchange_cancel(exchange);
}

static void exchange_data(void *context, struct str piece)
{
    struct exchange *exchange = context;

    assert_int_equal(exchange->ends, 0);
    exchange_keep(exchange, piece);
    if (exchange->cancel_on_data)
        exchange_cancel(exchange);
}

static void exchange_answered(void *context, const struct http_answer *answer)
{
    struct exchange *exchange = context;

    exchange->ends++;
    exchange->status = answer->status;
    exchange->retry_after_us = answer->retry_after_us;
    snprintf(exchange->content_type, sizeof(exchange->content_type), "%s", answer->content_type);
    exchange_keep(exchange, answer->body);
    loop_stop(exchange->loop);
}

static void exchange_failed(void *context, const struct err *why)
{
    struct exchange *exchange = context;

    exchange->ends++;
    exchange->class = why->class;
    snprintf(exchange->why, sizeof(exchange->why), "%s", why->text);
    loop_stop(exchange->loop);
}

EXCHANGE_UNUSED static void exchange_send(struct exchange *exchange, struct loop *loop,
                                          struct http_transport *transport,
                                          const struct http_request *request)
{
    struct http_handlers handlers = {
        exchange_head, exchange_data, exchange_answered, exchange_failed, exchange,
    };
    struct http_request dated = *request;

    exchange->loop = loop;
    exchange->transport = transport;
    if (dated.deadline_us == 0)
        dated.deadline_us = loop_now_us(loop) + (int64_t)10 * SECOND_US;
    exchange->call = http_send(transport, &dated, &handlers);
}

static void exchange_give_up(void *context)
{
    fail_msg("nothing happened for 20 s");
}

/* Runs the loop until the flag is set, by something that also stops the loop. */
EXCHANGE_UNUSED static void run_until(struct loop *loop, const unsigned *flag)
{
    struct loop_timer watchdog = { .due_us = 0 };

    loop_timer_start(loop, &watchdog, (int64_t)20 * SECOND_US, exchange_give_up, NULL);
    while (!*flag)
        loop_run(loop);
    loop_timer_stop(&watchdog);
}

EXCHANGE_UNUSED static void exchange_do(struct exchange *exchange, struct loop *loop,
                                        struct http_transport *transport,
                                        const struct http_request *request)
{
    exchange_send(exchange, loop, transport, request);
    run_until(loop, &exchange->ends);
    assert_int_equal(exchange->ends, 1);
}

static void exchange_stop_loop(void *context)
{
    loop_stop(context);
}

/* Lets everything that is under way happen for a moment: nothing is expected, so nothing can be
 * waited for. */
EXCHANGE_UNUSED static void run_for(struct loop *loop, int64_t time_us)
{
    struct loop_timer timer = { .due_us = 0 };

    loop_timer_start(loop, &timer, time_us, exchange_stop_loop, loop);
    loop_run(loop);
    loop_timer_stop(&timer);
}

#endif
