/* test_config_exec.c - credentials that a program gives: what it is told, what it may answer, how
 * long it may take, and that a token is renewed. The programs are real ones. */
#include "kube/config_exec.h"

#include "base/buf.h"
#include "io/loop_real.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define V1      "client.authentication.k8s.io/v1"
#define V1BETA1 "client.authentication.k8s.io/v1beta1"

enum { SECOND = 1000000 };

/* A kubeconfig whose user runs this command with a shell script; more: further members of exec. */
static int load(const char *command, const char *script, const char *more,
                struct kube_config **ret_config, struct err *err)
{
    auto_buf struct buf text;
    struct kube_config_file file;

    buf_init(&text, 1 << 16);
    buf_printf(&text,
               "current-context: c\n"
               "contexts: [{name: c, context: {cluster: k, user: cloud}}]\n"
               "clusters: [{name: k, cluster: {server: 'https://h:6443', "
               "certificate-authority-data: Y2E=}}]\n"
               "users:\n- name: cloud\n  user:\n    exec:\n"
               "      apiVersion: %s\n      command: %s\n      args: ['-c', %s]\n%s",
               V1, command, script, more);
    file = (struct kube_config_file){ .text = buf_str(&text), .path = "/home/me/.kube/config" };
    return kube_config_resolve(&file, 1, NULL, ret_config, err);
}

/* What became of the program: 0 and a config, or the error. */
static int run_command(const char *command, const char *script, const char *more,
                       struct kube_config **ret_config, struct loop **ret_loop, struct err *err)
{
    int result = load(command, script, more, ret_config, err);

    assert_int_equal(loop_new_real(ret_loop, NULL), 0);
    return result < 0 ? result : kube_config_open(*ret_config, *ret_loop, err);
}

static int run(const char *script, const char *more, struct kube_config **ret_config,
               struct loop **ret_loop, struct err *err)
{
    return run_command("sh", script, more, ret_config, ret_loop, err);
}

static void done(struct kube_config *config, struct loop *loop)
{
    kube_config_free(config);
    loop_free(loop);
}

static void a_token_of_a_program_is_used(void **state)
{
    struct kube_config *config = NULL;
    struct loop *loop;
    struct err err = { .class = 0 };

    assert_int_equal(
        run("'printf %s \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"" V1
            "\\\",\\\"status\\\":{\\\"token\\\":\\\"$WHO-1\\\"}}\"'",
            "      interactiveMode: IfAvailable\n"
            "      env: [{name: WHO, value: me}]\n",
            &config, &loop, &err),
        0);
    assert_int_equal(kube_config_token(config).len, 4);
    assert_memory_equal(kube_config_token(config).at, "me-1", 4);
    done(config, loop);
}

/* It prints a part of what it was told as its token. */
static void the_program_is_told_of_the_cluster_if_it_wants(void **state)
{
    static const char script[] =
        "'case \"$KUBERNETES_EXEC_INFO\" in *\\\"server\\\":\\\"https://h:6443\\\"*Y2E=*) T=told;; "
        "*\\\"interactive\\\":false*) T=bare;; esac; "
        "printf %s \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"" V1
        "\\\",\\\"status\\\":{\\\"token\\\":\\\"$T\\\"}}\"'";
    struct kube_config *config = NULL;
    struct loop *loop;
    struct err err = { .class = 0 };

    assert_int_equal(run(script, "      provideClusterInfo: true\n", &config, &loop, &err), 0);
    assert_string_equal(kube_config_token(config).at, "told");
    done(config, loop);
    assert_int_equal(run(script, "", &config, &loop, &err), 0);
    assert_string_equal(kube_config_token(config).at, "bare");
    done(config, loop);
}

static void answers_are_read_strictly_and_never_repeated_in_errors(void **state)
{
    static const struct {
        const char *output, *token, *cert, *words; /* words: the error */
    } rows[] = {
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
          "\",\"status\":{\"token\":\" t0k \"}}",
          "t0k", NULL, NULL },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
          "\",\"status\":{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"}}",
          NULL, "C", NULL },
        { "t0k", NULL, NULL, "what it printed is no JSON" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1BETA1
          "\",\"status\":{\"token\":\"t0k\"}}",
          NULL, NULL, "an ExecCredential of " V1 },
        { "{\"kind\":\"Secret\",\"apiVersion\":\"" V1 "\",\"status\":{\"token\":\"t0k\"}}", NULL,
          NULL, "did not print an ExecCredential" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{}}", NULL, NULL,
          "neither a token nor" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
          "\",\"status\":{\"clientKeyData\":\"t0k\"}}",
          NULL, NULL, "belong together" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
          "\",\"status\":{\"token\":\"t0k\\n\\u0001\"}}",
          NULL, NULL, "not fit to be used" },
        { "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
          "\",\"status\":{\"token\":\"t0k\",\"expirationTimestamp\":\"soon\"}}",
          NULL, NULL, "is no time" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kube_exec_answer answer = { .ends_us = 0 };
        struct err err = { .class = 0 };
        int result = kube_exec_read(str_of(rows[i].output), V1, &answer, &err);

        assert_int_equal(result < 0, rows[i].words != NULL);
        if (rows[i].words)
            assert_non_null(strstr(err.text, rows[i].words));
        assert_null(strstr(err.text, "t0k"));
        if (rows[i].token)
            assert_string_equal(answer.token.at, rows[i].token);
        if (rows[i].cert)
            assert_string_equal(answer.cert.at, rows[i].cert);
        free(answer.token.at);
        free(answer.cert.at);
        free(answer.key.at);
    }
}

static void a_program_that_fails_or_is_not_there_is_named(void **state)
{
    struct kube_config *config = NULL;
    struct loop *loop;
    struct err err = { .class = 0 };

    assert_true(run("'echo t0k; exit 3'", "", &config, &loop, &err) < 0);
    assert_non_null(strstr(err.text, "user \"cloud\": sh: the program ended with status"));
    assert_null(strstr(err.text, "t0k"));
    done(config, loop);
    config = NULL;
    assert_true(run_command("/nowhere/plugin", "x",
                            "      installHint: |\n        get it\n        x\n", &config, &loop,
                            &err) < 0);
    assert_non_null(strstr(err.text, "/nowhere/plugin cannot be started: get it"));
    done(config, loop);
}

struct watching {
    struct kube_config *config;
    struct loop *loop;
    struct loop_timer timer;
    char first[32];
    int looks;
};

static void look(void *context)
{
    struct watching *watching = context;

    if (++watching->looks > 600 || strcmp(kube_config_token(watching->config).at, watching->first))
        loop_stop(watching->loop);
    else
        loop_timer_start(watching->loop, &watching->timer, SECOND / 20, look, watching);
}

/* It ends in 61 to 62 seconds, and is renewed a minute before. */
static void a_token_that_ends_is_renewed_before(void **state)
{
    static const char script[] =
        "'printf %s \"{\\\"kind\\\":\\\"ExecCredential\\\",\\\"apiVersion\\\":\\\"" V1
        "\\\",\\\"status\\\":{\\\"token\\\":\\\"$$\\\",\\\"expirationTimestamp\\\":"
        "\\\"$(date -u -d \"+62 seconds\" +%FT%TZ)\\\"}}\"'";
    struct watching watching = { .looks = 0 };
    struct err err = { .class = 0 };

    assert_int_equal(run(script, "", &watching.config, &watching.loop, &err), 0);
    (void)snprintf(watching.first, sizeof(watching.first), "%s",
                   kube_config_token(watching.config).at);
    look(&watching);
    loop_run(watching.loop);
    assert_string_not_equal(kube_config_token(watching.config).at, watching.first);
    done(watching.config, watching.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_of_a_program_is_used),
        cmocka_unit_test(the_program_is_told_of_the_cluster_if_it_wants),
        cmocka_unit_test(answers_are_read_strictly_and_never_repeated_in_errors),
        cmocka_unit_test(a_program_that_fails_or_is_not_there_is_named),
        cmocka_unit_test(a_token_that_ends_is_renewed_before),
    };

    return cmocka_run_group_tests_name("config_exec", tests, NULL, NULL);
}
