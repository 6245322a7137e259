/* kubelet_api.c - tables of the kubelet's messages: number, type and place of each field. */
#include "dra/kubelet_api.h"

#define AT(type, member)               offsetof(struct type, member)
#define TEXT(number, type, member)     { number, PROTOBUF_STRING, false, AT(type, member), NULL }
#define TEXTS(number, type, member)    { number, PROTOBUF_STRING, true, AT(type, member), NULL }
#define NUMBER(number, type, member)   { number, PROTOBUF_INT64, false, AT(type, member), NULL }
#define ONE(number, type, member, of)  { number, PROTOBUF_MESSAGE, false, AT(type, member), &(of) }
#define MANY(number, type, member, of) { number, PROTOBUF_MESSAGE, true, AT(type, member), &(of) }
#define END                            { .number = 0 }

#define MESSAGE(variable, name, type, ...)                                                         \
    const struct protobuf_message variable = {                                                     \
        name, sizeof(struct type), (const struct protobuf_field[]){ __VA_ARGS__, END }             \
    }

MESSAGE(kubelet_plugin_info_message, "PluginInfo", kubelet_plugin_info,
        TEXT(1, kubelet_plugin_info, type), TEXT(2, kubelet_plugin_info, name),
        TEXT(3, kubelet_plugin_info, endpoint), TEXTS(4, kubelet_plugin_info, versions));

MESSAGE(kubelet_registration_status_message, "RegistrationStatus", kubelet_registration_status,
        { 1, PROTOBUF_BOOL, false, AT(kubelet_registration_status, is_registered), NULL },
        TEXT(2, kubelet_registration_status, error));

static MESSAGE(claim_message, "Claim", kubelet_claim, TEXT(1, kubelet_claim, ns),
               TEXT(2, kubelet_claim, uid), TEXT(3, kubelet_claim, name));

MESSAGE(kubelet_claims_message, "Claims", kubelet_claims,
        MANY(1, kubelet_claims, claims, claim_message));

static MESSAGE(device_message, "Device", kubelet_device, TEXTS(1, kubelet_device, requests),
               TEXT(2, kubelet_device, pool), TEXT(3, kubelet_device, device),
               TEXTS(4, kubelet_device, cdi_ids), TEXT(5, kubelet_device, share_id));

static MESSAGE(prepared_message, "NodePrepareResourceResponse", kubelet_claim_answer,
               MANY(1, kubelet_claim_answer, devices, device_message),
               TEXT(2, kubelet_claim_answer, error));

static MESSAGE(prepared_entry_message, "ClaimsEntry", kubelet_answer_entry,
               TEXT(1, kubelet_answer_entry, uid),
               ONE(2, kubelet_answer_entry, answer, prepared_message));

MESSAGE(kubelet_prepare_message, "NodePrepareResourcesResponse", kubelet_answers,
        MANY(1, kubelet_answers, claims, prepared_entry_message));

static MESSAGE(unprepared_message, "NodeUnprepareResourceResponse", kubelet_claim_answer,
               TEXT(1, kubelet_claim_answer, error));

static MESSAGE(unprepared_entry_message, "ClaimsEntry", kubelet_answer_entry,
               TEXT(1, kubelet_answer_entry, uid),
               ONE(2, kubelet_answer_entry, answer, unprepared_message));

MESSAGE(kubelet_unprepare_message, "NodeUnprepareResourcesResponse", kubelet_answers,
        MANY(1, kubelet_answers, claims, unprepared_entry_message));

static MESSAGE(health_device_message, "DeviceIdentifier", kubelet_health_device,
               TEXT(1, kubelet_health_device, pool), TEXT(2, kubelet_health_device, device));

static MESSAGE(device_health_message, "DeviceHealth", kubelet_device_health,
               ONE(1, kubelet_device_health, device, health_device_message),
               NUMBER(2, kubelet_device_health, health),
               NUMBER(3, kubelet_device_health, updated_s),
               NUMBER(4, kubelet_device_health, timeout_s),
               TEXT(5, kubelet_device_health, message));

MESSAGE(kubelet_healths_message, "NodeWatchResourcesResponse", kubelet_healths,
        MANY(1, kubelet_healths, devices, device_health_message));
