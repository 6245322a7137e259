/* curl_loop.c - libcurl says which sockets and which time it waits for; we tell it when they come.
 *
 * Holds: `inside` is true exactly while a function of the multi interface that may call back runs.
 */
#include "io/curl_loop.h"

#include "base/err.h"
#include "base/mem.h"
#include "io/loop_fd.h"

enum { US_PER_MS = 1000 };

/* What libcurl keeps for us with each of its sockets. */
struct watch {
    struct curl_loop *driver;
    curl_socket_t socket;
    struct loop_fd *fd;
};

static void act(struct curl_loop *driver, curl_socket_t socket, int what)
{
    int still_running;

    driver->inside = true;
    curl_multi_socket_action(driver->multi, socket, what, &still_running);
    driver->inside = false;
    driver->progressed(driver->context);
}

static void on_ready(void *context, unsigned events)
{
    struct watch *watch = context;
    int what = 0;

    if (events & LOOP_FD_READ)
        what |= CURL_CSELECT_IN;
    if (events & LOOP_FD_WRITE)
        what |= CURL_CSELECT_OUT;
    act(watch->driver, watch->socket, what);
}

static void watch_free(struct watch *watch)
{
    if (!watch)
        return;
    loop_fd_free(watch->fd);
    mem_free(watch);
}

static struct watch *watch_new(struct curl_loop *driver, curl_socket_t socket)
{
    struct watch *watch = mem_alloc(sizeof(*watch));

    *watch = (struct watch){ .driver = driver, .socket = socket };
    watch->fd = loop_fd_new(driver->loop, socket, 0, on_ready, watch);
    return watch;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *kept)
{
    struct curl_loop *driver = context;
    struct watch *watch = kept;

    if (what == CURL_POLL_REMOVE) {
        watch_free(watch);
        curl_multi_assign(driver->multi, socket, NULL);
        return 0;
    }
    if (!watch) {
        watch = watch_new(driver, socket);
        curl_multi_assign(driver->multi, socket, watch);
    }
    loop_fd_set_events(watch->fd, (what & CURL_POLL_IN ? LOOP_FD_READ : 0u) |
                                      (what & CURL_POLL_OUT ? LOOP_FD_WRITE : 0u));
    return 0;
}

static void on_time(void *context)
{
    act(context, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_wish(CURLM *multi, long delay_ms, void *context)
{
    struct curl_loop *driver = context;

    if (delay_ms < 0)
        loop_timer_stop(&driver->timer);
    else
        loop_timer_start(driver->loop, &driver->timer, (int64_t)delay_ms * US_PER_MS, on_time,
                         driver);
    return 0;
}

int curl_loop_init(struct curl_loop *driver, struct loop *loop, long max_connections,
                   void (*progressed)(void *context), void *context, struct err *err)
{
    CURLM *multi = curl_multi_init();

    if (!multi)
        return err_set(err, ERR_SYSTEM, "libcurl cannot make a multi handle");
    *driver = (struct curl_loop){
        .loop = loop, .multi = multi, .progressed = progressed, .context = context
    };
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, driver);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer_wish);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, driver);
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, max_connections);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, max_connections);
    return 0;
}

void curl_loop_done(struct curl_loop *driver)
{
    if (driver->multi)
        curl_multi_cleanup(driver->multi); /* closes sockets, and says so: the watches go */
    driver->multi = NULL;
    if (driver->loop)
        loop_timer_stop(&driver->timer);
}

int curl_loop_add(struct curl_loop *driver, CURL *easy, struct err *err)
{
    driver->inside = true;

    CURLMcode code = curl_multi_add_handle(driver->multi, easy);

    driver->inside = false;
    if (code != CURLM_OK)
        return err_set(err, ERR_BUG, "libcurl: %s", curl_multi_strerror(code));
    return 0;
}

void curl_loop_remove(struct curl_loop *driver, CURL *easy)
{
    driver->inside = true;
    curl_multi_remove_handle(driver->multi, easy);
    driver->inside = false;
}

bool curl_loop_next_ended(struct curl_loop *driver, CURL **ret_easy, CURLcode *ret_code)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(driver->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        *ret_easy = message->easy_handle;
        *ret_code = message->data.result;
        return true;
    }
    return false;
}
