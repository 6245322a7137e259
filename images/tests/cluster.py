"""cluster.py - a Slurm cluster out of the image archives, with the mounts that the pods have.

Run by test_cluster.py inside `unshare -mnp`: no process, mount or packet leaves those namespaces.
Prints one line per thing that was seen to work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from container import Container

ADDRESS = "10.99.0.1"  # Slurm resolves nothing on a machine that has only a loopback address
SLURM_CONF = f"""\
ClusterName=try
SlurmctldHost=controller({ADDRESS})
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless,reconfig_on_restart
SlurmctldPort=6817
SlurmdPort=6818
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MetricsType=metrics/openmetrics
MaxNodeCount=1024
MailProg=/bin/true
ReturnToService=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={ADDRESS}
PartitionName=all Nodes=ALL Default=YES State=UP
"""
SLURMDBD_CONF = f"""\
DbdHost=accounting
DbdAddr={ADDRESS}
DbdPort=6819
SlurmUser=slurm
AuthType=auth/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
PidFile=/run/slurmdbd/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost={ADDRESS}
StorageUser=slurm
StorageLoc=slurm_acct_db
"""
CGROUP_CONF = "CgroupPlugin=disabled\n"  # for a cgroup v1 machine; else cgroup/v2, IgnoreSystemd
SLURM_KEY, JWT_KEY = os.urandom(1024), os.urandom(32)
SSSD_CONF = """\
[sssd]
services = nss,pam
domains = DEFAULT
[nss]
filter_users = root,slurm
[domain/DEFAULT]
id_provider = proxy
proxy_lib_name = files
auth_provider = proxy
proxy_pam_target = sssd-shadowutils
"""
WORKER_SSH = 2222  # all containers share one network here
SSHD_CONF = f"UsePAM yes\nPort {WORKER_SSH}\n"


def saw(text: str) -> None:
    print(f"ok: {text}", flush=True)


def get(url: str, token: str = "") -> tuple[int, str]:
    """Status and body; 0 when nothing answers."""
    request = urllib.request.Request(url, headers={"X-SLURM-USER-TOKEN": token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def until(what: str, holds: Callable[[], bool], *watched: Container, seconds: float = 60) -> None:
    """Waits for something to hold; says how long that took, or shows the logs."""
    since = time.monotonic()
    while not holds():
        ended = any(item.process and item.process.poll() is not None for item in watched)
        if ended or time.monotonic() - since > seconds:
            logs = "\n".join(f"--- {item.hostname}\n{item.text()[-4000:]}" for item in watched)
            raise AssertionError(f"{'ended' if ended else 'too late'}: {what}\n{logs}")
        time.sleep(0.1)
    saw(f"{what} ({time.monotonic() - since:.1f} s)")


def port_open(port: int) -> bool:
    """True when somebody listens; sockets of closed connections do not count."""
    table = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    rows = [line.split() for line in table.splitlines()]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


class Cluster:
    """The pods, each with the mounts of its chart."""

    def __init__(self, archives: Path, work: Path) -> None:
        self.archives, self.work = archives, work

    def make(self, image: str, hostname: str) -> Container:
        item = Container(self.archives / f"{image}.tar", self.work, hostname)
        item.put("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {hostname}\n", 0o644)
        return item

    def database(self) -> Container:
        item = self.make("mariadb", "database")
        item.start()
        until("mariadb listens", lambda: port_open(3306), item)
        return item

    def accounting(self) -> Container:
        item = self.make("slurmdbd", "accounting")
        item.mount_memory("/run", "mode=2775,gid=401")
        item.put("/etc/slurm/slurmdbd.conf", SLURMDBD_CONF, 0o640, 0, 401)  # as of a volume with fsGroup
        item.put("/etc/slurm/slurm.key", SLURM_KEY, 0o640, 0, 401)
        item.put("/etc/slurm/jwt.key", JWT_KEY, 0o640, 0, 401)
        item.start()
        until("slurmdbd listens, as 401", lambda: port_open(6819), item)
        return item

    def controller(self) -> Container:
        item = self.make("slurmctld", "controller")
        item.mount_memory("/run", "mode=2775,gid=401")
        item.mount_memory("/run/slurmctld", "mode=2775,gid=401")
        item.put("/etc/slurm/slurm.conf", SLURM_CONF, 0o640, 401)
        item.put("/etc/slurm/cgroup.conf", CGROUP_CONF, 0o640, 401)
        self._keys(item)
        item.start()
        for path in ("livez", "readyz", "healthz"):
            url = f"http://{ADDRESS}:6817/{path}"
            until(f"slurmctld /{path} is 204", lambda u=url: get(u)[0] == 204, item)
        status, _ = get(f"http://{ADDRESS}:6817/metrics/scheduler")
        assert status == 200, item.text()
        saw("slurmctld /metrics/scheduler is 200")
        return item

    def worker(self) -> Container:
        item = self.make("slurmd", "worker-0")
        item.put("/etc/slurm/slurm.key", SLURM_KEY, 0o600)
        item.put("/etc/ssh/sshd_config", SSHD_CONF, 0o600)  # as of a NodeSet with ssh
        subprocess.run(["chroot", item.root, "useradd", "-m", "alice"], check=True)
        item.start(
            ["-Z", "--conf-server", f"{ADDRESS}:6817", "--conf", "Features=try Topology=$TOPOLOGY"],
            {"POD_CPUS": "1", "POD_MEMORY": "512", "TOPOLOGY": ""},
        )
        for path in ("livez", "readyz"):
            url = f"http://{ADDRESS}:6818/{path}"
            until(f"slurmd /{path} is 204", lambda u=url: get(u)[0] == 204, item)
        until("sshd of the worker listens", lambda: port_open(WORKER_SSH), item)
        return item

    def login(self) -> Container:
        item = self.make("login", "login")
        item.mount_memory("/run/slurm", "mode=755")
        item.put("/etc/slurm/slurm.key", SLURM_KEY, 0o600, 401)
        item.put("/etc/sssd/sssd.conf", SSSD_CONF, 0o600)
        subprocess.run(["chroot", item.root, "useradd", "-m", "alice"], check=True)
        item.start(env={"SACKD_OPTIONS": f"--conf-server {ADDRESS}:6817"})
        socket = item.root / "run/slurm/sack.socket"
        until("login has its sack.socket", socket.is_socket, item)
        until("sshd listens", lambda: port_open(22), item)
        return item

    def restapi(self, user: str = "") -> Container:
        item = self.make("slurmrestd", f"restapi-{user.partition(':')[0] or 'own'}")
        item.put("/etc/slurm/slurm.conf", SLURM_CONF, 0o644)
        item.start(user=user)
        until(f"slurmrestd listens as {user or 'its own user'}", lambda: port_open(6820), item)
        return item

    def _keys(self, item: Container) -> None:
        item.put("/etc/slurm/slurm.key", SLURM_KEY, 0o600, 401)
        item.put("/etc/slurm/jwt.key", JWT_KEY, 0o600, 401)


def token_from(controller: Container) -> str:
    text = controller.run("scontrol", "token", "username=slurm", "lifespan=600", user="401:401")
    return text.strip().partition("=")[2]


def check_rest(restapi: Container, token: str) -> None:
    status, body = get(f"http://{ADDRESS}:6820/slurm/v0.0.45/ping/", token)
    assert status == 200 and json.loads(body)["pings"][0]["responding"], body + restapi.text()
    saw("GET /slurm/v0.0.45/ping/ with a token is 200 and responding")
    status, _ = get(f"http://{ADDRESS}:6820/slurm/v0.0.45/ping/")
    assert status == 401, status
    saw("the same without a token is 401")
    status, body = get(f"http://{ADDRESS}:6820/slurmdb/v0.0.45/clusters/", token)
    assert status == 200 and json.loads(body)["clusters"][0]["name"] == "try", body
    saw("GET /slurmdb/v0.0.45/clusters/ knows the cluster")


def check_people(login: Container, worker: Container) -> None:
    """Who somebody is, and who may come into a worker: root, and nobody without a job there."""
    def sssd_knows_alice() -> bool:
        try:
            return login.run("getent", "-s", "sss", "passwd", "alice").startswith("alice:")
        except AssertionError:
            return False
    until("sssd of login knows a user", sssd_knows_alice, login)
    login.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/.ssh/id_ed25519")
    key = (login.root / "root/.ssh/id_ed25519.pub").read_text()
    worker.put("/root/.ssh/authorized_keys", key, 0o600)
    worker.put("/home/alice/.ssh/authorized_keys", key, 0o600, 1000)
    ssh = ["ssh", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes", "-p", str(WORKER_SSH)]
    assert login.run(*ssh, f"root@{ADDRESS}", "hostname").strip().endswith("worker-0")
    saw("root comes from login into the worker")
    try:
        login.run(*ssh, f"alice@{ADDRESS}", "hostname")
    except AssertionError as refused:
        assert "no active jobs on this node" in str(refused), worker.text()
        saw("a user without a job does not")
    else:
        raise AssertionError("alice came in without a job")


def check_reconfigure(controller: Container, worker: Container) -> None:
    before = controller.pid
    worker_before = worker.run("pgrep", "-f", "^slurmd -D")
    # with the programs that the sidecar of `inplaceReconfigure` runs
    controller.run("tini", "-g", "--", "bash", "-c",
                   "find /etc/slurm -type f -exec sha256sum {} + | sort && scontrol reconfigure", user="401:401")  # fmt: skip
    time.sleep(1)
    until("slurmctld ready after reconfigure",
          lambda: get(f"http://{ADDRESS}:6817/readyz")[0] == 204, controller)  # fmt: skip
    assert controller.pid == before
    until("slurmd has the same pid after reconfigure",
          lambda: worker.run("pgrep", "-f", "^slurmd -D") == worker_before, worker)  # fmt: skip


def stop(item: Container, *want: int) -> None:
    """Ends it by itself: one that slinc-init had to kill has another code."""
    code, seconds = item.stop()
    assert code in want, f"{item.hostname}: {code} after {seconds:.1f} s"
    saw(f"{item.hostname} ended {seconds:.2f} s after TERM with {code}")


def main(archives: Path, work: Path) -> None:
    subprocess.run(
        "ip link set lo up && ip link add s0 type veth peer name s1 &&"
        f"ip addr add {ADDRESS}/24 dev s0 && ip link set s0 up && ip link set s1 up",
        shell=True, check=True,
    )  # fmt: skip
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", work], check=True)
    cluster = Cluster(archives, work)
    database, accounting = cluster.database(), cluster.accounting()
    controller = cluster.controller()
    worker = cluster.worker()
    until("the worker is idle",
          lambda: "idle" in controller.run("sinfo", "-h", "-o", "%T"), worker)  # fmt: skip
    node = controller.run("scontrol", "show", "node", "worker-0")
    assert "CoreSpecCount=" in node and "MemSpecLimit=" in node, node
    saw("the pod's limits became CoreSpecCount and MemSpecLimit")
    login = cluster.login()
    assert "worker-0" in login.run("sinfo", "-h", "-N"), login.text()
    saw("sinfo in login, through sackd")
    assert login.run("srun", "-n1", "hostname").strip() == "worker-0"
    saw("srun from login ran on the worker")
    check_people(login, worker)
    token = token_from(controller)
    for user in ("", "65534:65534"):
        restapi = cluster.restapi(user)
        check_rest(restapi, token)
        stop(restapi, 143)  # it knows no TERM
    check_reconfigure(controller, worker)
    assert "try" in login.run("sacctmgr", "-n", "list", "cluster")
    saw("sacctmgr through slurmdbd")
    for item in (login, worker, controller):
        stop(item, 0)
    # It may die of its own wake-up signal, or wait for its own threads until slinc-init kills it.
    stop(accounting, 0, 138, 137)
    stop(database, 0)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except AssertionError as error:
        print(f"failed: {error}")
        raise SystemExit(1) from None
