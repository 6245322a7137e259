/* slinc-slurm.h - all of libslinc-slurm: Slurm's REST interface for programs in C.
 *
 * Programs that do one thing after the other begin with slurm/sync.h; programs with a loop with
 * io/loop_guest.h and slurm/client.h. What an answer means is in slurm/error.h. See
 * libslinc-slurm(3). */
#ifndef SLINC_SLURM_H
#define SLINC_SLURM_H

/* What the others speak in: errors, texts, values. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "codec/bitmap.h"
#include "codec/hostlist.h"
#include "codec/json.h"

/* The way to slurmrestd. */
#include "io/http.h"
#include "io/http_client.h"
#include "io/loop.h"
#include "io/loop_guest.h"
#include "slurm/token.h"

/* Calls and their answers. */
#include "slurm/calls.h"
#include "slurm/client.h"
#include "slurm/endpoint.h"
#include "slurm/error.h"
#include "slurm/mark.h"
#include "slurm/object.h"
#include "slurm/sight.h"
#include "slurm/submit.h"
#include "slurm/sync.h"
#include "slurm/value.h"

/* What is in Slurm, kept true by polling. */
#include "slurm/cache.h"
#include "slurm/poller.h"

#endif
