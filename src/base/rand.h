/* rand.h - numbers that look random and repeat from a seed; and, apart from them, secret bytes.
 *
 * The generator is for jitter, shuffles and simulations. Whoever sees its output can foretell the
 * rest, so keys and tokens come from rand_secret_bytes and nowhere else. */
#ifndef SLINC_BASE_RAND_H
#define SLINC_BASE_RAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rand {
    uint64_t state[4];
};

void rand_init(struct rand *rand, uint64_t seed);
void rand_init_real(struct rand *rand); /* a seed from the kernel */

uint64_t rand_u64(struct rand *rand);
uint64_t rand_below(struct rand *rand, uint64_t bound);                 /* 0 when the bound is 0 */
int64_t rand_range(struct rand *rand, int64_t lowest, int64_t highest); /* both included */
bool rand_chance(struct rand *rand, unsigned permille);

/* value, plus or minus at most `percent` of it (100 at most). For values that are not negative. */
int64_t rand_jitter(struct rand *rand, int64_t value, unsigned percent);

/* From the kernel's generator, fit for keys. Aborts rather than return without bytes. */
void rand_secret_bytes(void *ret_bytes, size_t length);

#endif
