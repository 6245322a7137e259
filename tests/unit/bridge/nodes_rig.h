/* nodes_rig.h - the plan of one node: how a Kubernetes node and a Slurm record are written in
 * short, and what is expected of the plan. JSON is written with ' for ", in what is given and in
 * what is expected. */
#ifndef SLINC_TESTS_BRIDGE_NODES_RIG_H
#define SLINC_TESTS_BRIDGE_NODES_RIG_H

#include "bridge/nodes/nodes.h"
#include "bridge/world/names.h"
#include "node_bench.h"

/* ---- what Kubernetes says ---- */

#define META(more)              "'metadata':{'name':'n1','uid':'u1','resourceVersion':'5'" more "},"
#define LABEL                   ",'labels':{'" BRIDGE_EXTERNAL_LABEL "':''}"
#define PARTS(list)             ",'annotations':{'" BRIDGE_PARTITIONS_ANNOTATION "':'" list "'}"
#define TOPO(spec)              ",'annotations':{'" BRIDGE_TOPOLOGY_ANNOTATION "':'" spec "'}"
#define GOING                   ",'deletionTimestamp':'2026-01-01T00:00:00Z'"
#define TAINT                   "{'key':'" BRIDGE_TAINT "','value':'bridge','effect':'NoExecute'}"
#define TAINTED                 "'taints':[" TAINT "]"
#define CORDONED                "'unschedulable':true," TAINTED
#define SIZE(cpu, memory, more) "'allocatable':{'cpu':'" cpu "','memory':'" memory "'" more "}"
#define ADDRESS                                                                                    \
    ",'addresses':[{'type':'Hostname','address':'h'},{'type':'InternalIP','address':"              \
    "'10.0.0.1'}]"
#define COND(type, status, reason, message)                                                        \
    "{'type':'" type "','status':'" status "','reason':'" reason "','message':'" message           \
    "','lastTransitionTime':'2027-01-15T07:59:00Z'}"
#define READY                         COND("Ready", "True", "r", "m")
#define NOT_READY                     COND("Ready", "Unknown", "r", "m")
#define SAYS(status, reason, message) "," COND(BRIDGE_NODE_CONDITION, status, reason, message)

#define NODE(meta, spec, conditions)                                                               \
    "{" META(meta) "'spec':{" spec "},'status':{" SIZE("4", "8000Mi", "") ADDRESS                  \
        ",'conditions':[" conditions "]}}"
#define SIZED(size)                                                                                \
    "{" META(LABEL) "'spec':{" TAINTED "},'status':{" size ADDRESS ",'conditions':[" READY "]}}"

/* ---- what Slurm says ---- */

#define RECORD(state, reason, more)                                                                \
    "{'name':'n1','state':[" state "],'reason':'" reason "','cpus':4,'real_memory':8000,"          \
    "'address':'10.0.0.1','partitions':['all','p1']" more "}"
#define IDLE     "'IDLE','EXTERNAL','DYNAMIC_NORM'"
#define BUSY     "'MIXED','EXTERNAL','DYNAMIC_NORM'"
#define DRAINED  "'IDLE','EXTERNAL','DRAIN','DYNAMIC_NORM'"
#define DRAINING "'MIXED','EXTERNAL','DRAIN','DYNAMIC_NORM'"
#define MARK(who)                                                                                  \
    ",'extra':'{\\'v\\':1,\\'cluster\\':\\'" who "\\',\\'release\\':\\'r\\',\\'node\\':\\'n1\\'}'"
#define OURS MARK("c1")
#define MARK_OF(who, release)                                                                      \
    ",'extra':'{\\'v\\':1,\\'cluster\\':\\'" who "\\',\\'release\\':\\'" release "\\'}'"
#define CLAIMED "'taints':[{'key':'" BRIDGE_TAINT "','value':'b2','effect':'NoExecute'}]"

#define IS_UNSCHEDULABLE "slurm-bridge: Corresponding Kubernetes node (n1) is unschedulable"
#define IS_NOT_READY     "slurm-bridge: Corresponding Kubernetes node (n1) is not ready"
#define REMOVING         "slurm-bridge: removing external node n1"
#define RECREATING       "slurm-bridge: re-creating external node n1"

#define UPDATE(fields) "'detail':{'fields':{" fields "},'node':'n1'}"
#define DRAIN(text)    UPDATE("'reason':'" text "','state':['DRAIN']")
#define MARKS          UPDATE("'extra':'{\\'v\\':1,\\'cluster\\':\\'c1\\',\\'release\\':\\'r\\'}'")
#define UNDRAIN        UPDATE("'state':['UNDRAIN']")
#define TESTED         "{'op':'test','path':'/metadata/resourceVersion','value':'5'}"

enum ignorance { KNOWN, KUBE_UNSYNCED, SLURM_UNSYNCED, SUSPICIOUS, READ_LONG_AGO };

/* ---- a small world ---- */

static inline void rig_fill(struct bench *bench, const char *kube, const char *slurm,
                            enum ignorance ignorance)
{
    int64_t read_us = ignorance == READ_LONG_AGO ? SECOND_US : NOW_US;

    kube_cache_relist_begin(bench->world.nodes);
    if (kube)
        bench_put_node(bench->world.nodes, kube);
    if (ignorance != KUBE_UNSYNCED)
        kube_cache_relist_end(bench->world.nodes, 5);
    bench_fill(bench->slurm_nodes, &slurm_node_kind, &slurm, slurm ? 1 : 0, read_us);
    bench->world.facts.slurm_synced = ignorance != SLURM_UNSYNCED;
    bench->world.facts.is_suspicious = ignorance == SUSPICIOUS;
    bench->world.facts.suspicion = "502";
}

/* ---- expecting ---- */

static inline void rig_expect_actions(const struct plan *plan, const char *const *wanted)
{
    list_each (const struct action, action, &plan->actions, link) {
        assert_non_null(*wanted);
        assert_string_equal(action->what, *wanted);
        wanted++;
    }
    assert_null(*wanted);
}

static inline void rig_expect_part(const struct plan *plan, const char *wanted)
{
    auto_buf struct buf text;

    buf_init(&text, MAX_TEXT);
    plan_write(plan, &text);
    for (char *c = text.data; *c; c++)
        if (*c == '"')
            *c = '\'';
    if (!strstr(text.data, wanted))
        fail_msg("no %s in %s", wanted, text.data);
}

#endif
