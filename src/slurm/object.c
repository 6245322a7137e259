/* object.c - decodes objects by their table of fields; references; lists.
 *
 * Texts are gathered in one buffer while the struct is filled, then both are laid into one block
 * and the texts' places become pointers.
 *
 * Holds: an object never changes once it was handed out; an object has a key that is not empty. */
#include "slurm/object_private.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

/* One object under way. */
struct draft {
    const struct slurm_kind *kind;
    char *block;                     /* the struct */
    struct buf text;                 /* all texts, each with its NUL */
    size_t places[SLURM_MAX_FIELDS]; /* of each field's text, plus one; 0 = "" */
    size_t key_place;
};

static void *slot(char *block, const struct slurm_field *field)
{
    return block + field->offset;
}

/* Ends the text that was begun at `from`. */
static size_t keep_text(struct draft *draft, size_t from)
{
    if (draft->text.len == from)
        return 0;
    buf_add_char(&draft->text, '\0');
    return from + 1;
}

static void read_field(struct draft *draft, size_t index, const struct json *value)
{
    const struct slurm_field *field = &draft->kind->fields[index];
    void *into = slot(draft->block, field);
    size_t from = draft->text.len;

    switch (field->type) {
    case SLURM_FIELD_TEXT:
        buf_add_str(&draft->text, json_str(value));
        draft->places[index] = keep_text(draft, from);
        return;
    case SLURM_FIELD_LIST:
        slurm_list_text(value, &draft->text);
        draft->places[index] = keep_text(draft, from);
        return;
    case SLURM_FIELD_INT:
        *(int64_t *)into = slurm_number_or(slurm_number_of(value), 0, INT64_MAX);
        return;
    case SLURM_FIELD_NUMBER:
        *(struct slurm_number *)into = slurm_number_of(value);
        return;
    case SLURM_FIELD_BOOL:
        *(bool *)into = json_bool_or(value, false);
        return;
    case SLURM_FIELD_WORDS:
        break;
    }

    auto_buf struct buf other;

    buf_init(&other, SLURM_MAX_OBJECT_TEXT);
    ((struct slurm_words *)into)->known = slurm_words_read(field->vocabulary, value, &other);
    buf_add_str(&draft->text, buf_str(&other));
    draft->places[index] = keep_text(draft, from);
}

static int read_key(struct draft *draft, const struct json *value, struct err *err)
{
    const struct slurm_kind *kind = draft->kind;
    const struct json *key = json_get(value, kind->key);
    int64_t number = json_i64_or(key, 0);
    size_t from = draft->text.len;

    if (json_is_string(key) && !memchr(json_str(key).at, '\0', json_str(key).len))
        buf_add_str(&draft->text, json_str(key));
    else if (number > 0)
        buf_printf(&draft->text, "%" PRId64, number);
    draft->key_place = keep_text(draft, from);
    if (draft->key_place == 0)
        return err_set(err, ERR_INVALID, "a %s without %s", kind->name, kind->key);
    return 0;
}

static const char *text_at(const char *texts, size_t place)
{
    return place == 0 ? "" : texts + place - 1;
}

/* Struct and texts into one block. */
static const struct slurm_object *lay_out(const struct draft *draft)
{
    const struct slurm_kind *kind = draft->kind;
    char *block = mem_alloc(kind->size + draft->text.len);
    char *texts = block + kind->size;
    struct slurm_object *object = (void *)block;

    memcpy(block, draft->block, kind->size);
    if (draft->text.len > 0)
        memcpy(texts, draft->text.data, draft->text.len);
    for (size_t i = 0; i < kind->count; i++) {
        const struct slurm_field *field = &kind->fields[i];

        if (field->type == SLURM_FIELD_TEXT || field->type == SLURM_FIELD_LIST)
            *(const char **)slot(block, field) = text_at(texts, draft->places[i]);
        else if (field->type == SLURM_FIELD_WORDS)
            ((struct slurm_words *)slot(block, field))->other = text_at(texts, draft->places[i]);
    }
    object->refs = 1;
    object->kind = kind;
    object->key = text_at(texts, draft->key_place);
    return object;
}

int slurm_object_decode(const struct slurm_kind *kind, const struct json *value,
                        const struct slurm_object **ret_object, struct err *err)
{
    struct draft draft = { .kind = kind, .block = mem_alloc(kind->size) };
    int result;

    buf_init(&draft.text, SLURM_MAX_OBJECT_TEXT);
    for (size_t i = 0; i < kind->count; i++)
        read_field(&draft, i, json_at_path(value, kind->fields[i].path));
    result = read_key(&draft, value, err);
    if (result == 0)
        result = buf_check(&draft.text, kind->name, err);
    if (result == 0)
        *ret_object = lay_out(&draft);
    buf_done(&draft.text);
    mem_free(draft.block);
    return result;
}

/* The texts of an object, each from where it is, but for the one at this offset. */
static void copy_texts(struct draft *draft, const char *from, size_t changed, const char *text)
{
    const struct slurm_kind *kind = draft->kind;

    for (size_t i = 0; i < kind->count; i++) {
        const struct slurm_field *field = &kind->fields[i];
        const void *at = from + field->offset;
        size_t begin = draft->text.len;

        if (field->type == SLURM_FIELD_WORDS)
            buf_add_text(&draft->text, ((const struct slurm_words *)at)->other);
        else if (field->type == SLURM_FIELD_TEXT || field->type == SLURM_FIELD_LIST)
            buf_add_text(&draft->text, field->offset == changed ? text : *(const char *const *)at);
        else
            continue;
        draft->places[i] = keep_text(draft, begin);
    }
}

const struct slurm_object *slurm_job_started(const struct slurm_job *job, const char *nodes)
{
    struct draft draft = { .kind = job->object.kind };
    struct slurm_job copy = *job;
    const struct slurm_object *object;
    size_t begin;

    copy.state.known = UINT64_C(1) << SLURM_JOB_RUNNING;
    draft.block = (char *)&copy;
    buf_init(&draft.text, 2 * (size_t)SLURM_MAX_OBJECT_TEXT);
    copy_texts(&draft, (const char *)job, offsetof(struct slurm_job, nodes), nodes);
    begin = draft.text.len;
    buf_add_text(&draft.text, job->object.key);
    draft.key_place = keep_text(&draft, begin);
    object = lay_out(&draft);
    buf_done(&draft.text);
    return object;
}

void slurm_job_keep_start(const struct slurm_object *old, const struct slurm_object *next)
{
    const struct slurm_job *was = slurm_job_of(old), *is = slurm_job_of(next);

    if (next->refs == 1 && is->submit_time == was->submit_time && !is->hold &&
        slurm_words_has(&is->state, SLURM_JOB_PENDING) && slurm_job_expected_start(is) == 0)
        ((struct slurm_job *)(uintptr_t)next)->start_time = slurm_job_expected_start(was);
}

const struct slurm_object *slurm_object_ref(const struct slurm_object *object)
{
    ((struct slurm_object *)(uintptr_t)object)->refs++;
    return object;
}

void slurm_object_unref(const struct slurm_object *object)
{
    struct slurm_object *owned = (struct slurm_object *)(uintptr_t)object;

    if (owned && --owned->refs == 0)
        mem_free(owned);
}

static bool field_equal(const struct slurm_field *field, const char *a, const char *b)
{
    const void *left = a + field->offset, *right = b + field->offset;

    switch (field->type) {
    case SLURM_FIELD_TEXT:
    case SLURM_FIELD_LIST:
        return strcmp(*(const char *const *)left, *(const char *const *)right) == 0;
    case SLURM_FIELD_INT:
        return *(const int64_t *)left == *(const int64_t *)right;
    case SLURM_FIELD_NUMBER:
        return slurm_number_equal(*(const struct slurm_number *)left,
                                  *(const struct slurm_number *)right);
    case SLURM_FIELD_BOOL:
        return *(const bool *)left == *(const bool *)right;
    case SLURM_FIELD_WORDS:
        break;
    }

    const struct slurm_words *one = left, *other = right;

    return one->known == other->known && strcmp(one->other, other->other) == 0;
}

bool slurm_object_equal(const struct slurm_object *a, const struct slurm_object *b)
{
    if (a->kind != b->kind)
        return false;
    for (size_t i = 0; i < a->kind->count; i++)
        if (!field_equal(&a->kind->fields[i], (const char *)a, (const char *)b))
            return false;
    return true;
}

int64_t slurm_job_expected_start(const struct slurm_job *job)
{
    return slurm_words_has(&job->state, SLURM_JOB_PENDING) && job->start_time != INT64_MAX
               ? job->start_time
               : 0;
}

/* ---- whole answers ---- */

int slurm_list_decode(const struct slurm_kind *kind, const struct json *body,
                      struct slurm_list *ret_list, struct err *err)
{
    const struct json *array, *item;
    struct slurm_list list = { 0 };
    int result = json_want_array(body, kind->array, &array, err);

    if (result < 0)
        return result;
    if (json_len(array) > SLURM_MAX_LIST)
        return err_set(err, ERR_TOO_BIG, "more than %d %s", SLURM_MAX_LIST, kind->array);

    struct json_iter iter = json_iter(array);

    list.at = mem_alloc_array(json_len(array) + 1, sizeof(*list.at));
    list.last_update = slurm_number_or(slurm_number_of(json_get(body, "last_update")), 0, 0);
    while (result == 0 && json_next_item(&iter, &item)) {
        result = slurm_object_decode(kind, item, &list.at[list.count], err);
        list.count += result == 0;
    }
    if (result < 0) {
        slurm_list_done(&list);
        return result;
    }
    *ret_list = list;
    return 0;
}

void slurm_list_done(struct slurm_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        slurm_object_unref(list->at[i]);
    mem_free(list->at);
    *list = (struct slurm_list){ 0 };
}

int slurm_brief_of(const struct json *item, struct slurm_brief *ret_brief, struct err *err)
{
    struct buf other;
    const struct json *id = json_get(item, "job_id");
    struct slurm_brief brief = { .id = json_str(id) };
    uint64_t number = 0;

    if (brief.id.len == 0)
        return err_set(err, ERR_INVALID, "a job state without job_id");
    if (str_to_u64(brief.id, 1, INT64_MAX, &number, NULL) < 0)
        number = 0;
    brief.number = (int64_t)number;
    buf_init(&other, 0); /* words that nobody knows are of no use here */
    brief.state = slurm_words_read(&slurm_job_states, json_get(item, "state"), &other);
    buf_done(&other);
    *ret_brief = brief;
    return 0;
}

bool slurm_node_is_busy(const struct slurm_node *node)
{
    return slurm_words_has(&node->state, SLURM_NODE_ALLOCATED) ||
           slurm_words_has(&node->state, SLURM_NODE_MIXED) ||
           slurm_words_has(&node->state, SLURM_NODE_COMPLETING);
}
