/* drive_http.c - answers lines about connections for tests/diff/test_http.py: what our server sees
 * of the bytes that a client sends, as tests/diff/httpref does for Go's.
 *
 * A line is a JSON string of the bytes, one per character. The client is played from the same
 * thread. */
#include "codec/json.h"
#include "io/http_server.h"
#include "io/loop_real.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_TEXT = 16 << 20, MAX_STEPS = 1000000 };

static struct loop *loop;
static struct http_server *server;
static struct buf answer;

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "drive_http: %s\n", what);
    abort();
}

/* One character for each byte, as JSON knows characters only. */
static void add_bytes(struct str bytes)
{
    buf_add_char(&answer, '"');
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(&answer, "\\u%04x", (unsigned char)bytes.at[i]);
    buf_add_char(&answer, '"');
}

static void add_header(void *context, const char *name, const char *value)
{
    bool *is_first = context;

    buf_add_text(&answer, *is_first ? "[" : ",[");
    add_bytes(str_of(name));
    buf_add_char(&answer, ',');
    add_bytes(str_of(value));
    buf_add_char(&answer, ']');
    *is_first = false;
}

static void on_request(void *context, const struct http_view *view,
                       struct http_responder *responder)
{
    bool is_first = true;

    buf_printf(&answer, "%s{\"method\":\"%s\",\"path\":", answer.len > 1 ? "," : "", view->method);
    add_bytes(str_of(view->path));
    buf_add_text(&answer, ",\"query\":");
    add_bytes(view->query);
    buf_add_text(&answer, ",\"body\":");
    add_bytes(view->body);
    buf_add_text(&answer, ",\"headers\":[");
    http_view_headers(view, add_header, &is_first);
    buf_add_text(&answer, "]}");
    http_respond_text(responder, 200, "seen\n");
}

static void start(void)
{
    static const struct http_route routes[] = { { "/", true, on_request, NULL } };
    const struct http_server_options options = { .address = "127.0.0.1",
                                                 .routes = routes,
                                                 .route_count = 1 };

    check(loop_new_real(&loop, NULL) == 0, "no loop");
    check(http_server_new(loop, &options, &server, NULL) == 0, "no server");
}

static int dial(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "no way in");
    return fd;
}

/* Sends, ends its side, and reads until the server has closed. */
static void converse(int fd, struct str bytes)
{
    bool has_ended = false;
    char junk[4096];

    for (int steps = 0; steps < MAX_STEPS; steps++) {
        ssize_t sent =
            bytes.len > 0 ? send(fd, bytes.at, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        ssize_t got = recv(fd, junk, sizeof(junk), MSG_DONTWAIT);

        if (sent < 0 && errno != EAGAIN)
            bytes.len = 0; /* the server has hung up before the end */
        else if (sent > 0)
            bytes = str_sub(bytes, (size_t)sent, bytes.len);
        if (bytes.len == 0 && !has_ended)
            has_ended = shutdown(fd, SHUT_WR) == 0 || true;
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return;
        loop_step(loop);
    }
    check(false, "the server does not close");
}

static void answer_line(struct str line)
{
    struct json_doc *doc = NULL;
    auto_buf struct buf bytes;
    struct str text;

    buf_init(&bytes, MAX_TEXT);
    check(json_parse(line, MAX_TEXT, &doc, NULL) == 0, "not a line of JSON");
    text = json_str(json_root(doc));
    for (size_t i = 0; i < text.len; i++) { /* UTF-8 of characters up to 0xff */
        unsigned char c = (unsigned char)text.at[i];

        if (c >= 0x80)
            c = (unsigned char)((c & 3) << 6 | (text.at[++i] & 0x3f));
        buf_add_char(&bytes, (char)c);
    }
    json_doc_free(doc);

    int fd = dial();

    buf_clear(&answer);
    buf_add_char(&answer, '[');
    converse(fd, buf_str(&bytes));
    close(fd);
    while (http_server_connections(server) > 0)
        loop_step(loop);
    printf("%s]\n", buf_text(&answer));
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    start();
    buf_init(&answer, MAX_TEXT);
    while ((length = getline(&line, &size, stdin)) > 0)
        answer_line((struct str){ line, (size_t)length });
    buf_done(&answer);
    http_server_free(server);
    loop_free(loop);
    free(line);
    return 0;
}
