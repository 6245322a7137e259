"""A Slurm cluster that is lost with all that it had, and restored by the commands of docs/backup.md; then a new Slurm, in Slurm's own order, by those of
docs/upgrade.md."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import older
import pytest
from database import make_database
from definitions import installed
from manual import Reader, commands
from slincdev.cluster import Cluster
from slincdev.common import Fail
from slincdev.components import import_image
from slincdev.parts import ensure_images, image_archive, import_images
from slincdev.release import ensure_image
from slurm_operator import Operator, Site
from waits import PASSING, wait_for

HOME, NEXT = "backup", "26.05-next"
SLURM = {"accounting": "slurmdbd", "controller": "slurmctld", "restapi": "slurmrestd", "login-main": "login", "worker-cpu-0": "slurmd"}
IMAGES = ["slurmctld", "slurmrestd", "slurmd", "slurmdbd", "mariadb", "login", "slinc", "busybox"]
HERE = {r"-n slurm\b": f"-n {HOME}"}
VALUES = {
    "imagePullPolicy": "Never",
    "controller": {"extraConfMap": {"ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/affinity", "AccountingStorageEnforce": "associations"}},
    "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
    "accounting": {"enabled": True},
    "loginsets": {"main": {"service": {"spec": {"type": "ClusterIP"}}}},
    "nodesets": {"cpu": {"oversubscribeNode": True, "slurmd": {"resources": {"requests": {"cpu": "50m"}}}, "podSpec": {"terminationGracePeriodSeconds": 5},
                         "partition": {"enabled": True, "config": "Default=YES MaxTime=UNLIMITED"}}},
}

pytestmark = pytest.mark.soak


def volume(cluster: Cluster, name: str) -> dict:
    """For the next claim of slurmctld: no provisioner runs here."""
    folder = cluster.shared / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chown(folder, 401, 401)
    return {"metadata": {"name": name}, "spec": {"capacity": {"storage": "4Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(folder)}}}


class Lost(Site):
    def slurm(self, *words: str) -> str:
        return self.kubectl("exec", "slurm-controller-0", "-c", "slurmctld", "--", *words).strip()

    def wait(self, what: str, calm_s: float, check) -> object:
        return wait_for(what, calm_s, check, hint=lambda: self.kubectl("get", "pods,controllers.slinky.slurm.net,accountings.slinky.slurm.net"), forgiven=(*PASSING, Fail))

    def pending(self) -> list[str]:
        return self.slurm("squeue", "-h", "-t", "PENDING", "-o", "%i %Q %j").splitlines()

    def finished(self) -> list[str]:
        return self.slurm("sacct", "-aXnP", "--state=COMPLETED", "--starttime=now-1days", "-o", "jobid,jobname,state,account").splitlines()

    def start_again(self) -> None:
        """An empty namespace, and an empty database: nothing of Slurm is left."""
        self.api.delete(f"/api/v1/namespaces/{self.namespace}")
        self.wait("the namespace is gone", 120, lambda: not self.api.exists(f"/api/v1/namespaces/{self.namespace}"))
        shutil.rmtree(f"{self.cluster.shared}/database-{self.namespace}")


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lost]:
    ensure_image()
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    folder, api = tmp_path_factory.mktemp("operator"), cluster.api()
    with installed(cluster, HOME):
        operator = Operator(cluster, folder)
        try:
            yield Lost(cluster, operator.start().wait_until_it_leads() and HOME)
            operator.stop()
        finally:
            operator.end()
            for one in api.get(f"/apis/slinky.slurm.net/v1beta1/namespaces/{HOME}/nodesets")["items"]:  # nobody would end it now
                api.merge(f"/apis/slinky.slurm.net/v1beta1/namespaces/{HOME}/nodesets/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
    for name in ("backup-first", "backup-second"):
        if api.exists(f"/api/v1/persistentvolumes/{name}"):
            api.delete(f"/api/v1/persistentvolumes/{name}")


def test_a_cluster_is_restored_with_its_jobs_priorities_and_accounts(site: Lost, tmp_path: Path) -> None:
    reader = Reader(site.cluster, tmp_path / "reader")
    site.api.post("/api/v1/persistentvolumes", volume(site.cluster, "backup-first"))
    storage = make_database(site)
    values = tmp_path / "first.json"
    values.write_text(json.dumps(VALUES | {"accounting": {"enabled": True, "storageConfig": storage}}))
    reader.type(f"helm install slurm charts/slurm -n {HOME} -f {values}")
    for plural in ("controllers", "accountings", "restapis"):
        site.wait_until_ready(plural, "slurm", 180)
    site.wait("the worker is idle", 90, lambda: "idle" in site.slurm("sinfo", "-h", "-n", "cpu-0", "-o", "%T"))
    site.slurm("sacctmgr", "-i", "add", "account", "physics")
    site.slurm("sacctmgr", "-i", "add", "user", "slurm", "account=physics")
    done = site.slurm("sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-A", "physics", "-J", "done", "--wrap", "true")
    site.wait("a job has ended, and the database has it", 60, lambda: f"{done}|done|COMPLETED|physics" in site.finished())
    waits = site.slurm("sbatch", "--parsable", "--hold", "-D", "/tmp", "-o", "/dev/null", "-A", "physics", "-J", "waits", "--wrap", "true")
    other = site.slurm("sbatch", "--parsable", "--begin=now+1days", "-D", "/tmp", "-o", "/dev/null", "-A", "physics", "-J", "other", "--wrap", "true")
    site.slurm("scontrol", "update", f"JobId={other}", "Priority=4242")
    before = site.pending()
    assert sorted(line.split()[0] for line in before) == sorted([waits, other]) and f"{other} 4242 other" in before
    site.wait("slurmctld has written them down", 60, lambda: before == site.pending() and int(site.slurm("sh", "-c", "stat -c %Y /var/spool/slurmctld/*/job_state")) >
              int(site.slurm("sh", "-c", f"date +%s -d $(scontrol show job {other} | sed -n 's/.*SubmitTime=\\([^ ]*\\).*/\\1/p')")) + 5)
    reader.type(commands("backup.md", "Back up"), HERE)
    keys = {name: site.secret(name, key) for name, key in {"slurm-auth-slurm": "slurm.key", "slurm-auth-jwt": "jwt.key"}.items()}

    site.start_again()
    site.api.post("/api/v1/persistentvolumes", volume(site.cluster, "backup-second"))
    first, second = commands("backup.md", "Restore").split("kubectl -n slurm exec -i database", 1)
    create, rest = first.split("\n", 1)
    reader.type(create, {"namespace slurm": f"namespace {HOME}"})
    make_database(site)
    reader.type(rest, HERE | {"26.05-debian": site.tag})
    site.wait("the database is there", 60, lambda: site.kubectl("exec", "database", "--", "mariadb", "-e", "SELECT 1"))
    reader.type(f"kubectl -n slurm exec -i database{second}", HERE)

    site.wait("Slurm answers", 120, lambda: site.pending() == before)
    assert f"{done}|done|COMPLETED|physics" in site.finished()
    assert {name: site.secret(name, key) for name, key in {"slurm-auth-slurm": "slurm.key", "slurm-auth-jwt": "jwt.key"}.items()} == keys
    assert "physics" in site.slurm("sacctmgr", "-nP", "show", "assoc", "user=slurm", "format=account")
    later = site.slurm("sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-A", "physics", "-J", "later", "--wrap", "true")
    assert int(later) > int(other), "ids go on"
    site.wait("a job runs on the worker that came back", 120, lambda: f"{later}|later|COMPLETED|physics" in site.finished())


def images(site: Lost) -> dict[str, str]:
    """The tag of Slurm in each of its pods, by what the pod is."""
    found = site.api.get(site.core("pods"))["items"]
    return {part: one["image"].rpartition(":")[2] for pod in found if not pod["metadata"].get("deletionTimestamp")
            for part, name in SLURM.items() for one in pod["spec"]["containers"] if one["name"] == name and pod["metadata"]["name"].startswith(f"slurm-{part}")}


def test_a_new_slurm_comes_in_slurms_order_and_a_step_that_fails_ends_it(site: Lost, tmp_path: Path) -> None:
    reader = Reader(site.cluster, tmp_path / "reader")
    for name in SLURM.values():
        for node in site.cluster.nodes():
            import_image(node, older.named(image_archive(name), tmp_path / f"{name}.tar", NEXT))
    before = images(site)
    assert before == dict.fromkeys(SLURM, site.tag), before
    job = site.slurm("sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-A", "physics", "-J", "long", "--wrap", "while [ ! -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.1; done")
    site.wait("a job runs", 60, lambda: site.slurm("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING")

    text = commands("upgrade.md", "A new Slurm")
    reader.type(text, HERE | {"NEXT=.*": "NEXT=nowhere", "--timeout=10m": "--timeout=20s"}, code=1)
    left = images(site)
    assert {part for part, tag in left.items() if tag != site.tag} <= {"accounting"}, left

    first, last = text.split("turn nodesetDefaults", 1)
    reader.type(first, HERE | {"NEXT=.*": f"NEXT={NEXT}"})
    assert images(site) == dict.fromkeys(SLURM, NEXT) | {"worker-cpu-0": site.tag}, "the worker is not touched yet"
    assert site.slurm("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING"
    (functions, _) = first.split("turn accounting", 1)
    reader.type(f"{functions.replace('settled()', 'unused()')}turn nodesetDefaults{last.splitlines()[0]}", HERE | {"NEXT=.*": f"NEXT={NEXT}"})
    site.wait("the worker drains", 60, lambda: "drain" in site.slurm("sinfo", "-h", "-n", "cpu-0", "-o", "%T"))
    assert site.slurm("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING"
    site.kubectl("exec", "slurm-worker-cpu-0", "-c", "slurmd", "--", "touch", f"/tmp/end-{job}")
    reader.type(f"{functions}turn nodesetDefaults{last}", HERE | {"NEXT=.*": f"NEXT={NEXT}"})
    site.wait("the worker is of the new image", 60, lambda: images(site) == dict.fromkeys(SLURM, NEXT))
    site.wait("the job has ended well", 60, lambda: f"{job}|long|COMPLETED|physics" in site.finished())
    reader.type(f"helm uninstall slurm -n {HOME}")
