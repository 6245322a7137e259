/* test_nodes.c - the plan of one node: a Kubernetes node and a Slurm record in, actions out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nodes_rig.h"

struct row {
    const char *sentence;
    const char *kube, *slurm; /* NULL: there is none */
    enum node_intent intent;
    const char *actions[4]; /* their `what`, in order */
    const char *parts[4];   /* of the plan as JSON */
    const char *waits;      /* a part of it; NULL: it does not wait */
    enum ignorance ignorance;
};

static const struct row rows[] = {
    /* ---- made, marked and tainted ---- */
    { .sentence = "a labelled node is made in Slurm, then marked",
      .kube = NODE(LABEL, "", READY),
      .intent = NODE_SERVE,
      .actions = { "create slurm node n1", "update slurm node n1" },
      .parts = { "'detail':{'line':'NodeName=n1 NodeAddr=10.0.0.1 Sockets=1 CoresPerSocket=4 "
                 "ThreadsPerCore=1 CPUs=4 RealMemory=8000 State=EXTERNAL','node':'n1'},'stage':0",
                 MARKS ",'stage':1", "'lookAgainUs':30000000" } },
    { .sentence = "a node without the label is nothing to Slurm",
      .kube = NODE("", "", READY),
      .intent = NODE_LEAVE },
    { .sentence = "partitions become features, and topology goes with them",
      .kube = NODE(LABEL ",'annotations':{'" BRIDGE_PARTITIONS_ANNOTATION
                         "':' p1, ,p2 ,p1','" BRIDGE_TOPOLOGY_ANNOTATION "':'topo-switch:s1'}",
                   "", READY),
      .intent = NODE_SERVE,
      .actions = { "create slurm node n1", "update slurm node n1" },
      .parts = { " Feature=p1,p2 Topology=topo-switch:s1'" } },
    { .sentence = "devices of both makers become gres",
      .kube = SIZED(SIZE("8", "1Gi", ",'nvidia.com/gpu':'2','amd.com/gpu':'1','x.y/z':'5'")),
      .intent = NODE_SERVE,
      .actions = { "create slurm node n1", "update slurm node n1" },
      .parts = { " Gres=gpu:3 GresConf=count=3,name=gpu'" } },
    { .sentence = "parts of a CPU and of a MiB are not given to Slurm",
      .kube = SIZED(SIZE("3900m", "1048577Ki", "")),
      .intent = NODE_SERVE,
      .actions = { "create slurm node n1", "update slurm node n1" },
      .parts = { " CPUs=3 RealMemory=1024 " } },
    { .sentence = "without an address of its own the node gets one that nobody looks up",
      .kube = "{" META(LABEL) "'status':{" SIZE("4", "8000Mi", "") ",'conditions':[" READY "]}}",
      .intent = NODE_SERVE,
      .actions = { "create slurm node n1", "update slurm node n1" },
      .parts = { " NodeAddr=127.0.0.1 " } },
    { .sentence = "nor an IPv6 address, at which a Slurm without IPv6 would stall",
      .kube = "{" META(LABEL) "'status':{" SIZE(
          "4", "8000Mi", "") ",'conditions':[" READY "],"
                             "'addresses':[{'type':'InternalIP','address':'fd00::1'}]}}",
      .intent = NODE_SERVE,
      .actions = { "create slurm node n1", "update slurm node n1" },
      .parts = { " NodeAddr=127.0.0.1 " } },
    { .sentence = "a node that has not said what it can give is not made",
      .kube = "{" META(LABEL) "'status':{'conditions':[" READY "]}}",
      .intent = NODE_SERVE,
      .waits = "has not said what it can give" },
    { .sentence = "a cordoned node is made when it can serve",
      .kube = NODE(LABEL, "'unschedulable':true", READY),
      .intent = NODE_CORDON,
      .waits = "its Kubernetes node is unschedulable" },
    { .sentence = "what is as it should be is left alone",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE },
    { .sentence = "a node in Slurm without a mark is adopted by the label",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(IDLE, "", ""),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { MARKS } },
    { .sentence = "a node in Slurm that was made for another one goes first, and that is said",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(IDLE, "",
                      ",'extra':'{\\'v\\':1,\\'cluster\\':\\'c1\\',\\'release\\':\\'r\\',\\'node\\'"
                      ":\\'old\\'}'"),
      .intent = NODE_RETIRE,
      .actions = { "patch node n1 status", "event Warning SlurmNodeTaken n1",
                   "update slurm node n1" },
      .parts = { DRAIN(REMOVING), "Slurm node n1 is that of Kubernetes node old" },
      .waits = "it is being drained" },
    { .sentence = "another cluster's node is left alone, and that is said",
      .kube = NODE(LABEL, "", READY),
      .slurm = RECORD(IDLE, "", MARK("c2")),
      .intent = NODE_LEAVE,
      .actions = { "patch node n1 status", "event Warning SlurmNodeTaken n1" },
      .parts = { "'note':'Slurm node n1 belongs to Kubernetes cluster c2'",
                 "'reason':'SlurmNodeTaken'" },
      .waits = "belongs to Kubernetes cluster c2" },
    { .sentence = "that is said once",
      .kube = NODE(
          LABEL, "",
          READY SAYS("False", "SlurmNodeTaken", "Slurm node n1 belongs to Kubernetes cluster c2")),
      .slurm = RECORD(IDLE, "", MARK("c2")),
      .intent = NODE_LEAVE,
      .waits = "belongs to Kubernetes cluster c2" },
    { .sentence = "another cluster's node is not retired for us",
      .slurm = RECORD(IDLE, "", MARK("c2")),
      .intent = NODE_LEAVE },
    { .sentence = "nor drained for our cordon",
      .kube = NODE(
          LABEL, "'unschedulable':true",
          READY SAYS("False", "SlurmNodeTaken", "Slurm node n1 belongs to Kubernetes cluster c2")),
      .slurm = RECORD(IDLE, "", MARK("c2")),
      .intent = NODE_LEAVE,
      .waits = "belongs to Kubernetes cluster c2" },

    /* ---- kept equal ---- */
    { .sentence = "features of a busy node are changed in place",
      .kube = NODE(LABEL PARTS("p1,p2"), TAINTED, READY),
      .slurm = RECORD(BUSY, "", OURS ",'features':['p1']"),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UPDATE("'features':['p1','p2'],'features_act':['p1','p2']") },
      .waits = "not in partition p2 yet" },
    { .sentence = "for an idle node with other features it is quicker to make it anew",
      .kube = NODE(LABEL PARTS("p1,p2"), TAINTED, READY),
      .slurm = RECORD(IDLE, "", OURS ",'features':['p1']"),
      .intent = NODE_RECREATE,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(RECREATING) },
      .waits = "it is being drained" },
    { .sentence = "unless no partition is among them",
      .kube = NODE(LABEL PARTS("p1"), TAINTED, READY),
      .slurm = RECORD(IDLE, "", OURS ",'features':['p1','eu-1a']"),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UPDATE("'features':['p1'],'features_act':['p1']") } },
    { .sentence = "features of a node that others drained are changed in place",
      .kube = NODE(LABEL PARTS("p1"), TAINTED, READY SAYS("False", "Drained", "disk")),
      .slurm = RECORD(DRAINED, "disk", OURS),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UPDATE("'features':['p1'],'features_act':['p1']") } },
    { .sentence = "features in another order, and further partitions, are no difference",
      .kube = NODE(LABEL PARTS("p2,p1"), TAINTED, READY),
      .slurm = RECORD(IDLE, "", OURS ",'features':['p1','p2']"),
      .intent = NODE_SERVE,
      .waits = "not in partition p2 yet" },
    { .sentence = "without the annotation features stay as they are",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(IDLE, "", OURS ",'features':['x']"),
      .intent = NODE_SERVE },
    { .sentence = "topology is put right",
      .kube = NODE(LABEL TOPO("t:s2"), TAINTED, READY),
      .slurm = RECORD(BUSY, "", OURS ",'topology':'t:s1'"),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UPDATE("'topology_str':'t:s2'") } },
    { .sentence = "topology goes with its annotation",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(BUSY, "", OURS ",'topology':'t:s1'"),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UPDATE("'topology_str':''") } },
    { .sentence = "an address that would be looked up is replaced",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm =
          "{'name':'n1','state':[" BUSY "],'cpus':4,'real_memory':8000,'address':'n1'" OURS "}",
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UPDATE("'address':['10.0.0.1']") } },
    { .sentence = "a partition that is not there stops the creation, and that is said",
      .kube = NODE(LABEL PARTS("p1,nope"), "", READY),
      .intent = NODE_SERVE,
      .actions = { "patch node n1 status", "event Warning SlurmPartitionMissing n1" },
      .parts = { "'note':'could not validate partition \\'nope\\': partition not found'",
                 "'lookAgainUs':30000000" },
      .waits = "partition not found" },
    { .sentence = "a partition that is not there leaves the features as they are",
      .kube = NODE(LABEL PARTS("nope"), TAINTED,
                   READY SAYS("False", "SlurmPartitionMissing",
                              "could not validate partition \\'nope\\': partition not found")),
      .slurm = RECORD(IDLE, "", OURS ",'features':['p1']"),
      .intent = NODE_SERVE,
      .parts = { "'lookAgainUs':30000000" },
      .waits = "partition not found" },
    { .sentence = "when the partition is there the node is made and the complaint goes",
      .kube = NODE(LABEL PARTS("p1"), "", READY SAYS("False", "SlurmPartitionMissing", "m")),
      .intent = NODE_SERVE,
      .actions = { "patch node n1 status", "create slurm node n1", "update slurm node n1" },
      .parts = { "{'$patch':'delete','type':'SlurmAvailable'}" } },

    /* ---- cordons and readiness ---- */
    { .sentence = "a cordon drains",
      .kube = NODE(LABEL, CORDONED, READY),
      .slurm = RECORD(BUSY, "", OURS),
      .intent = NODE_CORDON,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(IS_UNSCHEDULABLE) } },
    { .sentence = "so does a node that is not ready",
      .kube = NODE(LABEL, TAINTED, NOT_READY),
      .slurm = RECORD(BUSY, "", OURS),
      .intent = NODE_CORDON,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(IS_NOT_READY) } },
    { .sentence = "a drain of ours is not repeated",
      .kube = NODE(LABEL, CORDONED, READY),
      .slurm = RECORD(DRAINING, IS_UNSCHEDULABLE, OURS),
      .intent = NODE_CORDON },
    { .sentence = "its reason follows ours",
      .kube = NODE(LABEL, TAINTED, NOT_READY),
      .slurm = RECORD(DRAINING, IS_UNSCHEDULABLE, OURS),
      .intent = NODE_CORDON,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(IS_NOT_READY) } },
    { .sentence = "a drain of ours ends with its cause",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(DRAINED, IS_UNSCHEDULABLE, OURS),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UNDRAIN } },
    { .sentence = "a drain for removal ends when the node is wanted again",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(DRAINED, REMOVING, OURS),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { UNDRAIN } },
    { .sentence = "an administrator's drain stays, and shows in Kubernetes",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(DRAINED, "disk is broken", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1 status" },
      .parts = { "{'lastTransitionTime':'2027-01-15T08:00:00Z','message':'disk is broken','reason':"
                 "'Drained','status':'False','type':'SlurmAvailable'}" } },
    { .sentence = "also one without a reason",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(DRAINED, "", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1 status" },
      .parts = { "'message':'no reason was given'" } },
    { .sentence = "an administrator's drain is not overwritten by a cordon",
      .kube = NODE(LABEL, CORDONED, READY SAYS("False", "Drained", "disk")),
      .slurm = RECORD(DRAINED, "disk", OURS),
      .intent = NODE_CORDON },
    { .sentence = "other words are told without another time",
      .kube = NODE(LABEL, TAINTED, READY SAYS("False", "Drained", "disk")),
      .slurm = RECORD(DRAINED, "fan", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1 status" },
      .parts = { "[{'message':'fan','reason':'Drained','status':'False','type':'SlurmAvailable'}"
                 "]" } },
    { .sentence = "down shows in Kubernetes, and is not drained on top",
      .kube = NODE(LABEL, CORDONED, READY),
      .slurm = RECORD("'DOWN','EXTERNAL'", "gone", OURS),
      .intent = NODE_CORDON,
      .actions = { "patch node n1 status" },
      .parts = { "'message':'gone','reason':'Down'" } },
    { .sentence = "failing shows too",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD("'IDLE','FAIL','EXTERNAL'", "soon", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1 status" },
      .parts = { "'message':'soon','reason':'Failing'" } },
    { .sentence = "what shows turns back when the node serves again",
      .kube = NODE(LABEL, TAINTED, READY SAYS("False", "Drained", "disk")),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1 status" },
      .parts = { "'status':'True','type':'SlurmAvailable'" } },
    { .sentence = "and says so once",
      .kube = NODE(LABEL, TAINTED, READY SAYS("True", "InService", "Slurm gives it work")),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE },

    /* ---- taints ---- */
    { .sentence = "the taint is added to none",
      .kube = NODE(LABEL, "", READY),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1" },
      .parts = { "[" TESTED ",{'op':'add','path':'/spec/"
                 "taints','value':[{'effect':'NoExecute','key':'" BRIDGE_TAINT
                 "','value':'bridge'}]}]" } },
    { .sentence = "the taint is added behind those of others",
      .kube = NODE(LABEL, "'taints':[{'key':'k','effect':'NoSchedule','timeAdded':'x'}]", READY),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1" },
      .parts = { "[" TESTED ",{'op':'add','path':'/spec/taints/-'" } },
    { .sentence = "a taint without a value gets ours in its place",
      .kube = NODE(LABEL,
                   "'taints':[{'key':'k','effect':'NoSchedule'},{'key':'" BRIDGE_TAINT
                   "','effect':'NoExecute'}]",
                   READY),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1" },
      .parts = { "[" TESTED ",{'op':'add','path':'/spec/taints/1/value','value':'bridge'}]" } },
    { .sentence = "a node that another bridge has tainted belongs to that, and is told",
      .kube = NODE(LABEL, CLAIMED, READY SAYS("False", "Drained", "x")),
      .intent = NODE_LEAVE,
      .actions = { "event Warning SlurmNodeClaimed n1" },
      .parts = { "'note':'bridge does not give it to Slurm: it belongs to b2, whose taint it "
                 "has'" } },
    { .sentence = "our record of it goes",
      .kube = NODE(LABEL, CLAIMED, READY),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_RETIRE,
      .actions = { "event Warning SlurmNodeClaimed n1", "update slurm node n1" },
      .waits = "another bridge claimed its Kubernetes node first; it is being drained" },
    { .sentence = "and that of the other stays",
      .kube = NODE(LABEL, CLAIMED, READY),
      .slurm = RECORD(IDLE, "", MARK_OF("c1", "ns/b2")),
      .intent = NODE_LEAVE,
      .actions = { "event Warning SlurmNodeClaimed n1" } },
    { .sentence = "a hybrid that another bridge has tainted is not drained for our cordon",
      .kube = NODE("", CLAIMED ",'unschedulable':true", READY),
      .slurm = RECORD("'MIXED'", "", ""),
      .intent = NODE_LEAVE },
    { .sentence = "the record of another release is left alone, and that is said",
      .kube = NODE(LABEL, "", READY),
      .slurm = RECORD(IDLE, "", MARK_OF("c1", "ns/b2")),
      .intent = NODE_LEAVE,
      .actions = { "patch node n1 status", "event Warning SlurmNodeTaken n1" },
      .parts = { "'note':'Slurm node n1 belongs to the bridge ns/b2 of this cluster'" },
      .waits = "belongs to the bridge ns/b2" },
    { .sentence = "a mark of a build that knew no releases is none, and gets one",
      .kube = NODE(LABEL, TAINTED, READY),
      .slurm = RECORD(IDLE, "", ",'extra':'{\\'v\\':1,\\'cluster\\':\\'c1\\'}'"),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { MARKS } },
    { .sentence = "the same key with another effect is not ours",
      .kube = NODE(LABEL, "'taints':[{'key':'" BRIDGE_TAINT "','effect':'NoSchedule'}]", READY),
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE,
      .actions = { "patch node n1" },
      .parts = { "'path':'/spec/taints/-'" } },
    { .sentence = "the taint goes when the Slurm node is gone, and with it what showed",
      .kube = NODE("", "'taints':[{'key':'k','effect':'NoSchedule'}," TAINT "]",
                   READY SAYS("False", "Drained", "x")),
      .intent = NODE_LEAVE,
      .actions = { "patch node n1", "patch node n1 status" },
      .parts = { "[" TESTED ",{'op':'remove','path':'/spec/taints/1'}]", "'$patch':'delete'" } },
    { .sentence = "a node that is made anew keeps its taint meanwhile",
      .kube = NODE(LABEL, TAINTED, READY),
      .intent = NODE_SERVE,
      .actions = { "create slurm node n1", "update slurm node n1" } },

    /* ---- nodes that have a slurmd ---- */
    { .sentence = "a hybrid is tainted and nothing else",
      .kube = NODE("", "", READY),
      .slurm = RECORD("'MIXED'", "", ""),
      .intent = NODE_SHARE,
      .actions = { "patch node n1" } },
    { .sentence = "a hybrid with the label is not resized, marked or changed",
      .kube = "{" META(LABEL PARTS("p2")) "'spec':{" TAINTED "},'status':{" SIZE(
          "64", "1Gi", "") ",'conditions':[" READY "]}}",
      .slurm = RECORD("'IDLE'", "", ""),
      .intent = NODE_SHARE },
    { .sentence = "a cordon drains a hybrid",
      .kube = NODE("", CORDONED, READY),
      .slurm = RECORD("'MIXED'", "", ""),
      .intent = NODE_SHARE,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(IS_UNSCHEDULABLE) } },
    { .sentence = "the end of the cordon ends it",
      .kube = NODE("", TAINTED, READY),
      .slurm = RECORD("'IDLE','DRAIN'", IS_UNSCHEDULABLE, ""),
      .intent = NODE_SHARE,
      .actions = { "update slurm node n1" },
      .parts = { UNDRAIN } },
    { .sentence = "a hybrid that is not ready is slurmd's business",
      .kube = NODE("", TAINTED, NOT_READY),
      .slurm = RECORD("'MIXED'", "", ""),
      .intent = NODE_SHARE },
    { .sentence = "a hybrid that went from Kubernetes stays in Slurm",
      .slurm = RECORD("'IDLE'", "", OURS),
      .intent = NODE_LEAVE },
    { .sentence = "an external node that somebody else made is shared too",
      .kube = NODE("", TAINTED, READY),
      .slurm = RECORD(IDLE, "", ""),
      .intent = NODE_SHARE },
    { .sentence = "and stays when its Kubernetes node goes",
      .slurm = RECORD(IDLE, "", ""),
      .intent = NODE_LEAVE },

    /* ---- made anew ---- */
    { .sentence = "another size: first it is drained",
      .kube = SIZED(SIZE("3", "8000Mi", "")),
      .slurm = RECORD(BUSY, "", OURS),
      .intent = NODE_RECREATE,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(RECREATING), "'lookAgainUs':5000000" },
      .waits = "it is being drained" },
    { .sentence = "a busy node that another bridge made and measured gets only a mark",
      .kube = SIZED(SIZE("3", "7000Mi", "")),
      .slurm = RECORD(BUSY, "", ""),
      .intent = NODE_SERVE,
      .actions = { "update slurm node n1" },
      .parts = { "inherited" },
      .waits = "gets it in Slurm when it is idle" },
    { .sentence = "and is then left as it is",
      .kube = SIZED(SIZE("3", "7000Mi", "")),
      .slurm = RECORD(BUSY, "",
                      ",'extra':'{\\'v\\':1,\\'cluster\\':\\'c1\\',\\'release\\':\\'r\\',\\'"
                      "inherited\\':true}'"),
      .intent = NODE_SERVE,
      .waits = "gets it in Slurm when it is idle" },
    { .sentence = "and made anew when it is idle",
      .kube = SIZED(SIZE("3", "7000Mi", "")),
      .slurm = RECORD(IDLE, "", ""),
      .intent = NODE_RECREATE,
      .actions = { "update slurm node n1", "update slurm node n1" },
      .waits = "it is being drained" },
    { .sentence = "another size: then its work ends",
      .kube = SIZED(SIZE("3", "8000Mi", "")),
      .slurm = RECORD(DRAINING, RECREATING, OURS),
      .intent = NODE_RECREATE,
      .parts = { "'lookAgainUs':5000000" },
      .waits = "still has work" },
    { .sentence = "work that is clearing up is still work",
      .kube = SIZED(SIZE("3", "8000Mi", "")),
      .slurm = RECORD("'IDLE','DRAIN','COMPLETING','EXTERNAL'", RECREATING, OURS),
      .intent = NODE_RECREATE,
      .waits = "still has work" },
    { .sentence = "another size: drained and idle, it is deleted",
      .kube = SIZED(SIZE("3", "8000Mi", "")),
      .slurm = RECORD(DRAINED, RECREATING, OURS),
      .intent = NODE_RECREATE,
      .actions = { "delete slurm node n1" },
      .parts = { "'detail':{'node':'n1'}" } },
    { .sentence = "but not on a read from before we led",
      .kube = SIZED(SIZE("3", "8000Mi", "")),
      .slurm = RECORD(DRAINED, RECREATING, OURS),
      .intent = NODE_RECREATE,
      .waits = "read before we began to lead",
      .ignorance = READ_LONG_AGO },
    { .sentence = "less memory is another size",
      .kube = SIZED(SIZE("4", "7999Mi", "")),
      .slurm = RECORD(BUSY, "", OURS),
      .intent = NODE_RECREATE,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(RECREATING) },
      .waits = "it is being drained" },
    { .sentence = "types and sockets of gres are no difference",
      .kube = SIZED(SIZE("4", "8000Mi", ",'nvidia.com/gpu':'3'")),
      .slurm = RECORD(BUSY, "", OURS ",'gres':'gpu:h100:2(S:0,1),gpu'"),
      .intent = NODE_SERVE },
    { .sentence = "a node that others drained is not made anew: their drain would be lost",
      .kube = SIZED(SIZE("3", "8000Mi", "")),
      .slurm = RECORD(DRAINED, "disk", OURS),
      .intent = NODE_RECREATE,
      .actions = { "patch node n1 status" },
      .waits = "somebody else took it out of service: disk" },
    { .sentence = "the cordon's drain serves to make it anew",
      .kube = SIZED(SIZE("3", "8000Mi", "")),
      .slurm = RECORD(DRAINED, IS_UNSCHEDULABLE, OURS),
      .intent = NODE_RECREATE,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(RECREATING) },
      .waits = "it is being drained" },
    { .sentence = "a node that says nothing of its size is not made anew",
      .kube = "{" META(LABEL) "'spec':{" TAINTED "},'status':{"
                              "'conditions':[" READY "]" ADDRESS "}}",
      .slurm = RECORD(IDLE, "", OURS),
      .intent = NODE_SERVE },

    /* ---- retired ---- */
    { .sentence = "without its label a node is drained",
      .kube = NODE("", TAINTED, READY),
      .slurm = RECORD(BUSY, "", OURS),
      .intent = NODE_RETIRE,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(REMOVING) },
      .waits = "it is being drained" },
    { .sentence = "a node on its way out gets no taint any more",
      .kube = NODE("", "", READY),
      .slurm = RECORD(DRAINING, REMOVING, OURS),
      .intent = NODE_RETIRE,
      .waits = "still has work" },
    { .sentence = "and not undrained by itself while it has work",
      .kube = NODE("", TAINTED, READY),
      .slurm = RECORD(DRAINING, REMOVING, OURS),
      .intent = NODE_RETIRE,
      .waits = "still has work" },
    { .sentence = "and deleted when idle",
      .kube = NODE("", TAINTED, READY),
      .slurm = RECORD(DRAINED, REMOVING, OURS),
      .intent = NODE_RETIRE,
      .actions = { "delete slurm node n1" },
      .parts = { "'detail':{'node':'n1'}" } },
    { .sentence = "a record whose Kubernetes node is gone is drained",
      .slurm = RECORD(BUSY, "", OURS),
      .intent = NODE_RETIRE,
      .actions = { "update slurm node n1" },
      .parts = { DRAIN(REMOVING) },
      .waits = "it is being drained" },
    { .sentence = "and deleted unless the node is there after all",
      .slurm = RECORD(DRAINED, REMOVING, OURS),
      .intent = NODE_RETIRE,
      .actions = { "delete slurm node n1" },
      .parts = { "'detail':{'node':'n1','unless':{'path':'/api/v1/nodes/n1'}}" } },
    { .sentence = "whoever drained it",
      .slurm = RECORD(DRAINED, "disk", OURS),
      .intent = NODE_RETIRE,
      .actions = { "delete slurm node n1" } },
    { .sentence = "a Kubernetes node that is being deleted is as good as gone",
      .kube = NODE(LABEL GOING, TAINTED, READY),
      .slurm = RECORD(DRAINED, REMOVING, OURS),
      .intent = NODE_RETIRE,
      .actions = { "delete slurm node n1" },
      .parts = { "'detail':{'node':'n1'}" } },
    { .sentence = "and is not made again",
      .kube = NODE(LABEL GOING, "", READY),
      .intent = NODE_LEAVE },

    /* ---- ignorance ---- */
    { .sentence = "nothing is made before Slurm is known",
      .kube = NODE(LABEL, "", READY),
      .intent = NODE_SERVE,
      .waits = "Slurm's nodes and partitions are not known yet",
      .ignorance = SLURM_UNSYNCED },
    { .sentence = "nothing is untainted before Slurm is known",
      .kube = NODE("", TAINTED, READY),
      .intent = NODE_LEAVE,
      .waits = "Slurm's nodes and partitions are not known yet",
      .ignorance = SLURM_UNSYNCED },
    { .sentence = "nothing is deleted before Kubernetes is known",
      .slurm = RECORD(DRAINED, REMOVING, OURS),
      .intent = NODE_RETIRE,
      .waits = "the nodes of Kubernetes are not known yet",
      .ignorance = KUBE_UNSYNCED },
    { .sentence = "nothing is deleted while slurmctld is suspected",
      .slurm = RECORD(DRAINED, REMOVING, OURS),
      .intent = NODE_RETIRE,
      .waits = "slurmctld may have been restarted: 502",
      .ignorance = SUSPICIOUS },
};

static void check_row(const struct row *row)
{
    struct bench bench;
    struct plan plan;
    struct err err = { .class = 0 };
    const char *why = NULL;

    bench_up(&bench);
    rig_fill(&bench, row->kube, row->slurm, row->ignorance);
    plan_init(&plan, &bench.arena);
    assert_int_equal(node_intent(&bench.world, STR("n1"), &bench.arena, &why), row->intent);
    assert_non_null(why);
    assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, &err), 0);
    rig_expect_actions(&plan, row->actions);
    for (const char *const *part = row->parts; *part; part++)
        rig_expect_part(&plan, *part);
    if (row->waits && (!plan.waits || !strstr(plan.waits, row->waits)))
        fail_msg("waits: %s", plan.waits ? plan.waits : "no");
    if (!row->waits)
        assert_null(plan.waits);
    if (row->ignorance == SLURM_UNSYNCED || row->ignorance == SUSPICIOUS)
        assert_int_equal(plan.look_again_us, 0); /* it is woken when Slurm was read */
    bench_down(&bench);
}

static void the_plan_says_what_to_do_in_each_situation(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# %s\n", rows[i].sentence);
        check_row(&rows[i]);
    }
}

/* The record of a node that now has another name in Slurm: the label was seen, so no read before
 * the deletion is needed. */
static void a_renamed_nodes_old_record_is_retired(void **state)
{
    static const char *const wanted[] = { "delete slurm node n1", NULL };
    const char *record = RECORD(DRAINED, REMOVING, OURS);
    struct bench bench;
    struct plan plan;

    bench_up(&bench);
    rig_fill(&bench, NULL, record, KNOWN);
    bench_put_node(bench.world.nodes,
                   NODE(",'labels':{'" BRIDGE_SLURM_NAME_LABEL "':'n2'}", "", READY));
    plan_init(&plan, &bench.arena);
    assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, NULL), 0);
    rig_expect_actions(&plan, wanted);
    rig_expect_part(&plan, "'detail':{'node':'n1'}");
    bench_down(&bench);
}

#define RENAMED                                                                                    \
    NODE(",'labels':{'" BRIDGE_EXTERNAL_LABEL "':'','" BRIDGE_SLURM_NAME_LABEL "':'n2'}", TAINTED, \
         READY)

/* While it has work under its old name, and says so; two records would promise it twice. */
static void a_renamed_node_gets_its_new_record_when_the_old_one_is_gone(void **state)
{
    static const char *const drained[] = { "patch node n1 status",
                                           "event Warning SlurmNameChanged n1",
                                           "update slurm node n1", NULL };
    static const char *const made[] = { "create slurm node n2", "update slurm node n2", NULL };
    const char *record = RECORD(BUSY, "", OURS);
    struct bench bench;
    struct plan plan;

    bench_up(&bench);
    rig_fill(&bench, RENAMED, record, KNOWN);
    plan_init(&plan, &bench.arena);
    assert_int_equal(nodes_plan(&bench.world, STR("n2"), &plan, NULL), 0);
    assert_true(list_is_empty(&plan.actions));
    plan_init(&plan, &bench.arena);
    assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, NULL), 0);
    rig_expect_actions(&plan, drained);
    rig_expect_part(&plan, "Slurm node n1 has work");
    slurm_cache_seen_gone(bench.slurm_nodes, "n1", NOW_US + 1);
    plan_init(&plan, &bench.arena);
    assert_int_equal(nodes_plan(&bench.world, STR("n2"), &plan, NULL), 0);
    rig_expect_actions(&plan, made);
    bench_down(&bench);
}

#define EVIL                                                                                       \
    "{'metadata':{'name':'evil','uid':'u0','resourceVersion':'4','labels':{"                       \
    "'" BRIDGE_EXTERNAL_LABEL "':'','" BRIDGE_SLURM_NAME_LABEL "':'n1'}},'spec':{},"               \
    "'status':{" SIZE("64", "8000Mi", "") ",'conditions':[" READY "]}}"

/* A kubelet may write so on its own node. */
static void a_record_stays_with_the_node_of_its_mark_and_the_other_hears_so(void **state)
{
    static const char *const told[] = { "patch node evil status",
                                        "event Warning SlurmNodeTaken evil", NULL };
    static const char *const retired[] = { "patch node evil status",
                                           "event Warning SlurmNodeTaken evil",
                                           "update slurm node n1", NULL };
    const char *record = RECORD(IDLE, "", OURS);
    struct bench bench;
    struct plan plan;

    bench_up(&bench);
    rig_fill(&bench, NODE(LABEL, TAINTED, READY), record, KNOWN);
    bench_put_node(bench.world.nodes, EVIL);
    plan_init(&plan, &bench.arena);
    assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, NULL), 0);
    rig_expect_actions(&plan, told);
    rig_expect_part(&plan, "Slurm node n1 is that of Kubernetes node n1");
    /* Not even when that is gone: its record goes first, with what runs there. */
    rig_fill(&bench, EVIL, record, KNOWN);
    plan_init(&plan, &bench.arena);
    assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, NULL), 0);
    rig_expect_actions(&plan, retired);
    rig_expect_part(&plan, DRAIN(REMOVING));
    bench_down(&bench);
}

static void emit_no_slice(const struct kube_object *object, kube_index_emit emit, void *context) {}

/* They would reach Slurm only when the node is idle. */
static void a_node_is_made_when_devices_were_read(void **state)
{
    static const char *const none[] = { NULL };
    static const char *const made[] = { "create slurm node n1", "update slurm node n1", NULL };
    static const struct {
        enum watch_state state;
        int64_t led_s;
        const char *const *actions;
    } cases[] = {
        { WATCH_UNKNOWN, 10, none },
        { WATCH_UNKNOWN, 60, made }, /* nobody may read them */
        { WATCH_PRESENT, 10, made },
        { WATCH_ABSENT, 10, made },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench bench;
        struct plan plan;

        bench_up(&bench);
        bench.world.optional[OPTIONAL_SLICES] =
            (struct optional){ kube_cache_new(&device_slice_kind, &bench.clock), cases[i].state };
        bench.world.device_indexes.slices_by_node =
            kube_cache_add_index(bench.world.optional[OPTIONAL_SLICES].cache, emit_no_slice);
        bench.world.facts.leading_us = NOW_US - cases[i].led_s * SECOND_US;
        rig_fill(&bench, NODE(LABEL, TAINTED, READY), NULL, KNOWN);
        plan_init(&plan, &bench.arena);
        assert_int_equal(nodes_plan(&bench.world, STR("n1"), &plan, NULL), 0);
        rig_expect_actions(&plan, cases[i].actions);
        assert_int_equal(plan.waits != NULL, cases[i].actions == none);
        kube_cache_free(bench.world.optional[OPTIONAL_SLICES].cache);
        bench_down(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_says_what_to_do_in_each_situation),
        cmocka_unit_test(a_renamed_nodes_old_record_is_retired),
        cmocka_unit_test(a_renamed_node_gets_its_new_record_when_the_old_one_is_gone),
        cmocka_unit_test(a_record_stays_with_the_node_of_its_mark_and_the_other_hears_so),
        cmocka_unit_test(a_node_is_made_when_devices_were_read),
    };

    return cmocka_run_group_tests_name("nodes", tests, NULL, NULL);
}
