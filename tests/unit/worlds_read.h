/* worlds_read.h - reads the worlds of a folder: every document of every YAML file is one.
 *
 * A world has its sentence as `name:`, which no other world has. What else it has is its reader's
 * business. */
#ifndef SLINC_TESTS_WORLDS_READ_H
#define SLINC_TESTS_WORLDS_READ_H

#include "base/err.h"
#include "codec/yaml.h"

enum { MAX_WORLDS = 1024, MAX_WORLD_FILES = 64 };

struct written_world {
    const char *name;        /* in root */
    const struct json *root; /* in files */
};

struct written_worlds {
    /* Refuses a world that is not well written; set before reading. NULL: all are taken. */
    int (*check)(const struct json *root, struct err *err);
    struct yaml_docs files[MAX_WORLD_FILES];
    size_t file_count;
    struct written_world worlds[MAX_WORLDS];
    size_t count;
};

/* Adds the worlds of one text. Errors name the file and the world. */
int worlds_read_text(struct written_worlds *all, const char *file, struct str text,
                     struct err *err);
/* Adds those of all files of a folder that end in .yaml, in the order of their names. */
int worlds_read_folder(struct written_worlds *all, const char *folder, struct err *err);
void worlds_read_done(struct written_worlds *all);

/* For checks: -ERR_INVALID names a member of the object that is not among the known keys, which end
 * with NULL. */
int worlds_check_keys(const struct json *object, const char *const *known, struct err *err);

/* main of a program whose tests are worlds: `PROGRAM FOLDER [NAME]` runs the test for all worlds of
 * the folder, or for the one of this name. Its state is a struct written_world. */
int worlds_main(struct written_worlds *all, int argc, char **argv, void (*test)(void **state));

#endif
