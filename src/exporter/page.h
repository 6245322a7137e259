/* page.h - the live page as it stands in page.html, made a part of the program by page_embed.py. */
#ifndef SLINC_EXPORTER_PAGE_H
#define SLINC_EXPORTER_PAGE_H

#include "exporter/page_hashes.h" /* made by page_embed.py: PAGE_SCRIPT_HASH, PAGE_STYLE_HASH */

#include <stddef.h>

extern const char page_html[];
extern const size_t page_html_len;

#endif
