/* discovery.c - asks for the list of resources of a group and version, once.
 *
 * Holds: every question is answered from a timer of its own, so that the one asking may do anything
 * in its callback, freeing the discovery too; a failure to ask is never remembered. */
#include "kube/discovery.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

enum { ABSENT_US = 10000000, MAX_GROUPS = 256, MAX_MESSAGE = 240 };

struct group {
    struct kube_discovery *discovery;
    char *name, *version;    /* name "" for the core */
    struct json_doc *answer; /* NULL: absent, or not known */
    bool known;
    int64_t known_us;
    struct kube_resource resource; /* itself, as a request names it */
    struct kube_call *call;
    struct list questions;
};

struct question {
    struct list link;
    struct loop_timer timer;
    char *plural; /* NULL: the group and version alone */
    kube_discovered done;
    void *context;
    enum kube_presence presence;
    char message[MAX_MESSAGE];
};

struct kube_discovery {
    struct kube_client *client;
    struct map groups;
    struct list answered; /* questions whose timer is armed */
};

static void question_free(struct question *question)
{
    loop_timer_stop(&question->timer);
    list_remove(&question->link);
    mem_free(question->plural);
    mem_free(question);
}

static void questions_free(struct list *questions)
{
    struct list *node;

    while ((node = list_first(questions)))
        question_free(list_item(node, struct question, link));
}

static void group_free(void *value)
{
    struct group *group = value;

    kube_call_cancel(group->call);
    questions_free(&group->questions);
    json_doc_free(group->answer);
    mem_free(group->name);
    mem_free(group->version);
    mem_free(group);
}

/* --- answers --- */

static void tell(void *context)
{
    struct question *question = context;
    struct question said = *question;

    said.plural = NULL;
    question_free(question);
    said.done(said.context, said.presence, said.message);
}

static void answer(struct kube_discovery *discovery, struct question *question,
                   enum kube_presence presence, const char *message)
{
    struct str text = str_of(message);

    text = str_sub(text, 0, sizeof(question->message) - 1);
    memcpy(question->message, text.at, text.len);
    question->presence = presence;
    list_push_back(&discovery->answered, &question->link);
    loop_timer_start(kube_client_loop(discovery->client), &question->timer, 0, tell, question);
}

static enum kube_presence presence_of(const struct group *group, const char *plural)
{
    struct json_iter iter = json_iter(json_get(json_root(group->answer), "resources"));
    const struct json *resource;

    if (!group->answer)
        return KUBE_ABSENT;
    if (!plural)
        return KUBE_PRESENT;
    while (json_next_item(&iter, &resource))
        if (str_is(json_str(json_get(resource, "name")), plural))
            return KUBE_PRESENT;
    return KUBE_ABSENT;
}

static void answer_all(struct group *group, bool could_ask, const char *message)
{
    struct list *node;

    while ((node = list_pop_front(&group->questions))) {
        struct question *question = list_item(node, struct question, link);

        answer(group->discovery, question,
               could_ask ? presence_of(group, question->plural) : KUBE_CANNOT_ASK, message);
    }
}

static void remember(struct group *group, struct json_doc *doc)
{
    group->answer = doc;
    group->known = true;
    group->known_us = loop_now_us(kube_client_loop(group->discovery->client));
    answer_all(group, true, "");
}

static void on_answer(void *context, const struct kube_answer *got)
{
    struct group *group = context;

    group->call = NULL;
    /* For an API that does not exist the server has no Status, only a bare 404. */
    if (got->status == 404)
        remember(group, NULL);
    else if (got->outcome == KUBE_DONE && json_is_array(json_get(got->object, "resources")))
        remember(group, json_clone(got->object));
    else
        answer_all(group, false,
                   got->outcome == KUBE_DONE ? "not a list of resources" : got->message);
}

/* --- questions --- */

/* A missing resource in a group that exists may be installed later, too. */
static bool is_still_known(const struct group *group, const char *plural)
{
    int64_t age_us = loop_now_us(kube_client_loop(group->discovery->client)) - group->known_us;

    return group->known && (presence_of(group, plural) == KUBE_PRESENT || age_us < ABSENT_US);
}

static void ask(struct group *group)
{
    struct kube_request request = { .verb = KUBE_LIST, .resource = &group->resource };

    json_doc_free(group->answer);
    group->answer = NULL;
    group->known = false;
    group->call = kube_send(group->discovery->client, &request, on_answer, group);
}

static struct group *group_of(struct kube_discovery *discovery, const char *group_version)
{
    struct group *group = map_get(&discovery->groups, str_of(group_version));
    struct str name = STR(""), version = str_of(group_version);

    if (group)
        return group;
    str_cut(version, '/', &name, &version);
    group = mem_alloc(sizeof(*group));
    group->discovery = discovery;
    group->name = mem_strndup(name.at, name.len);
    group->version = mem_strndup(version.at, version.len);
    group->resource = (struct kube_resource){ group->name, group->version, "", "", false };
    list_init(&group->questions);
    if (map_put(&discovery->groups, str_of(group_version), group, NULL) < 0) {
        group_free(group);
        return NULL;
    }
    return group;
}

void kube_discover(struct kube_discovery *discovery, const char *group_version, const char *plural,
                   kube_discovered done, void *context)
{
    struct group *group = group_of(discovery, group_version);
    struct question *question = mem_alloc(sizeof(*question));

    question->plural = plural ? mem_strdup(plural) : NULL;
    question->done = done;
    question->context = context;
    if (!group) {
        answer(discovery, question, KUBE_CANNOT_ASK, "too many groups were asked for");
    } else if (is_still_known(group, plural)) {
        answer(discovery, question, presence_of(group, plural), "");
    } else {
        list_push_back(&group->questions, &question->link);
        if (!group->call)
            ask(group);
    }
}

struct kube_discovery *kube_discovery_new(struct kube_client *client)
{
    struct kube_discovery *discovery = mem_alloc(sizeof(*discovery));

    discovery->client = client;
    list_init(&discovery->answered);
    map_init(&discovery->groups,
             &(struct map_options){ .max = MAX_GROUPS, .free_value = group_free });
    return discovery;
}

void kube_discovery_free(struct kube_discovery *discovery)
{
    if (!discovery)
        return;
    map_done(&discovery->groups);
    questions_free(&discovery->answered);
    mem_free(discovery);
}
