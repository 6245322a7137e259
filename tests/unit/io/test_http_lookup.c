/* test_http_lookup.c - a name server that does not answer holds up nobody but its callers.
 *
 * This program has a getaddrinfo of its own, which libcurl's thread finds first: it hangs until the
 * test lets go. */
#include "exchange.h"

#include <netdb.h>
#include <semaphore.h>
#include <time.h>

static sem_t asked, go, left;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_found)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 10;
    sem_post(&asked);
    sem_timedwait(&go, &limit);
    sem_post(&left);
    return EAI_NONAME;
}

static void a_slow_lookup_does_not_hold_up_the_loop(void **state)
{
    struct http_client_options options = { .base_url = "http://slow.invalid" };
    struct http_transport *transport;
    struct exchange timed = { .ends = 0 }, cancelled = { .ends = 0 }, dropped = { .ends = 0 };
    struct http_request request = { .method = "POST", .path = "/", .body = STR("x") };
    struct loop *loop;

    sem_init(&asked, 0, 0);
    sem_init(&go, 0, 0);
    sem_init(&left, 0, 0);
    assert_int_equal(loop_new_real(&loop, NULL), 0);
    assert_int_equal(http_client_new(loop, &options, &transport, NULL), 0);

    int64_t start_us = loop_now_us(loop);

    exchange_send(&cancelled, loop, transport, &request);
    exchange_send(&dropped, loop, transport, &request);
    request.deadline_us = start_us + 100 * MS_US;
    exchange_do(&timed, loop, transport, &request);
    assert_int_equal(timed.class, ERR_TIMEOUT);
    for (int i = 0; i < 3; i++)
        sem_wait(&asked); /* all three look-ups are under way */
    http_cancel(transport, cancelled.call);
    http_transport_free(transport);
    assert_in_range(loop_now_us(loop) - start_us, 100 * MS_US, 5 * SECOND_US);
    assert_int_equal(cancelled.ends + dropped.ends, 0);
    loop_free(loop);
    for (int i = 0; i < 3; i++)
        sem_post(&go);
    for (int i = 0; i < 3; i++)
        sem_wait(&left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_lookup_does_not_hold_up_the_loop),
    };

    return cmocka_run_group_tests_name("io/http_lookup", tests, NULL, NULL);
}
