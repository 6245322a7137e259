/* test_hook.c - the hook program with a state on stdin, a made-up /proc and control groups that are
 * plain folders; and the sweep over what it recorded.
 *
 * A plain file keeps what is written to cpuset.cpus, but the kernel would change the effective
 * file; here that file is a link to the first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dra/cpuset.h"
#include "dra/hook/oci_state.h"
#include "dra/sweep.h"
#include "sandbox.h"

#include <sys/wait.h>

#define STATE                                                                                      \
    "{\"ociVersion\":\"1.0.2\",\"id\":\"c1\",\"status\":\"creating\",\"pid\":77,"                  \
    "\"annotations\":{\"a\\\"}\":\"[{\",\"pid\":\"9\"},\"bundle\":\"/b\"}"

static struct sandbox box;

static void make_group(const char *name, bool is_v2, const char *cpus)
{
    char path[256], target[512];

    snprintf(path, sizeof(path), "%s/cpuset.cpus", name);
    sandbox_write(&box, path, cpus);
    snprintf(target, sizeof(target), "%s", sandbox_path(&box, path));
    snprintf(path, sizeof(path), "%s/%s", name,
             is_v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus");
    assert_int_equal(symlink(target, sandbox_path(&box, path)), 0);
}

static void make_v1(void)
{
    char mounts[1024];

    snprintf(mounts, sizeof(mounts),
             "30 20 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
             "31 20 0:28 / %s/v1 rw,relatime shared:3 - cgroup cgroup rw,cpuset\n"
             "32 20 0:29 / %s/v2 rw - cgroup2 cgroup2 rw\n",
             box.root, box.root);
    sandbox_write(&box, "proc/self/mountinfo", mounts);
    sandbox_write(&box, "proc/77/cgroup",
                  "9:name=systemd:/x\n3:cpuset:/pods/p1/c1\n1:cpu:/pods/p1/c1\n0::/other\n");
    make_group("v1/pods/p1/c1", false, "0-7\n");
}

static void make_v2(void)
{
    char mounts[1024];

    snprintf(mounts, sizeof(mounts), "32 20 0:29 /part %s/v2 rw - cgroup2 cgroup2 rw\n", box.root);
    sandbox_write(&box, "proc/self/mountinfo", mounts);
    sandbox_write(&box, "proc/77/cgroup", "0::/part/pods/p1/c1\n");
    make_group("v2/pods/p1/c1", true, "\n");
}

static int set_up(void **state)
{
    (void)state;
    sandbox_init(&box);
    assert_int_equal(folder_make(sandbox_path(&box, "records"), 0700, NULL), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sandbox_done(&box);
    return 0;
}

/* Runs the real program; what it says on stderr is in the file "said". */
static int run_hook(const char *state, const char *claim, const char *cpus)
{
    char command[2048];
    int status;

    sandbox_write(&box, "state", state);
    snprintf(command, sizeof(command), "%s %s/records %s '%s' %s/proc <%s/state 2>%s/said",
             HOOK_PROGRAM, box.root, claim, cpus, box.root, box.root, box.root);
    status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_container_is_pinned_on_version_1(void **state)
{
    char expected[512];

    make_v1();
    assert_int_equal(run_hook(STATE, "uid-1", "2-3"), 0);
    assert_string_equal(sandbox_read(&box, "v1/pods/p1/c1/cpuset.cpus"), "2-3\n");
    snprintf(expected, sizeof(expected), "cgroup %s/v1/pods/p1/c1\ncpus 2-3\nclaims uid-1\n",
             box.root);
    assert_string_equal(sandbox_read(&box, "records/c1"), expected);
}

static void a_container_is_pinned_on_version_2(void **state)
{
    make_v2();
    assert_int_equal(run_hook(STATE, "uid-1", "2-3"), 0);
    assert_int_equal(strncmp(sandbox_read(&box, "v2/pods/p1/c1/cpuset.cpus"), "2-3", 3), 0);
}

static void a_group_beside_the_mounted_part_is_not_in_it(void **state)
{
    make_v2();
    sandbox_write(&box, "proc/77/cgroup", "0::/partner/pods/p1/c1\n");
    assert_int_not_equal(run_hook(STATE, "uid-1", "2-3"), 0);
    assert_non_null(strstr(sandbox_read(&box, "said"), "/partner/pods/p1/c1 is not mounted"));
}

static void two_claims_of_a_container_are_added(void **state)
{
    make_v1();
    assert_int_equal(run_hook(STATE, "uid-1", "2-3"), 0);
    assert_int_equal(run_hook(STATE, "uid-2", "5"), 0);
    assert_int_equal(strncmp(sandbox_read(&box, "v1/pods/p1/c1/cpuset.cpus"), "2-3,5", 5), 0);
    assert_non_null(strstr(sandbox_read(&box, "records/c1"), "claims uid-2 uid-1\n"));
}

static void whatever_goes_wrong_is_one_line_and_an_exit_code(void **state)
{
    static const struct {
        const char *state, *cpus, *said;
    } rows[] = {
        { "", "1", "no JSON object" },
        { "{\"id\":\"c1\"}", "1", "no id or no pid" },
        { "{\"id\":\"c1\",\"pid\":", "1", "broken JSON" },
        { "{\"id\":\"../c1\",\"pid\":77}", "1", "no id of a container" },
        { "{\"id\":\"c1\",\"pid\":-5}", "1", "pid" },
        { "{\"id\":\"c1\",\"pid\":78}", "1", "no such file" },
        { STATE, "x", "" },
    };

    make_v1();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *said;

        assert_int_equal(run_hook(rows[i].state, "uid-1", rows[i].cpus), 1);
        said = sandbox_read(&box, "said");
        assert_int_equal(strncmp(said, "slinc cannot pin the container", 30), 0);
        assert_non_null(strstr(said, rows[i].said));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    }
    assert_int_equal(strncmp(sandbox_read(&box, "v1/pods/p1/c1/cpuset.cpus"), "0-7", 3), 0);
}

/* The kernel may grant other CPUs than were asked for, without an error. */
static void a_set_that_does_not_hold_is_an_error(void **state)
{
    make_v1();
    assert_int_equal(unlink(sandbox_path(&box, "v1/pods/p1/c1/cpuset.effective_cpus")), 0);
    sandbox_write(&box, "v1/pods/p1/c1/cpuset.effective_cpus", "0-7\n");
    assert_int_equal(run_hook(STATE, "uid-1", "2"), 1);
    assert_non_null(strstr(sandbox_read(&box, "said"), "has the CPUs 0-7, not 2"));
    assert_string_equal(sandbox_read(&box, "records/c1"), "");
}

static void states_are_read_in_any_layout(void **state)
{
    struct oci_state found;

    assert_int_equal(
        oci_state_read(STR(" { \"x\" : [1,{\"pid\":3}] , \"pid\" : 12 ,\n\"id\":\"a\" } "), &found,
                       NULL),
        0);
    assert_int_equal(found.pid, 12);
    assert_true(str_is(found.id, "a"));
}

/* ---- the sweep ---- */

static struct sweep_result swept(void)
{
    struct sweep_result result;
    struct err err = { 0 };

    if (sweep_records(sandbox_path(&box, "records"), &result, &err) < 0)
        fail_msg("%s", err.text);
    if (result.errors > 0)
        fail_msg("%s", result.last_error.text);
    return result;
}

static void a_changed_cpuset_is_set_again(void **state)
{
    struct sweep_result result;

    make_v1();
    assert_int_equal(run_hook(STATE, "uid-1", "2-3"), 0);
    result = swept();
    assert_int_equal(result.containers, 1);
    assert_int_equal(result.repairs, 0);
    sandbox_write(&box, "v1/pods/p1/c1/cpuset.cpus", "0-7\n");
    result = swept();
    assert_int_equal(result.repairs, 1);
    assert_non_null(strstr(result.last_repair, "had CPUs '0-7'"));
    assert_int_equal(strncmp(sandbox_read(&box, "v1/pods/p1/c1/cpuset.cpus"), "2-3", 3), 0);
}

static void other_containers_of_the_pod_get_the_same_cpus(void **state)
{
    make_v1();
    make_group("v1/pods/p1/pause", false, "0-7\n");
    make_group("v1/pods/p2/c9", false, "0-7\n");
    assert_int_equal(run_hook(STATE, "uid-1", "2-3"), 0);
    assert_int_equal(swept().repairs, 1);
    assert_int_equal(strncmp(sandbox_read(&box, "v1/pods/p1/pause/cpuset.cpus"), "2-3", 3), 0);
    assert_string_equal(sandbox_read(&box, "v1/pods/p2/c9/cpuset.cpus"), "0-7\n");
}

static void the_record_of_a_container_that_is_gone_is_removed(void **state)
{
    make_v1();
    assert_int_equal(run_hook(STATE, "uid-1", "2-3"), 0);
    assert_int_equal(rename(sandbox_path(&box, "v1"), sandbox_path(&box, "gone")), 0);
    assert_int_equal(swept().containers, 0);
    assert_string_equal(sandbox_read(&box, "records/c1"), "");
}

static void a_record_that_cannot_be_read_is_counted(void **state)
{
    struct sweep_result result;

    sandbox_write(&box, "records/broken", "cpus x\n");
    assert_int_equal(sweep_records(sandbox_path(&box, "records"), &result, NULL), 0);
    assert_int_equal(result.errors, 1);
    assert_non_null(strstr(result.last_error.text, "broken"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_container_is_pinned_on_version_1),
        TEST(a_container_is_pinned_on_version_2),
        TEST(a_group_beside_the_mounted_part_is_not_in_it),
        TEST(two_claims_of_a_container_are_added),
        TEST(whatever_goes_wrong_is_one_line_and_an_exit_code),
        TEST(a_set_that_does_not_hold_is_an_error),
        TEST(states_are_read_in_any_layout),
        TEST(a_changed_cpuset_is_set_again),
        TEST(other_containers_of_the_pod_get_the_same_cpus),
        TEST(the_record_of_a_container_that_is_gone_is_removed),
        TEST(a_record_that_cannot_be_read_is_counted),
    };

    return cmocka_run_group_tests_name("hook", tests, NULL, NULL);
}
