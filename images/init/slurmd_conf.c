/* slurmd_conf.c - merges the pod's limits and place into slurmd's --conf value. */
#include "slurmd_conf.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONF_MAX = 8192, NUMBER_MAX = 1 << 30 };

extern char **environ;

/* ---- the machine ---- */

static const struct {
    const char *key;
    size_t offset;
} machine_fields[] = {
    { "Boards", offsetof(struct machine, boards) },
    { "SocketsPerBoard", offsetof(struct machine, sockets) },
    { "CoresPerSocket", offsetof(struct machine, cores) },
    { "ThreadsPerCore", offsetof(struct machine, threads) },
    { "RealMemory", offsetof(struct machine, memory) },
};

static const size_t machine_field_count = sizeof machine_fields / sizeof *machine_fields;

static uint64_t *field_at(struct machine *machine, size_t i)
{
    return (uint64_t *)((char *)machine + machine_fields[i].offset);
}

static int take_field(struct str item, struct machine *machine, struct err *err)
{
    struct str key, value;

    if (!str_cut(item, '=', &key, &value))
        return 0;
    for (size_t i = 0; i < machine_field_count; i++)
        if (str_is(key, machine_fields[i].key))
            return str_to_u64(value, 1, NUMBER_MAX, field_at(machine, i), err);
    return 0;
}

int slurmd_parse_machine(struct str text, struct machine *ret_machine, struct err *err)
{
    struct machine machine = { 0 };
    struct str line, item;

    while (str_next(&text, '\n', &line))
        while (str_next(&line, ' ', &item))
            if (take_field(item, &machine, err))
                return err_wrap(err, "slurmd -C: " STR_FMT, STR_ARG(item));
    for (size_t i = 0; i < machine_field_count; i++)
        if (*field_at(&machine, i) == 0)
            return err_set(err, ERR_INVALID, "slurmd -C says no %s", machine_fields[i].key);
    *ret_machine = machine;
    return 0;
}

static int start_with_pipe(const char *program, char *const argv[], int output, pid_t *ret_pid,
                           struct err *err)
{
    posix_spawn_file_actions_t actions;
    int number;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    number = posix_spawnp(ret_pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return number ? err_system(err, number, "start %s", program) : 0;
}

static void read_all(int input, struct buf *buf)
{
    char block[1024];

    for (;;) {
        ssize_t got = read(input, block, sizeof block);

        if (got > 0)
            buf_add(buf, block, (size_t)got);
        else if (got == 0 || errno != EINTR)
            return;
    }
}

int slurmd_machine(const char *slurmd, struct machine *ret_machine, struct err *err)
{
    char *argv[] = { (char *)(uintptr_t)slurmd, (char[]){ "-C" }, NULL };
    auto_buf struct buf buf;
    int ends[2], status = 0, rc;
    pid_t pid;

    buf_init(&buf, CONF_MAX);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_system(err, errno, "pipe");
    rc = start_with_pipe(slurmd, argv, ends[1], &pid, err);
    close(ends[1]);
    if (!rc) {
        read_all(ends[0], &buf);
        waitpid(pid, &status, 0);
    }
    close(ends[0]);
    if (!rc)
        rc = buf_check(&buf, "output of slurmd -C", err);
    return rc ? rc : slurmd_parse_machine(buf_str(&buf), ret_machine, err);
}

/* ---- the pod ---- */

static int number_from(const char *name, uint64_t *ret_value, struct err *err)
{
    struct str text = str_of(getenv(name));

    *ret_value = 0;
    if (text.len > 0 && str_to_u64(text, 0, NUMBER_MAX, ret_value, err))
        return err_wrap(err, "%s", name);
    return 0;
}

int slurmd_pod(struct pod *ret_pod, struct err *err)
{
    const char *topology = getenv("SLINKY_TOPOLOGY");
    struct pod pod = { .topology = topology && topology[0] ? topology : getenv("POD_TOPOLOGY") };
    int rc = number_from("POD_CPUS", &pod.cpus, err);

    if (!rc)
        rc = number_from("POD_MEMORY", &pod.memory, err);
    if (!rc)
        *ret_pod = pod;
    return rc;
}

/* ---- the merge ---- */

static bool has_key(const struct buf *conf, const char *key)
{
    struct str rest = buf_str(conf), item, name, value;

    while (str_next(&rest, ' ', &item))
        if (str_cut(item, '=', &name, &value) && name.len == strlen(key) &&
            strncasecmp(name.at, key, name.len) == 0)
            return true;
    return false;
}

static void add_item(struct buf *conf, struct str item)
{
    struct str key, value;

    if (item.len == 0 || (str_cut(item, '=', &key, &value) && value.len == 0))
        return;
    if (conf->len > 0)
        buf_add_char(conf, ' ');
    buf_add_str(conf, item);
}

/* A value that begins with a quote was written for a shell: 'Features=x Topology='"$PLACE"''. The
 * quotes are taken away as a shell does; a quote that is left open stays. */
static void without_quotes(struct str value, struct buf *out)
{
    bool is_for_shell = value.len >= 2 && (value.at[0] == '\'' || value.at[0] == '"');

    for (size_t i = 0; i < value.len; i++) {
        char quote = value.at[i];
        const char *end = is_for_shell && (quote == '\'' || quote == '"')
                              ? memchr(value.at + i + 1, quote, value.len - i - 1)
                              : NULL;

        if (!end) {
            buf_add_char(out, quote);
            continue;
        }
        buf_add_str(out, str_sub(value, i + 1, (size_t)(end - value.at)));
        i = (size_t)(end - value.at);
    }
}

static int add_items(struct buf *conf, struct str value, struct err *err)
{
    auto_buf struct buf plain;
    struct str item;

    buf_init(&plain, CONF_MAX);
    without_quotes(str_trim(value), &plain);
    if (buf_check(&plain, "--conf", err))
        return -err->class;
    value = str_trim(buf_str(&plain));
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] == '\n' || value.at[i] == '\r')
            return err_set(err, ERR_INVALID, "--conf holds more than one line");
    while (str_next(&value, ' ', &item))
        add_item(conf, item);
    return 0;
}

/* Moves the values of all --conf options of `words` into `conf`. */
static int take_conf_options(struct words *words, struct buf *conf, struct err *err)
{
    for (size_t i = 1; i < words->count;) {
        struct str word = str_of(words->at[i]);
        bool alone = str_is(word, "--conf");

        if (!alone && !str_starts(word, STR("--conf="))) {
            i++;
            continue;
        }
        if (alone && i + 1 == words->count)
            return err_set(err, ERR_INVALID, "--conf has no value");
        if (add_items(conf, alone ? str_of(words->at[i + 1]) : str_sub(word, 7, word.len), err))
            return -err->class;
        words_remove(words, i, alone ? 2 : 1);
    }
    return 0;
}

static void add_number(struct buf *conf, const char *key, uint64_t has, uint64_t allowed)
{
    if (has <= allowed || has_key(conf, key))
        return;
    buf_printf(conf, "%s%s=%llu", conf->len > 0 ? " " : "", key,
               (unsigned long long)(has - allowed));
}

static int add_topology(struct buf *conf, const char *topology, struct err *err)
{
    if (!topology || !*topology || has_key(conf, "Topology"))
        return 0;
    for (const char *c = topology; *c; c++)
        if (*c <= ' ' || *c == '\'' || *c == '"' || *c == '#')
            return err_set(err, ERR_INVALID, "the topology holds a blank, a quote or '#'");
    buf_printf(conf, "%sTopology=%s", conf->len > 0 ? " " : "", topology);
    return 0;
}

static int add_pod(struct buf *conf, const struct pod *pod, const struct machine *machine,
                   struct err *err)
{
    bool kept = pod->kept_cpus && pod->kept_cpus[0];

    if (pod->cpus > 0 && kept && !has_key(conf, "CoreSpecCount") && !has_key(conf, "CPUSpecList"))
        buf_printf(conf, "%sCPUSpecList=%s", conf->len > 0 ? " " : "", pod->kept_cpus);
    else if (pod->cpus > 0 && !kept && !has_key(conf, "CPUSpecList"))
        add_number(conf, "CoreSpecCount", machine->boards * machine->sockets * machine->cores,
                   pod->cpus / machine->threads);
    if (pod->memory > 0)
        add_number(conf, "MemSpecLimit", machine->memory, pod->memory);
    return add_topology(conf, pod->topology, err);
}

int slurmd_merge(struct words *words, const struct pod *pod, const struct machine *machine,
                 struct err *err)
{
    auto_buf struct buf conf;
    int rc;

    buf_init(&conf, CONF_MAX);
    rc = take_conf_options(words, &conf, err);
    if (!rc)
        rc = add_pod(&conf, pod, machine, err);
    if (!rc)
        rc = buf_check(&conf, "--conf", err);
    if (rc || conf.len == 0)
        return rc;
    rc = words_add(words, "--conf", err);
    return rc ? rc : words_add(words, buf_text(&conf), err);
}
