/* http_evict.c - which connection is given up for a new one.
 *
 * A server that is full of connections that ask nothing would stop: the kubelet's probes fail and
 * the process is restarted, or the API server cannot reach a webhook. So a new connection takes the
 * place of another. The address that holds the most gives one up: its idle one, or else what it has
 * not finished sending, reading or listening to; the oldest first. Whoever holds few connections
 * (the kubelet, the API server) keeps them. What is being answered is not given up; it has a
 * deadline, and no address holds more than its part. */
#include "io/http_server_internal.h"

#include "base/mem.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static struct str key_of(const struct http_holder *holder)
{
    return (struct str){ (const char *)holder->address, sizeof(holder->address) };
}

static void read_address(const struct sockaddr *address, unsigned char out[16])
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    memset(out, 0, 16);
    if (address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof(v4));
        memcpy(out, mapped, sizeof(mapped));
        memcpy(out + sizeof(mapped), &v4.sin_addr, sizeof(v4.sin_addr));
    } else if (address->sa_family == AF_INET6) {
        memcpy(&v6, address, sizeof(v6));
        memcpy(out, &v6.sin6_addr, sizeof(v6.sin6_addr));
    }
}

struct http_holder *http_holder_enter(struct http_server *server, const struct sockaddr *address)
{
    struct http_holder asked = { .count = 0 }, *holder;

    read_address(address, asked.address);
    holder = map_get(&server->holders, key_of(&asked));
    if (!holder) {
        holder = mem_alloc(sizeof(*holder));
        *holder = asked;
        (void)map_put(&server->holders, key_of(holder), holder, NULL);
    }
    holder->count++;
    return holder;
}

void http_holder_leave(struct http_server *server, struct http_holder *holder)
{
    if (--holder->count == 0)
        (void)map_remove(&server->holders, key_of(holder));
}

/* Whether a is given up before b. */
static bool goes_before(const struct conn *a, const struct conn *b)
{
    if (a->holder->count != b->holder->count)
        return a->holder->count > b->holder->count;
    if (a->state != b->state)
        return a->state < b->state;
    return a->since_us < b->since_us;
}

static bool give_up_one(struct http_server *server, const struct http_holder *holder)
{
    struct conn *chosen = NULL;

    list_each (struct conn, conn, &server->conns, link)
        if (conn->state != CONN_ANSWERING && (!holder || conn->holder == holder) &&
            (!chosen || goes_before(conn, chosen)))
            chosen = conn;
    if (chosen)
        http_conn_close(chosen);
    return chosen;
}

/* The new connection counts among those of its holder already. False: there is no room. */
bool http_make_room(struct http_server *server, const struct http_holder *holder)
{
    if (holder->count > server->max_per_peer)
        return give_up_one(server, holder);
    return server->conn_count < server->max_connections || give_up_one(server, NULL);
}
