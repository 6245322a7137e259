/* rand.c - xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64.
 *
 * Holds: the same seed gives the same numbers on every machine; the state is never all zero, from
 * which the generator would not come back. */
#include "base/rand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* Four outputs of splitmix64 in a row are never all zero: it is a bijection of a counter. */
static uint64_t splitmix64(uint64_t *counter)
{
    uint64_t z = *counter += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

void rand_init(struct rand *rand, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rand->state[i] = splitmix64(&seed);
}

void rand_init_real(struct rand *rand)
{
    uint64_t seed;

    rand_secret_bytes(&seed, sizeof(seed));
    rand_init(rand, seed);
}

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t rand_u64(struct rand *rand)
{
    uint64_t *s = rand->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t rand_below(struct rand *rand, uint64_t bound)
{
    if (bound == 0)
        return 0;

    /* 2^64 mod bound numbers at the low end would come up once too often: draw again for those. */
    uint64_t surplus = (0 - bound) % bound;
    uint64_t drawn = rand_u64(rand);

    while (drawn < surplus)
        drawn = rand_u64(rand);
    return drawn % bound;
}

int64_t rand_range(struct rand *rand, int64_t lowest, int64_t highest)
{
    if (highest <= lowest)
        return lowest;

    uint64_t span = (uint64_t)highest - (uint64_t)lowest + 1; /* 0 for the whole range */
    uint64_t drawn = span == 0 ? rand_u64(rand) : rand_below(rand, span);

    return (int64_t)((uint64_t)lowest + drawn);
}

bool rand_chance(struct rand *rand, unsigned permille)
{
    return rand_below(rand, 1000) < permille;
}

int64_t rand_jitter(struct rand *rand, int64_t value, unsigned percent)
{
    if (value <= 0)
        return value;
    if (percent > 100)
        percent = 100;

    /* Split, so that large values do not overflow. */
    int64_t most = value / 100 * percent + value % 100 * percent / 100;
    int64_t room = INT64_MAX - value;

    return value + rand_range(rand, -most, most < room ? most : room);
}

void rand_secret_bytes(void *ret_bytes, size_t length)
{
    char *at = ret_bytes;

    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            perror("getrandom");
            abort();
        }
        at += got;
        length -= (size_t)got;
    }
}
