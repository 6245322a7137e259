/* memory.h - the libraries under us use our memory, which is overwritten before it goes back: they
 * hold copies of tokens in headers and buffers. */
#ifndef SLINC_IO_MEMORY_H
#define SLINC_IO_MEMORY_H

/* Before anything else calls libcurl, OpenSSL or libevent; once that has happened, they keep the
 * memory that they have. */
void io_share_memory(void);

#endif
