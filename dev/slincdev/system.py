"""The whole system in a development cluster, by its charts, and what people do with it: helm, kubectl, ssh, the commands of Slurm."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from . import parts
from .build import bin_dir
from .cluster import Cluster
from .common import DEV, PATIENCE, REPO, Fail, run
from .slurm import with_token

HOME, OPERATOR_HOME = "slurm", "slinky"
IMAGES = ["slinc", "slurmctld", "slurmrestd", "slurmd", "login"]
VALUES = DEV / "story/values"
WORKERS = "slurm-worker-cpu"  # the NodeSet; Slurm's names of its workers are cpu-0, cpu-1 ...
GROUP = "slinky.slurm.net"


def slinc() -> Path:
    return Path(os.environ.get("SLINC_BUILD", REPO / "build/plain")) / "src/cmd/slinc"


class System:
    """The operator in one namespace, a Slurm cluster with its bridge in another."""

    def __init__(self, cluster: Cluster, home: str = HOME, operator_home: str = OPERATOR_HOME) -> None:
        self.cluster, self.api, self.home, self.operator_home = cluster, cluster.api(), home, operator_home
        self.ssh_key = cluster.folder / "ssh/key"

    # --- helm ---

    def helm(self, *words: object) -> str:
        return run([bin_dir() / "helm", f"--kubeconfig={self.cluster.admin_config}", *words], cwd=REPO, timeout=400 * PATIENCE)

    def install(self, release: str, chart: str, namespace: str, *words: object) -> None:
        """With the values of the demo, if it has some for this chart."""
        values = VALUES / f"{chart.removeprefix('slurm-')}.yaml"
        given = ["-f", values] if values.exists() else []
        self.helm("install", release, REPO / "charts" / chart, "-n", namespace, "--create-namespace", *given, *words)

    def install_operator(self) -> None:
        """Returns when its webhook answers: until then the API server takes no custom resource."""
        self.install("slurm-operator", "slurm-operator", self.operator_home, "--wait", "--timeout", f"{60 * PATIENCE:.0f}s")

    def install_slurm(self) -> None:
        self.make_ssh_key()
        self.install("slurm", "slurm", self.home, "--set-file", f"loginsets.main.rootSshAuthorizedKeys={self.ssh_key}.pub")

    # --- kubectl ---

    def kubectl(self, *words: object) -> str:
        return parts.kubectl(self.cluster, *words, cwd=REPO)

    def custom(self, plural: str, name: str) -> dict:
        return self.api.get(f"/apis/{GROUP}/v1beta1/namespaces/{self.home}/{plural}/{name}")

    def is_ready(self, plural: str, name: str) -> bool:
        found = {one["type"]: one["status"] for one in self.custom(plural, name).get("status", {}).get("conditions", [])}
        return found.get("Ready") == "True"

    def scale(self, count: int) -> None:
        self.kubectl("-n", self.home, "scale", f"nodesets.{GROUP}/{WORKERS}", f"--replicas={count}")

    def worker_pods(self) -> dict[str, dict]:
        """By the name that Slurm has for them; those that end, too."""
        found = self.api.get(f"/api/v1/namespaces/{self.home}/pods?labelSelector=app.kubernetes.io%2Fname%3Dslurmd")["items"]
        return {one["spec"]["hostname"]: one for one in found}

    def end_job(self, worker: str, job: str) -> None:
        """Of a job that waits for this file."""
        self.kubectl("-n", self.home, "exec", self.worker_pods()[worker]["metadata"]["name"], "-c", "slurmd", "--", "touch", f"/tmp/end-{job}")

    # --- Slurm's commands ---

    def slurm(self, text: str) -> str:
        """Where slurmctld runs."""
        return self.kubectl("-n", self.home, "exec", "slurm-controller-0", "-c", "slurmctld", "--", *shlex.split(text)).strip()

    def job_states(self) -> dict[str, str]:
        """Of the jobs that wait or run."""
        return dict(line.split() for line in self.slurm("squeue -h -o '%i %T'").splitlines())

    def node_states(self) -> dict[str, set[str]]:
        lines = self.slurm("sinfo -hN -O NodeList:60,StateComplete:60").splitlines()
        return {line.split()[0]: set(line.split()[1].lower().split("+")) for line in lines}

    def are_idle(self, *names: str) -> bool:
        """Slurm would give each of them a job."""
        states = self.node_states()
        return all("idle" in states.get(name, ()) and not states[name] & {"drain", "not_responding", "down"} for name in names)

    # --- ssh ---

    def make_ssh_key(self) -> None:
        self.ssh_key.parent.mkdir(exist_ok=True)
        if not self.ssh_key.exists():
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "somebody", "-f", self.ssh_key])

    def login_address(self) -> str:
        return self.api.get(f"/api/v1/namespaces/{self.home}/services/slurm-login-main")["spec"]["clusterIP"]

    def ssh(self, text: str) -> str:
        """In a login pod, as a person who has logged in."""
        quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
        argv = ["ssh", "-i", self.ssh_key, *quiet, f"root@{self.login_address()}", text]
        return with_token(lambda: run(argv, what=f"ssh {text}", timeout=60 * PATIENCE).strip())

    def answers_ssh(self) -> bool:
        try:
            return self.ssh("true") == ""
        except Fail:
            return False

    # --- the page ---

    def page_address(self) -> str:
        pods = self.api.get(f"/api/v1/namespaces/{self.home}/pods?labelSelector=app.kubernetes.io%2Fname%3Dslurm-exporter")["items"]
        address = next((pod["status"]["podIP"] for pod in pods if pod["status"].get("podIP")), "")
        return f"http://{address}:8090/ui/" if address else ""

    def screenshot(self, file: Path, width: int = 1280, height: int = 800) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--timeout=5000",
             f"--window-size={width},{height}", f"--screenshot={file}", self.page_address()], what="the screenshot of the page", timeout=60 * PATIENCE)
