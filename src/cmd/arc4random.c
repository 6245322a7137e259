/* arc4random.c - random bytes for libevent where glibc has no arc4random of its own.
 *
 * Built into releases alone: a library linked against glibc 2.36 asks for the arc4random of that
 * glibc (DNS queries get their numbers from it), and the program could not start on an older one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void *at, size_t len)
{
    char *next = at;

    while (len > 0) {
        ssize_t got = getrandom(next, len, 0);

        if (got < 0)
            abort(); /* a number that is not random is worse than none */
        next += got;
        len -= (size_t)got;
    }
}

uint32_t arc4random(void)
{
    uint32_t number;

    arc4random_buf(&number, sizeof(number));
    return number;
}
