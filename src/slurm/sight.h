/* sight.h - what slurmctld says of itself, and whether our user sees every job.
 *
 * Who does not see all jobs takes one that is hidden for one that is gone, and would ask again.
 * What can be known through REST: /conf (v0.0.45 and later) tells PrivateData, MCS and SlurmUser;
 * the accounting, where it is on, tells a user's administrator level. What cannot: PrivateData on
 * a Slurm before 26.05, and whether a site plugin hides jobs. SlurmUser and root see everything. */
#ifndef SLINC_SLURM_SIGHT_H
#define SLINC_SLURM_SIGHT_H

#include "slurm/client.h"

struct slurm_site {
    char slurm_user[64], cluster[64], version[32];
    char scheduler_parameters[256], select_parameters[128]; /* separated by ',' */
    char private_data[128];                                 /* the same, in lower case */
    char user_claim[64]; /* the claim of a token that names its user, where no usual one does; "" */
    int64_t message_timeout_s, min_job_age_s, inactive_limit_s, kill_wait_s;
    int64_t max_node_count, max_job_count;
    int64_t boot_time;   /* seconds since 1970; another one: slurmctld was restarted */
    int64_t next_job_id; /* falls when slurmctld lost its last seconds */
    int64_t time;    /* by slurmctld's clock when it answered; seconds since 1970; 0: not told */
    int64_t skew_us; /* of that clock against ours, as slurm_can_see_all found it; else 0 */
    bool hides_jobs; /* PrivateData=jobs, or MCS with privatedata */
};

/* Of the answer to slurm_conf_get. */
int slurm_site_decode(const struct json *body, struct slurm_site *ret_site, struct err *err);

/* Pure: how far a clock that showed this whole second some time between two moments of ours
 * (microseconds since 1970) is ahead of ours; negative: behind; 0: it agrees, or may. */
int64_t slurm_clock_skew_us(int64_t second, int64_t from_us, int64_t until_us);

enum slurm_sight { SLURM_SEES_ALL, SLURM_SEES_PART, SLURM_SIGHT_UNKNOWN };

/* Pure. site is NULL when it is not known; level is what the accounting says ("None", "Operator",
 * "Administrator"), NULL when it says nothing. ret_why: one sentence, for people. */
enum slurm_sight slurm_sight_of(const struct slurm_site *site, const char *user, const char *level,
                                char *ret_why, size_t size);

/* Asks for both and judges. The check belongs to its owner, who starts it zeroed and stops it
 * before the client goes. */
struct slurm_sight_check {
    struct slurm_client *client; /* all private */
    struct slurm_call *call;
    struct slurm_site site;
    bool has_site;
    char user[256];
    void (*done)(void *context, enum slurm_sight sight, const char *why,
                 const struct slurm_site *site);
    void *context;
};

/* done is called once, from the loop: site is NULL when it could not be read. UNKNOWN also when
 * nobody answered. */
void slurm_can_see_all(struct slurm_sight_check *check, struct slurm_client *client,
                       void (*done)(void *context, enum slurm_sight sight, const char *why,
                                    const struct slurm_site *site),
                       void *context);
void slurm_sight_stop(struct slurm_sight_check *check);

#endif
