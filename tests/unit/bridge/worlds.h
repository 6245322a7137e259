/* worlds.h - small worlds written as YAML, made real for plan functions.
 *
 *     name: a pod is bound where Slurm says
 *     given:
 *       now: 100                   # seconds since the bridge leads; all times count from 0
 *       config: {sharedNodes: true}
 *       facts: {agent: true, synced: false, suspicious: "slurmctld was restarted", sees: part,
 * unsubmitted: 3, kill_wait: 30, takeover_delay: 15, listed: 99, pause: 5, denied: 3, trouble: "no
 * token", trouble_since: 3} nodes: [{name: n1, slurm: s1, cpu: 4, ready: true, cordoned: false}]
 *       pods:
 *         - {name: a, cpu: 500m, memory: 1Gi, created: 10, job: 7, node: n1, phase: Running,
 *            deleted: 90, grace: 30, gates: 1, finalizer: false, tolerates: false, running: 1,
 *            terminated: 0, exit: 2, scheduler: other, owner: {kind: Job, name: j}, annotations:
 * {...}, conditions: [{type: SlurmPending, status: "True", reason: Priority, message: text}]}
 *       owners: [{kind: Job, name: j, annotations: {...}, deadline: 60}]
 *       jobs: [{id: 7, pod: a, attempt: 1, state: RUNNING, nodes: s1, reason: None,
 *               cluster: other, release: other, foreign: true, submitted: 80, ended: 90, uid: x,
 * read: 50, written: 95, missing: true, ...}]   # missing: the last whole list lacks it
 *       slurm_nodes: [{name: s1, cpus: 4, memory: 4096, state: IDLE+EXTERNAL,
 *                      partitions: slurm-bridge, extra: mark}]
 *       partitions: [{name: p, accounts: a, groups: g, flags: [ROOT_ONLY], ...}]
 *       reservations: [{name: r, users: u, accounts: a}]
 *       submits: [{pod: a, state: unresolved, attempt: 1, settles: 99, text: "...", queues: true,
 *                  answered: true, misfits: [s1], writes_refused: [50, 60],
 *                  device_misfits: [s2], devices_changed: true,   # each 30 s after the one before
 * it seen: 99}]   # seen: its pods came then; writes_refused: a Binding was, by a quota plan: a #
 * the pod whose unit is planned; by default the only one expect:                      # what the
 * plan does
 *       - cancel job 7
 *       - {do: submit default/a, has: ['"attempt":2'], lacks: ['"gres"'],
 *          after: cancel job 7}     # when that was done; `beside`: at the same time
 *     waits: a text of why nothing more is done
 *     state: bound                 # the phase of the unit, in the words of unit_phase_name
 *     again: true                  # whether it looks again by itself
 *     woken: [Slurm]               # what else wakes it, in the words of wake_write
 *     enqueues: [default/uid-b]    # the other keys that are planned next, by rank
 *     why: ['"fit":1']            # texts of the JSON that `slinc why` gets of the first pod
 *     guard: Slurm is being asked  # in these words a submit is not sent now; "": it is
 *
 * What is not said is what is usual; what nobody reads is refused (worlds_check.h). The texts that
 * an action `has` and `lacks` are of its JSON, and a patch or an update must have some. A world
 * that expects nothing names what is waited for, or else the state. A plan can be of a pod that
 * only a job tells of.
 *
 * Of groups: `podgroup: g` on a pod, and `labels`;
 *
 *     groups: [{kind: podgroup, name: g, size: 2, spec: {...}}]
 *     absent: [coscheduling]       # kinds that the cluster does not have
 *     unknown: [workload]          # kinds of which that is not known yet
 *
 * where a kind is podgroup, coscheduling, lws, jobset or workload. A job's or submit's
 * `pod: podgroup/g` and `plan: podgroup/g` name a group's unit; `pods: 3` is how many a job was
 * submitted for; `uid` is the one in its key: that of the group's object, unless it says otherwise.
 * `lent: true` on a node makes Kubernetes' rules count there.
 *
 * Of volumes: `claims: [c]` on a pod, and these, as they stand in Kubernetes; all were seen at
 * second 0:
 *
 *     claims: [{name: c, spec: {...}, status: {...}, tried: n1}]
 *     volumes: [{name: v, spec: {...}, status: {...}}]
 *     classes: [{name: s, provisioner: p, volumeBindingMode: m}]
 *
 * `tried`: the claim was told of this node, which was taken back.
 *
 * Of devices: `devices: {resource: 1}` on a pod (its only container) and on a node (allocatable),
 * `resource_claims`, `template_claims` (as in spec and status) and `extended_claim` on a pod;
 *
 *     device_classes: [{name: c, spec: {...}}]
 *     slices: [{node: n1, driver: d, pool: p, generation: 1, of: 1, devices: [gpu-0]}]
 *     resource_claims: [{name: c, pod: a, finalizer: true, spec: {...}, status: {...}}]
 *
 * `pod` owns the claim. `layout: [...]` of a job is what Slurm says it has on its nodes, and was
 * read; `gres`, `gres_used` and `threads` of a Slurm node.
 *
 * Of rules about others: `ports: [8080]`, `priority: 5`, `avoids: x` and `spreads: x` on a pod,
 * who are those with the label `app: x`; `over: zone`: by this label of nodes, which is `host`
 * when it is not said. `affinity` of a pod as it stands in Kubernetes. A submit was `sent` at this
 * second.
 *
 * Of updates of a job that waits: `said: {...}` of a submit are the annotations that job 7 was
 * submitted with, for `pods: 3`; `change_refused: true`: Slurm refused the update, and said `text`.
 * `noted: {...}` of a job are the annotations that it was submitted with as its comment notes it,
 * or the text of the note. With `changed: {...}` of either an update then carried these, and left
 * their fields unknown; `settles_note: true`: the update was made. */
#ifndef SLINC_TESTS_BRIDGE_WORLDS_H
#define SLINC_TESTS_BRIDGE_WORLDS_H

#include "bridge/world/world.h"
#include "codec/json.h"
#include "io/loop.h"

enum { WORLDS_EPOCH_S = 1767225600 }; /* 2026-01-01T00:00:00Z: second 0 of a world */

struct small_world {
    struct clock clock;
    struct loop *loop;
    struct arena arena;
    struct bridge_config config;
    struct bridge_world world;
    struct slurm_cache *jobs, *nodes, *partitions, *reservations;
    struct kube_cache *claims, *volumes, *classes;
    struct unit_states *unit_states;
    struct job_layouts *layouts;
    struct capacity *capacity;
};

/* Fails the test with a message that names what is wrong. */
void small_world_init(struct small_world *small, const struct json *given);
void small_world_done(struct small_world *small);
/* The unit key of a pod of this name, whether or not there is one; with a '/', of a group. */
const char *small_world_key(struct small_world *small, const char *pod);

#endif
