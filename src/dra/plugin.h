/* plugin.h - `slinc dra` as a whole: the kubelet plugin of one node.
 *
 * Start: the hook is installed, the checkpoint read, CDI files of prepared claims written again,
 * the service socket opened, then the registrar's socket, then the slice is published. */
#ifndef SLINC_DRA_PLUGIN_H
#define SLINC_DRA_PLUGIN_H

#include "dra/node_check.h"
#include "engine/health.h"
#include "io/http.h"

struct dra_options {
    const char *node;         /* the name of the Node object */
    const char *sys;          /* /sys */
    const char *kubelet_root; /* /var/lib/kubelet */
    const char *cdi_folder;   /* /var/run/cdi */
    const char *hook_program; /* is copied to the plugin's folder */
    uint64_t seed;            /* of back-off */
    int64_t patience_us;      /* within one Prepare; 0 = 35 s */
};

struct dra_plugin;

/* Options are borrowed; loop and transport outlive the plugin. */
int dra_plugin_new(struct loop *loop, struct http_transport *api, const struct dra_options *options,
                   struct dra_plugin **ret_plugin, struct err *err);
int dra_plugin_start(struct dra_plugin *plugin, struct err *err);
void dra_plugin_free(struct dra_plugin *plugin); /* takes NULL; closes and removes the sockets */

struct engine *dra_plugin_engine(struct dra_plugin *plugin);
struct metrics *dra_plugin_metrics(struct dra_plugin *plugin);
void dra_plugin_add_health(struct dra_plugin *plugin, struct health *health);

/* For --check: what the node looks like, without a plugin that runs. */
int dra_check(const struct dra_options *options, struct node_check *ret_check, struct err *err);

#endif
