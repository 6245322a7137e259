/* main.c - slinc-cpuset-hook: limits a container to CPUs before its process starts.
 *
 *     slinc-cpuset-hook RECORDS CLAIM CPUS [PROC]
 *
 * A createRuntime hook: the container runtime has made the control group, put the container's first
 * process into it, and waits for us. The state of the container comes on stdin. A container with
 * two claims runs two hooks and gets the CPUs of both. Any failure is one line on stderr and exit
 * code 1, and the runtime does not start the container. */
#include "base/core_dump.h"
#include "base/mem.h"
#include "dra/cpuset.h"
#include "dra/files.h"
#include "dra/hook/oci_state.h"
#include "dra/pin_record.h"

#include <stdio.h>
#include <unistd.h>

enum { MAX_STATE = 1 << 20, PIECE = 4096 };

struct arguments {
    const char *records, *claim, *cpus, *proc;
};

static int read_stdin(struct buf *out, struct err *err)
{
    char piece[PIECE];
    ssize_t got;

    while ((got = read(STDIN_FILENO, piece, sizeof(piece))) > 0 && !out->overflowed)
        buf_add(out, piece, (size_t)got);
    return got < 0 ? err_set(err, ERR_SYSTEM, "cannot read the state of the container")
                   : buf_check(out, "the state of the container", err);
}

/* Adds what an earlier hook of the same container pinned. Containers of the same id in another
 * control group are others: their record is replaced. */
static int add_earlier(const char *records, const char *container, struct pin_record *record,
                       struct err *err)
{
    auto_pin_record struct pin_record earlier;
    int result;

    pin_record_init(&earlier);
    result = pin_record_read(records, container, &earlier, err);
    if (result == -ERR_NOT_FOUND)
        return 0;
    if (result < 0)
        return result;
    if (!str_eq(buf_str(&earlier.cgroup), buf_str(&record->cgroup)))
        return 0;
    bitmap_or(&record->cpus, &earlier.cpus);
    buf_printf(&record->claims, " %s", buf_text(&earlier.claims));
    return 0;
}

static int pin(const struct arguments *arguments, const char *container, int64_t pid,
               struct err *err)
{
    auto_pin_record struct pin_record record;
    int lock, result;

    pin_record_init(&record);
    bitmap_done(&record.cpus);
    buf_add_text(&record.claims, arguments->claim);
    if ((result = bitmap_parse_ranges(str_of(arguments->cpus), CPUSET_MAX_CPUS, &record.cpus,
                                      err)) < 0 ||
        (result = cpuset_find(arguments->proc, pid, &record.cgroup, err)) < 0 ||
        (result = pin_records_lock(arguments->records, true, &lock, err)) < 0)
        return result;
    if ((result = add_earlier(arguments->records, container, &record, err)) == 0 &&
        (result = cpuset_set(buf_text(&record.cgroup), &record.cpus, err)) == 0)
        result = pin_record_write(arguments->records, container, &record, err);
    (void)close(lock);
    return result;
}

static int run(const struct arguments *arguments, struct err *err)
{
    auto_buf struct buf text;
    auto_free char *container = NULL;
    struct oci_state state;
    int result;

    buf_init(&text, MAX_STATE);
    if ((result = read_stdin(&text, err)) < 0 ||
        (result = oci_state_read(buf_str(&text), &state, err)) < 0)
        return result;
    if (!pin_record_is_name(state.id))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is no id of a container",
                       STR_ARG(state.id));
    container = mem_strndup(state.id.at, state.id.len);
    return pin(arguments, container, state.pid, err);
}

int main(int argc, char **argv)
{
    struct arguments arguments = { .proc = "/proc" };
    struct err err = { .class = 0 };

    core_dump_forbid();
    if (argc == 2 && str_is(str_of(argv[1]), "--version")) {
        (void)puts("slinc-cpuset-hook");
        return 0;
    }
    if (argc != 4 && argc != 5) {
        (void)fprintf(stderr, "usage: slinc-cpuset-hook RECORDS CLAIM CPUS [PROC]\n");
        return 1;
    }
    arguments.records = argv[1];
    arguments.claim = argv[2];
    arguments.cpus = argv[3];
    if (argc == 5)
        arguments.proc = argv[4];
    if (run(&arguments, &err) < 0) {
        (void)fprintf(stderr, "slinc cannot pin the container to CPUs %s of claim %s: %s\n",
                      arguments.cpus, arguments.claim, err.text);
        return 1;
    }
    return 0;
}
