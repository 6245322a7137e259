/* jwt.c - signs and checks the tokens that Slurm's REST API asks for.
 *
 * Holds  nothing in a token is looked at further than its header before the signature is right;
 *        signatures are compared in constant time; ours are wiped from memory after use. */
#include "codec/jwt.h"

#include "codec/base64.h"
#include "codec/hmac.h"
#include "codec/json.h"

#include <openssl/crypto.h>

enum { BASE64_JWT = BASE64_URL | BASE64_UNPADDED };

static const char header_json[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";

struct parts {
    struct str header, payload, signature; /* each in base64 */
    struct str signed_text;                /* header.payload */
};

static int split_token(struct str token, struct parts *ret_parts, struct err *err)
{
    struct parts parts;
    struct str rest;

    if (token.len > JWT_TOKEN_MAX)
        return err_set(err, ERR_TOO_BIG, "the token is longer than %d bytes", JWT_TOKEN_MAX);
    if (!str_cut(token, '.', &parts.header, &rest) ||
        !str_cut(rest, '.', &parts.payload, &parts.signature))
        return err_set(err, ERR_INVALID, "the token does not have three parts");
    parts.signed_text = str_sub(token, 0, parts.header.len + 1 + parts.payload.len);
    *ret_parts = parts;
    return 0;
}

static int check_key(struct str key, struct err *err)
{
    if (key.len == 0)
        return err_set(err, ERR_INVALID, "the signing key is empty");
    if (key.len > JWT_KEY_MAX)
        return err_set(err, ERR_TOO_BIG, "the signing key is longer than %d bytes", JWT_KEY_MAX);
    return 0;
}

static int check_claims(const struct jwt_claims *claims, struct err *err)
{
    size_t length = strnlen(claims->sun, sizeof(claims->sun));

    if (length == 0 || length > JWT_USER_MAX)
        return err_set(err, ERR_INVALID, "a token needs a user name of 1 to %d bytes",
                       JWT_USER_MAX);
    if (!str_is_utf8((struct str){ claims->sun, length }))
        return err_set(err, ERR_INVALID, "the user name for a token is not UTF-8");
    if (claims->iat < 0 || claims->exp <= claims->iat || claims->exp == JWT_NEVER)
        return err_set(err, ERR_INVALID, "a token must end, and after it begins");
    return 0;
}

/* header.payload, in base64 */
static void write_unsigned(const struct jwt_claims *claims, struct buf *text)
{
    auto_buf struct buf payload = { 0 };

    buf_init(&payload, JWT_TOKEN_MAX);
    buf_printf(&payload, "{\"exp\":%lld,\"iat\":%lld,\"sun\":", (long long)claims->exp,
               (long long)claims->iat);
    json_escape(&payload, str_of(claims->sun));
    buf_add_char(&payload, '}');

    base64_encode(str_of(header_json), BASE64_JWT, text);
    buf_add_char(text, '.');
    base64_encode(buf_str(&payload), BASE64_JWT, text);
}

int jwt_sign(struct str key, const struct jwt_claims *claims, struct buf *ret_token,
             struct err *err)
{
    char signature[HMAC_TEXT];
    auto_buf struct buf text = { 0 };
    size_t before = ret_token->len;

    buf_init(&text, JWT_TOKEN_MAX); /* the longest user name, escaped, takes a third of it */
    int result = check_key(key, err);

    if (result == 0)
        result = check_claims(claims, err);
    if (result < 0)
        return result;
    write_unsigned(claims, &text);
    result = hmac_sha256(key, buf_str(&text), signature, err);
    if (result < 0)
        return result;
    buf_add_str(ret_token, buf_str(&text));
    buf_add_char(ret_token, '.');
    buf_add(ret_token, signature, sizeof(signature));
    OPENSSL_cleanse(signature, sizeof(signature));
    result = buf_check(ret_token, "the token", err);
    if (result < 0)
        buf_truncate(ret_token, before);
    return result;
}

/* One part of a token, which must be an object. Errors of the codecs below might quote it, so they
 * are dropped. */
static int parse_part(struct str part, const char *name, struct json_doc **ret_doc, struct err *err)
{
    auto_buf struct buf json = { 0 };
    auto_json_doc struct json_doc *doc = NULL;

    buf_init(&json, JWT_TOKEN_MAX);
    if (base64_decode(part, BASE64_JWT, &json, NULL) < 0 ||
        json_parse(buf_str(&json), JWT_TOKEN_MAX, &doc, NULL) < 0 ||
        !json_is_object(json_root(doc)))
        return err_set(err, ERR_INVALID, "the %s of the token cannot be read", name);
    *ret_doc = doc;
    doc = NULL;
    return 0;
}

/* "crit" lists extensions that a reader must know; we know none. */
static int check_header(struct str header, struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    int result = parse_part(header, "header", &doc, err);

    if (result < 0)
        return result;
    if (!str_is(json_str(json_get(json_root(doc), "alg")), "HS256"))
        return err_set(err, ERR_DENIED, "the token is not signed with HS256");
    if (json_get(json_root(doc), "crit"))
        return err_set(err, ERR_DENIED, "the token asks for unknown extensions");
    return 0;
}

static int check_signature(struct str key, const struct parts *parts, struct err *err)
{
    bool is_right;
    int result = hmac_check(key, parts->signed_text, parts->signature, &is_right, err);

    if (result < 0)
        return result;
    return is_right ? 0 : err_set(err, ERR_DENIED, "the signature of the token is wrong");
}

/* A time of the claims, whose fraction of a second is cut off. Absent is the fallback. */
static int read_time(const struct json *claims, const char *name, int64_t fallback,
                     int64_t *ret_time, struct err *err)
{
    const double limit = 9007199254740992; /* 2^53 */
    const struct json *value = json_get(claims, name);
    double number = json_f64_or(value, -1);

    if (!json_exists(value))
        *ret_time = fallback;
    else if (json_i64_or(value, -1) >= 0)
        *ret_time = json_i64_or(value, -1);
    else if (number >= 0 && number < limit)
        *ret_time = (int64_t)number;
    else
        return err_set(err, ERR_INVALID, "claim %s of the token is not a time", name);
    return 0;
}

/* A name with a NUL inside would be another name to C. */
static int read_user(const struct json *claims, struct jwt_claims *result, struct err *err)
{
    const struct json *value = json_get(claims, "sun");
    struct str user = json_str(value);

    if (json_exists(value) && (!json_is_string(value) || user.len == 0 || user.len > JWT_USER_MAX ||
                               memchr(user.at, '\0', user.len)))
        return err_set(err, ERR_INVALID, "claim sun of the token is not a user name");
    memcpy(result->sun, user.at, user.len);
    result->sun[user.len] = '\0';
    return 0;
}

static int read_claims(struct str payload, struct jwt_claims *ret_claims, int64_t *ret_not_before,
                       struct err *err)
{
    auto_json_doc struct json_doc *doc = NULL;
    struct jwt_claims claims = { 0 };
    int64_t not_before = 0;
    int result = parse_part(payload, "payload", &doc, err);

    if (result == 0)
        result = read_time(json_root(doc), "iat", 0, &claims.iat, err);
    if (result == 0)
        result = read_time(json_root(doc), "exp", JWT_NEVER, &claims.exp, err);
    if (result == 0)
        result = read_time(json_root(doc), "nbf", 0, &not_before, err);
    if (result == 0)
        result = read_user(json_root(doc), &claims, err);
    if (result < 0)
        return result;
    *ret_claims = claims;
    *ret_not_before = not_before;
    return 0;
}

static int check_times(const struct jwt_claims *claims, int64_t not_before, int64_t now,
                       uint32_t leeway, struct err *err)
{
    if (claims->exp == JWT_NEVER || claims->sun[0] == '\0')
        return err_set(err, ERR_DENIED, "the token names no %s",
                       claims->exp == JWT_NEVER ? "end" : "user");
    if (claims->exp <= now - leeway)
        return err_set(err, ERR_DENIED, "the token has expired");
    if (not_before > now + leeway)
        return err_set(err, ERR_DENIED, "the token is not valid yet");
    return 0;
}

int jwt_verify(struct str key, struct str token, int64_t now, uint32_t leeway,
               struct jwt_claims *ret_claims, struct err *err)
{
    struct parts parts;
    struct jwt_claims claims;
    int64_t not_before = 0;
    int result = check_key(key, err);

    if (result == 0)
        result = split_token(token, &parts, err);
    if (result == 0)
        result = check_header(parts.header, err);
    if (result == 0)
        result = check_signature(key, &parts, err);
    if (result == 0)
        result = read_claims(parts.payload, &claims, &not_before, err);
    if (result == 0)
        result = check_times(&claims, not_before, now, leeway, err);
    if (result == 0)
        *ret_claims = claims;
    return result;
}

int jwt_peek(struct str token, struct jwt_claims *ret_claims, struct err *err)
{
    struct parts parts;
    int64_t not_before;
    int result = split_token(token, &parts, err);

    if (result == 0)
        result = read_claims(parts.payload, ret_claims, &not_before, err);
    return result;
}

void jwt_peek_text(struct str token, const char *claim, char ret_text[JWT_USER_MAX + 1])
{
    auto_json_doc struct json_doc *doc = NULL;
    struct parts parts;
    struct str text;

    ret_text[0] = '\0';
    if (split_token(token, &parts, NULL) < 0 ||
        parse_part(parts.payload, "payload", &doc, NULL) < 0)
        return;
    text = json_str(json_get(json_root(doc), claim));
    if (text.len > JWT_USER_MAX || memchr(text.at, '\0', text.len))
        return;
    memcpy(ret_text, text.at, text.len);
    ret_text[text.len] = '\0';
}

bool jwt_has_audience(struct str token, const char *audience)
{
    auto_json_doc struct json_doc *doc = NULL;
    const struct json *said, *item;
    struct json_iter iter;
    struct parts parts;

    if (split_token(token, &parts, NULL) < 0 ||
        parse_part(parts.payload, "payload", &doc, NULL) < 0)
        return false;
    said = json_get(json_root(doc), "aud");
    if (str_is(json_str(said), audience))
        return true;
    iter = json_iter(said);
    while (json_next_item(&iter, &item))
        if (str_is(json_str(item), audience))
            return true;
    return false;
}
