/* test_sshkey.c - host keys are files that OpenSSH reads; ssh-keygen agrees where it is installed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/base64.h"
#include "codec/sshkey.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The public line that ssh-keygen reads out of the private key, without its comment. */
static bool keygen_reads(const char *private, char *ret_line, size_t size)
{
    char path[] = "/tmp/slinc-sshkey-XXXXXX", command[128];
    int fd = mkstemp(path);
    bool read;
    FILE *out;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, private, strlen(private)), strlen(private));
    assert_int_equal(close(fd), 0);
    (void)snprintf(command, sizeof(command), "ssh-keygen -y -f %s", path);
    out = popen(command, "r");
    read = out && fgets(ret_line, (int)size, out);
    assert_int_equal(pclose(out), 0);
    (void)unlink(path);
    return read;
}

static void check_lines(struct str private)
{
    struct str rest = private, line;
    size_t count = 0;

    while (str_next(&rest, '\n', &line)) {
        assert_true(line.len <= 64);
        count++;
    }
    assert_true(count > 4);
    assert_true(
        str_starts(private, STR("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA")));
    assert_true(str_ends(private, STR("\n-----END OPENSSH PRIVATE KEY-----\n")));
}

static void keys_are_written_as_openssh_reads_them(void **state)
{
    static const char *const names[] = { "ssh-rsa AAAAB3NzaC1yc2E",
                                         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
                                         "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY" };
    bool has_keygen = system("command -v ssh-keygen >/dev/null") == 0;

    for (int type = SSHKEY_RSA; type <= SSHKEY_ECDSA; type++) {
        auto_buf struct buf private = { .max = SSHKEY_MAX_TEXT },
                            public = { .max = SSHKEY_MAX_TEXT };
        char line[2048] = "";

        assert_int_equal(sshkey_make((enum sshkey_type)type, &private, &public, NULL), 0);
        check_lines(buf_str(&private));
        assert_true(str_starts(buf_str(&public), str_of(names[type])));
        if (!has_keygen)
            continue;
        assert_true(keygen_reads(buf_text(&private), line, sizeof(line)));
        assert_true(str_starts(str_of(line), str_trim(buf_str(&public))));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(keys_are_written_as_openssh_reads_them) };

    return cmocka_run_group_tests_name("sshkey", tests, NULL, NULL);
}
