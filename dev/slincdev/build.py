"""Gets the programs the cluster is made of into the cache: Kubernetes and friends from Go modules, etcd and containerd
from Debian packages. Each is built or fetched once per version; the cache survives clones and clusters."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .common import DEV, Fail, cache_dir, locked, run, slow_step, versions

KUBE_PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")


def bin_dir() -> Path:
    """One folder of links to the pinned versions; what the cluster runs."""
    return cache_dir() / "bin"


def _folder(name: str, version: str) -> Path:
    return cache_dir() / "programs" / f"{name}-{version}"


# --- Go -------------------------------------------------------------------------------------------------------------


def _go_version(go: str) -> tuple[int, ...]:
    try:
        text = subprocess.run([go, "env", "GOVERSION"], text=True, capture_output=True).stdout
    except OSError:
        return (0,)
    found = re.match(r"go(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0,)


def go_program() -> str:
    """The machine's Go when it is new enough, else the pinned toolchain from the Go module proxy."""
    minimum = tuple(map(int, versions()["GO_MINIMUM"].split(".")))
    found = shutil.which("go")
    if found and _go_version(found) >= minimum:
        return found
    home = _folder("go", versions()["GO_TOOLCHAIN"])
    if not (home / "bin/go").exists():
        with slow_step(f"Go {versions()['GO_TOOLCHAIN']} from the module proxy"):
            _fetch_toolchain(home)
    return str(home / "bin/go")


def _module_proxy() -> str:
    """The proxy this machine is set up for; an old Go from Debian knows the default."""
    if not os.environ.get("GOPROXY") and not shutil.which("go"):
        run(["apt-get", "install", "-y", "--no-install-recommends", "golang-go"], what="apt-get install golang-go")
    listed = os.environ.get("GOPROXY") or run(["go", "env", "GOPROXY"])
    for proxy in re.split(r"[,|]", listed.strip()):
        if proxy.startswith("http"):
            return proxy.rstrip("/")
    raise Fail(f"no Go module proxy: GOPROXY is '{listed.strip()}'")


def _module_hash(archive: Path) -> str:
    """The h1: hash of a module zip, as go.sum has it."""
    lines = []
    with zipfile.ZipFile(archive) as packed:
        for name in sorted(packed.namelist()):
            lines.append(f"{hashlib.sha256(packed.read(name)).hexdigest()}  {name}\n")
    return "h1:" + base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()


def _fetch_toolchain(home: Path) -> None:
    module = f"v0.0.1-go{versions()['GO_TOOLCHAIN']}.linux-amd64"
    archive = home.with_name(home.name + ".zip")
    archive.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(f"{_module_proxy()}/golang.org/toolchain/@v/{module}.zip", timeout=60) as answer:
            with open(archive, "wb") as file:
                shutil.copyfileobj(answer, file)
    except OSError as error:
        raise Fail(f"Go toolchain {module}: {error}") from None
    if _module_hash(archive) != versions()["GO_TOOLCHAIN_SUM"]:
        raise Fail(f"Go toolchain {module}: its checksum is not the pinned one")
    scratch = home.with_name(home.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(scratch)
    tree = scratch / f"golang.org/toolchain@{module}"
    for tool in [*(tree / "bin").iterdir(), *(tree / "pkg/tool").rglob("*")]:
        tool.chmod(0o755)
    tree.rename(home)
    shutil.rmtree(scratch)
    archive.unlink()


def _go(argv: list[str], **options) -> str:
    environment = dict(os.environ) | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"} | options.pop("env", {})
    return run([go_program(), *argv], env=environment, **options)


def module_dir(module: str, version: str) -> Path:
    """The unpacked source of a Go module, for the data files it carries."""
    return Path(json.loads(_go(["mod", "download", "-json", f"{module}@v{version}"]))["Dir"])


def _check_required(name: str, module: str, version: str) -> None:
    if f"{module} v{version}\n" not in (DEV / name / "go.mod").read_text():
        raise Fail(f"dev/{name}/go.mod does not require {module} v{version} as dev/versions.env pins it")


def _build_kube(target: Path) -> None:
    version = versions()["KUBERNETES_VERSION"]
    _check_required("kube", "k8s.io/kubernetes", version)
    stamp = "k8s.io/component-base/version"
    major, minor, _ = version.split(".")
    flags = f"-s -w -X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    _go(["build", "-trimpath", "-ldflags", flags, "-o", str(target / "kube"), "."], cwd=DEV / "kube", what="building Kubernetes")
    for part in KUBE_PARTS:
        (target / part).symlink_to("kube")


def _build_part_of(module: str, name: str):
    """The main function in dev/<name>, which takes of the module what we need. The pin is <NAME>_VERSION."""
    def build(target: Path) -> None:
        _check_required(name, module, versions()[f"{name.upper().replace('-', '_')}_VERSION"])
        _go(["build", "-trimpath", "-ldflags", "-s -w", "-o", str(target / name), "."], cwd=DEV / name,
            env={"CGO_ENABLED": "0"}, what=f"building {module}")
    return build


def _build_in_module(module: str, package: str, name: str):
    """In the module's own folder, so with the versions its go.mod and go.sum name. The pin is <NAME>_VERSION."""
    def build(target: Path) -> None:
        _go(["build", "-trimpath", "-ldflags", "-s -w", "-o", str(target / name), package],
            cwd=module_dir(module, versions()[f"{name.upper().replace('-', '_')}_VERSION"]), env={"CGO_ENABLED": "0"}, what=f"building {module}")
    return build


def _install(package: str):
    def build(target: Path) -> None:
        _go(["install", "-trimpath", "-ldflags", "-s -w", package], cwd="/",
            env={"GOBIN": str(target), "GOFLAGS": "-buildvcs=false"}, what=f"building {package}")
    return build


# --- Debian packages ------------------------------------------------------------------------------------------------


def _private_apt() -> list[str]:
    """Options that let apt look into the moving suite without touching the machine's own package lists."""
    home = cache_dir() / "apt"
    for folder in ("state/lists/partial", "archives/partial"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "status").touch()
    mirror = run([DEV / "mirror"]).strip()
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (home / "sources.list").write_text(f"deb [signed-by={keyring}] {mirror} {versions()['DEBIAN_SUITE']} main\n")
    settings = {
        "Dir::State": home / "state", "Dir::State::status": home / "status", "Dir::Cache": home,
        "Dir::Etc::sourcelist": home / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
        "Acquire::Languages": "none", "APT::Sandbox::User": "root",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def fetch_deb(package: str, pinned: str) -> Path:
    """A Debian package of the moving suite at a pinned version, kept with its checksum."""
    kept = cache_dir() / "debs"
    kept.mkdir(parents=True, exist_ok=True)
    for deb in sorted(kept.glob(f"{package}_{pinned}*.deb")):
        note = deb.with_suffix(".sha256")
        if note.exists() and note.read_text().strip() == hashlib.sha256(deb.read_bytes()).hexdigest():
            return deb
    suite = versions()["DEBIAN_SUITE"]
    options = _private_apt()
    run(["apt-get", *options, "update"], what=f"reading the package list of Debian {suite}")
    candidate = re.search(r"Candidate: (\S+)", run(["apt-cache", *options, "policy", package]))
    if not candidate or not candidate[1].startswith(pinned):
        offered = candidate[1] if candidate else "no version"
        raise Fail(f"Debian {suite} has {package} {offered}, but dev/versions.env pins {pinned}: "
                   f"change the pin, or copy {package}_{pinned}*.deb and its .sha256 from another machine's {kept}")
    run(["apt-get", *options, "download", package], cwd=kept, what=f"downloading {package}")
    deb = next(kept.glob(f"{package}_{candidate[1].replace(':', '%3a')}_*.deb"))
    deb.with_suffix(".sha256").write_text(hashlib.sha256(deb.read_bytes()).hexdigest() + "\n")
    return deb


def _from_deb(package: str, pinned: str, *programs: str):
    def build(target: Path) -> None:
        run(["dpkg-deb", "-x", fetch_deb(package, pinned), target / "root"])
        for program in programs:
            (target / program).symlink_to(f"root/usr/bin/{program}")
    return build


# --- All of them ----------------------------------------------------------------------------------------------------


class Program(NamedTuple):
    name: str
    version: str
    commands: tuple[str, ...]  # that it gives
    build: Callable[[Path], None]  # makes it in an empty folder


def _programs() -> list[Program]:
    """In the order in which a cluster needs them. The first are those without which it does not start."""
    pin = versions()
    return [
        Program("etcd", pin["ETCD_VERSION"], ("etcd",), _from_deb("etcd-server", pin["ETCD_VERSION"], "etcd")),
        Program("containerd", pin["CONTAINERD_VERSION"], ("containerd", "containerd-shim-runc-v2", "ctr"),
                _from_deb("containerd", pin["CONTAINERD_VERSION"], "containerd", "containerd-shim-runc-v2", "ctr")),
        Program("kubernetes", pin["KUBERNETES_VERSION"], KUBE_PARTS, _build_kube),
        Program("coredns", pin["COREDNS_VERSION"], ("coredns",), _build_part_of("github.com/coredns/coredns", "coredns")),
        Program("kwok", pin["KWOK_VERSION"], ("kwok",), _install(f"sigs.k8s.io/kwok/cmd/kwok@v{pin['KWOK_VERSION']}")),
        Program("helm", pin["HELM_VERSION"], ("helm",), _install(f"helm.sh/helm/v3/cmd/helm@v{pin['HELM_VERSION']}")),
    ]


def _part_programs() -> list[Program]:
    """Those only a part of the same name needs, and tools of tests."""
    pin = versions()
    return [
        Program("certmanager", pin["CERTMANAGER_VERSION"], ("certmanager",), _build_part_of("github.com/cert-manager/cert-manager", "certmanager")),
        Program("jobset", pin["JOBSET_VERSION"], ("jobset",), _build_in_module("sigs.k8s.io/jobset", ".", "jobset")),
        Program("lws", pin["LWS_VERSION"], ("lws",), _build_in_module("sigs.k8s.io/lws", "./cmd", "lws")),
        Program("kube-router", pin["KUBE_ROUTER_VERSION"], ("kube-router",), _build_part_of("github.com/cloudnativelabs/kube-router", "kube-router")),
        Program("dra-example", pin["DRA_EXAMPLE_VERSION"], ("dra-example",),
                _build_in_module("sigs.k8s.io/dra-example-driver", "./cmd/dra-example-kubeletplugin", "dra-example")),
        *(Program(name, pin["PROMETHEUS_VERSION"], (name,), _from_deb(name, pin["PROMETHEUS_VERSION"], name)) for name in ("prometheus", "promtool")),
        Program("registry", pin["REGISTRY_VERSION"], ("docker-registry",), _from_deb("docker-registry", pin["REGISTRY_VERSION"], "docker-registry")),
        Program("helm-unittest", pin["HELM_UNITTEST_VERSION"], ("helm-unittest",),
                _build_in_module("github.com/helm-unittest/helm-unittest", "./cmd/helm-unittest", "helm-unittest")),
    ]


def wanted_programs(parts: list[str]) -> list[str]:
    """Names, in the order in which they are needed."""
    return [program.name for program in (*_programs(), *(program for program in _part_programs() if program.name in parts))]


def is_missing(name: str) -> bool:
    program = _program(name)
    return not _folder(program.name, program.version).exists()


def _program(name: str) -> Program:
    return next(program for program in (*_programs(), *_part_programs()) if program.name == name)


def ensure_programs(parts: list[str]) -> None:
    """Those of every cluster, and those of these parts."""
    for name in wanted_programs(parts):
        ensure_program(name)


def ensure_program(name: str) -> None:
    """Builds it if it is missing, and links the pinned version into bin_dir()."""
    program = _program(name)
    folder = _folder(program.name, program.version)
    bin_dir().mkdir(parents=True, exist_ok=True)
    with locked(cache_dir() / "programs" / f".{name}.lock", f"the program {name}", 3600):
        if not folder.exists():
            scratch = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            with slow_step(f"{name} {program.version}"):
                program.build(scratch)
            scratch.rename(folder)
        for command in program.commands:
            _link(bin_dir() / command, folder / command)


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and os.readlink(link) == str(target):
        return
    scratch = link.with_name(f".{link.name}.{os.getpid()}")
    scratch.symlink_to(target)
    scratch.replace(link)
