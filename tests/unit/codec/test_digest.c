/* test_digest.c - SHA-256 as the annotations of the Slinky operator hold it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/digest.h"

static void digests_are_lower_case_hex(void **state)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    };
    char hex[DIGEST_HEX];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        digest_sha256(str_of(cases[i].text), hex);
        assert_string_equal(hex, cases[i].hex);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(digests_are_lower_case_hex) };

    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
