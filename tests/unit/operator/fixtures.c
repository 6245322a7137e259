/* fixtures.c - reads recorded objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../worlds_read.h"
#include "base/mem.h"
#include "fixtures.h"
#include "io/reload.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_FILE = 1 << 20 };

const char *fixtures_folder = "tests/fixtures";

/* Host keys are not in the fixtures: the recorded hash becomes that of their placeholder. */
static void rewrite_key_hash(char *bytes, size_t length)
{
    static const char mark[] = "ssh-host-keys-hash: ";
    static const char hash[] = "ed86f25e4397694a9a39a7829fd6071188a68ee01fdbb5fe4f9426bddf965ed0";
    char *at = bytes;

    while ((at = memmem(at, length - (size_t)(at - bytes), mark, sizeof(mark) - 1))) {
        at += sizeof(mark) - 1;
        if (str_hex_digit(*at) >= 0)
            memcpy(at, hash, sizeof(hash) - 1);
    }
}

static void read_file(const char *path, struct yaml_docs *ret_docs)
{
    struct err err = { .class = 0 };
    char *bytes;
    size_t length;

    if (reload_read(path, MAX_FILE, &bytes, &length, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    rewrite_key_hash(bytes, length);
    if (yaml_parse((struct str){ bytes, length }, NULL, ret_docs, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    mem_free_secret(bytes, length + 1);
}

static void load_file(struct desk *desk, const char *path)
{
    auto_yaml_docs struct yaml_docs docs = { .count = 0 };
    struct err err = { .class = 0 };

    read_file(path, &docs);
    for (size_t i = 0; i < docs.count; i++) {
        const struct json *root = json_root(docs.docs[i]);
        struct str kind = json_str(json_get(root, "kind"));

        if (kind.len > 0 && operator_world_cache(&desk->world, kind.at) &&
            desk_add(desk, root, &err) < 0)
            fail_msg("%s: %s", path, err.text);
    }
}

static int is_yaml(const struct dirent *entry)
{
    return str_ends(str_of(entry->d_name), STR(".yaml"));
}

void fixtures_load(struct desk *desk, const char *version)
{
    char folder[512], path[1024];
    struct dirent **entries;
    int count;

    (void)snprintf(folder, sizeof(folder), "%s/%s", fixtures_folder, version);
    count = scandir(folder, &entries, is_yaml, alphasort);
    assert_true(count > 10);
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        load_file(desk, path);
        free(entries[i]);
    }
    free(entries);
}

struct json_doc *fixtures_find(const char *version, const char *file, const char *kind,
                               const char *name)
{
    auto_yaml_docs struct yaml_docs docs = { .count = 0 };
    char path[1024];

    (void)snprintf(path, sizeof(path), "%s/%s/%s", fixtures_folder, version, file);
    read_file(path, &docs);
    for (size_t i = 0; i < docs.count; i++) {
        const struct json *root = json_root(docs.docs[i]);

        if (str_is(json_str(json_get(root, "kind")), kind) &&
            str_is(json_str(json_at(root, "metadata", "name")), name))
            return json_clone(root);
    }
    fail_msg("%s holds no %s %s", path, kind, name);
    return NULL;
}
