/* slurm_nodes.c - nodes: made from lines of slurm.conf, drained, failed, removed.
 *
 * Making a range is all or nothing, but for one with gres, which fails at its second node.
 * Updating and removing many do what they can and then tell of one that failed.
 *
 * Holds: a node that jobs hold is not removed. */
#include "base/mem.h"
#include "slurm_private.h"

#include <stdio.h>
#include <strings.h>

/* ---- states ---- */

void ctld_node_count_use(struct ctld_node *node)
{
    node->shown.cpus = (unsigned)bitmap_count(&node->busy) * node->threads;
    node->shown.memory = node->alloc_memory;
    for (unsigned k = 0; k < node->gres_count; k++)
        node->shown.gres[k] = (unsigned)bitmap_count(&node->gres[k].busy);
}

/* MIXED follows from a count that is made when nodes are listed; until then it is ALLOCATED. */
const char *ctld_node_state(const struct ctld_node *node)
{
    if (node->down)
        return "DOWN";
    if (node->jobs == 0)
        return "IDLE";
    return node->shown.cpus > 0 && node->shown.cpus < node->cpus ? "MIXED" : "ALLOCATED";
}

void ctld_node_shape(struct ctld_node *node)
{
    node->threads = node->threads ? node->threads : 1;
    node->cores = node->cores ? node->cores : 1;
    if (!node->sockets && node->cpus)
        node->sockets = node->cpus / (node->cores * node->threads);
    node->sockets = node->sockets ? node->sockets : 1;
    if (!node->cpus)
        node->cpus = node->sockets * node->cores * node->threads;
    node->memory = node->memory ? node->memory : 1;
    bitmap_init(&node->busy, (size_t)node->sockets * node->cores);
    for (unsigned k = 0; k < node->gres_count; k++)
        bitmap_init(&node->gres[k].busy, node->gres[k].count);
}

void ctld_node_add(struct slurm_store *store, struct ctld_node *node, const char *user)
{
    node->last_busy_us = ctld_wall_us(store);
    if (map_put(&store->state.nodes, str_of(node->text[NODE_NAME]), node, NULL) < 0) {
        ctld_node_free(node);
        return;
    }
    ctld_touch(store, TABLE_NODES);
    ctld_touch(store, TABLE_PARTITIONS);
    ctld_tell_node(store, SLURM_NODE_ADDED, node, user);
}

void ctld_node_remove(struct slurm_store *store, struct ctld_node *node, const char *user)
{
    ctld_touch(store, TABLE_NODES);
    ctld_touch(store, TABLE_PARTITIONS);
    ctld_tell_node(store, SLURM_NODE_REMOVED, node, user);
    map_remove(&store->state.nodes, str_of(node->text[NODE_NAME]));
}

static bool is_on(const struct ctld_job *job, const char *node)
{
    for (unsigned i = 0; job->holds && i < job->piece_count; i++)
        if (strcmp(job->pieces[i].node, node) == 0)
            return true;
    return false;
}

void ctld_node_fail(struct slurm_store *store, struct ctld_node *node, const char *reason,
                    const char *user)
{
    node->down = true;
    ctld_set(&node->text[NODE_REASON], reason);
    ctld_set(&node->text[NODE_REASON_USER], user);
    node->reason_us = ctld_wall_us(store);
    for (size_t i = 0; i < store->state.job_count; i++) {
        struct ctld_job *job = store->state.jobs[i];

        if (job->completing_us || !is_on(job, node->text[NODE_NAME]))
            continue;
        if (job->requeue && job->batch)
            ctld_job_requeue(store, job, "NodeDown");
        else
            ctld_job_end(store, job, PHASE_NODE_FAIL, "NodeDown", "");
    }
    ctld_touch(store, TABLE_NODES);
    ctld_tell_node(store, SLURM_NODE_CHANGED, node, user);
}

/* ---- lines ---- */

struct line {
    struct str names, state, gres, gres_conf;
    struct ctld_node like; /* what all of its nodes have; texts are not its own */
    struct str text[NODE_TEXTS];
};

static bool read_unsigned(struct str text, unsigned *number)
{
    uint64_t value;

    if (str_to_u64(text, 0, 1 << 24, &value, NULL) < 0)
        return false;
    *number = (unsigned)value;
    return true;
}

/* False for a key that slurm.conf does not know, or a bad number. */
static bool read_pair(struct line *line, struct str key, struct str value)
{
    char name[40];
    unsigned ignored;
    const struct {
        const char *name;
        struct str *text;
        unsigned *number;
    } keys[] = {
        { "NodeName", &line->names, NULL },
        { "NodeAddr", &line->text[NODE_ADDRESS], NULL },
        { "NodeHostname", &line->text[NODE_ADDRESS], NULL },
        { "State", &line->state, NULL },
        { "Feature", &line->text[NODE_FEATURES], NULL },
        { "Features", &line->text[NODE_FEATURES], NULL },
        { "Topology", &line->text[NODE_TOPOLOGY], NULL },
        { "Gres", &line->gres, NULL },
        { "GresConf", &line->gres_conf, NULL },
        { "Comment", &line->text[NODE_COMMENT], NULL },
        { "Extra", &line->text[NODE_EXTRA], NULL },
        { "Reason", &line->text[NODE_REASON], NULL },
        { "CPUs", NULL, &line->like.cpus },
        { "Procs", NULL, &line->like.cpus },
        { "Sockets", NULL, &line->like.sockets },
        { "CoresPerSocket", NULL, &line->like.cores },
        { "ThreadsPerCore", NULL, &line->like.threads },
        { "Weight", NULL, &line->like.weight },
        { "Boards", NULL, &ignored },
        { "Port", NULL, &ignored },
        { "TmpDisk", NULL, &ignored },
        { "MemSpecLimit", NULL, &ignored },
    };

    (void)snprintf(name, sizeof(name), STR_FMT, STR_ARG(key));
    if (strcasecmp(name, "RealMemory") == 0)
        return str_to_i64(value, 0, INT64_MAX / 2, &line->like.memory, NULL) == 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcasecmp(name, keys[i].name) == 0) {
            if (keys[i].text)
                *keys[i].text = value;
            return keys[i].text || read_unsigned(value, keys[i].number);
        }
    return false;
}

/* key=value, key="value with blanks" */
static bool read_line(struct str text, struct line *line)
{
    while ((text = str_trim(text)).len > 0) {
        struct str key, value, quoted, rest = STR("");

        if (!str_cut(text, '=', &key, &value))
            return false;
        if (value.len > 0 && value.at[0] == '"') {
            if (!str_cut(str_sub(value, 1, value.len), '"', &quoted, &rest))
                return false;
            value = quoted;
        } else {
            struct str whole = value;

            (void)str_cut(whole, ' ', &value, &rest);
        }
        if (!read_pair(line, key, value))
            return false;
        text = rest;
    }
    return line->names.len > 0;
}

static bool is_word(struct str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.at, word, text.len) == 0;
}

static bool has_key(struct str gres_conf, const char *key)
{
    struct str item;

    while (gres_conf.len > 0 && str_next(&gres_conf, ',', &item))
        if (item.len > strlen(key) && strncasecmp(item.at, key, strlen(key)) == 0)
            return true;
    return false;
}

/* ---- creating ---- */

/* One for all, or one for each in the order of the names. */
static struct str address_of(const struct line *line, unsigned place)
{
    struct str rest = line->text[NODE_ADDRESS], address = STR("");

    if (!rest.at || !memchr(rest.at, ',', rest.len))
        return rest.at ? rest : STR("");
    for (unsigned i = 0; i <= place; i++)
        if (!str_next(&rest, ',', &address))
            return STR("");
    return address;
}

static void make_node(struct ctld_call *call, const struct line *line, const char *name,
                      unsigned place)
{
    struct ctld_node *node = ctld_node_new(name);
    struct str rest = line->gres, item;

    node->sockets = line->like.sockets;
    node->cores = line->like.cores;
    node->threads = line->like.threads;
    node->cpus = line->like.cpus;
    node->memory = line->like.memory;
    node->weight = node->line_weight = line->like.weight;
    node->external = node->dynamic = true;
    for (unsigned i = NODE_ADDRESS; i < NODE_TEXTS; i++)
        ctld_set_str(&node->text[i], line->text[i].at ? line->text[i] : STR(""));
    ctld_set_str(&node->text[NODE_ADDRESS], address_of(line, place));
    if (!node->text[NODE_ADDRESS][0])
        ctld_set(&node->text[NODE_ADDRESS], name);
    ctld_set(&node->text[NODE_ACTIVE], node->text[NODE_FEATURES]);
    ctld_set_str(&node->text[NODE_GRES], line->gres);
    while (rest.len > 0 && node->gres_count < CTLD_MAX_GRES && str_next(&rest, ',', &item))
        node->gres_count += ctld_gres_ask(item, &node->gres[node->gres_count]);
    for (unsigned k = 0; k < node->gres_count; k++)
        node->gres[k].has_files = has_key(line->gres_conf, "file=");
    ctld_node_shape(node);
    ctld_node_add(call->store, node, call->user);
}

/* Slurm's error number, or 0. */
static int check_line(const struct ctld_call *call, const struct line *line,
                      const struct hostlist *names)
{
    const struct slurm_store *store = call->store;
    struct hostlist_iter iter = hostlist_iter(names);
    struct str name;

    if (!is_word(line->state, "EXTERNAL") && !is_word(line->state, "FUTURE") &&
        !is_word(line->state, "CLOUD"))
        return 2028;
    if (line->gres.len > 0 && !has_key(line->gres_conf, "count="))
        return 22;
    while (hostlist_next(&iter, &name))
        if (map_has(&store->state.nodes, name))
            return 2168;
    return store->state.nodes.count + hostlist_count(names) > store->options.max_node_count ? 2169
                                                                                            : 0;
}

static int create_nodes(struct ctld_call *call, struct str text)
{
    struct line line = {
        .names = STR(""), .state = STR(""), .gres = STR(""), .gres_conf = STR(""), .like.weight = 1
    };
    const struct hostlist *names;
    struct hostlist_iter iter;
    struct str name;
    int number;

    if (!read_line(text, &line) ||
        hostlist_parse(call->arena, line.names, HOSTLIST_MAX_NAMES, &names, NULL) < 0)
        return -1;
    number = check_line(call, &line, names);
    if (number != 0 || is_word(line.state, "FUTURE")) /* those are not seen before they come */
        return number;
    iter = hostlist_iter(names);
    for (unsigned made = 0; hostlist_next(&iter, &name); made++) {
        if (made > 0 && line.gres.len > 0)
            return 22;
        make_node(call, &line, name.at, made);
    }
    return 0;
}

void ctld_run_node_create(struct ctld_call *call)
{
    const struct json *line = json_get(call->body, "node_conf");
    int number;

    if (!json_is_string(line)) {
        ctld_refuse_as(call, 9200, "Missing required field 'node_conf' in dictionary",
                       "#/node_conf/");
        return;
    }
    number = call->privileged ? create_nodes(call, json_str(line)) : 2010;

    if (number != 0) {
        ctld_refuse(call, number);
        return;
    }
    ctld_begin(call);
    ctld_finish(call);
}
