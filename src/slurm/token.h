/* token.h - where the token of each request comes from.
 *
 * Three sources: a fixed text, a file that somebody else renews, or a key with which we sign our
 * own. A token never appears in an error text. */
#ifndef SLINC_SLURM_TOKEN_H
#define SLINC_SLURM_TOKEN_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "io/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct slurm_token;

/* Blanks around it are cut off, "SLURM_JWT=" in front too. Empty, or anything that does not fit
 * into a header: -ERR_INVALID. */
int slurm_token_new_static(struct str text, struct slurm_token **ret_token, struct err *err);

/* The file is read now (failing is an error) and followed from then on; see io/reload.h. */
int slurm_token_new_file(struct loop *loop, const char *path, struct slurm_token **ret_token,
                         struct err *err);

/* The same for a file that may come later: while it is missing, empty or holds no token,
 * slurm_token_get looks at it each time, fails, and says why. */
struct slurm_token *slurm_token_new_awaited(struct loop *loop, const char *path);

/* Signs HS256 tokens for this user with a copy of the key, each valid for `lifetime_s` seconds and
 * replaced when four fifths of that have passed. The clock is borrowed. */
int slurm_token_new_minted(const struct clock *clock, struct str key, const char *user,
                           int64_t lifetime_s, struct slurm_token **ret_token, struct err *err);

/* The same with a key from a file, which is read when the first token is wanted, may come until
 * then, and is read again after a refusal. */
int slurm_token_new_key_file(const struct clock *clock, const char *path, const char *user,
                             int64_t lifetime_s, struct slurm_token **ret_token, struct err *err);

void slurm_token_free(struct slurm_token *token); /* takes NULL; wipes what it held */

/* The token to send now; borrowed until the next call about this token, or the loop runs. */
int slurm_token_get(struct slurm_token *token, struct str *ret_text, struct err *err);

/* A token that is of no use after `lifetime_s` seconds, so that a request left behind somewhere
 * cannot take effect later. Only a minting source can; the others give what they have. */
int slurm_token_get_short(struct slurm_token *token, int64_t lifetime_s, struct str *ret_text,
                          struct err *err);
bool slurm_token_can_mint(const struct slurm_token *token);

/* After a refusal: looks at the source again. True when that gave another token than was given out
 * last. Whether it is another than the refused one, the mark tells. */
bool slurm_token_renew(struct slurm_token *token);
/* Of the token given out last: another text has another mark. */
uint64_t slurm_token_mark(const struct slurm_token *token);

/* How often a token from a file was refused while the file was the same as before: somebody renewed
 * it elsewhere, and the file has not followed yet. */
uint64_t slurm_token_outdated(const struct slurm_token *token);

/* Whose token it is, by the claims that slurmctld reads: sun, else username, else the one that its
 * AuthAltParameters name (userclaimfield; slurm/sight.h finds it), else as its owner says. "" when
 * nothing says it. Valid until the next call about this token. */
const char *slurm_token_user(struct slurm_token *token);
void slurm_token_set_user_claim(struct slurm_token *token, const char *claim);
void slurm_token_set_user(struct slurm_token *token, const char *user);

#endif
