/* tres.c - reads amounts of resources as Slurm writes them.
 *
 * Holds: whatever the text, at most TRES_MAX_GRES kinds come out, no count is negative and none is
 * above a bound. */
#include "exporter/tres.h"

enum { MAX_DIGITS = 15 };

#define MAX_COUNT INT64_C(1000000000)
#define MAX_SUM   INT64_C(1000000000000000)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "8", "1.5G": a number with the unit that Slurm appends, powers of 1024. unit: that of a number
 * without one. */
static double read_amount(struct str text, double unit)
{
    static const struct {
        char letter;
        double factor;
    } units[] = { { 'K', 1024.0 },
                  { 'M', 1048576.0 },
                  { 'G', 1073741824.0 },
                  { 'T', 1099511627776.0 },
                  { 'P', 1125899906842624.0 } };
    double value = 0, place = 0;
    size_t i = 0;

    for (; i < text.len && i < MAX_DIGITS && (is_digit(text.at[i]) || text.at[i] == '.'); i++) {
        if (text.at[i] == '.') {
            place = 1;
            continue;
        }
        value = value * 10 + (text.at[i] - '0');
        place *= 10;
    }
    if (place > 1)
        value /= place;
    for (size_t k = 0; i < text.len && k < sizeof(units) / sizeof(units[0]); k++)
        if (text.at[i] == units[k].letter)
            return value * units[k].factor;
    return value * unit;
}

static int64_t read_count(struct str text)
{
    double amount = read_amount(text, 1);

    return amount > (double)MAX_COUNT ? MAX_COUNT : (int64_t)amount;
}

static int64_t at_most_sum(int64_t count)
{
    return count > MAX_SUM ? MAX_SUM : count;
}

void tres_add(struct tres *tres, struct str name, int64_t count)
{
    for (unsigned i = 0; i < tres->gres_count; i++) {
        if (str_eq(tres->gres[i].name, name)) {
            tres->gres[i].count = at_most_sum(tres->gres[i].count + at_most_sum(count));
            return;
        }
    }
    if (name.len > 0 && tres->gres_count < TRES_MAX_GRES)
        tres->gres[tres->gres_count++] = (struct tres_gres){ name, at_most_sum(count) };
}

/* Slurm counts what has a type under the name without one as well. */
static void take_typed_from_untyped(struct tres *tres)
{
    for (unsigned i = 0; i < tres->gres_count; i++) {
        struct str name, type;

        if (!str_cut(tres->gres[i].name, ':', &name, &type))
            continue;
        for (unsigned k = 0; k < tres->gres_count; k++)
            if (str_eq(tres->gres[k].name, name))
                tres->gres[k].count -= tres->gres[i].count;
    }
    for (unsigned i = 0; i < tres->gres_count; i++)
        if (tres->gres[i].count < 0)
            tres->gres[i].count = 0;
}

void tres_read(struct str text, struct tres *ret_tres)
{
    struct str rest = text, part, name, value;

    *ret_tres = (struct tres){ .cpus = 0 };
    while (rest.len > 0 && str_next(&rest, ',', &part)) {
        if (!str_cut(part, '=', &name, &value))
            continue;
        if (str_is(name, "cpu"))
            ret_tres->cpus = read_count(value);
        else if (str_is(name, "node"))
            ret_tres->nodes = read_count(value);
        else if (str_is(name, "billing"))
            ret_tres->billing = read_count(value);
        else if (str_is(name, "mem"))
            ret_tres->memory_bytes = read_amount(value, 1048576.0);
        else if (str_starts(name, STR("gres/")))
            tres_add(ret_tres, str_sub(name, strlen("gres/"), name.len), read_count(value));
    }
    take_typed_from_untyped(ret_tres);
}

/* The next item; a comma inside parentheses belongs to it: "gpu:a:2(IDX:0,3),shard:1". */
static struct str next_item(struct str *rest)
{
    unsigned depth = 0;
    size_t end = 0;
    struct str item;

    for (; end < rest->len && (depth > 0 || rest->at[end] != ','); end++) {
        depth += rest->at[end] == '(';
        depth -= depth > 0 && rest->at[end] == ')';
    }
    item = str_sub(*rest, 0, end);
    *rest = str_sub(*rest, end + 1, rest->len);
    return item;
}

/* "gpu:(null):2(IDX:0-1)" is what Slurm writes where there is no type; what stands in parentheses
 * behind the count says which ones. */
static struct str cut_details(struct str item, struct str *ret_count)
{
    struct str name, detail;

    *ret_count = STR("");
    if (!str_cut(item, '(', &name, &detail))
        return item;
    if (!str_starts(detail, STR("null):")))
        return name;
    *ret_count = str_sub(detail, strlen("null):"), detail.len);
    return str_sub(name, 0, name.len - (name.len > 0));
}

void tres_add_gres(struct tres *tres, struct str text, int64_t times)
{
    struct str rest = text;

    times = times < 0 ? 0 : times > MAX_COUNT ? MAX_COUNT : times;
    while (rest.len > 0) {
        struct str number, item = cut_details(next_item(&rest), &number);
        int64_t count = number.len > 0 ? read_count(number) : 1;
        size_t colon;

        if (str_starts(item, STR("gres/")) || str_starts(item, STR("gres:")))
            item = str_sub(item, strlen("gres/"), item.len);
        for (colon = item.len; colon > 0 && item.at[colon - 1] != ':' && item.at[colon - 1] != '=';)
            colon--;
        if (colon > 0 && colon < item.len && is_digit(item.at[colon])) {
            count = read_count(str_sub(item, colon, item.len));
            item = str_sub(item, 0, colon - 1);
        }
        tres_add(tres, item, count * times);
    }
}
