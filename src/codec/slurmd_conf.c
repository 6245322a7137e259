/* slurmd_conf.c - the argument behind slurmd's --conf: read into items, and written. */
#include "codec/slurmd_conf.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

enum { MAX_TEXT = 8192, MAX_SHOWN = 60 };

static const char blanks[] = " \t\r\n";

/* ---- reading ---- */

/* Kubernetes, the shell of the image, and slurmd each read the argument: what means something to
 * one of them does not get in. */
static int check_characters(struct str text, struct err *err)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        if (c <= ' ' || c > '~')
            return err_set(err, ERR_INVALID, "holds a character that cannot be printed");
        if (strchr("'\"`$\\#", c))
            return err_set(err, ERR_INVALID, "holds the character %c", c);
    }
    return 0;
}

/* A value without blanks means the same to Slurm in double quotes. */
static struct str unquoted(struct str value)
{
    return value.len >= 2 && value.at[0] == '"' && str_ends(value, STR("\""))
               ? str_sub(value, 1, value.len - 1)
               : value;
}

static bool next_item(struct str *rest, struct str *ret_item)
{
    size_t length = 0;

    *rest = str_trim(*rest);
    while (length < rest->len && !strchr(blanks, rest->at[length]))
        length++;
    *ret_item = str_sub(*rest, 0, length);
    *rest = str_sub(*rest, length, rest->len);
    return length > 0;
}

/* Words of a key begin with a capital: "foo-bar" is "Foo-Bar". */
static const char *title_case(struct arena *arena, struct str key)
{
    char *title = arena_strndup(arena, key.at, key.len);

    for (size_t i = 0; i < key.len; i++)
        title[i] = (char)(i == 0 || title[i - 1] == '-' ? toupper((unsigned char)title[i])
                                                        : tolower((unsigned char)title[i]));
    return title;
}

bool slurmd_conf_add_features(struct slurmd_conf *items, struct str list)
{
    struct str feature;

    while (str_next(&list, ',', &feature)) {
        bool is_known = feature.len == 0;

        for (size_t i = 0; i < items->feature_count && !is_known; i++)
            is_known = str_is(feature, items->features[i]);
        if (is_known)
            continue;
        if (items->feature_count == SLURMD_CONF_MAX_ITEMS)
            return false;
        items->features[items->feature_count++] =
            arena_strndup(items->arena, feature.at, feature.len);
    }
    return true;
}

bool slurmd_conf_add(struct slurmd_conf *items, struct str key, struct str value)
{
    const char *title = title_case(items->arena, key);

    if (strcmp(title, "Feature") == 0 || strcmp(title, "Features") == 0)
        return slurmd_conf_add_features(items, value);
    for (size_t i = 0; i < items->count; i++)
        if (strcmp(items->keys[i], title) == 0) {
            items->values[i] =
                arena_printf(items->arena, "%s," STR_FMT, items->values[i], STR_ARG(value));
            return true;
        }
    if (items->count == SLURMD_CONF_MAX_ITEMS)
        return false;
    items->keys[items->count] = title;
    items->values[items->count++] = arena_strndup(items->arena, value.at, value.len);
    return true;
}

static int read_item(struct str item, struct slurmd_conf *items, struct err *err)
{
    struct str key = STR(""), value = STR("");
    int result;

    (void)str_cut(item, '=', &key, &value);
    value = unquoted(value);
    if ((result = check_characters(key, err)) < 0 || (result = check_characters(value, err)) < 0)
        return result;
    if (key.len == 0)
        return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not Key=Value; blanks separate pairs",
                       STR_ARG(str_sub(item, 0, MAX_SHOWN)));
    items->has_gres = items->has_gres || str_eq_nocase(key, STR("Gres"));
    return value.len == 0 || slurmd_conf_add(items, key, value)
               ? 0
               : err_set(err, ERR_TOO_BIG, "has more than %d items", SLURMD_CONF_MAX_ITEMS);
}

int slurmd_conf_read(struct str rest, struct slurmd_conf *items, struct err *err)
{
    struct str item;
    int result = 0;

    if (rest.len > MAX_TEXT)
        return err_set(err, ERR_TOO_BIG, "has more than %d bytes", MAX_TEXT);
    while (next_item(&rest, &item)) {
        int why = read_item(item, items, result == 0 ? err : NULL);

        if (result == 0)
            result = why;
    }
    return result;
}

/* ---- writing ---- */

static const char *join(struct arena *arena, const char **texts, size_t count, char separator)
{
    const char *joined = "";

    qsort(texts, count, sizeof(texts[0]), str_compare_texts);
    for (size_t i = 0; i < count; i++)
        joined = i == 0 ? texts[0] : arena_printf(arena, "%s%c%s", joined, separator, texts[i]);
    return joined;
}

const char *slurmd_conf_write(struct slurmd_conf *items)
{
    const char *texts[SLURMD_CONF_MAX_ITEMS + 1];

    for (size_t i = 0; i < items->count; i++)
        texts[i] = arena_printf(items->arena, "%s=%s", items->keys[i], items->values[i]);
    texts[items->count] =
        arena_printf(items->arena, "Features=%s",
                     join(items->arena, items->features, items->feature_count, ','));
    return arena_printf(items->arena, "'%s'", join(items->arena, texts, items->count + 1, ' '));
}

const char *slurmd_conf_get(const struct slurmd_conf *items, const char *key)
{
    for (size_t i = 0; i < items->count; i++)
        if (strcmp(items->keys[i], key) == 0)
            return items->values[i];
    return "";
}
