/* config_rules.h - the keys of the config file that hold lists of rules. Private to config.
 *
 * Each copies what it reads into the config's arena. -ERR_INVALID says what is wrong and where, but
 * not the key. */
#ifndef SLINC_BRIDGE_CONFIG_RULES_H
#define SLINC_BRIDGE_CONFIG_RULES_H

#include "bridge/config.h"

int config_take_labels(struct bridge_config *config, const struct json *list, struct err *err);
int config_take_priorities(struct bridge_config *config, const struct json *map, struct err *err);
int config_take_users(struct bridge_config *config, const struct json *list, struct err *err);

#endif
