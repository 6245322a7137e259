/* sight.c - reads slurmctld's configuration and judges what our user can see of the jobs.
 *
 * Holds: SEES_ALL only on a positive fact; silence, an error or an old version is UNKNOWN. */
#include "slurm/sight.h"

#include "slurm/calls.h"
#include "slurm/value.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

static void copy_text(char *into, size_t size, const struct json *value)
{
    snprintf(into, size, STR_FMT, STR_ARG(json_str(value)));
}

static int64_t int_at(const struct json *object, const char *key)
{
    return slurm_number_or(slurm_number_of(json_get(object, key)), 0, 0);
}

/* Whether a list of words, as array or as text, has this one. */
static bool has_word(const struct json *value, const char *wanted)
{
    auto_buf struct buf text;
    struct str rest, word;

    buf_init(&text, 64 * 1024);
    slurm_list_text(value, &text);
    rest = buf_str(&text);
    while (rest.len > 0 && str_next(&rest, ',', &word))
        if (word.len == strlen(wanted) && strncasecmp(word.at, wanted, word.len) == 0)
            return true;
    return false;
}

/* What does not fit is cut off. */
static void copy_list(char *into, size_t size, const struct json *value)
{
    auto_buf struct buf text;

    buf_init(&text, 64u << 10);
    slurm_list_text(value, &text);
    snprintf(into, size, "%s", buf_text(&text));
}

/* What follows "name=" in a list of words, as array or as text. What does not fit is left out. */
static void copy_option(char *into, size_t size, const struct json *value, struct str name)
{
    auto_buf struct buf text = { .max = 64u << 10 };
    struct str rest, word;

    slurm_list_text(value, &text);
    rest = buf_str(&text);
    while (rest.len > 0 && str_next(&rest, ',', &word))
        if (str_starts(word, name) && word.len - name.len < size)
            snprintf(into, size, STR_FMT, STR_ARG(str_sub(word, name.len, word.len)));
}

int slurm_site_decode(const struct json *body, struct slurm_site *ret_site, struct err *err)
{
    const struct json *conf, *meta = json_get(body, "slurm_conf_meta");
    struct slurm_site site = { 0 };
    int result = json_want_object(body, "slurm_conf", &conf, err);

    if (result < 0)
        return result;
    if (!json_exists(json_get(conf, "PrivateData")) || !json_exists(json_get(conf, "SlurmUser")))
        return err_set(err, ERR_INVALID, "a configuration without PrivateData or SlurmUser");
    copy_text(site.slurm_user, sizeof(site.slurm_user), json_get(conf, "SlurmUser"));
    copy_text(site.cluster, sizeof(site.cluster), json_get(conf, "ClusterName"));
    copy_text(site.version, sizeof(site.version), json_get(meta, "SLURM_VERSION"));
    site.message_timeout_s = int_at(conf, "MessageTimeout");
    site.min_job_age_s = int_at(conf, "MinJobAge");
    site.inactive_limit_s = int_at(conf, "InactiveLimit");
    site.kill_wait_s = int_at(conf, "KillWait");
    site.max_node_count = int_at(conf, "MaxNodeCount");
    site.max_job_count = int_at(conf, "MaxJobCount");
    copy_list(site.scheduler_parameters, sizeof(site.scheduler_parameters),
              json_get(conf, "SchedulerParameters"));
    copy_list(site.select_parameters, sizeof(site.select_parameters),
              json_get(conf, "SelectTypeParameters"));
    copy_list(site.private_data, sizeof(site.private_data), json_get(conf, "PrivateData"));
    for (char *at = site.private_data; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    copy_option(site.user_claim, sizeof(site.user_claim), json_get(conf, "AuthAltParameters"),
                STR("userclaimfield="));
    site.boot_time = int_at(meta, "BOOT_TIME");
    site.next_job_id = int_at(meta, "NEXT_JOB_ID");
    site.time = int_at(meta, "LastUpdate");
    site.hides_jobs = has_word(json_get(conf, "PrivateData"), "jobs") ||
                      has_word(json_get(conf, "MCSParameters"), "privatedata");
    *ret_site = site;
    return 0;
}

int64_t slurm_clock_skew_us(int64_t second, int64_t from_us, int64_t until_us)
{
    int64_t begin_us = second * 1000000, end_us = begin_us + 1000000;

    if (second <= 0)
        return 0;
    if (begin_us > until_us)
        return begin_us - until_us;
    return end_us <= from_us ? end_us - from_us : 0;
}

enum slurm_sight slurm_sight_of(const struct slurm_site *site, const char *user, const char *level,
                                char *ret_why, size_t size)
{
    bool is_slurm = site && user[0] && str_is(str_of(user), site->slurm_user);
    bool is_root = str_is(str_of(user), "root");

    if (is_slurm || is_root) {
        snprintf(ret_why, size, "%s is %s", user, is_root ? "root" : "SlurmUser");
        return SLURM_SEES_ALL;
    }
    if (level && (strcasecmp(level, "Operator") == 0 || strcasecmp(level, "Administrator") == 0)) {
        snprintf(ret_why, size, "user %s is an %s", user, level);
        return SLURM_SEES_ALL;
    }
    if (!site) {
        snprintf(ret_why, size,
                 "PrivateData cannot be read, and nothing says that user '%s' is privileged", user);
        return SLURM_SIGHT_UNKNOWN;
    }
    if (!site->hides_jobs) {
        snprintf(ret_why, size, "jobs are not private");
        return SLURM_SEES_ALL;
    }
    snprintf(ret_why, size,
             "jobs are private (PrivateData or MCS) and user '%s' is neither %s nor an operator",
             user, site->slurm_user);
    return level ? SLURM_SEES_PART : SLURM_SIGHT_UNKNOWN;
}

/* ---- asking ---- */

static void tell(struct slurm_sight_check *check, const char *level)
{
    char why[240];
    enum slurm_sight sight =
        slurm_sight_of(check->has_site ? &check->site : NULL, check->user, level, why, sizeof(why));

    check->done(check->context, sight, why, check->has_site ? &check->site : NULL);
}

static void on_user(void *context, const struct slurm_answer *answer)
{
    struct slurm_sight_check *check = context;
    const struct json *user = json_item(json_get(answer->body, "users"), 0);
    struct json_iter iter = json_iter(json_get(user, "administrator_level"));
    const struct json *item = json_get(user, "administrator_level");

    check->call = NULL;
    if (answer->error.class != SLURM_DONE) {
        tell(check, NULL);
        return;
    }
    if (json_is_array(item) && !json_next_item(&iter, &item)) /* ["Operator"], or just that */
        item = NULL;
    tell(check, json_is_string(item) ? json_str(item).at : NULL);
}

static void find_user(struct slurm_sight_check *check)
{
    const char *user = slurm_client_user(check->client);

    snprintf(check->user, sizeof(check->user), "%s",
             user[0] ? user : slurm_token_user(slurm_client_token(check->client)));
}

static void on_conf(void *context, const struct slurm_answer *answer)
{
    struct slurm_sight_check *check = context;
    struct loop *loop = slurm_client_loop(check->client);
    int64_t wall_us = clock_wall_us(loop_clock(loop));
    struct slurm_request request = { .verb = SLURM_GET, .endpoint = SLURM_DB_USER };
    char why[240];

    check->call = NULL;
    check->has_site = answer->error.class == SLURM_DONE &&
                      slurm_site_decode(answer->body, &check->site, NULL) == 0;
    check->site.skew_us = slurm_clock_skew_us(
        check->site.time, wall_us - (loop_now_us(loop) - answer->sent_us), wall_us);
    if (check->has_site)
        slurm_token_set_user_claim(slurm_client_token(check->client), check->site.user_claim);
    find_user(check);
    request.name = str_of(check->user);
    if (!check->user[0] || slurm_sight_of(check->has_site ? &check->site : NULL, check->user, NULL,
                                          why, sizeof(why)) == SLURM_SEES_ALL)
        tell(check, NULL);
    else
        check->call = slurm_send(check->client, &request, on_user, check);
}

void slurm_can_see_all(struct slurm_sight_check *check, struct slurm_client *client,
                       void (*done)(void *context, enum slurm_sight sight, const char *why,
                                    const struct slurm_site *site),
                       void *context)
{
    *check = (struct slurm_sight_check){ .client = client, .done = done, .context = context };
    check->call = slurm_conf_get(client, on_conf, check);
}

void slurm_sight_stop(struct slurm_sight_check *check)
{
    slurm_call_cancel(check->call);
    check->call = NULL;
}
