/* node_line.c - the line of slurm.conf that makes external nodes.
 *
 * Holds: the line has exactly the keys written here, whatever the texts hold; NodeAddr is always
 * among them, because slurmctld would otherwise look the name up at each job start, holding its
 * locks meanwhile. */
#include "slurm/calls.h"

#include "codec/hostlist.h"
#include "codec/slurmconf.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_PAIRS = 16, NUMBER_TEXT = 24, HOSTLIST_MEMORY = 64 << 20 };

struct line {
    struct conf_pair pairs[MAX_PAIRS];
    char numbers[MAX_PAIRS][NUMBER_TEXT];
    size_t count;
};

static void add_text(struct line *line, struct str key, const char *value)
{
    if (value && value[0])
        line->pairs[line->count++] = (struct conf_pair){ .key = key, .value = str_of(value) };
}

static void add_number(struct line *line, struct str key, int64_t value)
{
    char *text = line->numbers[line->count];

    if (value <= 0)
        return;
    snprintf(text, NUMBER_TEXT, "%" PRId64, value);
    add_text(line, key, text);
}

/* Each name, and that there is one. */
static int check_names(const char *names, uint64_t *ret_count, struct err *err)
{
    auto_arena struct arena arena;
    const struct hostlist *list;
    struct hostlist_iter iter;
    struct str name;

    arena_init(&arena, HOSTLIST_MEMORY);
    if (!names || !names[0])
        return err_set(err, ERR_INVALID, "a node without name");
    int result = hostlist_parse(&arena, str_of(names), HOSTLIST_MAX_NAMES, &list, err);

    if (result < 0)
        return result;
    iter = hostlist_iter(list);
    while (hostlist_next(&iter, &name)) {
        result = conf_check_node_name(name, err);
        if (result < 0)
            return result;
    }
    *ret_count = hostlist_count(list);
    return *ret_count > 0 ? 0 : err_set(err, ERR_INVALID, "a node without name");
}

/* slurmctld ends itself when there are neither one nor as many addresses as names. */
static int check_addresses(const struct slurm_node_ask *ask, uint64_t names, struct err *err)
{
    struct str rest = str_of(ask->address), address;
    uint64_t count = 0;

    if (rest.len == 0)
        return err_set(err, ERR_INVALID, "node %s: no address", ask->names);
    if (strpbrk(ask->address, "[] \t\r\n")) /* more than one, in its way of counting */
        return err_set(err, ERR_INVALID, "address %s: a range, or a space", ask->address);
    while (str_next(&rest, ',', &address)) {
        if (address.len == 0)
            return err_set(err, ERR_INVALID, "an empty address in %s", ask->address);
        count++;
    }
    if (count == 1 || count == names)
        return 0;
    return err_set(err, ERR_INVALID, "%" PRIu64 " addresses for %" PRIu64 " nodes", count, names);
}

static int check_ask(const struct slurm_node_ask *ask, struct err *err)
{
    bool has_gres = ask->gres && ask->gres[0];
    uint64_t count;
    int result = check_names(ask->names, &count, err);

    if (result < 0)
        return result;
    result = check_addresses(ask, count, err);
    if (result < 0)
        return result;
    if (has_gres && count > 1)
        return err_set(err, ERR_INVALID, "%" PRIu64 " nodes with gres in one line", count);
    if (has_gres && (!ask->gres_conf || !ask->gres_conf[0]))
        return err_set(err, ERR_INVALID, "node %s: gres without GresConf", ask->names);
    return ask->features ? conf_check_features(str_of(ask->features), err) : 0;
}

int slurm_node_line(const struct slurm_node_ask *ask, struct buf *ret_line, struct err *err)
{
    struct line line = { .count = 0 };
    struct conf conf;
    int result = check_ask(ask, err);

    if (result < 0)
        return result;
    add_text(&line, STR("NodeName"), ask->names);
    add_text(&line, STR("NodeAddr"), ask->address);
    add_number(&line, STR("Sockets"), ask->sockets);
    add_number(&line, STR("CoresPerSocket"), ask->cores_per_socket);
    add_number(&line, STR("ThreadsPerCore"), ask->threads_per_core);
    add_number(&line, STR("CPUs"), ask->cpus);
    add_number(&line, STR("RealMemory"), ask->memory);
    add_number(&line, STR("Weight"), ask->weight);
    add_text(&line, STR("State"), "EXTERNAL");
    add_text(&line, STR("Feature"), ask->features);
    add_text(&line, STR("Topology"), ask->topology);
    add_text(&line, STR("Gres"), ask->gres);
    add_text(&line, STR("GresConf"), ask->gres_conf);
    conf_begin(&conf, ret_line);
    result = conf_line(&conf, line.pairs, line.count, err);
    if (result == 0)
        result = conf_end(&conf, err);
    if (result == 0 && str_ends(buf_str(ret_line), STR("\n")))
        buf_truncate(ret_line, ret_line->len - 1);
    return result;
}
