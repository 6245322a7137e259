/* worker_identity.c - names of workers and of the nodes that Slurm knows them by. */
#include "operator/worker_identity.h"

#include "codec/digest.h"
#include "codec/slurmconf.h"
#include "operator/names.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_NODESETS = 1024, MAX_LABEL = 63, MAX_PADDING = 18, HASH_LETTERS = 5 };

/* ---- the NodeSet ---- */

bool nodeset_is_daemonset(const struct kube_object *nodeset)
{
    return str_is(json_str(json_get(operator_spec(nodeset), "scalingMode")), "DaemonSet");
}

static struct str template_hostname(const struct kube_object *nodeset)
{
    return json_str(json_at(operator_spec(nodeset), "template", "spec", "hostname"));
}

struct str nodeset_slurm_name(const struct kube_object *nodeset)
{
    struct str word = str_trim(template_hostname(nodeset));

    for (size_t i = 0; i < word.len; i++)
        if (strchr(" \t\r\n", word.at[i]))
            word.len = i;
    while (word.len > 0 && word.at[0] == '-')
        word = str_sub(word, 1, word.len);
    while (word.len > 0 && word.at[word.len - 1] == '-')
        word.len--;
    return conf_check_partition_name(word, NULL) == 0 ? word : str_of(nodeset->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct kube_object *const *)a)->name,
                  (*(const struct kube_object *const *)b)->name);
}

const struct kube_object **nodesets_of(const struct operator_world *world, struct arena *arena,
                                       const struct kube_object *controller, size_t *ret_count)
{
    const struct kube_object **found =
        arena_alloc_array(arena, MAX_NODESETS, sizeof(const struct kube_object *));
    const char *key = arena_printf(arena, "%s/%s", controller->ns, controller->name);
    struct kube_index_walk walk = kube_cache_by(world->nodesets, world->by_controller, str_of(key));

    *ret_count = 0;
    while (*ret_count < MAX_NODESETS && (found[*ret_count] = kube_index_next(&walk)))
        ++*ret_count;
    qsort(found, *ret_count, sizeof(found[0]), compare_names);
    return found;
}

/* ---- a worker that is to be ---- */

/* A label of RFC 1123: the API server wants it of hostnames, and names of pods become labels. */
static int check_label(const char *what, const char *text, struct err *err)
{
    size_t length = strlen(text);

    if (length == 0 || length > MAX_LABEL)
        return err_set(err, ERR_INVALID, "%s '%s' has %zu characters, and 1 to %d are allowed",
                       what, text, length, MAX_LABEL);
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool is_dash = c == '-' && i > 0 && i + 1 < length;

        if (!is_dash && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
            return err_set(err, ERR_INVALID,
                           "%s '%s': only lower-case letters, digits and dashes between them are "
                           "allowed",
                           what, text);
    }
    return 0;
}

int worker_of_ordinal(struct arena *arena, const struct kube_object *nodeset, int64_t ordinal,
                      const struct kube_object *node, struct worker_identity *ret_identity,
                      struct err *err)
{
    int64_t padding = spec_number(nodeset, "ordinalPadding");
    struct str prefix = template_hostname(nodeset);
    struct worker_identity worker = { .ordinal = ordinal, .node = node };
    const char *number;
    int result;

    if (padding < 0 || padding > MAX_PADDING)
        return err_set(err, ERR_INVALID, "spec.ordinalPadding is %lld, and 0 to %d are allowed",
                       (long long)padding, MAX_PADDING);
    number = arena_printf(arena, "%0*lld", (int)padding, (long long)ordinal);
    worker.name = arena_printf(arena, "%s-%s", nodeset->name, number);
    worker.hostname =
        prefix.len > 0 ? arena_printf(arena, STR_FMT "%s", STR_ARG(prefix), number) : worker.name;
    if ((result = check_label("pod name", worker.name, err)) < 0 ||
        (result = check_label("spec.template.spec.hostname: hostname", worker.hostname, err)) < 0)
        return result;
    *ret_identity = worker;
    return 0;
}

bool nodeset_makes_name(const struct kube_object *nodeset, const char *slurm_name)
{
    struct str prefix = template_hostname(nodeset), rest = str_of(slurm_name);
    bool is_on_host = spec_flag(nodeset, "template.spec.hostNetwork");

    if (nodeset_is_daemonset(nodeset) || is_on_host)
        return false;
    if (prefix.len == 0 && !str_starts(rest, str_of(nodeset->name)))
        return false;
    if (prefix.len == 0) {
        rest = str_sub(rest, strlen(nodeset->name), rest.len);
        prefix = STR("-");
    }
    return str_starts(rest, prefix) && rest.len > prefix.len &&
           strspn(rest.at + prefix.len, "0123456789") == rest.len - prefix.len;
}

struct str worker_hostname_on(const struct kube_object *node)
{
    struct str name = str_of(node->name), override, rest;
    bool found = false;

    override = kube_pairs_get(&node->annotations, ANNOTATION_HOSTNAME_OVERRIDE, &found);
    if (found && override.len > 0)
        return override;
    (void)str_cut(name, '.', &name, &rest);
    return name;
}

/* The first one is a letter: no name of this mode ends in a number. */
static void hash_letters(const char *uid, unsigned attempt, char ret_text[HASH_LETTERS + 1])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    enum { ALL = sizeof(letters) - 1, CONSONANTS = 20 };
    char text[128], digest[DIGEST_HEX];

    (void)snprintf(text, sizeof(text), "%s/%u", uid, attempt);
    digest_sha256(str_of(text), digest);
    for (size_t i = 0; i < HASH_LETTERS; i++) {
        unsigned byte = (unsigned)str_hex_digit(digest[2 * i]) * 16 +
                        (unsigned)str_hex_digit(digest[2 * i + 1]);

        ret_text[i] = letters[byte % (i == 0 ? CONSONANTS : ALL)];
    }
    ret_text[HASH_LETTERS] = '\0';
}

int worker_of_node(struct arena *arena, const struct kube_object *nodeset,
                   const struct kube_object *node, unsigned attempt,
                   struct worker_identity *ret_identity, struct err *err)
{
    struct worker_identity worker = { .ordinal = -1, .node = node };
    struct str hostname = worker_hostname_on(node);
    char letters[HASH_LETTERS + 1];

    hash_letters(node->uid, attempt, letters);
    worker.name = arena_printf(arena, "%s-%s", nodeset->name, letters);
    worker.hostname = arena_strndup(arena, hostname.at, hostname.len);
    if (check_label("pod name", worker.name, err) < 0 ||
        check_label("hostname", worker.hostname, err) < 0) {
        (void)err_wrap(err, "Node %s", node->name);
        return -ERR_INVALID;
    }
    *ret_identity = worker;
    return 0;
}

/* ---- a worker that exists ---- */

int64_t worker_ordinal(const struct kube_object *nodeset, const char *pod_name)
{
    struct str name = str_of(pod_name), parent = str_of(nodeset->name), digits;
    int64_t ordinal;

    if (!str_starts(name, parent) || name.len < parent.len + 2 || name.at[parent.len] != '-')
        return -1;
    digits = str_sub(name, parent.len + 1, name.len);
    return digits.at[0] == '-' || str_to_i64(digits, 0, INT32_MAX, &ordinal, NULL) < 0 ? -1
                                                                                       : ordinal;
}

const char *worker_slurm_name(struct arena *arena, const struct kube_pod *pod,
                              const struct slurm_cache *nodes)
{
    struct str mode = kube_pairs_get(&pod->object.labels, LABEL_SCALING_MODE, NULL);
    const char *first;

    if (!pod->host_network || str_is(mode, "DaemonSet"))
        return pod->hostname[0] ? pod->hostname : pod->object.name;
    first = arena_strndup(arena, pod->node_name, strcspn(pod->node_name, "."));
    return nodes && !slurm_cache_get(nodes, pod->node_name) && slurm_cache_get(nodes, first)
               ? first
               : pod->node_name;
}
