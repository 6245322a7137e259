"""Process 1 of a cluster: owns its namespaces, starts its programs and keeps them running.

A cluster lives in network, mount, process, IPC and host-name namespaces of its own. When process 1 ends, the kernel ends
every process in them and drops every mount and interface, so nothing can be left behind, whatever crashed.
A second real node has a process 1 of its own, inside the process namespace of the cluster's.
Commands come as JSON lines over <folder>/control.sock: start, stop, remove, signal, list."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .common import DEV, Fail

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
MAX_REQUEST = 1 << 20
RESTART_DELAYS = (0.5, 1, 2, 5, 10)

# The kubelet insists on these kernel settings and would change the machine's own; it reads and finds them here instead.
KERNEL_SETTINGS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
                   "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}


def process_birth(pid: int) -> str | None:
    """When a process was born, in the kernel's ticks: with the pid it names one process for ever."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None


def launch(folder: Path, hostname: str, keep: list[Path], within: int = 0) -> tuple[int, str]:
    """Starts process 1 in new namespaces, detached from the caller; returns its pid on the host and its birth.

    within: a process whose process namespace holds the new one, and so ends it when it ends itself."""
    read_end, write_end = os.pipe()
    words = ["nsenter", "-t", str(within), "-p", "--"] if within else []
    words += [sys.executable, "-m", __name__, str(folder), hostname, str(write_end), *map(str, keep)]
    # A program of its own, not a fork of the caller: it must hold none of the caller's locks and pipes.
    starter = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[write_end], start_new_session=True,
                               env=dict(os.environ) | {"PYTHONPATH": str(DEV)}, cwd="/")
    os.close(write_end)
    with os.fdopen(read_end) as report:
        lines = report.read().splitlines()
    starter.wait()
    problems = [line[6:] for line in lines if line.startswith("error ")]
    if problems or "ready" not in lines:
        raise Fail(f"starting the namespaces of {hostname}: {problems[0] if problems else 'process 1 died'}")
    pid = _pid_of(folder)
    return pid, process_birth(pid) or ""


def _pid_of(folder: Path) -> int:
    """Of the process 1 that listens there. The kernel gives it as the asking process sees it, whatever the namespace."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder / "control.sock"))
        return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def _start_in_namespaces(folder: Path, hostname: str, report: int, keep: list[Path]) -> None:
    """The first child after unshare is process 1 of the new process namespace."""
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(
                CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET) != 0:
            raise OSError("unshare: " + os.strerror(ctypes.get_errno()))
        if os.fork() == 0:
            _become_process_one(folder, hostname, keep, report)
    except OSError as error:
        os.write(report, f"error {error}\n".encode())


def _become_process_one(folder: Path, hostname: str, keep: list[Path], report: int) -> None:
    status = 1
    try:
        with open(folder / "logs/supervisor.log", "ab", buffering=0) as log, open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.chdir("/")
        _arrange_mounts(folder, keep)
        socket.sethostname(hostname)
        _call("ip", "link", "set", "lo", "up")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        supervisor = Supervisor(folder)
        os.write(report, b"ready\n")
        os.close(report)
        supervisor.serve()
        status = 0
    except BaseException as error:
        try:
            os.write(report, f"error {error}\n".encode())
        except OSError:
            print(f"supervisor: {error!r}", flush=True)
    os._exit(status)


def _call(*argv: object) -> None:
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(str(a) for a in argv)}: {done.stderr.strip()}")


def _arrange_mounts(folder: Path, keep: list[Path]) -> None:
    """The machine's root with fresh /proc, /sys, /run, /var/lib and /var/log, so that nothing is written outside folder.

    The kubelet, containerd and CNI plugins have some of these paths built in."""
    _call("mount", "--make-rprivate", "/")  # while moving things about; shared at the end, as the kubelet wants it
    _call("mount", "-t", "proc", "proc", "/proc")
    for setting, value in KERNEL_SETTINGS.items():
        stand_in = folder / "sysctl" / setting.replace("/", ".")
        stand_in.parent.mkdir(exist_ok=True)
        stand_in.write_text(value + "\n")
        _call("mount", "--bind", stand_in, f"/proc/sys/{setting}")
    _remount_sys(folder)
    hidden = ("/run", "/var/lib", "/var/log")
    keep = [path for path in dict.fromkeys(p.resolve() for p in [folder, *keep]) if str(path).startswith(hidden)]
    _call("mount", "-t", "tmpfs", "none", "/mnt")
    for index, path in enumerate(keep):
        os.mkdir(f"/mnt/{index}")
        _call("mount", "--rbind", path, f"/mnt/{index}")
    for path in hidden:
        _call("mount", "-t", "tmpfs", "-o", "mode=755", "none", path)
    for index, path in enumerate(keep):
        path.mkdir(parents=True, exist_ok=True)
        _call("mount", "--rbind", f"/mnt/{index}", path)
    _call("umount", "-R", "-l", "/mnt")
    for inside, outside in {"/var/lib/kubelet": "kubelet", "/var/lib/cni": "cni", "/var/log/pods": "logs/pods",
                            "/var/log/containers": "logs/containers"}.items():
        (folder / outside).mkdir(parents=True, exist_ok=True)
        os.makedirs(inside)
        _call("mount", "--bind", folder / outside, inside)
    for needed in ("/run/lock", "/run/netns", "/run/containerd"):
        os.makedirs(needed)
    _call("mount", "--make-rshared", "/")


def _remount_sys(folder: Path) -> None:
    """/sys must show this network namespace; the control groups below it stay the machine's."""
    aside = folder / "cgroup"
    aside.mkdir(exist_ok=True)
    _call("mount", "--rbind", "/sys/fs/cgroup", aside)
    _call("mount", "-t", "sysfs", "sysfs", "/sys")
    _call("mount", "--rbind", aside, "/sys/fs/cgroup")
    _call("umount", "-R", "-l", aside)


@dataclass
class Program:
    """One program of the cluster and how it is doing."""

    name: str
    argv: list[str]
    environment: dict[str, str]
    process: subprocess.Popen | None = None
    wanted: bool = True
    restarts: int = 0
    started: float = 0.0
    next_start: float = field(default=0.0)

    def view(self) -> dict:
        return {"name": self.name, "running": self.process is not None, "wanted": self.wanted, "restarts": self.restarts,
                "pid": self.process.pid if self.process else 0,
                "seconds": round(time.monotonic() - self.started, 1) if self.process else 0}


class Supervisor:
    """The loop of process 1: reap, restart, answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs: dict[str, Program] = {}
        self.stopping = False
        self.listener = socket.socket(socket.AF_UNIX)
        path = folder / "control.sock"
        path.unlink(missing_ok=True)
        self.listener.bind(str(path))
        path.chmod(0o600)
        self.listener.listen(16)
        self.wake_in, self.wake_out = os.pipe()
        for end in (self.wake_in, self.wake_out):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.wake_out)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_term)

    def _on_term(self, *_: object) -> None:
        self.stopping = True

    def serve(self) -> None:
        while not self.stopping:
            ready, _, _ = select.select([self.listener, self.wake_in], [], [], self._next_start_in())
            if self.wake_in in ready:
                os.read(self.wake_in, 4096)
            self._reap()
            self._restart_due()
            if self.listener in ready:
                self._answer()
        for program in reversed(self.programs.values()):
            self._stop(program, 3)

    def _next_start_in(self) -> float:
        due = [p.next_start for p in self.programs.values() if p.wanted and not p.process]
        return max(0.0, min(due, default=time.monotonic() + 60) - time.monotonic())

    def _reap(self) -> None:
        """Collects our programs and whatever orphan became ours as process 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for program in self.programs.values():
                if program.process and program.process.pid == pid:
                    self._ended(program, os.waitstatus_to_exitcode(status))

    def _ended(self, program: Program, code: int) -> None:
        program.process.returncode = code  # reaped here, not by Popen
        program.process = None
        if program.wanted:
            if time.monotonic() - program.started > 60:
                program.restarts = 0
            delay = RESTART_DELAYS[min(program.restarts, len(RESTART_DELAYS) - 1)]
            program.restarts += 1
            program.next_start = time.monotonic() + delay
            print(f"{program.name} ended with {code}; starting it again in {delay} s", flush=True)

    def _restart_due(self) -> None:
        for program in self.programs.values():
            if program.wanted and not program.process and time.monotonic() >= program.next_start:
                self._start(program)

    def _start(self, program: Program) -> None:
        with open(self.folder / f"logs/{program.name}.log", "ab") as log:
            program.process = subprocess.Popen(program.argv, env=program.environment, stdin=subprocess.DEVNULL,
                                               stdout=log, stderr=log, start_new_session=True, cwd="/")
        program.started = time.monotonic()

    def _stop(self, program: Program, seconds: float) -> None:
        program.wanted = False
        if not program.process:
            return
        program.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + seconds
        while program.process and time.monotonic() < end:
            time.sleep(0.02)
            self._reap()
        if program.process:
            program.process.kill()
            while program.process:
                time.sleep(0.01)
                self._reap()

    def _answer(self) -> None:
        connection, _ = self.listener.accept()
        with connection:
            connection.settimeout(10)
            try:
                text = b""
                while not text.endswith(b"\n") and len(text) < MAX_REQUEST:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    text += piece
                answer = self._do(json.loads(text))
            except (OSError, ValueError, KeyError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            try:
                connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                pass

    def _do(self, request: dict) -> dict:
        if request["do"] == "list":
            return {"programs": [p.view() for p in self.programs.values()]}
        name = request["name"]
        if request["do"] == "start":
            program = self.programs.get(name)
            if "argv" in request:
                if program and program.process:
                    return program.view()
                program = self.programs[name] = Program(name, request["argv"], request["environment"])
            elif not program:
                return {"error": f"no program is called '{name}'"}
            if not program.process:
                program.wanted, program.restarts = True, 0
                self._start(program)
            return program.view()
        if name not in self.programs:
            return {"error": f"no program is called '{name}'"}
        if request["do"] == "stop":
            self._stop(self.programs[name], float(request.get("seconds", 10)))
        elif request["do"] == "remove":
            self._stop(self.programs[name], float(request.get("seconds", 10)))
            return self.programs.pop(name).view()
        elif request["do"] == "signal":
            process = self.programs[name].process
            if not process:
                return {"error": f"{name} is not running"}
            process.send_signal(int(request["signal"]))
        return self.programs[name].view()


def ask(folder: Path, request: dict) -> dict:
    """One request to a cluster's process 1, from the host."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(folder / "control.sock"))
        connection.sendall(json.dumps(request).encode() + b"\n")
        text = b"".join(iter(lambda: connection.recv(65536), b""))
    answer = json.loads(text or b'{"error": "no answer"}')
    if "error" in answer:
        raise Fail(f"{request['do']} {request.get('name', '')}: {answer['error']}")
    return answer


if __name__ == "__main__":
    _start_in_namespaces(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), [Path(word) for word in sys.argv[4:]])
