/* worlds_check.c - what may stand in a world. What each key means is said in worlds.h. */
#include "worlds_check.h"

#include "bridge/place.h"

enum type {
    ANY = 0, /* as it stands in Kubernetes or Slurm */
    TEXT,    /* or a number, which needs no quotes in YAML then */
    NUMBER,
    FLAG,
    LIST,
    TEXTS, /* a list of texts, none of them empty */
    ROW,   /* an object with the keys of `rows` */
    ROWS,  /* a list of such objects */
};

struct key {
    const char *name;
    enum type type;
    const struct key *rows;    /* of ROW and ROWS; ends with {0} */
    const char *const *values; /* of TEXT: one of these; ends with NULL. NULL: any */
};

/* ---- Kubernetes' side ---- */

static const struct key owner_keys[] = {
    { .name = "kind", TEXT }, { .name = "name", TEXT }, { .name = "apiVersion", TEXT }, { 0 }
};

static const struct key condition_keys[] = {
    { .name = "type", TEXT },
    { .name = "status", TEXT },
    { .name = "reason", TEXT },
    { .name = "message", TEXT },
    { 0 },
};

static const struct key pod_keys[] = {
    { .name = "name", TEXT },
    { .name = "created", NUMBER },
    { .name = "annotations", ANY },
    { .name = "labels", ANY },
    { .name = "deleted", NUMBER },
    { .name = "grace", NUMBER },
    { .name = "finalizer", FLAG },
    { .name = "job", TEXT },
    { .name = "owner", ROW, owner_keys },
    { .name = "scheduler", TEXT },
    { .name = "cpu", TEXT },
    { .name = "memory", TEXT },
    { .name = "requests", ANY },
    { .name = "devices", ANY },
    { .name = "resource_claims", LIST },
    { .name = "template_claims", LIST },
    { .name = "extended_claim", TEXT },
    { .name = "node", TEXT },
    { .name = "podgroup", TEXT },
    { .name = "selector", ANY },
    { .name = "affinity", ANY },
    { .name = "tolerates", FLAG },
    { .name = "claims", TEXTS },
    { .name = "ports", LIST },
    { .name = "avoids", TEXT },
    { .name = "spreads", TEXT },
    { .name = "over", TEXT },
    { .name = "priority", NUMBER },
    { .name = "gates", NUMBER },
    { .name = "phase", TEXT },
    { .name = "running", NUMBER },
    { .name = "terminated", NUMBER },
    { .name = "exit", NUMBER },
    { .name = "conditions", ROWS, condition_keys },
    { 0 },
};

static const struct key node_keys[] = {
    { .name = "name", TEXT },      { .name = "annotations", ANY },
    { .name = "labels", ANY },     { .name = "slurm", TEXT },
    { .name = "created", NUMBER }, { .name = "lent", FLAG },
    { .name = "cpu", TEXT },       { .name = "memory", TEXT },
    { .name = "ready", FLAG },     { .name = "since", NUMBER },
    { .name = "cordoned", FLAG },  { .name = "taints", LIST },
    { .name = "devices", ANY },    { 0 },
};

static const char *const owner_kinds[] = { "Job", "ReplicaSet", "StatefulSet", NULL };

static const struct key owners_keys[] = {
    { .name = "kind", TEXT, .values = owner_kinds },
    { .name = "name", TEXT },
    { .name = "annotations", ANY },
    { .name = "labels", ANY },
    { .name = "owner", ROW, owner_keys },
    { .name = "parallelism", NUMBER },
    { .name = "deadline", NUMBER },
    { 0 },
};

static const struct key group_keys[] = {
    { .name = "kind", TEXT },      { .name = "name", TEXT },       { .name = "size", NUMBER },
    { .name = "created", NUMBER }, { .name = "annotations", ANY }, { .name = "labels", ANY },
    { .name = "spec", ANY },       { .name = "status", ANY },      { 0 },
};

static const struct key claim_keys[] = {
    { .name = "name", TEXT },
    { .name = "annotations", ANY },
    { .name = "spec", ANY },
    { .name = "status", ANY },
    { 0 },
};

static const struct key volume_keys[] = {
    { .name = "name", TEXT },
    { .name = "annotations", ANY },
    { .name = "spec", ANY },
    { .name = "status", ANY },
    { 0 },
};

static const struct key class_keys[] = {
    { .name = "name", TEXT },
    { .name = "provisioner", TEXT },
    { .name = "volumeBindingMode", TEXT },
    { 0 },
};

static const struct key device_class_keys[] = {
    { .name = "name", TEXT },
    { .name = "spec", ANY },
    { 0 },
};

static const struct key slice_keys[] = {
    { .name = "name", TEXT },    { .name = "node", TEXT },
    { .name = "driver", TEXT },  { .name = "pool", TEXT },
    { .name = "of", NUMBER },    { .name = "generation", NUMBER },
    { .name = "devices", LIST }, { 0 },
};

static const struct key resource_claim_keys[] = {
    { .name = "name", TEXT },
    { .name = "pod", TEXT },
    { .name = "finalizer", FLAG },
    { .name = "deleted", NUMBER },
    { .name = "spec", ANY },
    { .name = "status", ANY },
    { 0 },
};

/* ---- Slurm's side: beside our short ones, keys as Slurm names them ---- */

static const struct key job_keys[] = {
    { .name = "id", NUMBER },
    { .name = "pod", TEXT },
    { .name = "attempt", NUMBER },
    { .name = "state", TEXT },
    { .name = "cluster", TEXT },
    { .name = "release", TEXT },
    { .name = "reason", TEXT },
    { .name = "uid", TEXT },
    { .name = "read", NUMBER },
    { .name = "pods", NUMBER },
    { .name = "noted", ANY },
    { .name = "changed", ANY },
    { .name = "foreign", FLAG },
    { .name = "nodes", TEXT },
    { .name = "required_nodes", TEXT },
    { .name = "excluded_nodes", TEXT },
    { .name = "node_count", NUMBER },
    { .name = "cpus", NUMBER },
    { .name = "tres_alloc_str", TEXT },
    { .name = "hold", FLAG },
    { .name = "priority", NUMBER },
    { .name = "prefer", TEXT },
    { .name = "partition", TEXT },
    { .name = "reservation", TEXT },
    { .name = "comment", TEXT },
    { .name = "admin_comment", TEXT },
    { .name = "comment", TEXT },
    { .name = "extra", TEXT },
    { .name = "submitted", NUMBER },
    { .name = "start_time", NUMBER },
    { .name = "ended", NUMBER },
    { .name = "time_limit", NUMBER },
    { .name = "restart_cnt", NUMBER },
    { .name = "layout", LIST },
    { .name = "written", NUMBER },
    { .name = "missing", FLAG },
    { 0 },
};

static const struct key slurm_node_keys[] = {
    { .name = "name", TEXT },
    { .name = "cpus", NUMBER },
    { .name = "memory", NUMBER },
    { .name = "state", TEXT },
    { .name = "partitions", TEXT },
    { .name = "features", ANY },
    { .name = "extra", TEXT },
    { .name = "gres", TEXT },
    { .name = "threads", NUMBER },
    { .name = "gres_used", TEXT },
    { 0 },
};

static const struct key partition_keys[] = {
    { .name = "name", TEXT },       { .name = "flags", TEXT },
    { .name = "accounts", TEXT },   { .name = "denied_accounts", TEXT },
    { .name = "groups", TEXT },     { .name = "qos", TEXT },
    { .name = "denied_qos", TEXT }, { 0 },
};

static const struct key reservation_keys[] = {
    { .name = "name", TEXT },
    { .name = "users", TEXT },
    { .name = "accounts", TEXT },
    { 0 },
};

static const char *const submit_states[] = { "none", "sent", "unresolved", "refused", NULL };

static const struct key submit_keys[] = {
    { .name = "pod", TEXT },
    { .name = "state", TEXT, .values = submit_states },
    { .name = "attempt", NUMBER },
    { .name = "sent", NUMBER },
    { .name = "settles", NUMBER },
    { .name = "again", NUMBER },
    { .name = "hash", NUMBER },
    { .name = "text", TEXT },
    { .name = "queues", FLAG },
    { .name = "ends_by_cancel", FLAG },
    { .name = "answered", FLAG },
    { .name = "pods", NUMBER },
    { .name = "said", ANY },
    { .name = "changed", ANY },
    { .name = "settles_note", FLAG },
    { .name = "change_refused", FLAG },
    { .name = "given_up", NUMBER },
    { .name = "seen", NUMBER },
    { .name = "misfits", TEXTS },
    { .name = "device_misfits", TEXTS },
    { .name = "devices_changed", FLAG },
    { .name = "writes_refused", LIST },
    { 0 },
};

/* ---- a world ---- */

static const char *const sights[] = { "all", "part", "nothing", NULL };

static const struct key fact_keys[] = {
    { .name = "slurm_ahead", NUMBER },
    { .name = "max_jobs", NUMBER },
    { .name = "uninstalling", FLAG },
    { .name = "agent", FLAG },
    { .name = "kill_wait", NUMBER },
    { .name = "takeover_delay", NUMBER },
    { .name = "no_takeover_delay", FLAG },
    { .name = "synced", FLAG },
    { .name = "suspicious", TEXT },
    { .name = "sees", TEXT, .values = sights },
    { .name = "pause", NUMBER },
    { .name = "interactive", FLAG },
    { .name = "restarted", NUMBER },
    { .name = "rebooking", NUMBER },
    { .name = "unsubmitted", NUMBER },
    { .name = "queued", NUMBER },
    { .name = "waiting_pods", NUMBER },
    { .name = "bind_takes_metadata", FLAG },
    { .name = "listed", NUMBER },
    { .name = "denied", NUMBER },
    { .name = "trouble", TEXT },
    { .name = "trouble_since", NUMBER },
    { .name = "user", TEXT },
    { 0 },
};

static const struct key given_keys[] = {
    { .name = "now", NUMBER },
    { .name = "config", ANY }, /* as the bridge reads it, which names unknown keys itself */
    { .name = "facts", ROW, fact_keys },
    { .name = "nodes", ROWS, node_keys },
    { .name = "pods", ROWS, pod_keys },
    { .name = "owners", ROWS, owners_keys },
    { .name = "groups", ROWS, group_keys },
    { .name = "absent", TEXTS },
    { .name = "unknown", TEXTS },
    { .name = "claims", ROWS, claim_keys },
    { .name = "volumes", ROWS, volume_keys },
    { .name = "classes", ROWS, class_keys },
    { .name = "device_classes", ROWS, device_class_keys },
    { .name = "slices", ROWS, slice_keys },
    { .name = "resource_claims", ROWS, resource_claim_keys },
    { .name = "slurm_nodes", ROWS, slurm_node_keys },
    { .name = "partitions", ROWS, partition_keys },
    { .name = "reservations", ROWS, reservation_keys },
    { .name = "jobs", ROWS, job_keys },
    { .name = "submits", ROWS, submit_keys },
    { 0 },
};

static const struct key action_keys[] = {
    { .name = "do", TEXT },    { .name = "has", TEXTS },   { .name = "lacks", TEXTS },
    { .name = "after", TEXT }, { .name = "beside", TEXT }, { 0 },
};

static const struct key world_keys[] = {
    { .name = "name", TEXT },   { .name = "given", ROW, given_keys },
    { .name = "plan", TEXT },   { .name = "expect", LIST },
    { .name = "waits", TEXT },  { .name = "state", TEXT },
    { .name = "again", FLAG },  { .name = "enqueues", LIST },
    { .name = "woken", TEXTS }, { .name = "why", LIST },
    { .name = "guard", TEXT },  { 0 },
};

/* ---- */

static bool are_texts(const struct json *list)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;

    while (json_next_item(&iter, &item))
        if (json_str(item).len == 0)
            return false;
    return json_is_array(list);
}

static bool has_type(const struct json *value, enum type type)
{
    switch (type) {
    case ANY:
        return true;
    case TEXT:
        return json_is_string(value) || json_is_number(value);
    case NUMBER:
        return json_is_number(value);
    case FLAG:
        return json_is_bool(value);
    case TEXTS:
        return are_texts(value);
    case LIST:
    case ROWS:
        return json_is_array(value);
    case ROW:
        return json_is_object(value);
    }
    return false;
}

static bool is_one_of(struct str value, const char *const *values)
{
    for (size_t i = 0; values[i]; i++)
        if (str_is(value, values[i]))
            return true;
    return false;
}

static int check_row(const struct json *row, const struct key *keys, const char *where,
                     struct err *err);

static int check_value(const struct json *value, const struct key *key, const char *where,
                       struct err *err)
{
    struct json_iter iter = json_iter(value);
    const struct json *row;
    int rc = 0;

    if (!has_type(value, key->type))
        return err_set(err, ERR_INVALID, "'%s' in %s has a value of another type", key->name,
                       where);
    if (key->values && !is_one_of(json_str(value), key->values))
        return err_set(err, ERR_INVALID, "'%s' in %s has the unknown value '" STR_FMT "'",
                       key->name, where, STR_ARG(json_str(value)));
    if (key->type == ROW)
        return check_row(value, key->rows, key->name, err);
    while (key->type == ROWS && rc == 0 && json_next_item(&iter, &row))
        rc = check_row(row, key->rows, key->name, err);
    return rc;
}

static int check_row(const struct json *row, const struct key *keys, const char *where,
                     struct err *err)
{
    struct json_iter iter = json_iter(row);
    struct str name;
    const struct json *value;
    int rc = 0;

    if (!json_is_object(row))
        return err_set(err, ERR_INVALID, "a row of %s is no object", where);
    while (rc == 0 && json_next_member(&iter, &name, &value)) {
        const struct key *key = keys;

        while (key->name && !str_is(name, key->name))
            key++;
        if (!key->name)
            return err_set(err, ERR_INVALID, "unknown key '" STR_FMT "' in %s", STR_ARG(name),
                           where);
        rc = check_value(value, key, where, err);
    }
    return rc;
}

/* A patch or an update that is merely done proves little: the sentence is about what it says. */
static int check_action(const struct json *row, struct err *err)
{
    struct str what = json_is_string(row) ? json_str(row) : json_str(json_get(row, "do"));
    bool writes = str_starts(what, STR("patch ")) || str_starts(what, STR("update "));

    if (!json_is_string(row)) {
        int rc = check_row(row, action_keys, "expect", err);

        if (rc < 0)
            return rc;
    }
    if (what.len == 0)
        return err_set(err, ERR_INVALID, "a row of expect does not say what is done");
    if (writes && json_len(json_get(row, "has")) == 0)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' does not say what is written: has",
                       STR_ARG(what));
    return 0;
}

static int check_phase(struct str phase, struct err *err)
{
    for (unsigned i = 0; i < UNIT_PHASES; i++)
        if (str_is(phase, unit_phase_name(i)))
            return 0;
    return err_set(err, ERR_INVALID, "'state' in the world has the unknown value '" STR_FMT "'",
                   STR_ARG(phase));
}

int world_check_given(const struct json *given, struct err *err)
{
    return check_row(given, given_keys, "given", err);
}

int world_check(const struct json *root, struct err *err)
{
    struct json_iter expected = json_iter(json_get(root, "expect"));
    const struct json *row;
    int rc = check_row(root, world_keys, "the world", err);

    if (rc < 0)
        return rc;
    if (!json_get(root, "given"))
        return err_set(err, ERR_INVALID, "it has no 'given'");
    if (!json_get(root, "plan") && json_len(json_get(json_get(root, "given"), "pods")) != 1)
        return err_set(err, ERR_INVALID, "it has not one pod, and no 'plan' that names one");
    if (json_get(root, "state"))
        rc = check_phase(json_str(json_get(root, "state")), err);
    while (rc == 0 && json_next_item(&expected, &row))
        rc = check_action(row, err);
    if (rc == 0 && json_len(json_get(root, "expect")) == 0 &&
        json_str(json_get(root, "waits")).len == 0 && !json_get(root, "state"))
        return err_set(err, ERR_INVALID,
                       "nothing is expected, and neither 'waits' nor 'state' says why");
    return rc;
}
