/* json_format.h - JSON values written as they will look, with values put in.
 *
 *     json_format(build, "{'name':%s,'ports':[{'containerPort':%d}],'env':%m}", name, port, env)
 *
 * Single quotes stand for double ones. What is put in is escaped, so no value can change the shape:
 *
 *     %s  const char *             a string; NULL gives null
 *     %d  int                      a number
 *     %l  int64_t                  a number
 *     %b  int                      true or false
 *     %j  const struct json *      a value; absent gives null
 *     %m  const struct json_mut *  a value under construction; NULL gives null
 *
 * The format is part of the program: one that is no JSON, or knows other letters, aborts. */
#ifndef SLINC_CODEC_JSON_FORMAT_H
#define SLINC_CODEC_JSON_FORMAT_H

#include "codec/json.h"

struct json_mut *json_format(struct json_build *build, const char *format, ...);

#endif
