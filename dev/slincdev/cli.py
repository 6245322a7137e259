"""The command line of dev/cluster."""

from __future__ import annotations

import argparse
import os
import signal

from . import cluster as clusters, supervisor, up as life
from .build import bin_dir
from .common import Fail, state_root
from .kube import ApiError
from .slurm import Slurm


PROGRAM_HELP = "as status names it: kubelet, node-1/kubelet, ..."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dev/cluster", description="A real Kubernetes and Slurm on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help)
        sub.add_argument("--name", default=os.environ.get("SLINC_CLUSTER", "dev"), help="which cluster (default: dev)")
        return sub

    up = command("up", "start a cluster, or bring a running one to what is asked")
    up.add_argument("--nodes", type=int, default=0, metavar="N", help="kwok nodes beside the real ones")
    up.add_argument("--real", type=int, default=0, metavar="N", help="real nodes: 1 or 2 (default: those there are, at first 1)")
    up.add_argument("--with", dest="parts", default="", metavar="A,B", help="optional parts")
    up.add_argument("--slot", type=int, help="use network 10.(128+SLOT).0.0/16 (default: the first free one)")
    command("down", "end a cluster and remove all it left")
    command("status", "what runs")
    command("kubeconfig", "print the path of the administrator's kubeconfig")
    command("kubectl", "run kubectl as administrator: dev/cluster kubectl [--name N] WORDS...")
    command("exec", "run a command in the cluster's namespaces: dev/cluster exec [--name N] WORDS...")
    command("slurm-token", "print a token for slurmrestd").add_argument("--user", default="slurm")
    for name, help in (("stop", "stop one program"), ("start", "start it again"), ("kill", "kill -9 it (it is restarted)")):
        command(name, help).add_argument("program", help=PROGRAM_HELP)
    logs = command("logs", "show the end of a program's log")
    logs.add_argument("program", help=PROGRAM_HELP)
    return parser


def _status(name: str) -> None:
    found = clusters.all_clusters()
    if not found:
        print(f"no cluster is up ({state_root()})")
    for cluster in found:
        alive = cluster.is_alive()
        mark = "*" if cluster.name == name else " "
        print(f"{mark} {cluster.name:<20} {'up' if alive else 'dead (make down clears it)'}  network {cluster.network}.0.0/16"
              f"  parts: {', '.join(cluster.parts) or 'none'}")
        if alive:
            _status_of(cluster)


def _status_of(cluster: clusters.Cluster) -> None:
    for node in cluster.nodes():
        if not node.is_alive():
            print(f"    {node.name} is dead ('make up REAL=2' starts it again)")
            continue
        for program in node.programs():
            state = f"up {program['seconds']:.0f} s" if program["running"] else "stopped"
            again = f", restarted {program['restarts']} times" if program["restarts"] else ""
            name = f"{node.name}/{program['name']}" if node.index else program["name"]
            print(f"    {name:<26} {state}{again}")
    try:
        nodes = cluster.api().get("/api/v1/nodes?resourceVersion=0")["items"]
        pods = cluster.api().get("/api/v1/pods?resourceVersion=0")["items"]
        ready = sum(any(c["type"] == "Ready" and c["status"] == "True" for c in n["status"].get("conditions", [])) for n in nodes)
        running = sum(p["status"].get("phase") == "Running" for p in pods)
        print(f"    {ready} of {len(nodes)} nodes Ready, {running} of {len(pods)} pods Running")
    except (OSError, ApiError) as error:
        print(f"    the API server does not answer: {error}")
    print(f"    export KUBECONFIG={cluster.admin_config}\n    logs: {cluster.folder}/logs")


def _tell(cluster: clusters.Cluster, program: str, request: dict) -> None:
    """The process 1 of the node whose program it is."""
    place, _, name = program.rpartition("/")
    nodes = {node.name if node.index else "": node for node in cluster.nodes()}
    if place not in nodes:
        raise Fail(f"no program is called '{program}'")
    supervisor.ask(nodes[place].folder, request | {"name": name})


def _hand_over(argv: list[str]) -> None:
    os.execvp(argv[0], argv)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What is ours, and the words that belong to the command we hand over to."""
    if arguments[:1] not in (["kubectl"], ["exec"]):
        return arguments, []
    ours = 3 if arguments[1:2] == ["--name"] else 1
    if arguments[1:2] in (["-h"], ["--help"]):
        ours = 2
    rest = arguments[ours:]
    return arguments[:ours], rest[1:] if rest[:1] == ["--"] else rest


def command(arguments: list[str]) -> None:
    ours, rest = _split(arguments)
    asked = _parser().parse_args(ours)
    if asked.command == "up":
        if asked.nodes < 0 or asked.nodes > 20000:
            raise Fail(f"NODES={asked.nodes} is not between 0 and 20000")
        life.up(asked.name, asked.nodes, [p for p in asked.parts.split(",") if p], asked.slot, asked.real)
        return
    if asked.command == "down":
        life.down(asked.name)
        return
    if asked.command == "status":
        _status(asked.name)
        return
    cluster = clusters.find_alive(asked.name)
    if asked.command == "kubeconfig":
        print(cluster.admin_config)
    elif asked.command == "kubectl":
        _hand_over([str(bin_dir() / "kubectl"), f"--kubeconfig={cluster.admin_config}", *rest])
    elif asked.command == "exec":
        _hand_over(["nsenter", "-t", str(cluster.pid), "-m", "-n", "-p", "-u", "-i", "--", *rest])
    elif asked.command == "slurm-token":
        print(Slurm(cluster).token(asked.user))
    elif asked.command in ("start", "stop"):
        _tell(cluster, asked.program, {"do": asked.command})
    elif asked.command == "kill":
        _tell(cluster, asked.program, {"do": "signal", "signal": int(signal.SIGKILL)})
    elif asked.command == "logs":
        path = cluster.folder / "logs" / f"{asked.program}.log"
        if not path.exists():
            logs = cluster.folder / "logs"
            known = ", ".join(sorted(str(p.relative_to(logs)).removesuffix(".log") for pattern in ("*.log", "node-*/*.log") for p in logs.glob(pattern)))
            raise Fail(f"no log of '{asked.program}'; there are: {known}")
        _hand_over(["tail", "-n", "100", str(path)])
