/* mark.c - writes and checks the marks in `extra`.
 *
 * Holds: without a secret no mark is proof. */
#include "slurm/mark.h"

#include "codec/hmac.h"
#include "codec/timestamp.h"

#include <inttypes.h>

enum { MAX_SIGNED = 2 * SLURM_MAX_KEY };

/* Fields have no blanks, and the user comes last: two marks never sign the same text. */
static int write_signed(const struct slurm_owner *owner, struct str key, struct str user,
                        struct buf *out, struct err *err)
{
    buf_printf(out, "slinc job " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(key),
               STR_ARG(owner->cluster), STR_ARG(owner->release), STR_ARG(user));
    return buf_check(out, "the mark of a job", err);
}

int slurm_mark_write(const struct slurm_owner *owner, struct str key, struct str user,
                     struct buf *ret_extra, struct err *err)
{
    auto_buf struct buf text = { .max = MAX_SIGNED };
    char mac[HMAC_TEXT];
    size_t length = key.len + owner->cluster.len + owner->release.len + 3 + HMAC_TEXT;
    int result;

    if (length > SLURM_MAX_KEY)
        return err_set(err, ERR_TOO_BIG, "a key of %zu bytes, with its mark; %d fit", length,
                       SLURM_MAX_KEY);
    buf_printf(ret_extra, STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(key), STR_ARG(owner->cluster),
               STR_ARG(owner->release));
    if (owner->secret.len == 0 || user.len == 0)
        return 0;
    if ((result = write_signed(owner, key, user, &text, err)) < 0 ||
        (result = hmac_sha256(owner->secret, buf_str(&text), mac, err)) < 0)
        return result;
    buf_add_char(ret_extra, ' ');
    buf_add(ret_extra, mac, sizeof(mac));
    return 0;
}

/* ---- checking ---- */

struct claim {
    const struct slurm_owner *owner;
    struct str key, mac;
};

static bool is_signed(const struct claim *claim, struct str secret, struct str user)
{
    auto_buf struct buf text = { .max = MAX_SIGNED };
    bool is_right = false;

    return secret.len > 0 && user.len > 0 &&
           write_signed(claim->owner, claim->key, user, &text, NULL) == 0 &&
           hmac_check(secret, buf_str(&text), claim->mac, &is_right, NULL) == 0 && is_right;
}

static bool is_signed_for(const struct claim *claim, struct str user)
{
    return is_signed(claim, claim->owner->secret, user) ||
           is_signed(claim, claim->owner->former, user);
}

bool slurm_mark_read(const struct slurm_owner *owner, const struct slurm_job *job,
                     struct str *ret_key)
{
    struct claim claim = { .owner = owner };
    struct str rest = str_of(job->extra), cluster, release;
    auto_buf struct buf number = { .max = 32 };

    if (rest.len > SLURM_MAX_KEY || !str_cut(rest, ' ', &claim.key, &rest) ||
        !str_cut(rest, ' ', &cluster, &rest) || !str_cut(rest, ' ', &release, &claim.mac) ||
        claim.key.len == 0 || claim.mac.len != HMAC_TEXT || !str_eq(cluster, owner->cluster) ||
        !str_eq(release, owner->release))
        return false;
    buf_printf(&number, "%" PRId64, job->user_id);
    if (!is_signed_for(&claim, str_of(job->user)) && !is_signed_for(&claim, buf_str(&number)))
        return false;
    *ret_key = claim.key;
    return true;
}

/* ---- secrets ---- */

static int check_secret(struct str secret, struct err *err)
{
    if (secret.len >= SLURM_LEAST_SECRET)
        return 0;
    return err_set(err, ERR_INVALID, "a secret of %zu bytes; it wants %d or more", secret.len,
                   SLURM_LEAST_SECRET);
}

int slurm_owner_read(struct slurm_owner *owner, struct str text, struct err *err)
{
    struct str rest = str_trim(text), secret, former = STR(""), until;
    int64_t until_us = 0;
    int result;

    (void)str_next(&rest, '\n', &secret);
    secret = str_trim(secret);
    if ((result = check_secret(secret, err)) < 0)
        return result;
    if (str_next(&rest, '\n', &former)) {
        if (!str_cut(str_trim(former), ' ', &former, &until) ||
            timestamp_parse(str_trim(until), &until_us, NULL) < 0)
            return err_set(err, ERR_INVALID,
                           "the second line wants the former secret, a blank, and the time until "
                           "which it is believed");
        if ((result = check_secret(former, err)) < 0)
            return result;
    }
    owner->secret = secret;
    owner->former = former;
    owner->former_until_s = timestamp_to_seconds(until_us);
    return 0;
}
