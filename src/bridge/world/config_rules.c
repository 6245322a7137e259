/* config_rules.c - rules of the config file: who pods are in Slurm, what their priority classes
 * mean there, which labels of nodes are features.
 *
 * Holds: a rule with a word that we do not know is refused, not read as if the word were not there:
 * it would match more than was meant. */
#include "bridge/world/config_rules.h"

#include "bridge/world/job_desc_form.h"
#include "codec/selector.h"

#include <fnmatch.h>
#include <strings.h>

enum {
    MAX_LABELS = 64,
    MAX_RULES = 10000,
    MAX_TEXT = 1024,   /* bytes of one word of a rule */
    MAX_PATTERN = 253, /* bytes; as long as names are */
    MAX_SHOWN = 64,    /* bytes of an unknown word */
};

static const char *keep(struct bridge_config *config, struct str text)
{
    return arena_strndup(&config->arena, text.at, text.len);
}

/* ---- labels ---- */

int config_take_labels(struct bridge_config *config, const struct json *list, struct err *err)
{
    struct json_iter iter = json_iter(list);
    const struct json *item;
    struct str *labels;
    unsigned count = 0;

    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "wants a list of label keys");
    if (json_len(list) > MAX_LABELS)
        return err_set(err, ERR_TOO_BIG, "more than %d labels", MAX_LABELS);
    labels = arena_alloc_array(&config->arena, json_len(list), sizeof(*labels));
    while (json_next_item(&iter, &item)) {
        struct str key = json_str(item);

        if (selector_check_key(key, NULL) < 0)
            return err_set(err, ERR_INVALID, "wants a list of label keys; item %u is none",
                           count + 1);
        labels[count++] = (struct str){ keep(config, key), key.len };
    }
    config->node_features = labels;
    config->node_feature_count = count;
    return 0;
}

struct str config_feature_of(struct str key, struct str value)
{
    struct str rest = key, name = key;

    if (str_is(value, "false"))
        return STR("");
    if (value.len > 0 && !str_is(value, "true"))
        return value;
    while (str_next(&rest, '/', &name))
        ;
    return name;
}

/* ---- priority classes ---- */

/* A number is a priority, a text is a QOS. A priority of 0 would hold the job. */
static bool read_priority(struct bridge_config *config, struct str class, const struct json *value,
                          struct bridge_priority *ret_rule)
{
    int64_t priority = json_i64_or(value, -1);
    struct str qos = json_str(value);

    if (class.len == 0 || !job_form_is_line(class, MAX_TEXT) || !job_form_is_line(qos, MAX_TEXT) ||
        (qos.len == 0 && (priority < 1 || priority > INT32_MAX)))
        return false;
    *ret_rule = (struct bridge_priority){ .class = keep(config, class),
                                          .qos = keep(config, qos),
                                          .priority = qos.len > 0 ? -1 : priority };
    return true;
}

int config_take_priorities(struct bridge_config *config, const struct json *map, struct err *err)
{
    static const char wanted[] = "wants names of priority classes, each with a QOS in quotes or a "
                                 "priority from 1 to 2147483647";
    struct json_iter iter = json_iter(map);
    struct bridge_priority *rules;
    const struct json *value;
    unsigned count = 0;
    struct str class;

    if (!json_is_object(map))
        return err_set(err, ERR_INVALID, "%s", wanted);
    if (json_len(map) > MAX_RULES)
        return err_set(err, ERR_TOO_BIG, "more than %d classes", MAX_RULES);
    rules = arena_alloc_array(&config->arena, json_len(map), sizeof(*rules));
    while (json_next_member(&iter, &class, &value))
        if (!read_priority(config, class, value, &rules[count++]))
            return err_set(err, ERR_INVALID, "%s; number %u is none", wanted, count);
    config->priorities = rules;
    config->priority_count = count;
    return 0;
}

const struct bridge_priority *bridge_config_priority(const struct bridge_config *config,
                                                     const char *class)
{
    for (unsigned i = 0; i < config->priority_count; i++)
        if (strcmp(config->priorities[i].class, class) == 0)
            return &config->priorities[i];
    return NULL;
}

/* ---- users ---- */

struct word { /* of a rule */
    const char *name;
    bool is_pattern; /* of names: '*' stands for any characters */
    size_t offset;
};

static const struct word words[] = {
    { "namespace", true, offsetof(struct bridge_user, ns) },
    { "serviceAccount", true, offsetof(struct bridge_user, service_account) },
    { "creator", false, offsetof(struct bridge_user, creator) },
    { "creatorGroup", false, offsetof(struct bridge_user, creator_group) },
    { "user", false, offsetof(struct bridge_user, user) },
    { "group", false, offsetof(struct bridge_user, group) },
    { "account", false, offsetof(struct bridge_user, account) },
    { "qos", false, offsetof(struct bridge_user, qos) },
    { "partitions", false, offsetof(struct bridge_user, partitions) },
    { "reservations", false, offsetof(struct bridge_user, reservations) },
};

enum { WORD_COUNT = sizeof(words) / sizeof(words[0]) };

static const struct word *find_word(struct str name)
{
    for (const struct word *word = words; word < words + WORD_COUNT; word++)
        if (name.len == strlen(word->name) && strncasecmp(name.at, word->name, name.len) == 0)
            return word;
    return NULL;
}

static bool is_pattern(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '*')
            return false;
    }
    return text.len > 0 && text.len <= MAX_PATTERN;
}

static const char **place_of(struct bridge_user *rule, const struct word *word)
{
    return (const char **)(void *)((char *)rule + word->offset);
}

/* null says nothing, as an absent word does. */
static int take_word(struct bridge_config *config, struct bridge_user *rule, struct str name,
                     const struct json *value, struct err *err)
{
    const struct word *word = find_word(name);
    struct str text = json_str(value);

    if (!word) {
        auto_buf struct buf shown = { .max = 8 * MAX_SHOWN };

        json_escape(&shown, str_sub(name, 0, MAX_SHOWN));
        return err_set(err, ERR_INVALID, "has no %s", buf_text(&shown));
    }
    if (!json_exists(value))
        return 0;
    if (!json_is_string(value) || !job_form_is_line(text, MAX_TEXT))
        return err_set(err, ERR_INVALID,
                       "%s: wants a text of one line; numbers, yes and no need quotes", word->name);
    if (word->is_pattern && !is_pattern(text))
        return err_set(err, ERR_INVALID,
                       "%s: wants a name of lower case letters, digits, '-' and '.', in which * "
                       "stands for any of them",
                       word->name);
    if ((*place_of(rule, word))[0])
        return err_set(err, ERR_INVALID, "%s: is there twice, in different letter case",
                       word->name);
    *place_of(rule, word) = keep(config, text);
    return 0;
}

static int take_user(struct bridge_config *config, const struct json *item,
                     struct bridge_user *ret_rule, struct err *err)
{
    struct bridge_user rule = { "", "", "", "", "", "", "", "", "", "" };
    struct json_iter iter = json_iter(item);
    const struct json *value;
    struct str name;
    int rc = 0;

    if (!json_is_object(item))
        return err_set(err, ERR_INVALID, "wants words and values");
    while (rc == 0 && json_next_member(&iter, &name, &value))
        rc = take_word(config, &rule, name, value, err);
    if (rc == 0 && !rule.ns[0])
        rc = err_set(err, ERR_INVALID, "wants a namespace; * stands for all");
    if (rc == 0)
        *ret_rule = rule;
    config->asks_who_made_it |= rule.creator[0] || rule.creator_group[0];
    return rc;
}

int config_take_users(struct bridge_config *config, const struct json *list, struct err *err)
{
    struct json_iter iter = json_iter(list);
    struct bridge_user *rules;
    const struct json *item;
    unsigned count = 0;

    if (!json_is_array(list))
        return err_set(err, ERR_INVALID,
                       "wants a list of rules: namespace, serviceAccount, creator, creatorGroup, "
                       "user, group, account, qos, partitions, reservations");
    if (json_len(list) > MAX_RULES)
        return err_set(err, ERR_TOO_BIG, "more than %d rules", MAX_RULES);
    rules = arena_alloc_array(&config->arena, json_len(list), sizeof(*rules));
    while (json_next_item(&iter, &item))
        if (take_user(config, item, &rules[count++], err) < 0)
            return err_wrap(err, "rule %u", count);
    config->users = rules;
    config->user_count = count;
    return 0;
}

static bool is_like(const char *pattern, struct str word)
{
    auto_buf struct buf text = { .max = MAX_TEXT };

    buf_add_str(&text, word);
    return !text.overflowed && fnmatch(pattern, buf_text(&text), 0) == 0;
}

static bool is_made_by(const struct bridge_user *rule, struct str creator)
{
    struct str user = STR(""), group;

    (void)str_next(&creator, '\n', &user);
    if (rule->creator[0] && (user.len == 0 || !is_like(rule->creator, user)))
        return false;
    while (rule->creator_group[0] && creator.len > 0 && str_next(&creator, '\n', &group))
        if (is_like(rule->creator_group, group))
            return true;
    return !rule->creator_group[0];
}

bool bridge_config_is_like_any(const char *patterns, struct str word)
{
    struct str rest = str_of(patterns), pattern;

    while (rest.len > 0 && str_next(&rest, ',', &pattern)) {
        auto_buf struct buf text = { .max = MAX_TEXT };

        buf_add_str(&text, str_trim(pattern));
        if (is_like(buf_text(&text), word))
            return true;
    }
    return false;
}

const struct bridge_user *bridge_config_user(const struct bridge_config *config, const char *ns,
                                             const char *service_account, struct str creator)
{
    for (unsigned i = 0; i < config->user_count; i++) {
        const struct bridge_user *rule = &config->users[i];

        if (fnmatch(rule->ns, ns, 0) == 0 && is_made_by(rule, creator) &&
            (!rule->service_account[0] || fnmatch(rule->service_account, service_account, 0) == 0))
            return rule;
    }
    return NULL;
}

/* ---- cores ---- */

bool bridge_config_pins(const struct bridge_config *config, bool says, struct str exclusive)
{
    struct job_value value = { .number = !config->shared };

    if (says)
        (void)job_form_read(JOB_FORM_EXCLUSIVE, (struct job_range){ 0 }, 0, exclusive, &value);
    return config->pins_cpus && !value.number;
}
