"""Ways past Slurm to a node that is lent to it, tried by somebody who may do anything with pods in two namespaces: one that the bridge
manages, and one that it does not; and ways from one node to others, tried by a kubelet and by `slinc dra`. The table in docs/security.md names
the lock of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from bridge import JOB_LABEL, TAINT, Site, condition
from replica import answer_of, token_of
from slincdev.common import Fail
from slincdev.components import NODE as REAL
from slincdev.kube import Api, ApiError
from slincdev.parts import kubectl
from slincdev.release import HOME, NAME, SCHEDULER
from terminal import config_of
from test_bridge_chart import ELSEWHERE, MANAGED, Chart, installed
from waits import wait_for

LENT = f"/api/v1/namespaces/{HOME}/configmaps/slurm-bridge-lent-nodes"
EVERYTHING = [{"operator": "Exists"}]
OUR_TAINT = [{"key": TAINT, "operator": "Exists"}]
DENIED, TAINTED = "is lent to Slurm", "may tolerate slinky.slurm.net/managed-node"


class Tenant:
    """A service account that may do all with pods, and with what makes pods, in a namespace."""

    def __init__(self, site: Site, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self.folder = site.cluster, namespace, folder
        api = site.api
        api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "tenant"}})
        api.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles", {"metadata": {"name": "tenant"}, "rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/status", "pods/binding", "bindings", "pods/resize"], "verbs": ["*"]},
            {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": ["*"]},
            {"apiGroups": ["apps"], "resources": ["deployments", "daemonsets"], "verbs": ["*"]}]})
        api.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {
            "metadata": {"name": "tenant"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}]})
        self.config = config_of(site.cluster, folder, namespace, "tenant")

    def kubectl(self, *words: object) -> str:
        return kubectl(self.cluster, f"--kubeconfig={self.config}", "-n", self.namespace, *words)

    def make(self, body: dict) -> dict:
        file = self.folder / "object.json"
        file.write_text(json.dumps(body))
        return json.loads(self.kubectl("create", "-f", file, "-o", "json"))

    def bind(self, pod: str, node: str, path: str) -> str:
        """By one of the two paths to do so."""
        file = self.folder / "binding.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}))
        return self.kubectl("create", "--raw", f"/api/v1/namespaces/{self.namespace}/{path}", "-f", file)


CLOSED = {"roots": ("RootOnly=YES", "RootOnly"), "rich": ("AllowAccounts=rich", "AllowAccounts"), "staff": ("AllowGroups=root", "AllowGroups")}


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    made = Site(cluster, slurm, MANAGED)
    for partition, (closed, _) in CLOSED.items():  # before the bridge reads them
        made.scontrol("create", f"PartitionName={partition}", "Nodes=ALL", closed)
    return made


@pytest.fixture(scope="module")
def release(site) -> Iterator[Chart]:
    # The first installation of this API server: after an uninstall it would not find the names of lent nodes (docs/security.md).
    with installed(site) as chart:
        yield chart


@pytest.fixture(scope="module")
def inside(release, site, tmp_path_factory) -> Tenant:
    """In the managed namespace."""
    return Tenant(site, MANAGED, tmp_path_factory.mktemp("inside"))


@pytest.fixture(scope="module")
def outside(release, site, tmp_path_factory) -> Tenant:
    return Tenant(site, ELSEWHERE, tmp_path_factory.mktemp("outside"))


def body(site: Site, name: str, metadata: dict | None = None, **spec: object) -> dict:
    """A plain pod that sleeps."""
    made = site.pod(name, "sleep", "100000", **({"schedulerName": "default-scheduler", "tolerations": []} | spec))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name} | (metadata or {}), "spec": made["spec"]}


def of(kind: str, version: str = "apps/v1") -> dict:
    return {"ownerReferences": [{"apiVersion": version, "kind": kind, "name": "forged", "uid": "forged", "controller": True}]}


@pytest.fixture(scope="module", autouse=True)
def lent(release, site) -> None:
    wait_for("the node is in Slurm", 120, lambda: site.is_registered(REAL))
    wait_for("the policy knows it", 60, lambda: REAL in (site.api.get(LENT).get("data") or {}))


def test_a_pod_that_claims_to_belong_to_a_node_is_placed_by_slurm(inside, site, eventually):
    # Of a group that the server does not have, or the garbage collector would delete the pod of an owner that does not exist.
    made = inside.make(body(site, "forged", of("DaemonSet", "x.y/v1"), nodeName=REAL, tolerations=EVERYTHING))
    assert "nodeName" not in made["spec"] and made["spec"]["schedulerName"] == SCHEDULER
    made = eventually("it has a job", lambda: JOB_LABEL in (site.see("forged") or {}).get("metadata", {}).get("labels", {}) and site.see("forged"))
    assert site.job(made)["job_state"]
    inside.kubectl("delete", "pod", "forged", "--wait=false")
    eventually("it is gone", lambda: site.see("forged") is None)
    made = inside.make(body(site, "orphan", of("DaemonSet"), nodeName=REAL, tolerations=EVERYTHING))
    assert "nodeName" not in made["spec"] and made["spec"]["schedulerName"] == SCHEDULER
    inside.kubectl("delete", "pod", "orphan", "--wait=false", "--ignore-not-found")


def test_an_annotation_makes_no_pod_somebody_elses(inside, site):
    for annotation, value in (("user-id", "root"), ("group-id", "0"), ("priority", "100"), ("nice", "-1")):
        with pytest.raises(Fail, match=f"slurmjob.slinky.slurm.net/{annotation}: annotations may say no"):
            inside.make(body(site, "forged", {"annotations": {f"slurmjob.slinky.slurm.net/{annotation}": value}}))


def test_a_partition_that_is_not_the_users_is_refused_by_its_name(inside, site, eventually):
    for partition, (_, why) in CLOSED.items():
        inside.make(body(site, partition, {"annotations": {"slurmjob.slinky.slurm.net/partition": partition}}))
        eventually(f"{partition} is closed", lambda: f'partition "{partition}" is not open to the job\'s user ({why})'
                   in condition(site.see(partition), "SlurmPending")["message"])
        assert JOB_LABEL not in site.see(partition)["metadata"].get("labels", {})
    site.scontrol("update", "PartitionName=staff", "AllowGroups=ALL")
    eventually("Slurm opens it", lambda: "not open" not in condition(site.see("staff"), "SlurmPending")["message"])
    inside.kubectl("delete", "pod", *CLOSED, "--wait=false")


def test_nobody_forges_who_made_a_pod(inside, outside, site):
    creator, forged = "scheduler.slinky.slurm.net/creator", {"annotations": {"scheduler.slinky.slurm.net/creator": "alice\nadmins"}}
    made = inside.make(body(site, "signed", forged))
    assert made["metadata"]["annotations"][creator].split("\n")[:2] == [f"system:serviceaccount:{MANAGED}:tenant", "system:serviceaccounts"]
    for patch in ({creator: "alice"}, {creator: None}):
        with pytest.raises(Fail, match="is the webhook's to write"):
            inside.kubectl("patch", "pod", "signed", "--type=merge", "-p", json.dumps({"metadata": {"annotations": patch}}))
    inside.kubectl("patch", "pod", "signed", "--type=merge", "-p", json.dumps({"metadata": {"annotations": {"other": "word"}}}))
    with pytest.raises(Fail, match="is the webhook's to write"):  # where the webhook does not write it
        outside.make(body(site, "signed", forged))
    inside.kubectl("delete", "pod", "signed", "--wait=false")


def test_a_pod_stays_with_whoever_made_its_job(inside, site, eventually):
    """A Job of the tenant and one of somebody else, whose name the tenant wants to have."""
    creator, forged = "scheduler.slinky.slurm.net/creator", json.dumps({"metadata": {"annotations": {"scheduler.slinky.slurm.net/creator": "alice"}}})
    jobs, pods = f"/apis/batch/v1/namespaces/{MANAGED}/jobs", f"/api/v1/namespaces/{MANAGED}/pods"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mine"}, "spec": {"template": {
        "metadata": {"annotations": {creator: "alice"}}, "spec": body(site, "", restartPolicy="Never", schedulingGates=[{"name": "example.com/held"}])["spec"]}}}
    mine = inside.make(job)
    theirs = site.api.post(jobs, job | {"metadata": {"name": "theirs"}, "spec": job["spec"] | {"suspend": True}})
    owned = eventually("the Job has a pod", lambda: [one for one in site.api.get(pods)["items"] if one["metadata"].get("ownerReferences", [{}])[0].get("uid") == mine["metadata"]["uid"]])[0]
    name, word = owned["metadata"]["name"], "\n" + mine["metadata"]["uid"]
    assert owned["metadata"]["annotations"][creator] == word and mine["metadata"]["annotations"][creator].startswith(f"system:serviceaccount:{MANAGED}:tenant\n")
    for kind, one in (("pod", name), ("job", "mine")):
        for words in ([], ["--subresource=status"]):
            with pytest.raises(Fail, match="is the webhook's to write"):
                inside.kubectl("patch", kind, one, *words, "--type=merge", "-p", forged)
    uid = theirs["metadata"]["uid"]
    inside.kubectl("patch", "pod", name, "--type=merge", "-p", json.dumps({"metadata": {
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "theirs", "uid": uid, "controller": True}],
        "labels": {"batch.kubernetes.io/controller-uid": uid, "controller-uid": uid}}}))
    kept = (site.see(name) or {"metadata": {"annotations": {creator: word}}})["metadata"]["annotations"]
    assert kept[creator] == word  # the bridge follows it to no other Job
    for one in ("mine", "theirs"):
        site.api.delete(f"{jobs}/{one}", {"propagationPolicy": "Background"})


def test_nobody_but_a_kubelet_makes_a_mirror(inside, site):
    with pytest.raises(Fail, match="must set spec.nodeName if mirror pod annotation is set"):  # ours took the node away
        inside.make(body(site, "mirror", {"annotations": {"kubernetes.io/config.mirror": "x"}}, nodeName=REAL, tolerations=EVERYTHING))


@pytest.mark.parametrize("owner", ["", "DaemonSet"])
def test_nobody_names_a_lent_node(outside, site, owner):
    with pytest.raises(Fail, match=DENIED):
        outside.make(body(site, "named", of(owner) if owner else None, nodeName=REAL))


def test_nobody_binds_to_a_lent_node(outside, site, eventually):
    outside.make(body(site, "unbound", schedulerName="nobody"))
    for path in ("pods/unbound/binding", "bindings"):
        with pytest.raises(Fail, match=DENIED):
            outside.bind("unbound", REAL, path)
    # what names our scheduler is placed by it alone
    outside.make(body(site, "ours", schedulerName=SCHEDULER, schedulingGates=[{"name": "example.com/wait"}]))
    with pytest.raises(Fail, match=DENIED):
        outside.bind("ours", REAL, "pods/ours/binding")
    outside.kubectl("delete", "pod", "unbound", "ours", "--wait=false")


@pytest.mark.parametrize("tolerations", [EVERYTHING, OUR_TAINT, [{"key": TAINT, "value": SCHEDULER, "effect": "NoExecute"}]])
def test_no_pod_gains_a_toleration_of_the_taint(outside, site, eventually, tolerations):
    with pytest.raises(Fail, match=TAINTED):
        outside.make(body(site, "tolerant", tolerations=tolerations))
    outside.make(body(site, "later", schedulerName="nobody"))
    patch = [{"op": "add", "path": "/spec/tolerations", "value": tolerations + [
        {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for state in ("not-ready", "unreachable")]}]
    with pytest.raises(Fail, match=TAINTED):
        outside.kubectl("patch", "pod", "later", "--type=json", "-p", json.dumps(patch))
    outside.kubectl("delete", "pod", "later", "--wait=false")


def test_no_controller_does_it_for_them_but_that_of_daemonsets(outside, release, site, eventually):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": body(site, "", tolerations=EVERYTHING)["spec"] | {"restartPolicy": "Always"}}
    workload = {"apiVersion": "apps/v1", "metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}}
    outside.make(workload | {"kind": "Deployment"})
    path = f"/apis/apps/v1/namespaces/{ELSEWHERE}/deployments/x"
    eventually("the deployment says why", lambda: any(TAINTED in one.get("message", "") for one in release.api.get(path).get("status", {}).get("conditions", [])))
    outside.kubectl("delete", "deployment", "x")
    outside.make(workload | {"kind": "DaemonSet"})  # docs/security.md: what remains possible
    path = f"/api/v1/namespaces/{ELSEWHERE}/pods?labelSelector=app%3Dx"
    eventually("it runs there", lambda: any(one["spec"].get("nodeName") == REAL for one in release.api.get(path)["items"]))
    outside.kubectl("delete", "daemonset", "x")


def test_plain_pods_and_the_cluster_itself_are_left_alone(outside, release, site):
    outside.make(body(site, "plain"))
    outside.make(body(site, "other", nodeName="node-that-is-not-lent"))
    outside.kubectl("label", "pod", "plain", "a=b")
    outside.kubectl("delete", "pod", "plain", "other", "--wait=false")
    made = release.api.post("/api/v1/namespaces/kube-system/pods", body(site, "system", nodeName=REAL, tolerations=EVERYTHING))
    assert made["spec"]["nodeName"] == REAL
    release.api.delete("/api/v1/namespaces/kube-system/pods/system", {"gracePeriodSeconds": 0})


def test_nobody_on_the_network_reads_what_the_bridge_thinks(outside, release, site):
    """/debug names the pods and jobs of everybody. A tenant has tokens of its own, for every audience."""
    plain, ours = (token_of(site.cluster, ELSEWHERE, "tenant", audience) for audience in ("", "slinc.slurm.net"))
    shown = [({}, 401), ({"X_Remote_User": "system:admin", "X_Remote_Group": "system:masters"}, 401), ({"Authorization": "Bearer nonsense"}, 401),
             ({"Authorization": f"Bearer {plain}"}, 403), ({"Authorization": f"Bearer {ours}"}, 403), ({"X_Slinc_Token": plain}, 401),
             ({"X_Slinc_Token": ours}, 403)]
    reader = token_of(site.cluster, HOME, f"{SCHEDULER}-debug")
    for pod in release.pods():
        host = site.api.get(f"/api/v1/namespaces/{HOME}/pods/{pod}")["status"]["podIP"]
        for path in ("/debug/state", "/debug/why?rules", "/debug/why?pod=a%2Fb"):
            for headers, status in shown:
                told = answer_of(host, 8080, path, **headers)
                assert (told[0], "units" in told[1]) == (status, False), f"{path} {headers}: {told}"
                assert answer_of(host, 8081, path, **headers)[0] == 404
        assert "units" in answer_of(host, 8080, "/debug/state", Authorization=f"Bearer {reader}")[1]
        assert [answer_of(host, 8081, path, Authorization=f"Bearer {reader}")[0] for path in ("/debug/state", "/metrics", "/healthz")] == [404, 404, 200]
    with pytest.raises(Fail, match="forbidden"):
        outside.kubectl("create", "token", f"{SCHEDULER}-debug", "-n", HOME)


SLURM_NAME, PARTITIONS, LABEL = "slinky.slurm.net/slurm-nodename", "scheduler.slinky.slurm.net/external-node-partitions", "scheduler.slinky.slurm.net/external-node"


@pytest.mark.parametrize(("field", "words"), [
    ("labels", ["label", "node", REAL, f"{SLURM_NAME}=victim"]),
    ("labels", ["label", "node", REAL, "--overwrite", f"{LABEL}=no"]),
    ("labels", ["label", "node", REAL, f"{LABEL}-"]),
    ("annotations", ["annotate", "node", REAL, "--overwrite", f"{PARTITIONS}=all"]),
])
def test_a_kubelet_does_not_say_what_its_node_is_in_slurm(release, site, field, words):
    with pytest.raises(Fail, match=f"a kubelet may not change {field} of slinky.slurm.net"):
        kubectl(site.cluster, f"--as=system:node:{REAL}", "--as-group=system:nodes", *words)


def test_nor_does_it_by_its_status(release, site):
    kubelet = site.cluster.api()
    kubelet.headers |= {"Impersonate-User": f"system:node:{REAL}", "Impersonate-Group": "system:nodes"}
    with pytest.raises(ApiError, match="a kubelet may not change labels of slinky.slurm.net"):
        kubelet.merge(f"/api/v1/nodes/{REAL}/status", {"metadata": {"labels": {SLURM_NAME: "victim"}}})


@pytest.mark.parametrize(("field", "metadata", "spec"), [
    ("labels", {"labels": {SLURM_NAME: "victim"}}, {}),
    ("taints", {}, {"taints": [{"key": TAINT, "value": SCHEDULER, "effect": "NoExecute"}]}),
    ("", {"labels": {"example.com/rack": "1"}}, {"taints": [{"key": "example.com/new", "effect": "NoSchedule"}]}),
])
def test_nor_when_it_registers(release, site, tmp_path, field, metadata, spec):
    file = tmp_path / "node.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "attacker"} | metadata, "spec": spec}))
    words = ("--as=system:node:attacker", "--as-group=system:nodes", "create", "--dry-run=server", "-f", file)
    if field:
        with pytest.raises(Fail, match=f"a kubelet may not change {field} of slinky.slurm.net"):
            kubectl(site.cluster, *words)
    else:
        kubectl(site.cluster, *words)


def test_a_kubelet_writes_what_is_not_ours_and_people_write_what_is(release, site):
    kubectl(site.cluster, f"--as=system:node:{REAL}", "--as-group=system:nodes", "label", "node", REAL, "example.com/rack=1")
    kubectl(site.cluster, "label", "node", REAL, "example.com/rack-", f"{SLURM_NAME}={REAL}")
    kubectl(site.cluster, "label", "node", REAL, f"{SLURM_NAME}-")


def test_slinc_dra_changes_the_slices_of_its_own_node_alone(release, site, tmp_path):
    release.apply("upgrade", "dra.enabled=true", "dra.nodeSelector.nowhere=x", "nodePolicy.mode=Deny")
    account, slices = "slurm-bridge-dra", "/apis/resource.k8s.io/v1/resourceslices"
    alone = "may change the ResourceSlices of this node alone"
    pods = f"/api/v1/namespaces/{HOME}/pods"
    spec = body(site, "", nodeName=REAL, tolerations=EVERYTHING, serviceAccountName=account)["spec"]
    uid = release.api.post(pods, {"metadata": {"name": "plugin"}, "spec": spec})["metadata"]["uid"]

    def plugin(*bound: str) -> Api:
        """As a pod of the plugin, or with a token that says of no pod."""
        token = kubectl(site.cluster, "-n", HOME, "create", "token", account, *bound).strip()
        return Api(release.api.host, release.api.port, Path(json.loads(Path(site.cluster.admin_config).read_text())["clusters"][0]["cluster"]["certificate-authority"]), token)

    def slice_of(node: str, driver: str = "cores.slinky.slurm.net") -> dict:
        return {"metadata": {"name": f"{node}-tried"}, "spec": {"driver": driver, "nodeName": node, "devices": [{"name": "a"}],
                                                                 "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}

    own = plugin("--bound-object-kind=Pod", "--bound-object-name=plugin", f"--bound-object-uid={uid}")
    def is_denied() -> bool:
        try:
            own.post(f"{slices}?dryRun=All", slice_of("other"))
        except ApiError as error:
            return alone in str(error)
        return False

    wait_for("the API server knows the policy", 30, is_denied)
    try:
        own.post(slices, slice_of(REAL))
        own.merge(f"{slices}/{REAL}-tried", {"spec": {"pool": {"generation": 2}}})
        site.api.post(slices, slice_of("victim"))
        for api, tried in ((own, lambda api: api.post(slices, slice_of("other"))),
                           (own, lambda api: api.merge(f"{slices}/victim-tried", {"spec": {"pool": {"generation": 2}}})),
                           (own, lambda api: api.delete(f"{slices}/victim-tried")),
                           (plugin(), lambda api: api.delete(f"{slices}/{REAL}-tried"))):
            with pytest.raises(ApiError, match=alone):
                tried(api)
        with pytest.raises(ApiError, match="of the driver cores.slinky.slurm.net alone"):
            own.post(slices, slice_of(REAL, "gpu.example.com") | {"metadata": {"name": "gpus"}})
        own.delete(f"{slices}/{REAL}-tried")
    finally:
        site.api.delete(f"{slices}/victim-tried")
        release.api.delete(f"{pods}/plugin", {"gracePeriodSeconds": 0})


def test_an_upgrade_keeps_what_is_denied_and_may_only_warn(outside, release, site, eventually):
    release.apply("upgrade")
    assert release.api.get(LENT)["data"] == {REAL: ""}
    with pytest.raises(Fail, match=DENIED):
        outside.make(body(site, "again", nodeName=REAL))
    release.apply("upgrade", "nodePolicy.mode=Warn")
    eventually("it may", lambda: outside.make(body(site, "warned", nodeName=REAL)))
    outside.kubectl("delete", "pod", "warned", "--wait=false", "--ignore-not-found")  # the taint may have evicted it


def test_the_policy_goes_with_the_release(release, site):
    release.helm("uninstall", NAME, "--wait")
    assert not site.api.exists(LENT)
    for policy in ("lent-nodes", "kubelets", "dra"):
        assert not site.api.exists(f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/slurm-bridge-{policy}")
