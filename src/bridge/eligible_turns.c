/* eligible_turns.c - pods that wait, in lines: those whose places depend on each other.
 *
 * Only pods with host ports, anti-affinity or spread constraints stand in line. There is a line for
 * each port that one of them wants, and one for each set of rules that one of them has; a pod is in
 * those of its ports, in that of its rules, and in those whose rules see it. So the others that a
 * pod depends on are found without looking at all that wait, and each is held against a set of
 * rules once, when it comes.
 *
 * Holds   a line is in the order of turns, which never changes while a pod waits; a line of rules
 *         is there while a pod that waits has them, one of a port while a pod that waits wants it.
 *         Namespaces count with the labels that they had when the pod came. */
#include "bridge/eligible_private.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WAITERS = 1 << 20, PORT_TEXT = 32 };

bool eligible_goes_before(const struct kube_pod *pod, const struct kube_pod *other)
{
    int order;

    if (pod->priority != other->priority)
        return pod->priority > other->priority;
    if (pod->object.created_us != other->object.created_us)
        return pod->object.created_us < other->object.created_us;
    order = strcmp(pod->object.name, other->object.name);
    return (order != 0 ? order : strcmp(pod->object.ns, other->object.ns)) < 0;
}

/* ---- lines ---- */

/* Where the pod is, or would be. */
static unsigned find_spot(const struct eligible_line *line, const struct kube_pod *pod)
{
    unsigned from = 0, to = line->count;

    while (from < to) {
        unsigned middle = from + (to - from) / 2;

        if (eligible_goes_before(line->spots[middle].who->pod, pod))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void insert(struct eligible_spot **spots, unsigned *count, unsigned *room, unsigned at,
                   const struct eligible_spot *spot)
{
    if (*count == *room) {
        *room = *room > 0 ? 2 * *room : 4;
        *spots = mem_resize_array(*spots, *room, sizeof(**spots));
    }
    memmove(*spots + at + 1, *spots + at, (*count - at) * sizeof(**spots));
    (*spots)[at] = *spot;
    ++*count;
}

static void take_out(struct eligible_spot *spots, unsigned *count, unsigned at)
{
    --*count;
    memmove(spots + at, spots + at + 1, (*count - at) * sizeof(*spots));
}

static void join(const struct eligible_spot *spot)
{
    struct eligible_line *line = spot->line;
    struct eligible_waiter *who = spot->who;

    insert(&line->spots, &line->count, &line->room, find_spot(line, who->pod), spot);
    insert(&who->spots, &who->count, &who->room, who->count, spot);
    line->bearers += spot->bears;
}

static void forget_line(struct eligible_waiter *who, const struct eligible_line *line)
{
    unsigned at = 0;

    while (who->spots[at].line != line)
        at++;
    take_out(who->spots, &who->count, at);
}

/* Those that were merely seen by its rules are left. */
static void drop_line(struct eligible *eligible, struct eligible_line *line)
{
    for (unsigned i = 0; i < line->count; i++)
        forget_line(line->spots[i].who, line);
    if (line->rules) {
        line->rules->line = NULL;
        list_remove(&line->link);
    } else {
        map_take(&eligible->port_lines, str_of(line->key));
    }
    mem_free(line->spots);
    mem_free(line->key);
    mem_free(line);
}

static void leave_line(struct eligible *eligible, const struct eligible_spot *spot)
{
    struct eligible_line *line = spot->line;

    take_out(line->spots, &line->count, find_spot(line, spot->who->pod));
    line->bearers -= spot->bears;
    if (line->bearers == 0)
        drop_line(eligible, line);
}

/* ---- ports ---- */

static bool is_in(const struct eligible_waiter *who, const struct eligible_line *line)
{
    for (unsigned i = 0; i < who->count; i++)
        if (who->spots[i].line == line)
            return true;
    return false;
}

static struct eligible_line *port_line(struct eligible *eligible, const struct kube_port *port)
{
    struct eligible_line *line;
    char key[PORT_TEXT];

    (void)snprintf(key, sizeof(key), "%u/%s", (unsigned)port->port, port->protocol);
    line = map_get(&eligible->port_lines, str_of(key));
    if (line)
        return line;
    line = mem_alloc(sizeof(*line));
    line->key = mem_strdup(key);
    (void)map_put(&eligible->port_lines, str_of(line->key), line, NULL); /* there are not more */
    return line;
}

/* One port may be wanted at several addresses. */
static void join_ports(struct eligible *eligible, struct eligible_waiter *who)
{
    const struct kube_rare *rare = who->pod->rare;

    for (unsigned i = 0; i < rare->port_count; i++) {
        struct eligible_line *line = port_line(eligible, &rare->ports[i]);

        if (!is_in(who, line))
            join(&(struct eligible_spot){ .who = who, .line = line, .bears = true });
    }
}

static bool ports_clash(const struct kube_pod *a, const struct kube_pod *b)
{
    for (unsigned i = 0; i < a->rare->port_count; i++)
        for (unsigned k = 0; k < b->rare->port_count; k++) {
            struct eligible_port one = eligible_port_of(&a->rare->ports[i]);
            struct eligible_port other = eligible_port_of(&b->rare->ports[k]);

            if (eligible_ports_clash(&one, &other))
                return true;
        }
    return false;
}

/* ---- rules ---- */

static struct eligible_spot spot_at(const struct eligible *eligible, struct eligible_line *line,
                                    struct eligible_waiter *who)
{
    const struct eligible_rules *rules = line->rules;
    struct eligible_spot spot = { .who = who,
                                  .line = line,
                                  .bears = who->rules && who->rules == rules };

    for (unsigned i = 0; !spot.avoided && i < rules->avoid_count; i++)
        spot.avoided = eligible_term_matches(eligible, &rules->avoid[i], who->pod);
    spot.seen = spot.avoided;
    for (unsigned i = 0; !spot.seen && i < rules->spread_count; i++)
        spot.seen = eligible_term_matches(eligible, &rules->spread[i].term, who->pod);
    return spot;
}

static void join_if_concerned(const struct eligible *eligible, struct eligible_line *line,
                              struct eligible_waiter *who)
{
    struct eligible_spot spot = spot_at(eligible, line, who);

    if (spot.bears || spot.seen)
        join(&spot);
}

/* With those in it that were there before. */
static void add_rule_line(struct eligible *eligible, struct eligible_rules *rules)
{
    struct eligible_line *line = mem_alloc(sizeof(*line));

    line->rules = rules;
    rules->line = line;
    list_push_back(&eligible->rule_lines, &line->link);
    map_each (item, &eligible->waiters)
        join_if_concerned(eligible, line, item->value);
}

static bool keeps_apart(const struct eligible_rules *rules)
{
    return rules && !rules->trouble && rules->avoid_count + rules->spread_count > 0;
}

static void join_rules(struct eligible *eligible, struct eligible_waiter *who)
{
    if (keeps_apart(who->rules) && !who->rules->line)
        add_rule_line(eligible, who->rules);
    list_each (struct eligible_line, line, &eligible->rule_lines, link)
        join_if_concerned(eligible, line, who);
}

/* ---- pods come and go ---- */

static void free_waiter(struct eligible *eligible, struct eligible_waiter *who)
{
    while (who->count > 0) {
        struct eligible_spot spot = who->spots[--who->count];

        leave_line(eligible, &spot);
    }
    eligible_rules_release(eligible, who->rules);
    mem_free(who->spots);
    mem_free(who->key);
    mem_free(who);
}

static struct str key_of(struct eligible *eligible, const struct kube_pod *pod)
{
    buf_clear(&eligible->key);
    buf_printf(&eligible->key, "%s/%s", pod->object.ns, pod->object.name);
    return buf_str(&eligible->key);
}

/* Before it is among those that wait: a new line is made of these. */
static void come(struct eligible *eligible, const struct kube_pod *pod)
{
    struct eligible_waiter *who = mem_alloc(sizeof(*who));
    struct str key = key_of(eligible, pod);

    who->key = mem_strndup(key.at, key.len);
    who->pod = pod;
    who->rules = eligible_rules_get(eligible, pod);
    join_ports(eligible, who);
    join_rules(eligible, who);
    if (map_put(&eligible->waiters, str_of(who->key), who, NULL) < 0)
        free_waiter(eligible, who); /* so many do not take turns */
}

static void go(struct eligible *eligible, const struct kube_pod *pod)
{
    struct eligible_waiter *who = map_take(&eligible->waiters, key_of(eligible, pod));

    if (who)
        free_waiter(eligible, who);
}

static void stay(struct eligible *eligible, const struct kube_pod *pod)
{
    struct eligible_waiter *who = map_get(&eligible->waiters, key_of(eligible, pod));

    if (who)
        who->pod = pod;
}

static bool takes_turns(const struct kube_rare *rare)
{
    return rare && (rare->port_count > 0 || rare->pod_anti_affinity[0] || rare->spread[0]);
}

static const struct kube_pod *waiting(const struct eligible *eligible,
                                      const struct kube_object *object)
{
    const struct kube_pod *pod = object ? kube_pod_of(object) : NULL;

    if (!pod || !takes_turns(pod->rare) || pod->node_name[0] || pod->gate_count > 0 ||
        object->deleted_us || kube_pod_is_finished(pod) || !eligible_is_ours(eligible, pod))
        return NULL;
    return pod;
}

/* What else lines go by does not change while it waits. */
static bool is_same(const struct kube_pod *old, const struct kube_pod *next)
{
    return strcmp(old->object.uid, next->object.uid) == 0 &&
           eligible_same_pairs(&old->object.labels, &next->object.labels);
}

void eligible_turns_pod_changed(void *context, const struct kube_object *old_object,
                                const struct kube_object *next_object)
{
    const struct kube_pod *old = waiting(context, old_object);
    const struct kube_pod *next = waiting(context, next_object);

    if (old && next && is_same(old, next)) {
        stay(context, next);
        return;
    }
    if (old)
        go(context, old);
    if (next)
        come(context, next);
}

/* ---- whom a pod depends on ---- */

static const struct eligible_waiter *waiter_of(const struct eligible *eligible,
                                               const struct kube_pod *pod)
{
    auto_buf struct buf key = { .max = 2 * KUBE_MAX_NAME };

    if (!takes_turns(pod->rare))
        return NULL;
    buf_printf(&key, "%s/%s", pod->object.ns, pod->object.name);
    return map_get(&eligible->waiters, buf_str(&key));
}

struct eligible_rivals eligible_rivals(const struct eligible *eligible, const struct kube_pod *pod)
{
    struct eligible_rivals walk = { .of = waiter_of(eligible, pod) };

    if (walk.of && walk.of->count > 0)
        walk.own = find_spot(walk.of->spots[0].line, walk.of->pod);
    return walk;
}

/* Spread constraints look in one direction only: whom they see need not care. */
static bool depends_on(const struct eligible_spot *own, const struct eligible_spot *other)
{
    if (!own->line->rules)
        return ports_clash(own->who->pod, other->who->pod);
    return (own->bears && other->seen) || (own->avoided && other->bears);
}

const struct kube_pod *eligible_next_rival(struct eligible_rivals *walk)
{
    const struct eligible_waiter *who = walk->of;

    while (who && walk->line < who->count) {
        const struct eligible_line *line = who->spots[walk->line].line;

        while (walk->at < line->count) {
            unsigned at = walk->at++;

            if (at != walk->own && depends_on(&who->spots[walk->line], &line->spots[at]))
                return line->spots[at].who->pod;
        }
        walk->at = 0;
        if (++walk->line < who->count)
            walk->own = find_spot(who->spots[walk->line].line, who->pod);
    }
    return NULL;
}

unsigned eligible_rival_distance(const struct eligible_rivals *walk)
{
    unsigned last = walk->at - 1;

    return last < walk->own ? walk->own - last : last - walk->own;
}

static bool same_ports(const struct kube_rare *a, const struct kube_rare *b)
{
    if (a->port_count != b->port_count)
        return false;
    for (unsigned i = 0; i < a->port_count; i++)
        if (a->ports[i].port != b->ports[i].port || strcmp(a->ports[i].ip, b->ports[i].ip) != 0 ||
            strcmp(a->ports[i].protocol, b->ports[i].protocol) != 0)
            return false;
    return true;
}

bool eligible_are_alike(const struct eligible *eligible, const struct kube_pod *a,
                        const struct kube_pod *b)
{
    const struct eligible_waiter *one = waiter_of(eligible, a), *other = waiter_of(eligible, b);

    if (!one || !other)
        return one == other;
    if (one->count != other->count || !same_ports(a->rare, b->rare))
        return false;
    for (unsigned i = 0; i < one->count; i++) {
        const struct eligible_spot *x = &one->spots[i], *y = &other->spots[i];

        if (x->line != y->line || x->bears != y->bears || x->seen != y->seen ||
            x->avoided != y->avoided)
            return false;
    }
    return true;
}

/* ---- all of them ---- */

void eligible_turns_init(struct eligible *eligible)
{
    static const struct map_options options = { .max = MAX_WAITERS, .borrow_keys = true };

    map_init(&eligible->waiters, &options);
    map_init(&eligible->port_lines, &options);
    list_init(&eligible->rule_lines);
}

void eligible_turns_done(struct eligible *eligible)
{
    map_each (item, &eligible->waiters) {
        struct eligible_waiter *who = item->value;

        map_take(&eligible->waiters, str_of(who->key));
        free_waiter(eligible, who);
    }
    map_done(&eligible->waiters);
    map_done(&eligible->port_lines);
}
