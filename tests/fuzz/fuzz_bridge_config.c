/* fuzz_bridge_config.c - any config file is refused with a reason, or gives a configuration that
 * holds together: every text there and on one line, every number in its range, and the same again
 * when what was read is written out and read once more. */
#include "bridge/world/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(const char *text)
{
    must(text != NULL);
    for (; *text; text++)
        must((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_rules(const struct bridge_config *config)
{
    for (unsigned i = 0; i < config->node_feature_count; i++)
        check_text(config->node_features[i].at);
    for (unsigned i = 0; i < config->priority_count; i++) {
        const struct bridge_priority *rule = &config->priorities[i];

        check_text(rule->class);
        check_text(rule->qos);
        must(rule->class[0] != '\0' && (rule->qos[0] != '\0') == (rule->priority == -1));
        must(rule->priority == -1 || (rule->priority > 0 && rule->priority <= INT32_MAX));
        must(bridge_config_priority(config, rule->class) <= rule);
    }
    for (unsigned i = 0; i < config->user_count; i++) {
        const struct bridge_user *rule = &config->users[i];

        check_text(rule->service_account);
        check_text(rule->user);
        check_text(rule->group);
        check_text(rule->account);
        check_text(rule->qos);
        must(rule->ns[0] != '\0');
    }
    (void)bridge_config_user(config, "some-namespace", "some.service-account", STR("u\ng\nh"));
}

static void check(const struct bridge_config *config)
{
    check_text(config->scheduler_name);
    check_text(config->slurm_rest_api);
    check_text(config->mcs_label);
    check_text(config->partition);
    check_text(config->jwt_key_file);
    check_text(config->jwt_user);
    must(config->scheduler_name[0] != '\0' && strlen(config->scheduler_name) <= 63);
    must(strstr(config->slurm_rest_api, "://") != NULL);
    must(config->warnings != NULL);
    must(config->fence_after_s >= 0 && config->submits_per_second >= 0);
    for (unsigned i = 0; i < config->managed_namespace_count; i++)
        must(config->managed_namespaces[i].len > 0 && config->managed_namespaces[i].len <= 63);
    must(!config->managed_namespace_selector || json_is_object(config->managed_namespace_selector));
    check_rules(config);
}

static void write_users(const struct bridge_config *config, struct json_build *build,
                        struct json_mut *list)
{
    for (unsigned i = 0; i < config->user_count; i++) {
        struct json_mut *rule = json_new_object(build);

        json_put_text(build, rule, "namespace", config->users[i].ns);
        if (config->users[i].service_account[0])
            json_put_text(build, rule, "serviceAccount", config->users[i].service_account);
        json_put_text(build, rule, "user", config->users[i].user);
        json_push(list, rule);
    }
}

static void write_again(const struct bridge_config *config, struct buf *out)
{
    auto_json_build struct json_build *build = json_build_new();
    struct json_mut *root = json_new_object(build);
    struct json_mut *namespaces = json_put_array(build, root, "MANAGEDNAMESPACES");

    for (unsigned i = 0; i < config->managed_namespace_count; i++)
        json_push_str(build, namespaces, config->managed_namespaces[i]);
    json_put_text(build, root, "schedulername", config->scheduler_name);
    json_put_text(build, root, "SlurmRestApi", config->slurm_rest_api);
    json_put_bool(build, root, "sharedNodes", config->shared);
    json_put_text(build, root, "trustAnnotations", trust_name(config->trust));
    write_users(config, build, json_put_array(build, root, "users"));
    json_put_i64(build, root, "fenceAfterSeconds", config->fence_after_s);
    json_put_i64(build, root, "maxGraceSeconds", config->max_grace_s);
    if (config->managed_namespace_selector)
        json_put(build, root, "managedNamespaceSelector",
                 json_copy(build, config->managed_namespace_selector));
    json_mut_write(root, out);
}

static void check_again(const struct bridge_config *config)
{
    auto_buf struct buf text = { .max = 16 << 20 };
    struct bridge_config again;

    write_again(config, &text);
    if (text.len > 1 << 20)
        return;
    must(bridge_config_parse(buf_str(&text), &again, NULL) == 0);
    must(strcmp(again.scheduler_name, config->scheduler_name) == 0);
    must(strcmp(again.slurm_rest_api, config->slurm_rest_api) == 0);
    must(again.managed_namespace_count == config->managed_namespace_count);
    must(json_equal(again.managed_namespace_selector, config->managed_namespace_selector));
    must(again.trust == config->trust);
    must(again.user_count == config->user_count);
    for (unsigned i = 0; i < config->user_count; i++)
        must(strcmp(again.users[i].user, config->users[i].user) == 0);
    must(again.shared == config->shared && again.fence_after_s == config->fence_after_s);
    must(again.warnings[0] == '\0');
    bridge_config_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bridge_config config;
    struct err err = { 0 };

    if (bridge_config_parse((struct str){ (const char *)data, size }, &config, &err) < 0) {
        must(err.class == ERR_INVALID || err.class == ERR_TOO_BIG);
        must(err.text[0] != '\0');
        must(strncmp(err.text, "default: ", strlen("default: ")) != 0);
        return 0;
    }
    check(&config);
    check_again(&config);
    bridge_config_done(&config);
    return 0;
}
