/* drive_json.c - shows what our readers make of texts, for comparison with other readers.
 *
 *   drive_json FILE...          each file is a JSON text
 *   drive_json [--yaml]         each line of stdin is a JSON string that holds a text; with --yaml
 * a YAML text, of which the first document counts
 *
 * Answers one line per text: its canonical JSON, or "error: " and the reason. */
#include "base/buf.h"
#include "base/mem.h"
#include "codec/json.h"
#include "codec/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXT = 64 * 1024 * 1024 };

static void answer(const struct json *value)
{
    auto_buf struct buf out = { 0 };

    buf_init(&out, (size_t)MAX_TEXT * 8);
    json_write_canonical(value, &out);
    puts(buf_text(&out));
}

static void refuse(struct err *err)
{
    for (char *c = err->text; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    printf("error: %s\n", err->text);
}

static void answer_json(struct str text)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct err err = { 0 };

    if (json_parse(text, MAX_TEXT, &doc, &err) < 0)
        refuse(&err);
    else
        answer(json_root(doc));
}

static void answer_yaml(struct str text)
{
    auto_yaml_docs struct yaml_docs docs = { 0 };
    struct err err = { 0 };

    if (yaml_parse(text, NULL, &docs, &err) < 0)
        refuse(&err);
    else
        answer(docs.count > 0 ? json_root(docs.docs[0]) : NULL);
}

static int answer_lines(bool yaml)
{
    auto_free char *line = NULL;
    size_t room = 0;
    ssize_t length;

    while ((length = getline(&line, &room, stdin)) > 0) {
        auto_json_doc struct json_doc *doc = NULL;
        struct err err = { 0 };

        if (json_parse((struct str){ line, (size_t)length }, MAX_TEXT, &doc, &err) < 0) {
            fprintf(stderr, "drive_json: input line: %s\n", err.text);
            return 2;
        }
        if (yaml)
            answer_yaml(json_str(json_root(doc)));
        else
            answer_json(json_str(json_root(doc)));
    }
    return 0;
}

static int answer_file(const char *path)
{
    auto_buf struct buf text = { 0 };
    char piece[65536];
    size_t got;
    FILE *file = fopen(path, "rb");

    if (!file) {
        fprintf(stderr, "drive_json: %s: %s\n", path, strerror(errno));
        return 2;
    }
    buf_init(&text, MAX_TEXT);
    while ((got = fread(piece, 1, sizeof(piece), file)) > 0)
        buf_add(&text, piece, got);
    (void)fclose(file);
    answer_json(buf_str(&text));
    return 0;
}

int main(int argc, char **argv)
{
    int rc = 0;

    if (argc == 1)
        return answer_lines(false);
    if (argc == 2 && str_is(str_of(argv[1]), "--yaml"))
        return answer_lines(true);
    for (int i = 1; i < argc && rc == 0; i++)
        rc = answer_file(argv[i]);
    return rc;
}
