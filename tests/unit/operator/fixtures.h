/* fixtures.h - clusters as releases of the Slinky operator leave them (tests/fixtures). */
#ifndef SLINC_TESTS_OPERATOR_FIXTURES_H
#define SLINC_TESTS_OPERATOR_FIXTURES_H

#include "desk.h"

/* The folder that all versions are in; "tests/fixtures" unless a test is told otherwise. */
extern const char *fixtures_folder;

/* Puts all objects of a version into the world, in the namespace "site". */
void fixtures_load(struct desk *desk, const char *version);

/* One object of a version as it was recorded; the test fails when there is none. */
struct json_doc *fixtures_find(const char *version, const char *file, const char *kind,
                               const char *name);

#endif
