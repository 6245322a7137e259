/* drive_jwt.c - answers lines about base64 and tokens for tests/diff/test_jwt.py.
 *
 * Fields stand between tabs; texts in them are in hex, so that they may hold anything. */
#include "codec/base64.h"
#include "codec/jwt.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

enum { FIELD_MAX = 65536, FIELDS = 4 };

struct question {
    struct str fields[FIELDS];
    struct buf texts[FIELDS]; /* the same, out of hex */
};

static int hex_value(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

static void split(struct str line, struct question *question)
{
    for (size_t i = 0; i < FIELDS; i++) {
        struct str *field = &question->fields[i];

        buf_clear(&question->texts[i]);
        if (!str_next(&line, '\t', field))
            *field = STR("");
        for (size_t at = 0; at + 1 < field->len; at += 2)
            buf_add_char(&question->texts[i],
                         (char)(hex_value(field->at[at]) * 16 + hex_value(field->at[at + 1])));
    }
}

static int64_t number(const struct question *question, size_t i)
{
    int64_t value;

    if (str_to_i64(question->fields[i], INT64_MIN, INT64_MAX, &value, NULL) < 0)
        abort();
    return value;
}

static void print_hex(struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        printf("%02x", (unsigned char)bytes.at[i]);
    putchar('\n');
}

static void answer(int result, const struct buf *out)
{
    if (result < 0)
        printf("%s\n", err_class_name(-result));
    else
        print_hex(buf_str(out));
}

static void answer_claims(int result, const struct jwt_claims *claims)
{
    if (result < 0) {
        printf("%s\n", err_class_name(-result));
        return;
    }
    printf("%lld\t%lld\t", (long long)claims->iat, (long long)claims->exp);
    print_hex(str_of(claims->sun));
}

/* encode: options, bytes */
static void answer_encode(const struct question *question, struct buf *out)
{
    base64_encode(buf_str(&question->texts[1]), (unsigned)number(question, 0), out);
    answer(buf_check(out, "out", NULL), out);
}

/* decode: options, text */
static void answer_decode(const struct question *question, struct buf *out)
{
    answer(base64_decode(buf_str(&question->texts[1]), (unsigned)number(question, 0), out, NULL),
           out);
}

/* sign: key, iat, exp, user */
static void answer_sign(const struct question *question, struct buf *out)
{
    struct jwt_claims claims = { .iat = number(question, 1), .exp = number(question, 2) };
    struct str user = buf_str(&question->texts[3]);

    memcpy(claims.sun, user.at, user.len < JWT_USER_MAX ? user.len : JWT_USER_MAX);
    answer(jwt_sign(buf_str(&question->texts[0]), &claims, out, NULL), out);
}

/* verify: key, token, now, leeway */
static void answer_verify(const struct question *question, struct buf *out)
{
    struct jwt_claims claims;
    int result = jwt_verify(buf_str(&question->texts[0]), buf_str(&question->texts[1]),
                            number(question, 2), (uint32_t)number(question, 3), &claims, NULL);

    (void)out;
    answer_claims(result, &claims);
}

/* peek: token */
static void answer_peek(const struct question *question, struct buf *out)
{
    struct jwt_claims claims;
    int result = jwt_peek(buf_str(&question->texts[0]), &claims, NULL);

    (void)out;
    answer_claims(result, &claims);
}

static const struct mode {
    const char *name;
    void (*answer)(const struct question *question, struct buf *out);
} modes[] = {
    { "encode", answer_encode }, { "decode", answer_decode }, { "sign", answer_sign },
    { "verify", answer_verify }, { "peek", answer_peek },
};

static const struct mode *find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (str_is(str_of(name), modes[i].name))
            return &modes[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct mode *mode = find_mode(argc == 2 ? argv[1] : "");
    struct question question;
    struct buf out;
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    if (!mode)
        return 2;
    buf_init(&out, FIELD_MAX);
    for (size_t i = 0; i < FIELDS; i++)
        buf_init(&question.texts[i], FIELD_MAX);
    while ((length = getline(&line, &size, stdin)) > 0) {
        split((struct str){ line, (size_t)length - 1 }, &question);
        buf_clear(&out);
        mode->answer(&question, &out);
    }
    for (size_t i = 0; i < FIELDS; i++)
        buf_done(&question.texts[i]);
    buf_done(&out);
    free(line);
    return 0;
}
