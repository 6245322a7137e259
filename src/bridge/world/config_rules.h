/* config_rules.h - the keys of the config file that hold lists of rules, private to config; and
 * what a label of nodeFeatures means.
 *
 * Each of the first copies what it reads into the config's arena. -ERR_INVALID says what is wrong
 * and where, but not the key. */
#ifndef SLINC_BRIDGE_CONFIG_RULES_H
#define SLINC_BRIDGE_CONFIG_RULES_H

#include "bridge/world/config.h"

int config_take_labels(struct bridge_config *config, const struct json *list, struct err *err);
int config_take_priorities(struct bridge_config *config, const struct json *map, struct err *err);
int config_take_users(struct bridge_config *config, const struct json *list, struct err *err);

/* The feature that a label gives: zone=eu-1a gives eu-1a, cpu.avx512=true gives cpu.avx512, and
 * =false none: "". Borrowed from both. */
struct str config_feature_of(struct str key, struct str value);

#endif
