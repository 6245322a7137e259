/* test_reason.c - the table of Slurm's reasons: complete, reachable, and short enough for a cell.
 */
#include "slurm/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MAX_CELL = 48 };

/* All that a job can have while it waits, as slurmctld 26.05.5 writes it. */
static const struct {
    enum slurm_reason_class class;
    const char *words;
} known[] = {
    { SLURM_REASON_PRIORITY, "None Priority SchedDefer" },
    { SLURM_REASON_RESOURCES, "Resources ReqNodeNotAvail NodeDown" },
    { SLURM_REASON_DEPENDENCY, "Dependency" },
    { SLURM_REASON_TIME, "BeginTime" },
    { SLURM_REASON_RESERVATION, "Reservation" },
    { SLURM_REASON_LICENSE, "Licenses" },
    { SLURM_REASON_STARTING,
      "Prolog Cleaning BurstBufferResources BurstBufferStageIn BurstBufferOperation "
      "NvidiaImexChannels FedJobLock MpiPortsBusy" },
    { SLURM_REASON_HOLD, "JobHeldAdmin JobHeldUser JobHoldMaxRequeue JobLaunchFailure" },
    { SLURM_REASON_NEVER,
      "PartitionNodeLimit PartitionTimeLimit PartitionDown PartitionInactive PartitionConfig "
      "BadConstraints Constraints InvalidAccount InvalidQOS QOSNotAllowed AccountNotAllowed "
      "DependencyNeverSatisfied DeadLine MaxMemPerLimit ReservationDeleted ReservationInvalid" },
    { SLURM_REASON_LIMIT,
      "AssociationJobLimit AssociationResourceLimit AssociationTimeLimit QOSUsageThreshold "
      "QOSJobLimit QOSResourceLimit QOSTimeLimit JobArrayTaskLimit AccountingPolicy "
      "MaxPoweredUpNodes "
      "QOSGrpCpuLimit QOSMaxJobsPerUserLimit QOSMinCpuNotSatisfied QOSMinGRES "
      "QOSGrpLicenseRunMinutes QOSMaxMemoryMinutesPerJob AssocGrpCpuLimit AssocMaxJobsLimit "
      "AssocMaxMemPerNode AssocGrpGRESMinutes MaxGRESPerAccount MaxCpuRunMinsPerUser" },
};

static void every_reason_of_slurm_has_the_class_of_its_family(void **state)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct str rest = str_of(known[i].words), word;

        while (str_next(&rest, ' ', &word)) {
            char text[64] = "";
            struct slurm_reason reason;

            memcpy(text, word.at, word.len);
            reason = slurm_reason_of(text, false);
            if (reason.class != known[i].class || reason.text == text)
                fail_msg("%s is of class %s", text, slurm_reason_class_name(reason.class));
        }
    }
    (void)state;
}

static void every_row_has_its_texts_and_no_row_hides_another(void **state)
{
    const struct slurm_reason *row;

    for (size_t i = 0; (row = slurm_reason_row(i)); i++) {
        char word[64] = "";
        struct slurm_reason found;

        memcpy(word, row->word, strcspn(row->word, "*"));
        found = slurm_reason_of(word, false);
        if (strcmp(found.word, row->word) != 0)
            fail_msg("%s is hidden by %s", row->word, found.word);
        assert_in_range(strlen(row->text), 1, MAX_CELL);
        assert_true(row->help[0] && row->actor);
        assert_int_equal(row->class == SLURM_REASON_NEVER, strncmp(row->text, "never: ", 7) == 0);
        if (row->class == SLURM_REASON_NEVER || row->class == SLURM_REASON_HOLD)
            assert_true(row->actor[0]);
    }
    (void)state;
}

static void of_a_reason_that_no_row_knows_slurms_word_is_told(void **state)
{
    static const char *const words[] = { "SomethingNew", "resources", "Resource", "X*" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct slurm_reason reason = slurm_reason_of(words[i], false);

        assert_string_equal(reason.text, words[i]);
        assert_string_equal(reason.help, "");
        assert_string_equal(reason.actor, "");
        assert_int_equal(reason.class, SLURM_REASON_RESOURCES);
    }
    assert_string_equal(slurm_reason_of("", false).word, "None");
    (void)state;
}

static void a_held_job_is_held_whatever_its_reason_and_by_whom_if_it_says_so(void **state)
{
    static const char *const words[] = { "", "Priority", "PartitionConfig", "SomethingNew" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_string_equal(slurm_reason_of(words[i], true).word, "JobHeld*");
    assert_string_equal(slurm_reason_of("JobHeldAdmin", true).actor, "an administrator");
    assert_string_equal(slurm_reason_of("JobHoldMaxRequeue", true).word, "JobHoldMaxRequeue");
    (void)state;
}

static void the_reason_of_a_condition_is_a_word_that_says_that_the_job_waits(void **state)
{
    static const char *const cases[][2] = { { "Resources", "Resources" },
                                            { "QOSMaxJobsPerUserLimit", "QOSMaxJobsPerUserLimit" },
                                            { "Nodes required, DOWN", "NodesrequiredDOWN" },
                                            { "None", "Pending" },
                                            { "", "Pending" },
                                            { "(!)", "Pending" },
                                            { "7", "Pending" } };
    auto_arena struct arena arena;

    arena_init(&arena, 4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(slurm_reason_condition(cases[i][0], &arena), cases[i][1]);
    (void)state;
}

static void the_reference_has_every_row(void **state)
{
    const struct slurm_reason *row;
    auto_buf struct buf out = { .max = 1 << 20 };

    slurm_reason_reference(&out);
    for (size_t i = 0; (row = slurm_reason_row(i)); i++)
        assert_non_null(strstr(buf_text(&out), row->text));
    assert_null(strpbrk(buf_text(&out), "{}"));
    assert_non_null(strstr(buf_text(&out), "\n| `time` | `BeginTime` | begins later | nobody | "
                                           "it starts after its `starttime` |\n"));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_of_slurm_has_the_class_of_its_family),
        cmocka_unit_test(every_row_has_its_texts_and_no_row_hides_another),
        cmocka_unit_test(of_a_reason_that_no_row_knows_slurms_word_is_told),
        cmocka_unit_test(a_held_job_is_held_whatever_its_reason_and_by_whom_if_it_says_so),
        cmocka_unit_test(the_reason_of_a_condition_is_a_word_that_says_that_the_job_waits),
        cmocka_unit_test(the_reference_has_every_row),
    };

    return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
