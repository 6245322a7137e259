/* token.c - tokens: fixed, from a file, or signed by ourselves.
 *
 * Holds: what slurm_token_get gives is not empty and fits into a header; key and tokens are wiped
 * before their memory goes back. */
#include "slurm/token.h"

#include "base/mem.h"
#include "codec/jwt.h"
#include "io/reload.h"

#include <stdio.h>

enum token_source { TOKEN_STATIC, TOKEN_FILE, TOKEN_MINTED };

struct slurm_token {
    enum token_source source;
    char *text; /* the one given out last */
    size_t len;
    uint64_t mark;                     /* how many there have been */
    uint64_t outdated;                 /* how often it was refused, and its file was as before */
    char user[JWT_USER_MAX + 1];       /* as it says */
    char owner_says[JWT_USER_MAX + 1]; /* where it does not */
    char user_claim[64];               /* of slurmctld's configuration; "" */

    struct loop *loop;
    char *path;               /* of the token or the key; NULL when it was given as text */
    struct reload_file *file; /* NULL until it could be read */

    const struct clock *clock;
    char *key;
    size_t key_len;
    int64_t lifetime_s, minted_s; /* wall clock */
    bool is_short;                /* text is a short-lived one: not to be kept */
};

static struct str bare(struct str text)
{
    text = str_trim(text);
    if (str_starts(text, STR("SLURM_JWT=")))
        text = str_trim(str_sub(text, 10, text.len));
    return text;
}

static int check(struct str text, struct err *err)
{
    if (text.len == 0)
        return err_set(err, ERR_INVALID, "the token is empty");
    if (text.len > JWT_TOKEN_MAX)
        return err_set(err, ERR_TOO_BIG, "the token has more than %d bytes", JWT_TOKEN_MAX);
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= ' ' || text.at[i] > '~')
            return err_set(err, ERR_INVALID, "the token has a byte that no token has, at %zu", i);
    return 0;
}

static struct str kept(const struct slurm_token *token)
{
    return (struct str){ token->text, token->len };
}

static void keep(struct slurm_token *token, struct str text)
{
    char *copy;

    if (token->text && str_eq_secret(text, kept(token)))
        return;
    copy = mem_strndup(text.at, text.len);
    mem_free_secret(token->text, token->len);
    token->text = copy;
    token->len = text.len;
    token->mark++;
}

int slurm_token_new_static(struct str text, struct slurm_token **ret_token, struct err *err)
{
    struct slurm_token *token;
    int result = check(bare(text), err);

    if (result < 0)
        return result;
    token = mem_alloc(sizeof(*token));
    token->source = TOKEN_STATIC;
    keep(token, bare(text));
    *ret_token = token;
    return 0;
}

struct slurm_token *slurm_token_new_awaited(struct loop *loop, const char *path)
{
    struct slurm_token *token = mem_alloc(sizeof(*token));

    token->source = TOKEN_FILE;
    token->loop = loop;
    token->path = mem_strdup(path);
    return token;
}

int slurm_token_new_file(struct loop *loop, const char *path, struct slurm_token **ret_token,
                         struct err *err)
{
    struct slurm_token *token = slurm_token_new_awaited(loop, path);
    struct str text;
    int result = slurm_token_get(token, &text, err);

    if (result < 0) {
        slurm_token_free(token);
        return result;
    }
    *ret_token = token;
    return 0;
}

static int new_signing(const struct clock *clock, const char *user, int64_t lifetime_s,
                       struct slurm_token **ret_token, struct err *err)
{
    struct slurm_token *token;

    if (!user[0] || strlen(user) > JWT_USER_MAX)
        return err_set(err, ERR_INVALID, "no user name, or one of more than %d bytes",
                       JWT_USER_MAX);
    if (lifetime_s < 1 || lifetime_s > 365 * 86400)
        return err_set(err, ERR_INVALID, "a lifetime of %lld s", (long long)lifetime_s);
    token = mem_alloc(sizeof(*token));
    token->source = TOKEN_MINTED;
    token->clock = clock;
    token->lifetime_s = lifetime_s;
    snprintf(token->user, sizeof(token->user), "%s", user);
    *ret_token = token;
    return 0;
}

int slurm_token_new_minted(const struct clock *clock, struct str key, const char *user,
                           int64_t lifetime_s, struct slurm_token **ret_token, struct err *err)
{
    int result;

    if (key.len == 0 || key.len > JWT_KEY_MAX)
        return err_set(err, ERR_INVALID, "a key of %zu bytes", key.len);
    result = new_signing(clock, user, lifetime_s, ret_token, err);
    if (result < 0)
        return result;
    (*ret_token)->key = mem_strndup(key.at, key.len);
    (*ret_token)->key_len = key.len;
    return 0;
}

int slurm_token_new_key_file(const struct clock *clock, const char *path, const char *user,
                             int64_t lifetime_s, struct slurm_token **ret_token, struct err *err)
{
    int result = new_signing(clock, user, lifetime_s, ret_token, err);

    if (result == 0)
        (*ret_token)->path = mem_strdup(path);
    return result;
}

void slurm_token_free(struct slurm_token *token)
{
    if (!token)
        return;
    reload_file_free(token->file);
    mem_free(token->path);
    mem_free_secret(token->text, token->len);
    mem_free_secret(token->key, token->key_len);
    mem_free(token);
}

/* ---- the token to send ---- */

static int64_t wall_s(const struct slurm_token *token)
{
    return clock_wall_us(token->clock) / 1000000;
}

/* A key that cannot be read leaves the one that was read before. */
static int read_key(struct slurm_token *token, bool *ret_is_new, struct err *err)
{
    char *key;
    size_t len;
    int result = reload_read(token->path, JWT_KEY_MAX, &key, &len, err);

    *ret_is_new = false;
    if (result < 0)
        return err_wrap(err, "key file");
    *ret_is_new = !token->key || !str_eq_secret((struct str){ key, len },
                                                (struct str){ token->key, token->key_len });
    mem_free_secret(token->key, token->key_len);
    token->key = key;
    token->key_len = len;
    return 0;
}

static int mint(struct slurm_token *token, int64_t lifetime_s, struct err *err)
{
    struct jwt_claims claims = { .iat = wall_s(token), .exp = wall_s(token) + lifetime_s };
    struct buf text;
    bool is_new;
    int result;

    if (!token->key && (result = read_key(token, &is_new, err)) < 0)
        return result;
    snprintf(claims.sun, sizeof(claims.sun), "%s", token->user);
    buf_init(&text, JWT_TOKEN_MAX);
    result = jwt_sign((struct str){ token->key, token->key_len }, &claims, &text, err);
    if (result == 0) {
        keep(token, buf_str(&text));
        token->minted_s = claims.iat;
    }
    mem_free_secret(text.data, text.len);
    return result;
}

/* Four fifths gone, or a clock that was set back to before it began. */
static bool is_old(const struct slurm_token *token)
{
    int64_t age = wall_s(token) - token->minted_s;

    return !token->text || token->is_short || age < 0 || age * 5 >= token->lifetime_s * 4;
}

static int get_minted(struct slurm_token *token, struct err *err)
{
    if (!is_old(token))
        return 0;
    token->is_short = false;
    return mint(token, token->lifetime_s, err);
}

static int get_file(struct slurm_token *token, struct err *err)
{
    struct reload_options options = { .path = token->path, .max = JWT_TOKEN_MAX + 64 };
    int result = 0;

    if (!token->file)
        result = reload_file_new(token->loop, &options, &token->file, err);
    else if (!token->text) /* what was there is no token: another may have come */
        reload_file_look(token->file);
    if (result == 0)
        result = check(bare(reload_file_content(token->file)), err);
    if (result < 0) {
        err_wrap(err, "token file");
        return result;
    }
    keep(token, bare(reload_file_content(token->file)));
    return 0;
}

int slurm_token_get(struct slurm_token *token, struct str *ret_text, struct err *err)
{
    int result = 0;

    if (token->source == TOKEN_FILE)
        result = get_file(token, err);
    else if (token->source == TOKEN_MINTED)
        result = get_minted(token, err);
    if (result == 0)
        *ret_text = kept(token);
    return result;
}

int slurm_token_get_short(struct slurm_token *token, int64_t lifetime_s, struct str *ret_text,
                          struct err *err)
{
    int result;

    if (token->source != TOKEN_MINTED || lifetime_s >= token->lifetime_s)
        return slurm_token_get(token, ret_text, err);
    result = mint(token, lifetime_s, err);
    if (result < 0)
        return result;
    token->is_short = true;
    *ret_text = kept(token);
    return 0;
}

bool slurm_token_can_mint(const struct slurm_token *token)
{
    return token->source == TOKEN_MINTED;
}

static int look_again(struct slurm_token *token)
{
    struct str text;

    uint64_t before = token->mark;
    bool is_new = false;
    int result;

    if (token->source == TOKEN_MINTED) {
        token->is_short = false;
        if (token->path && (read_key(token, &is_new, NULL) < 0 || !is_new))
            token->outdated++;
        return mint(token, token->lifetime_s, NULL);
    }
    reload_file_look(token->file);
    result = slurm_token_get(token, &text, NULL);
    token->outdated += token->mark == before;
    return result;
}

bool slurm_token_renew(struct slurm_token *token)
{
    uint64_t before = token->mark;

    if (token->source == TOKEN_STATIC || !token->text)
        return false;
    return look_again(token) == 0 && token->mark != before;
}

uint64_t slurm_token_mark(const struct slurm_token *token)
{
    return token->mark;
}

uint64_t slurm_token_outdated(const struct slurm_token *token)
{
    return token->outdated;
}

void slurm_token_set_user_claim(struct slurm_token *token, const char *claim)
{
    (void)snprintf(token->user_claim, sizeof(token->user_claim), "%s", claim);
}

void slurm_token_set_user(struct slurm_token *token, const char *user)
{
    (void)snprintf(token->owner_says, sizeof(token->owner_says), "%s", user);
}

const char *slurm_token_user(struct slurm_token *token)
{
    const char *const claims[] = { "sun", "username", token->user_claim };
    struct str text;

    if (token->source == TOKEN_MINTED)
        return token->user;
    if (slurm_token_get(token, &text, NULL) < 0)
        return token->owner_says;
    token->user[0] = '\0';
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]) && !token->user[0]; i++)
        if (claims[i][0])
            jwt_peek_text(text, claims[i], token->user);
    return token->user[0] ? token->user : token->owner_says;
}
