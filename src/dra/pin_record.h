/* pin_record.h - what the hook pinned: one small file per container, for the repair sweep.
 *
 *     cgroup /sys/fs/cgroup/cpuset/kubepods/pod.../abc
 *     cpus 0-1,8
 *     claims uid uid
 *
 * The hook writes it, the plugin reads it. Whoever changes a record or a pinned cpuset holds the
 * lock of the folder: between reading a record and setting the cpuset nobody else may change
 * either. */
#ifndef SLINC_DRA_PIN_RECORD_H
#define SLINC_DRA_PIN_RECORD_H

#include "codec/bitmap.h"

struct pin_record {
    struct buf cgroup; /* the folder of the control group */
    struct bitmap cpus;
    struct buf claims; /* UIDs with spaces between */
};

void pin_record_init(struct pin_record *record);
void pin_record_done(struct pin_record *record);

int pin_record_read(const char *folder, const char *container, struct pin_record *record,
                    struct err *err); /* -ERR_NOT_FOUND: there is none */
int pin_record_write(const char *folder, const char *container, const struct pin_record *record,
                     struct err *err);

/* Whether the text may be the name of a file: of a container, of a claim. */
bool pin_record_is_name(struct str name);

/* The lock, as a descriptor: close it to unlock. wait: else -ERR_UNAVAILABLE when it is held. */
int pin_records_lock(const char *folder, bool wait, int *ret_fd, struct err *err);

#define PIN_RECORDS_LOCK ".lock"

#define auto_pin_record __attribute__((cleanup(pin_record_done)))

#endif
