/* test_pod_sync.c - a refused token changes our own pod, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cmd/pod_sync.h"
#include "fake_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECOND_US = 1000000 };

#define POD "/api/v1/namespaces/home/pods/bridge-1"

struct rig {
    struct clock clock;
    struct loop *loop;
    struct fake_transport *fake;
    struct kube_client *client;
    struct slurm_token *token;
    struct pod_sync *sync;
    char path[32];
};

static void write_token(const struct rig *rig, const char *text)
{
    FILE *file = fopen(rig->path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
    static struct rig rig;
    int fd;

    snprintf(rig.path, sizeof(rig.path), "/tmp/slinc-token-XXXXXX");
    fd = mkstemp(rig.path);
    assert_true(fd >= 0);
    close(fd);
    write_token(&rig, "first");
    clock_init_virtual(&rig.clock, INT64_C(1700000000000000));
    rig.loop = loop_new_virtual(&rig.clock);
    rig.fake = fake_transport_new(rig.loop);
    rig.client = kube_client_new(rig.loop, fake_http(rig.fake));
    assert_int_equal(slurm_token_new_file(rig.loop, rig.path, &rig.token, NULL), 0);
    rig.sync = pod_sync_new(rig.client, rig.token, "home", "bridge-1");
    fake_answer(
        rig.fake, "PATCH", POD,
        (struct fake_answer){ .status = 200, .body = "{\"kind\":\"Pod\"}", .times = FAKE_ALWAYS });
    *state = &rig;
    return 0;
}

static int end(void **state)
{
    struct rig *rig = *state;

    pod_sync_free(rig->sync);
    slurm_token_free(rig->token);
    kube_client_free(rig->client);
    fake_transport_free(rig->fake);
    loop_free(rig->loop);
    unlink(rig->path);
    return 0;
}

/* Slurm refuses the token twice a second. */
static void refuse_for(struct rig *rig, int seconds)
{
    for (int i = 0; i < 2 * seconds; i++) {
        (void)slurm_token_renew(rig->token);
        fake_run_for(rig->fake, SECOND_US / 2);
    }
}

static void a_token_that_is_taken_changes_nothing(void **state)
{
    struct rig *rig = *state;

    fake_run_for(rig->fake, 300 * (int64_t)SECOND_US);
    assert_int_equal(fake_sent_count(rig->fake), 0);
}

static void a_refused_token_changes_our_pod_and_then_ever_more_seldom(void **state)
{
    struct rig *rig = *state;

    refuse_for(rig, 3);
    assert_int_equal(fake_sent_count(rig->fake), 1);
    assert_string_equal(fake_last_sent(rig->fake)->path, POD);
    assert_non_null(strstr(fake_last_sent(rig->fake)->body, POD_SYNC_ANNOTATION));
    refuse_for(rig, 57);
    assert_in_range(fake_sent_count(rig->fake), 4, 5); /* after 4, 8, 16 and 32 s more */
    refuse_for(rig, 3600);
    assert_in_range(fake_sent_count(rig->fake), 14, 20); /* every five minutes */
}

static void the_next_story_begins_anew(void **state)
{
    struct rig *rig = *state;

    refuse_for(rig, 600);
    write_token(rig, "second");
    assert_true(slurm_token_renew(rig->token));
    fake_run_for(rig->fake, 300 * (int64_t)SECOND_US);

    unsigned before = (unsigned)fake_sent_count(rig->fake);

    refuse_for(rig, 3);
    assert_int_equal(fake_sent_count(rig->fake), before + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_that_is_taken_changes_nothing),
        TEST(a_refused_token_changes_our_pod_and_then_ever_more_seldom),
        TEST(the_next_story_begins_anew),
    };

    return cmocka_run_group_tests_name("pod_sync", tests, NULL, NULL);
}
