"""containerfile.py - a Containerfile beside each recipe, made of it, for people with docker, podman or buildah.

    python3 images/containerfile.py           writes images/<name>/Containerfile for every recipe
    podman build -f images/base/Containerfile -t localhost/slinc/base:26.05-debian .

The packages, users, files and commands are those of the recipe; the root below them is Debian's own image of the same suite. `images/build`
needs neither a daemon nor an image of others, and gives the same bytes each time: use this where a registry's builder is the rule.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import recipe as recipes
from build import PROGRAM_PATHS
from recipe import IMAGES, Recipe

REPO = IMAGES.parent
APT = "apt-get update && apt-get install -y --no-install-recommends"
SPENT = "rm -rf /var/lib/apt/lists/* /var/cache/apt/*"
LIBRARY_SUITE = "trixie"  # our own program is built on Debian stable, which has all it is linked with


def text(item: Recipe) -> str:
    """The whole file."""
    suite = recipes.versions()["SLURM_SUITE"]
    lines = [f"# From images/{item.title}/recipe, by images/containerfile.py: change the recipe, and write this again.",
             f"# Build it from the top of the repository: podman build -f images/{item.title}/Containerfile -t {item.name} ."]
    lines += [f"ARG DEBIAN=debian:{LIBRARY_SUITE if item.linked and not item.base else suite}-slim"]
    if item.base:
        lines += [f"ARG BASE={recipes.load(item.base).name}"]
    lines += _programs(item) + _linked(item)
    lines += ["", f"FROM {'${BASE}' if item.base else '${DEBIAN}' if item.is_debian else 'scratch'}"]
    if item.base:
        lines += ["USER 0:0"]
    lines += _root(item) + _copies(item) + _settings(item)
    return "\n".join(lines) + "\n"


def _programs(item: Recipe) -> list[str]:
    """A stage that compiles our small static programs."""
    if not item.programs:
        return []
    lines = ["", "FROM ${DEBIAN} AS programs", f"RUN {APT} gcc libc6-dev"]
    for program in item.programs:
        sources = [path.relative_to(REPO) for path in recipes.program_sources(program)]
        whole = [folder for folder in dict.fromkeys(path.parent for path in sources) if folder.name != "codec"]
        single = [path for path in sources if path.parent.name == "codec"]
        lines += [f"COPY {folder} /{folder}/" for folder in whole]
        lines += [f"COPY {' '.join(map(str, single))} /src/codec/"] if single else []
        files = [*(f"/{folder}/*.c" for folder in whole), *(f"/{path}" for path in single if path.suffix == ".c")]
        lines.append(f"RUN gcc -std=c17 -D_GNU_SOURCE -Os -static -s -I/src -o /program-{program} {' '.join(files)}")
    return lines


def _linked(item: Recipe) -> list[str]:
    """A stage that builds the tree, and gathers the programs with the libraries that they need."""
    if not item.linked:
        return []
    setup = (REPO / "dev/setup").read_text()
    packages = re.search(r"build_packages=\(([^)]*)\)", setup)[1].split()  # type: ignore[index]
    needed = [name for name in packages if not re.match(r"ccache|mold|clang|llvm|libclang|nghttp2-server|python3-venv|git|ca-cert|make|libcmocka", name)]
    sources = " ".join(row.source for row in item.linked)
    needed += ["libslurm-dev"] if item.base else []
    lines = ["", "FROM ${DEBIAN} AS linked", f"RUN {APT} libc6-dev {' '.join(needed)}", "COPY . /slinc/",
             f"RUN {'SLINC_LIBSLURM=/usr/include ' if item.base else ''}meson setup /build /slinc --buildtype=debugoptimized -Dtests=false && ninja -C /build {sources}"]
    for row in item.linked:
        lines.append(f"RUN strip /build/{row.source} && install -D /build/{row.source} /out{row.path}")
        if not row.is_alone:
            lines.append(f"RUN for library in $(ldd /build/{row.source} | grep -o '/[^ ]*'); do install -D \"$library\" \"/out$library\"; done")
    return lines


def _root(item: Recipe) -> list[str]:
    """Users before packages, which would choose other ids; then packages, removals and folders."""
    steps = []
    for user in item.users:
        steps.append(f"groupadd --gid {user.uid} {user.name} && useradd --uid {user.uid} --gid {user.uid} --home-dir /nonexistent "
                     f"--no-create-home --shell /usr/sbin/nologin {user.name}")
    if item.packages:
        steps.append(f"{APT} {' '.join(item.packages)}")
        steps.append(SPENT)
    if item.remove:
        steps.append(f"rm -rf {' '.join(item.remove)}")
    for folder in item.dirs:
        steps.append(f"mkdir -p {folder.path} && chown {folder.owner} {folder.path} && chmod {folder.mode} {folder.path}")
    return ["RUN " + " && \\\n    ".join(steps)] if steps else []


def _copies(item: Recipe) -> list[str]:
    lines = [f"COPY --from=programs /program-{program} {PROGRAM_PATHS[program]}" for program in item.programs]
    lines += ["COPY --from=linked /out/ /"] if item.linked else []
    return lines + [f"COPY --chmod={file.mode} images/{file.source} {file.path}" for file in item.files]


def _settings(item: Recipe) -> list[str]:
    lines = [f"ENV {name}={json.dumps(value)}" for name, value in item.env.items()]
    lines += [f"WORKDIR {item.workdir}"] if item.workdir else []
    lines += [f"EXPOSE {' '.join(map(str, item.ports))}"] if item.ports else []
    lines += [f"USER {item.user}"] if item.user else []
    # A command line may hold dollar signs: in this form neither the builder nor a shell touches them.
    lines += [f"ENTRYPOINT {json.dumps(item.entrypoint)}"] if item.entrypoint else []
    lines += [f"CMD {json.dumps(item.cmd)}"] if item.cmd else []
    return [*lines, f'LABEL org.opencontainers.image.title="{item.title}" org.opencontainers.image.version="{item.name.rpartition(":")[2]}"']


def path_of(title: str) -> Path:
    return IMAGES / title / "Containerfile"


def main() -> int:
    """Writes them all."""
    for title in recipes.titles():
        path_of(title).write_text(text(recipes.load(title)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
