/* split.c - counts brackets outside of strings, and cuts where the array's own commas are.
 *
 * Holds: every byte goes to one element or to the rest, but for the commas between elements;
 * however the answer is cut into pieces, the same comes out. */
#include "slurm/split.h"

enum { MEMBER_DEPTH = 1, ARRAY_DEPTH = 2 };

void slurm_split_init(struct slurm_split *split, const char *array, size_t max_item)
{
    *split = (struct slurm_split){ .array = array };
    buf_init(&split->item, max_item);
    buf_init(&split->rest, SLURM_MAX_REST);
}

void slurm_split_done(struct slurm_split *split)
{
    buf_done(&split->item);
    buf_done(&split->rest);
}

struct str slurm_split_rest(const struct slurm_split *split)
{
    return split->rest.overflowed ? STR("") : buf_str(&split->rest);
}

/* How many bytes from here on change nothing about where we are. */
static size_t plain_run(const struct slurm_split *split, struct str text)
{
    static const bool outside[256] = {
        ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true, [','] = true
    };
    static const bool inside[256] = { ['"'] = true, ['\\'] = true };
    const bool *stops = split->in_string ? inside : outside;
    size_t length = 0;

    if (split->escaped)
        return 0;
    while (length < text.len && !stops[(unsigned char)text.at[length]])
        length++;
    return length;
}

static void step(struct slurm_split *split, char c)
{
    if (split->escaped) {
        split->escaped = false;
    } else if (split->in_string) {
        split->escaped = c == '\\';
        split->in_string = c != '"';
    } else if (c == '"') {
        split->in_string = true;
    } else if (c == '{' || c == '[') {
        split->depth++;
    } else if ((c == '}' || c == ']') && split->depth > 0) {
        split->depth--;
    }
}

/* Moves the front of the piece to where it belongs. */
static void keep(struct slurm_split *split, struct str *piece, size_t length)
{
    buf_add(split->in_array ? &split->item : &split->rest, piece->at, length);
    *piece = str_sub(*piece, length, piece->len);
}

/* Whether the rest ends with the array's name and a colon. */
static bool names_array(const struct slurm_split *split)
{
    struct str text = str_trim(buf_str(&split->rest));
    size_t length = strlen(split->array);

    if (text.len == 0 || text.at[text.len - 1] != ':')
        return false;
    text = str_trim(str_sub(text, 0, text.len - 1));
    if (text.len < length + 3 || text.at[text.len - 1] != '"')
        return false;

    const char *name = text.at + text.len - 1 - length;

    return memcmp(name, split->array, length) == 0 && name[-1] == '"' && name[-2] != '\\';
}

static int enter_array(struct slurm_split *split, struct err *err)
{
    if (split->found)
        return err_set(err, ERR_INVALID, "%s comes twice", split->array);
    split->found = split->in_array = true;
    return 0;
}

/* At a comma or the bracket that closes the array, which is still at the front of the piece. */
static int end_item(struct slurm_split *split, struct str *piece, struct str *ret_item,
                    struct err *err)
{
    bool last = piece->at[0] == ']';
    struct str item = str_trim(buf_str(&split->item));

    if (buf_check(&split->item, split->array, err) < 0)
        return -ERR_TOO_BIG;
    if (item.len == 0 && !(last && split->items == 0))
        return err_set(err, ERR_INVALID, "%s has an empty element", split->array);
    if (last) {
        split->in_array = false;
        step(split, ']');
        keep(split, piece, 1);
    } else {
        *piece = str_sub(*piece, 1, piece->len);
    }
    split->given = true;
    split->items++;
    *ret_item = item;
    return item.len > 0;
}

static bool at_end_of_item(const struct slurm_split *split, char c)
{
    return split->in_array && split->depth == ARRAY_DEPTH && !split->in_string &&
           (c == ',' || c == ']');
}

int slurm_split_next(struct slurm_split *split, struct str *piece, struct str *ret_item,
                     struct err *err)
{
    size_t at = 0;
    int result;

    if (split->given)
        buf_clear(&split->item);
    split->given = false;
    while ((at += plain_run(split, str_sub(*piece, at, piece->len))) < piece->len) {
        char c = piece->at[at];
        bool opens = c == '[' && split->depth == MEMBER_DEPTH && !split->in_string;

        if (at_end_of_item(split, c)) {
            keep(split, piece, at);
            at = 0;
            result = end_item(split, piece, ret_item, err);
            if (result != 0)
                return result;
            continue;
        }
        if (opens) {
            keep(split, piece, at);
            at = 0;
            opens = names_array(split);
        }
        step(split, c);
        at++;
        if (opens) {
            keep(split, piece, at);
            at = 0;
            result = enter_array(split, err);
            if (result < 0)
                return result;
        }
    }
    keep(split, piece, piece->len);
    return buf_check(&split->item, split->array, err);
}
