/* fuzz_agent_request.c - any request to the agent, the first byte of which names the call, has an
 * answer in JSON, and asks nothing of libslurm that the fake one (agent/tests) does not allow.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include "calls.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = { 200, 404, 501 };
    auto_json_doc struct json_doc *doc = NULL;
    struct agent_answer answer;
    bool is_known = false;

    if (size == 0)
        return 0;
    agent_answer_init(&answer);
    calls_run((enum agent_call)(data[0] - 'A'), 7, (struct str){ (const char *)data + 1, size - 1 },
              &answer);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        is_known = is_known || answer.status == statuses[i];
    must(is_known);
    must(json_parse(buf_str(&answer.body), FRAME_MAX, &doc, NULL) == 0);
    must(json_is_array(json_get(json_root(doc), "errors")));
    agent_answer_done(&answer);
    return 0;
}
