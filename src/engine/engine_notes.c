/* engine_notes.c - what is to be said of a key between two looks at it, and to whom.
 *
 * Holds: a line is logged when a key begins to fail, or fails in another way, and when it goes well
 * again, never for a mere repetition; trouble is told once, and its end once. A key of which
 * nothing is to be said has no note. */
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_private.h"

static void free_note(void *value)
{
    struct note *note = value;

    mem_free(note->waits);
    mem_free(note->error);
    mem_free(note);
}

void engine_notes_init(struct engine_work *owner)
{
    map_init(&owner->notes,
             &(struct map_options){ .max = ENGINE_MAX_KEYS, .free_value = free_note });
}

static struct note *note_of(struct engine_work *owner, struct str key)
{
    struct note *note = map_get(&owner->notes, key);

    if (note)
        return note;
    note = mem_alloc(sizeof(*note));
    if (map_put(&owner->notes, key, note, NULL) < 0) {
        free_note(note);
        return NULL;
    }
    return note;
}

void engine_note_waits(struct engine_work *owner, struct str key, const char *waits)
{
    struct note *note = waits ? note_of(owner, key) : map_get(&owner->notes, key);

    if (!note)
        return;
    mem_free(note->waits);
    note->waits = waits ? mem_strdup(waits) : NULL;
}

bool engine_note_error(struct engine_work *owner, struct str key, int outcome, const char *error)
{
    struct note *note = note_of(owner, key);

    if (!note)
        return false;

    bool is_news = !note->error || note->outcome != outcome ||
                   (outcome == -1 && strcmp(note->error, error) != 0);

    mem_free(note->error);
    note->error = mem_strdup(error);
    note->outcome = outcome;
    return is_news;
}

static void tell_trouble(struct engine_work *owner, struct str key, const struct action *action,
                         const struct kube_answer *answer)
{
    const struct engine_options *options = &owner->engine->options;

    if (options->trouble)
        options->trouble(options->trouble_context, owner->controller, key, action, answer);
}

void engine_note_well(struct engine_work *owner, struct str key)
{
    struct note *note = map_get(&owner->notes, key);

    if (!note)
        return;
    if (note->error)
        log_info("goes well again", LOG_TEXT("controller", owner->controller->name),
                 LOG_STR("key", key));
    if (note->told)
        tell_trouble(owner, key, NULL,
                     &(struct kube_answer){ .outcome = KUBE_DONE, .reason = "", .message = "" });
    mem_free(note->error);
    note->error = NULL;
    note->told = false;
    if (!note->waits)
        map_remove(&owner->notes, key);
}

void engine_note_refused(struct engine_work *owner, struct str key, const struct action *action,
                         const struct kube_answer *answer)
{
    struct note *note = map_get(&owner->notes, key);

    if (!note || note->told)
        return;
    note->told = true;
    tell_trouble(owner, key, action, answer);
}
