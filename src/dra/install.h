/* install.h - puts the hook program where the container runtime of the host finds it.
 *
 * The name holds a hash of the program: a new version never overwrites one that CDI files of
 * running pods name. Old ones stay; they are small. */
#ifndef SLINC_DRA_INSTALL_H
#define SLINC_DRA_INSTALL_H

#include "base/buf.h"

int install_hook(const char *program, const char *folder, struct buf *ret_path, struct err *err);

#endif
