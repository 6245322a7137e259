/* definitions.c - how new the definitions of our custom resources are. */
#include "cli/definitions.h"

const char *const definitions_names[DEFINITIONS_COUNT] = {
    "accountings." DEFINITIONS_GROUP, "controllers." DEFINITIONS_GROUP,
    "loginsets." DEFINITIONS_GROUP,   "nodesets." DEFINITIONS_GROUP,
    "restapis." DEFINITIONS_GROUP,    "tokens." DEFINITIONS_GROUP,
};

int64_t definitions_level(const struct json *definition)
{
    struct str text =
        json_str(json_at(definition, "metadata", "annotations", "slinc.slurm.net/definitions"));
    int64_t level = 0;

    (void)str_to_i64(text, 0, INT32_MAX, &level, NULL);
    return level;
}
