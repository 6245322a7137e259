/* kubelet_api.h - the messages between the kubelet and a DRA plugin, as tables for codec/protobuf.
 *
 * Services pluginregistration.Registration (v1), k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin, and
 * v1alpha1.DRAResourceHealth. */
#ifndef SLINC_DRA_KUBELET_API_H
#define SLINC_DRA_KUBELET_API_H

#include "codec/protobuf.h"

#define KUBELET_GET_INFO     "/pluginregistration.Registration/GetInfo"
#define KUBELET_NOTIFY       "/pluginregistration.Registration/NotifyRegistrationStatus"
#define KUBELET_PREPARE      "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define KUBELET_UNPREPARE    "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"
#define KUBELET_WATCH_HEALTH "/v1alpha1.DRAResourceHealth/NodeWatchResources"

struct kubelet_plugin_info {
    struct str type, name, endpoint;
    struct protobuf_list versions; /* struct str */
};

struct kubelet_registration_status {
    bool is_registered;
    struct str error;
};

struct kubelet_claim {
    struct str ns, uid, name;
};

struct kubelet_claims {          /* the request of Prepare and of Unprepare */
    struct protobuf_list claims; /* struct kubelet_claim */
};

struct kubelet_device {
    struct protobuf_list requests; /* struct str */
    struct str pool, device;
    struct protobuf_list cdi_ids; /* struct str */
    struct str share_id;
};

struct kubelet_claim_answer {     /* Unprepare answers without devices */
    struct protobuf_list devices; /* struct kubelet_device */
    struct str error;
};

struct kubelet_answer_entry { /* of the map by UID */
    struct str uid;
    struct kubelet_claim_answer *answer;
};

struct kubelet_answers {
    struct protobuf_list claims; /* struct kubelet_answer_entry */
};

struct kubelet_health_device {
    struct str pool, device;
};

enum kubelet_health { KUBELET_HEALTH_UNKNOWN, KUBELET_HEALTHY, KUBELET_UNHEALTHY };

struct kubelet_device_health {
    struct kubelet_health_device *device;
    int64_t health; /* enum kubelet_health */
    int64_t updated_s;
    int64_t timeout_s;
    struct str message;
};

struct kubelet_healths {
    struct protobuf_list devices; /* struct kubelet_device_health */
};

extern const struct protobuf_message kubelet_plugin_info_message,
    kubelet_registration_status_message, kubelet_claims_message, kubelet_prepare_message,
    kubelet_unprepare_message, kubelet_healths_message;

#endif
