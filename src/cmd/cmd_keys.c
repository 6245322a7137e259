/* cmd_keys.c - `slinc keys`: the keys of a Slurm cluster and of a bridge, for the hooks of the
 * charts slurm and slurm-bridge.
 *
 * Runs once: makes the Secrets that are missing, keeps Helm from deleting those that are there, or
 * (--delete) deletes them after the release was uninstalled. */
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/keys.h"
#include "cmd/process.h"
#include "engine/run.h"

#include <stdio.h>

enum { MAX_SECRETS = 8, MAX_JSON = 64 << 10 };

/* What the flags name. */
struct keys_work {
    struct arena arena;
    struct json_doc *labels, *slurm_annotations, *jwt_annotations;
    struct keys_release release;
    struct keys_secret secrets[MAX_SECRETS];
    unsigned count;
};

struct keys_flags {
    struct process_flags process;
    const char *ns, *release, *release_ns, *labels;
    const char *slurm_secret, *slurm_key, *slurm_annotations;
    const char *jwt_secret, *jwt_key, *jwt_annotations;
    const char *protect, *mark_secret;
    bool delete;
    struct keys_work work;
};

#define AT(member) offsetof(struct keys_flags, member)

static const struct flag flags[] = {
    { "namespace", FLAG_TEXT, AT(ns), "", "of the Secrets; else the pod's own" },
    { "release", FLAG_TEXT, AT(release), "", "of Helm" },
    { "release-namespace", FLAG_TEXT, AT(release_ns), "", "of the release; else --namespace" },
    { "labels", FLAG_TEXT, AT(labels), "{}", "of Secrets that are made, as JSON" },
    { "slurm-secret", FLAG_TEXT, AT(slurm_secret), "", "the Secret with slurm.key, to be made" },
    { "slurm-key", FLAG_TEXT, AT(slurm_key), "slurm.key", "the key in that Secret" },
    { "slurm-annotations", FLAG_TEXT, AT(slurm_annotations), "{}", "of that Secret, as JSON" },
    { "jwt-secret", FLAG_TEXT, AT(jwt_secret), "", "the Secret with jwt.key, to be made" },
    { "jwt-key", FLAG_TEXT, AT(jwt_key), "jwt.key", "the key in that Secret" },
    { "jwt-annotations", FLAG_TEXT, AT(jwt_annotations), "{}", "of that Secret, as JSON" },
    { "mark-secret", FLAG_TEXT, AT(mark_secret), "",
      "the Secret with mark.key, which proves whose a job is, to be made" },
    { "protect", FLAG_TEXT, AT(protect), "",
      "Secrets that are not made, only kept from being deleted; with commas between" },
    { "delete", FLAG_BOOL, AT(delete), "false",
      "delete the Secrets that are made, if the release made them and is being uninstalled" },
    PROCESS_OWN_FLAGS(AT(process)),
    { NULL, FLAG_TEXT, 0, NULL, NULL },
};

static int read_json(const char *flag, const char *text, struct json_doc **ret, struct err *err)
{
    if (json_parse(str_of(text), MAX_JSON, ret, err) < 0)
        return err_wrap(err, "--%s", flag);
    if (!json_is_object(json_root(*ret)))
        return err_set(err, ERR_INVALID, "--%s: wants a JSON object", flag);
    return 0;
}

static int add_secret(struct keys_work *work, struct keys_secret secret, struct err *err)
{
    if (work->count == MAX_SECRETS)
        return err_set(err, ERR_INVALID, "more than %d Secrets", MAX_SECRETS);
    work->secrets[work->count++] = secret;
    return 0;
}

static int read_flags(void *flag_values, struct err *err)
{
    struct keys_flags *values = flag_values;
    struct keys_work *ret = &values->work;
    struct str rest = str_of(values->protect), name;
    int result;

    if (!values->release[0])
        return err_set(err, ERR_INVALID, "--release: wants the name of a release of Helm");
    if ((result = read_json("labels", values->labels, &ret->labels, err)) < 0 ||
        (result = read_json("slurm-annotations", values->slurm_annotations, &ret->slurm_annotations,
                            err)) < 0 ||
        (result =
             read_json("jwt-annotations", values->jwt_annotations, &ret->jwt_annotations, err)) < 0)
        return result;
    if (values->slurm_secret[0])
        result =
            add_secret(ret,
                       (struct keys_secret){ .name = values->slurm_secret,
                                             .file = values->slurm_key,
                                             .annotations = json_root(ret->slurm_annotations) },
                       err);
    if (values->jwt_secret[0])
        result = add_secret(ret,
                            (struct keys_secret){ .name = values->jwt_secret,
                                                  .file = values->jwt_key,
                                                  .annotations = json_root(ret->jwt_annotations) },
                            err);
    if (result == 0 && values->mark_secret[0])
        result = add_secret(
            ret, (struct keys_secret){ .name = values->mark_secret, .file = "mark.key" }, err);
    while (result == 0 && str_next(&rest, ',', &name))
        if (name.len > 0)
            result = add_secret(
                ret, (struct keys_secret){ .name = arena_strndup(&ret->arena, name.at, name.len) },
                err);
    return result;
}

static int run_with(const struct process_api *api, struct keys_flags *values, struct err *err)
{
    struct keys_work *work = &values->work;
    const char *ns = values->ns[0] ? values->ns : api->config->ns;
    struct kube_client *client = kube_client_new(api->loop, api->api);
    bool uninstalled = false;
    int result = 0;

    work->release = (struct keys_release){ .name = values->release,
                                           .ns = values->release_ns[0] ? values->release_ns : ns,
                                           .labels = json_root(work->labels) };
    if (values->delete)
        result = keys_is_uninstalled(client, &work->release, &uninstalled, err);
    if (result == 0 && values->delete && !uninstalled) {
        log_info("the release is not being uninstalled: no key is deleted",
                 LOG_TEXT("release", values->release));
        work->count = 0;
    }
    for (unsigned i = 0; i < work->count && result == 0; i++) {
        work->secrets[i].ns = ns;
        result = (values->delete ? keys_delete : keys_ensure)(client, &work->release,
                                                              &work->secrets[i], err);
    }
    kube_client_free(client);
    return result;
}

static const struct process_command command = {
    .name = "keys",
    .what = "makes and keeps the keys of a Slurm cluster and of a bridge, for the charts",
    .flags = flags,
    .process_flags = AT(process),
    .check = read_flags,
};

int cmd_keys(int argc, char **argv)
{
    struct keys_flags values = { .ns = NULL };
    struct keys_work *work = &values.work;
    struct process_api api = { .loop = NULL };
    struct err err = { .class = 0 };
    enum run_exit code = RUN_FAILED;

    arena_init(&work->arena, 1 << 20);
    if (process_begin(&command, argc, argv, &values, &code)) {
        if (process_api_open(&api, &values.process, &err) < 0)
            process_cannot_start("keys", &values.process, &err);
        else if (run_with(&api, &values, &err) < 0)
            log_error("the keys are not as they should be", LOG_ERROR(&err));
        else
            code = RUN_OK;
        process_api_close(&api);
    }
    json_doc_free(work->labels);
    json_doc_free(work->slurm_annotations);
    json_doc_free(work->jwt_annotations);
    arena_done(&work->arena);
    return (int)code;
}
