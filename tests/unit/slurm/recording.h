/* recording.h - answers of a real slurmrestd 26.05, recorded in data/: one file per situation. */
#ifndef SLINC_TESTS_SLURM_RECORDING_H
#define SLINC_TESTS_SLURM_RECORDING_H

#include "base/mem.h"
#include "codec/json.h"
#include "io/reload.h"

#include <stdio.h>
#include <stdlib.h>

struct recording {
    struct json_doc *file;
    struct json_doc *doc; /* the body, when it is JSON */
    char *text;           /* the body as it was sent */
    const char *request;  /* "GET /slurm/v0.0.45/nodes/" */
    const char *content_type;
    int status;
};

static inline struct recording recording_of(const char *name)
{
    struct recording recording = { 0 };
    struct buf body;
    struct err err = { 0 };
    char path[512];
    int folder = (int)(strrchr(__FILE__, '/') - __FILE__); /* seen from where it was compiled */
    size_t length;
    char *bytes;

    snprintf(path, sizeof(path), "%.*s/data/%s.json", folder, __FILE__, name);
    if (reload_read(path, 16 << 20, &bytes, &length, &err) < 0 ||
        json_parse((struct str){ bytes, length }, 16 << 20, &recording.file, &err) < 0) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        abort();
    }
    mem_free(bytes);

    const struct json *root = json_root(recording.file), *value = json_get(root, "body");

    buf_init(&body, 16 << 20);
    if (json_is_string(value))
        buf_add_str(&body, json_str(value));
    else
        json_write(value, &body);
    recording.text = mem_strdup(buf_text(&body));
    buf_done(&body);
    if (!json_is_string(value))
        recording.doc = json_clone(value);
    recording.request = json_str(json_get(root, "request")).at;
    recording.content_type = json_str(json_get(root, "content_type")).at;
    recording.status = (int)json_i64_or(json_get(root, "status"), 0);
    return recording;
}

static inline void recording_done(struct recording *recording)
{
    json_doc_free(recording->file);
    json_doc_free(recording->doc);
    mem_free(recording->text);
}

#endif
