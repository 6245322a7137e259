/* main.c - slinc-init, the first process of a container that needs more than one, or a reaper.
 *
 *   slinc-init [--grace SECONDS] [--dir PATH[:UID:GID]]... [--drop TEXT]... [--drop-unless NAME]
 *              [[--if FILE] --first PROGRAM [ARG...] --]...
 *              [[--if FILE] --also PROGRAM [ARG...] --]...
 *              [--slurmd [--sys PATH]] PROGRAM [ARG...]
 *
 * Makes the folders, runs each --first program to its end, then keeps the helpers (--also) and the
 * main program running; ends with the main program's status. A --first or --also program after --if
 * is left out where the file is not there. The main program comes last, so that arguments added to
 * the container's command are its own. Lines of its error output with a TEXT are left out, unless
 * the environment has NAME (then somebody wants to see them all). Environment variables in
 * arguments are expanded as words.h tells; --slurmd merges the pod's limits as slurmd_conf.h tells,
 * and starts slurmd in a control group of its own as cgroup.h tells; sysfs is at /sys unless --sys
 * names another folder. */
#include "cgroup.h"
#include "program.h"
#include "sieve.h"
#include "slurmd_conf.h"
#include "supervise.h"

#include "base/core_dump.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROGRAMS_MAX = 16, DIRS_MAX = 16, GRACE_MAX_S = 3600, KEPT_MAX = 4096 };

struct plan {
    struct program programs[PROGRAMS_MAX]; /* [0] is the main one, then the helpers */
    size_t count;
    struct program first[PROGRAMS_MAX];
    size_t first_count;
    const char *dirs[DIRS_MAX];
    size_t dir_count;
    struct sieve sieve;
    const char *unless; /* a variable that, when set, lets all lines through */
    uint64_t grace_s;
    bool slurmd;
    bool skips_next;              /* the file of an --if is not there */
    struct program skipped;       /* read, and not run */
    const char *sys;              /* NULL: "/sys" */
    char cgroup[CGROUP_PATH_MAX]; /* slurmd's */
};

static const char usage[] = "usage: slinc-init [--grace SECONDS] [--dir PATH[:UID:GID]]...\n"
                            "                  [--drop TEXT]... [--drop-unless NAME]\n"
                            "                  [[--if FILE] --first PROGRAM [ARG...] --]...\n"
                            "                  [[--if FILE] --also PROGRAM [ARG...] --]...\n"
                            "                  [--slurmd [--sys PATH]] PROGRAM [ARG...]\n";

/* ---- the command line ---- */

/* Reads words up to `--` (or to the end, for the main program) and moves *at behind them. */
static int read_program(char **argv, int argc, int *at, bool to_the_end, struct program *program,
                        struct err *err)
{
    for (; *at < argc; (*at)++) {
        if (!to_the_end && str_is(str_of(argv[*at]), "--"))
            break;
        if (words_expand(&program->words, argv[*at], err))
            return -err->class;
    }
    if (!to_the_end && *at == argc)
        return err_set(err, ERR_INVALID, "a program after --first or --also ends with --");
    if (program->words.count == 0)
        return err_set(err, ERR_INVALID, "no program given");
    (*at)++;
    return 0;
}

static int add_drop(struct sieve *sieve, const char *text, struct err *err)
{
    if (sieve->count == SIEVE_TEXTS_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d texts to drop", SIEVE_TEXTS_MAX);
    if (!text[0])
        return err_set(err, ERR_INVALID, "--drop with an empty text would drop everything");
    sieve->texts[sieve->count++] = text;
    return 0;
}

static bool has_value(struct str option)
{
    return str_is(option, "--grace") || str_is(option, "--dir") || str_is(option, "--drop") ||
           str_is(option, "--drop-unless") || str_is(option, "--sys") || str_is(option, "--if");
}

/* Reads the value of an option that has one. */
static int read_value(char **argv, int argc, int *at, struct plan *plan, struct err *err)
{
    const char *option = argv[*at], *value = *at + 1 < argc ? argv[*at + 1] : NULL;

    if (!value)
        return err_set(err, ERR_INVALID, "%s has no value", option);
    *at += 2;
    if (str_is(str_of(option), "--grace"))
        return str_to_u64(str_of(value), 0, GRACE_MAX_S, &plan->grace_s, err);
    if (str_is(str_of(option), "--drop"))
        return add_drop(&plan->sieve, value, err);
    if (str_is(str_of(option), "--drop-unless")) {
        plan->unless = value;
        return 0;
    }
    if (str_is(str_of(option), "--if")) {
        plan->skips_next = access(value, F_OK) < 0;
        return 0;
    }
    if (str_is(str_of(option), "--sys")) {
        plan->sys = value;
        return 0;
    }
    if (plan->dir_count == DIRS_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d folders", DIRS_MAX);
    plan->dirs[plan->dir_count++] = value;
    return 0;
}

/* The program that a --first or --also reads into. */
static struct program *place_of(struct plan *plan, bool first)
{
    if (plan->skips_next) {
        plan->skips_next = false;
        words_done(&plan->skipped.words);
        return &plan->skipped;
    }
    return first ? &plan->first[plan->first_count++] : &plan->programs[plan->count++];
}

static int read_option(char **argv, int argc, int *at, struct plan *plan, struct err *err)
{
    struct str option = str_of(argv[*at]);
    bool first = str_is(option, "--first");

    if (str_is(option, "--slurmd")) {
        plan->slurmd = true;
        (*at)++;
        return 0;
    }
    if (has_value(option))
        return read_value(argv, argc, at, plan, err);
    if (!first && !str_is(option, "--also"))
        return err_set(err, ERR_INVALID, "unknown option %s", argv[*at]);
    if ((first ? plan->first_count : plan->count) == PROGRAMS_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d programs", PROGRAMS_MAX);
    (*at)++;
    return read_program(argv, argc, at, false, place_of(plan, first), err);
}

static int read_plan(char **argv, int argc, struct plan *plan, struct err *err)
{
    int at = 1;

    plan->grace_s = 10;
    plan->count = 1; /* the main program's place */
    while (at < argc && str_starts(str_of(argv[at]), STR("--")))
        if (read_option(argv, argc, &at, plan, err))
            return -err->class;
    return read_program(argv, argc, &at, true, &plan->programs[0], err);
}

/* ---- before the programs start ---- */

static int make_parents(const char *path, struct err *err)
{
    auto_free char *copy = mem_strdup(path);

    for (char *c = copy + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = 0;
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
            return err_system(err, errno, "mkdir %s", copy);
        *c = '/';
    }
    return 0;
}

static int make_dir(const char *path, struct err *err)
{
    if (path[0] != '/')
        return err_set(err, ERR_INVALID, "--dir %s is not an absolute path", path);
    if (make_parents(path, err))
        return -err->class;
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_system(err, errno, "mkdir %s", path);
    return 0;
}

/* PATH or PATH:UID:GID */
static int make_owned_dir(const char *text, struct err *err)
{
    struct str path = str_of(text), owner = { "", 0 }, user, group;
    uint64_t uid = 0, gid = 0;

    if (str_cut(path, ':', &path, &owner) &&
        (!str_cut(owner, ':', &user, &group) || str_to_u64(user, 0, UINT32_MAX - 1, &uid, NULL) ||
         str_to_u64(group, 0, UINT32_MAX - 1, &gid, NULL)))
        return err_set(err, ERR_INVALID, "--dir wants PATH or PATH:UID:GID, not %s", text);

    auto_free char *name = mem_strndup(path.at, path.len);

    if (make_dir(name, err))
        return -err->class;
    if (owner.len > 0 && chown(name, (uid_t)uid, (gid_t)gid) < 0)
        return err_system(err, errno, "chown %s", name);
    return 0;
}

/* Control groups are arranged only by the first process of a container. */
static int prepare_slurmd(struct plan *plan, struct err *err)
{
    const char *sys = plan->sys ? plan->sys : "/sys";
    struct words *slurmd = &plan->programs[0].words;
    struct machine machine = { 0 };
    struct pod pod = { 0 };
    auto_buf struct buf kept;
    int rc = 0;

    buf_init(&kept, KEPT_MAX);
    if (plan->sys || getpid() == 1)
        rc = cgroup_arrange(sys, plan->cgroup, err);
    if (plan->cgroup[0])
        plan->programs[0].cgroup = plan->cgroup;
    if (!rc)
        rc = slurmd_pod(&pod, err);
    if (!rc && pod.cpus > 0)
        rc = cgroup_kept_cpus(sys, pod.cpus, &kept, err);
    pod.kept_cpus = buf_text(&kept);
    if (!rc && (pod.cpus > 0 || pod.memory > 0))
        rc = slurmd_machine(slurmd->at[0], &machine, err);
    return rc ? rc : slurmd_merge(slurmd, &pod, &machine, err);
}

static int prepare(struct plan *plan, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < plan->dir_count; i++)
        rc = make_owned_dir(plan->dirs[i], err);
    return rc || !plan->slurmd ? rc : prepare_slurmd(plan, err);
}

static int run_plan(struct plan *plan)
{
    int64_t grace_ms = (int64_t)plan->grace_s * 1000;
    bool stopped = false;

    for (size_t i = 0; i < plan->first_count; i++) {
        int code = supervise(&plan->first[i], 1, grace_ms, &stopped);

        if (code != 0 || stopped)
            return code;
    }
    return supervise(plan->programs, plan->count, grace_ms, &stopped);
}

static bool drops_lines(const struct plan *plan)
{
    const char *unless = plan->unless ? getenv(plan->unless) : NULL;

    return plan->sieve.count > 0 && (!unless || !unless[0]);
}

static int run_sieved(struct plan *plan, struct err *err)
{
    int code;

    if (sieve_start(&plan->sieve, err))
        return -err->class;
    plan->programs[0].errors = plan->sieve.input;
    code = run_plan(plan);
    sieve_end(&plan->sieve);
    return code;
}

int main(int argc, char **argv)
{
    static struct plan plan;
    struct err err;
    int code;

    if (argc < 2 || str_is(str_of(argv[1]), "--help")) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    core_dump_forbid();  /* of ourselves: what we start has its own */
    supervise_prepare(); /* from here on a TERM waits until it can be answered */
    if (read_plan(argv, argc, &plan, &err) || prepare(&plan, &err)) {
        fprintf(stderr, "slinc-init: %s\n", err.text);
        return 2;
    }
    if (!drops_lines(&plan))
        return run_plan(&plan);
    code = run_sieved(&plan, &err);
    if (code < 0)
        fprintf(stderr, "slinc-init: %s\n", err.text);
    return code < 0 ? 2 : code;
}
