/* worlds_read.c - reads the worlds of a folder. */
#include "worlds_read.h"

#include "base/mem.h"
#include "io/reload.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_FILE = 256 << 10 };

int worlds_check_keys(const struct json *object, const char *const *known, struct err *err)
{
    struct json_iter iter = json_iter(object);
    const struct json *value;
    struct str key;

    while (json_next_member(&iter, &key, &value)) {
        size_t i = 0;

        while (known[i] && !str_is(key, known[i]))
            i++;
        if (!known[i])
            return err_set(err, ERR_INVALID, "unknown key '" STR_FMT "'", STR_ARG(key));
    }
    return 0;
}

static int add_world(struct written_worlds *all, const char *file, const struct json *root,
                     struct err *err)
{
    const struct json *name = json_get(root, "name");

    if (!json_is_string(name))
        return err_set(err, ERR_INVALID, "%s: a world without a name", file);
    for (size_t i = 0; i < all->count; i++)
        if (str_is(json_str(name), all->worlds[i].name))
            return err_set(err, ERR_INVALID, "%s: there are two worlds '" STR_FMT "'", file,
                           STR_ARG(json_str(name)));
    if (all->check && all->check(root, err) < 0)
        return err_wrap(err, "%s: '" STR_FMT "'", file, STR_ARG(json_str(name)));
    if (all->count == MAX_WORLDS)
        return err_set(err, ERR_TOO_BIG, "%s: more than %d worlds", file, MAX_WORLDS);
    all->worlds[all->count++] = (struct written_world){ json_str(name).at, root };
    return 0;
}

int worlds_read_text(struct written_worlds *all, const char *file, struct str text, struct err *err)
{
    struct yaml_docs *docs = &all->files[all->file_count];
    int rc;

    if (all->file_count == MAX_WORLD_FILES)
        return err_set(err, ERR_TOO_BIG, "%s: more than %d files", file, MAX_WORLD_FILES);
    rc = yaml_parse(text, NULL, docs, err);
    if (rc < 0)
        return err_wrap(err, "%s", file);
    all->file_count++;
    for (size_t i = 0; i < docs->count && rc == 0; i++)
        rc = add_world(all, file, json_root(docs->docs[i]), err);
    return rc;
}

static int read_file(struct written_worlds *all, const char *folder, const char *file,
                     struct err *err)
{
    char path[512];
    char *bytes;
    size_t length;
    int rc;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, file);
    rc = reload_read(path, MAX_FILE, &bytes, &length, err);
    if (rc < 0)
        return rc;
    rc = worlds_read_text(all, file, (struct str){ bytes, length }, err);
    mem_free_secret(bytes, length + 1);
    return rc;
}

static int is_yaml(const struct dirent *entry)
{
    return str_ends(str_of(entry->d_name), STR(".yaml"));
}

int worlds_read_folder(struct written_worlds *all, const char *folder, struct err *err)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_yaml, alphasort);
    int rc = 0;

    if (count < 0)
        return err_set(err, ERR_INVALID, "%s cannot be read", folder);
    for (int i = 0; i < count; i++) {
        if (rc == 0)
            rc = read_file(all, folder, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

void worlds_read_done(struct written_worlds *all)
{
    for (size_t i = 0; i < all->file_count; i++)
        yaml_docs_done(&all->files[i]);
    *all = (struct written_worlds){ .count = 0 };
}

int worlds_main(struct written_worlds *all, int argc, char **argv, void (*test)(void **state))
{
    static struct CMUnitTest tests[MAX_WORLDS];
    const char *name = argc > 2 ? argv[2] : NULL;
    struct err err = { .class = 0 };
    size_t count = 0;
    int rc = 1;

    if (argc < 2 || worlds_read_folder(all, argv[1], &err) < 0) {
        (void)fprintf(stderr, "%s\n", argc < 2 ? "which folder?" : err.text);
        return 1;
    }
    for (size_t i = 0; i < all->count; i++)
        if (!name || strcmp(all->worlds[i].name, name) == 0)
            tests[count++] = (struct CMUnitTest){ .name = all->worlds[i].name,
                                                  .test_func = test,
                                                  .initial_state = &all->worlds[i] };
    if (count == 0)
        (void)fprintf(stderr, "%s has no world '%s'\n", argv[1], name ? name : "");
    else
        rc = _cmocka_run_group_tests("worlds", tests, count, NULL, NULL);
    (void)fflush(NULL);
    if (rc != 0)
        _exit(rc); /* a world that failed was not freed: a report of leaks would hide why */
    worlds_read_done(all);
    return rc;
}
