/* curl_loop.h - one libcurl multi handle, driven by the loop. */
#ifndef SLINC_IO_CURL_LOOP_H
#define SLINC_IO_CURL_LOOP_H

#include "io/loop.h"

#include <curl/curl.h>
#include <stdbool.h>

struct curl_loop {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer timer;
    /* libcurl is on the stack: nothing may be added to it or removed from it now. */
    bool inside;
    /* Transfers may have ended; called when libcurl has returned. */
    void (*progressed)(void *context);
    void *context;
};

int curl_loop_init(struct curl_loop *driver, struct loop *loop, long max_connections,
                   void (*progressed)(void *context), void *context, struct err *err);
void curl_loop_done(struct curl_loop *driver); /* all transfers must be gone */

int curl_loop_add(struct curl_loop *driver, CURL *easy, struct err *err);
void curl_loop_remove(struct curl_loop *driver, CURL *easy);

/* The next transfer that has ended; false when there is none. */
bool curl_loop_next_ended(struct curl_loop *driver, CURL **ret_easy, CURLcode *ret_code);

#endif
