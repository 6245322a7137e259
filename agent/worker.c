/* worker.c - starts libslurm with the token that it is given, then answers frame by frame.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "worker.h"

#include "calls.h"
#include "frame.h"

#include "base/core_dump.h"
#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static void wipe(struct buf *buf)
{
    mem_free_secret(buf->data, buf->cap);
    *buf = (struct buf){ .max = buf->max };
}

/* Slurm as the text says: the path of slurm.conf, a NUL, the token. libslurm reads both from the
 * environment, at its first call. */
static int start(int fd, struct err *err)
{
    struct buf text = { .max = FRAME_MAX };
    struct str path = STR(""), token = STR("");
    struct frame frame;
    char version[32];
    int result = frame_read(fd, &frame, &text, err);

    if (result == 0 && !str_cut(buf_str(&text), '\0', &path, &token))
        result = err_set(err, ERR_BUG, "a worker was started without a token");
    if (result < 0)
        return result;
    (void)setenv("SLURM_CONF", path.at, 1);
    (void)setenv("SLURM_JWT", token.at, 1); /* buf ends it with a NUL */
    wipe(&text);
    slurm_init(getenv("SLURM_CONF")); /* ends the process when it cannot */
    (void)snprintf(
        version, sizeof(version), "%d.%02d.%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
        SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER), SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
    return frame_write(fd, 200, str_of(version), err);
}

static int serve(int fd, struct err *err)
{
    struct buf text = { .max = FRAME_MAX };
    struct agent_answer answer;
    struct frame frame;
    int result = frame_read(fd, &frame, &text, err);

    if (result == 0) {
        agent_answer_init(&answer);
        calls_run((enum agent_call)frame.word, frame.job_id, buf_str(&text), &answer);
        result = frame_write(fd, (uint32_t)answer.status, buf_str(&answer.body), err);
        agent_answer_done(&answer);
    }
    buf_done(&text);
    return result;
}

int worker_run(int fd)
{
    struct err err = { .class = 0 };
    int result;

    core_dump_forbid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "agent-worker");
    (void)signal(SIGINT, SIG_IGN); /* the agent ends its workers itself */
    (void)signal(SIGTERM, SIG_IGN);
    result = start(fd, &err);
    while (result == 0)
        result = serve(fd, &err);
    if (result == -ERR_NOT_FOUND)
        return 0;
    log_error("a worker ends", LOG_ERROR(&err));
    return 1;
}
