"""libslinc-slurm as others get it: `make install` below a folder, and programs that know nothing but pkg-config."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
NEEDED = {"libc.so.6", "libcurl.so.4", "libssl.so.3", "libcrypto.so.3", "libyyjson.so.0"}
STRICT = ["-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Wno-unused-parameter", "-Werror"]
EXAMPLES = ["sjobs", "jobwatch"]


def run(*words: object, **options) -> str:
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=300, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout


def make(*words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX")}
    run("make", "--no-print-directory", *words, cwd=REPO, env=environment)


class Installed:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.pc = next(root.rglob("libslinc-slurm.pc"))
        self.libdir = self.pc.parents[1]
        self.shared = (self.libdir / "libslinc-slurm.so").resolve()
        self.static = self.libdir / "libslinc-slurm.a"
        self.include = next(root.rglob("slinc-slurm.h")).parent
        self.manual = next(root.rglob("libslinc-slurm.3"))
        self.examples = next(root.rglob("examples"))
        self.environment = dict(os.environ) | {"PKG_CONFIG_LIBDIR": str(self.pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(root),
                                               "LD_LIBRARY_PATH": str(self.libdir)}

    def flags(self, *words: str) -> list[str]:
        return run("pkg-config", *words, "libslinc-slurm", env=self.environment).split()

    def compile(self, source: Path, *words: str, static: bool = False) -> Path:
        libraries = self.flags("--static", "--libs") if static else self.flags("--libs")
        if static:
            libraries = ["-l:libslinc-slurm.a" if word == "-lslinc-slurm" else word for word in libraries]
        program = source.with_suffix(".static" if static else ".shared")
        run("cc", *STRICT, *words, *self.flags("--cflags"), "-o", program, source, *libraries)
        return program

    def declared(self, tmp_path: Path) -> set[str]:
        """What the headers offer: functions by the compiler's own list of prototypes, and data."""
        source, prototypes = tmp_path / "all.c", tmp_path / "all.X"
        source.write_text("#include <slinc-slurm.h>\n")
        run("gcc", *self.flags("--cflags"), "-fsyntax-only", "-aux-info", prototypes, source)
        names = set()
        for line in prototypes.read_text().splitlines():
            found = re.match(r"/\* (\S+?):\d+:\S+ \*/ extern .*?(\w+) \(", line)
            if found and self.include in Path(found[1]).resolve().parents:
                names.add(found[2])
        for header in self.include.rglob("*.h"):
            text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
            for group in re.findall(r"(?m)^extern const struct \w+ ([^;]*);", text):
                names |= {name.strip() for name in group.split(",")}
        return names


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    root = tmp_path_factory.mktemp("root").resolve()
    make("install", f"DESTDIR={root}")
    return Installed(root)


def listed() -> set[str]:
    return {line for line in (REPO / "libslinc-slurm/symbols").read_text().splitlines() if line and not line.startswith("#")}


def needed(program: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program)))


def test_nothing_but_the_library_and_the_programs_is_installed(installed):
    below = {str(path.relative_to(installed.root)) for path in installed.root.rglob("*") if not path.is_dir()}
    odd = [name for name in below if not re.search(r"/bin/(slinc(-cpuset-hook)?|kubectl(_complete)?-slinc)$|/include/slinc-slurm/|/libslinc-slurm\.(so[.0-9]*|a|pc|3)$|"
                                                   r"/doc/libslinc-slurm/examples/(sjobs|jobwatch)/(Makefile|\w+\.c)$", name)]
    assert odd == []
    assert len([name for name in below if name.endswith(".h")]) > 20


def test_the_library_names_itself_and_needs_no_more_than_it_says(installed):
    dynamic = run("readelf", "-d", installed.shared)
    assert "soname: [libslinc-slurm.so.1]" in dynamic
    assert needed(installed.shared) == NEEDED
    version = re.search(r"version: '([^']+)'", (REPO / "meson.build").read_text())[1]
    assert installed.flags("--modversion") == [version]
    assert installed.shared.name == f"libslinc-slurm.so.{version.split('-')[0]}"


def test_the_library_is_hardened(installed):
    assert "BIND_NOW" in run("readelf", "-d", installed.shared)
    segments = run("readelf", "-lW", installed.shared)
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK.* RW +0x", segments)
    wanted = run("nm", "-D", "--undefined-only", installed.shared)
    assert "__stack_chk_fail" in wanted and "__snprintf_chk" in wanted


def test_the_shared_library_shows_what_the_headers_declare_and_no_more(installed, tmp_path):
    shown = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", installed.shared).splitlines()} - {"SLINC_SLURM_1"}
    declared = installed.declared(tmp_path)
    assert len(declared) > 250
    assert sorted(declared - listed()) == [], "declared, but missing in libslinc-slurm/symbols"
    assert sorted(listed() - declared) == [], "in libslinc-slurm/symbols, but in no public header"
    assert sorted(shown ^ listed()) == []


def test_the_static_library_shows_the_same(installed):
    shown = {line.split()[-1] for line in run("nm", "-g", "--defined-only", installed.static).splitlines() if re.match(r"[0-9a-f]{16} ", line)}
    assert sorted(shown ^ listed()) == []


def test_nothing_of_kubernetes_is_inside(installed):
    names = run("nm", "--defined-only", installed.static)
    assert "slurm_wire_path" in names  # local names are to be seen
    assert re.findall(r"\b(?:kube|engine|bridge|operator|http_server|yaml|event)_\w+", names) == []


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_each_header_stands_alone(installed, tmp_path, compiler):
    headers = sorted(installed.include.rglob("*.h"))
    for header in headers:
        name = header.relative_to(installed.include)
        source = tmp_path / f"{name.as_posix().replace('/', '_')}.c"
        source.write_text(f'#include "{name}"\n#include "{name}"\nint unused;\n')
        run(compiler, *STRICT, *installed.flags("--cflags"), "-fsyntax-only", source)


def test_a_programs_own_headers_are_not_taken_for_ours(installed, tmp_path):
    for header in installed.include.rglob("*/*.h"):
        own = tmp_path / header.relative_to(installed.include)
        own.parent.mkdir(exist_ok=True)
        own.write_text("#error the program's own\n")
    source = tmp_path / "program.c"
    source.write_text("#include <slinc-slurm.h>\nint main(void) { return slurm_is_write(SLURM_GET, SLURM_JOB); }\n")
    run(installed.compile(source, f"-I{tmp_path}"), env=installed.environment)


OWN_NAMES = """
#include <slinc-slurm.h>
#include <stdlib.h>

/* Names that the library uses inside, and one that it also offers. */
void list_init(void);
void list_init(void) { abort(); }
void mem_alloc(void);
void mem_alloc(void) { abort(); }
void curl_loop_init(void);
void curl_loop_init(void) { abort(); }
%s
int main(void)
{
    struct slurm_sync_options options = { .url = "http://127.0.0.1:1", .token = "t" };
    struct slurm_sync *sync = NULL;
    struct err err = { 0 };

    if (slurm_sync_new(&options, &sync, &err) < 0)
        return 1;
    slurm_node_get(slurm_sync_client(sync), "n", slurm_sync_done, sync);
    slurm_sync_free(sync);
    return 0;
}
"""
TAKEN_OVER = "size_t heap_taken;\nvoid heap_init(struct heap *heap, heap_compare *compare, size_t max) { heap_taken = max; }\n"


@pytest.mark.parametrize("static", [False, True])
def test_a_programs_own_names_do_not_meet_ours(installed, tmp_path, static):
    source = tmp_path / "program.c"
    source.write_text(OWN_NAMES % ("" if static else TAKEN_OVER))
    run(installed.compile(source, static=static), env=installed.environment)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_built_where_it_was_copied_to(installed, tmp_path, example):
    folder = shutil.copytree(installed.examples / example, tmp_path / example)
    run("make", "-C", folder, env=installed.environment | {"CFLAGS": " ".join(STRICT)})
    assert "libslinc-slurm.so.1" in needed(folder / example)
    assert run(folder / example, "--help", env=installed.environment).startswith(f"usage: {example}")


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_linked_statically(installed, tmp_path, example):
    folder = shutil.copytree(installed.examples / example, tmp_path / example)
    program = installed.compile(folder / f"{example}.c", static=True)
    assert not any("slinc" in name for name in needed(program))
    assert run(program, "--help").startswith(f"usage: {example}")


def test_the_manual_renders_without_a_warning(installed):
    tools = {"mandoc": ["-T", "lint", "-W", "warning"], "groff": ["-ww", "-mdoc", "-Tutf8", "-z"], "man": ["-l", "--warnings=w"]}
    for tool in filter(shutil.which, tools):
        done = subprocess.run([tool, *tools[tool], installed.manual], text=True, capture_output=True, env=os.environ | {"MANPAGER": "cat"})
        assert (done.returncode, done.stderr) == (0, ""), tool
        if tool == "mandoc":
            assert done.stdout == ""


def test_the_manual_names_every_function_of_slurm_and_of_the_loop(installed):
    named = set(re.findall(r"\w+", installed.manual.read_text()))
    wanted = {name for name in listed() if re.match(r"slurm_|loop_|http_", name)}
    assert sorted(wanted - named) == []


def test_the_manual_names_every_class(installed):
    classes = re.search(r"enum slurm_class \{(.*?)\}", (installed.include / "slurm/error.h").read_text(), re.S)[1]
    wanted = set(re.findall(r"SLURM_\w+", classes)) - {"SLURM_CLASSES"}
    assert sorted(wanted - set(re.findall(r"\.It Dv (SLURM_\w+)", installed.manual.read_text()))) == []


def test_the_example_of_the_manual_can_be_built(installed, tmp_path):
    source = tmp_path / "program.c"
    text = re.search(r"\.Bd -literal.*?\n(.*?)\n\.Ed", installed.manual.read_text(), re.S)[1]
    source.write_text(text.replace("\\e", "\\") + "\n")
    program = installed.compile(source)
    done = subprocess.run([program], env=installed.environment | {"SLURM_JWT": ""}, text=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith("invalid: ")


def test_uninstall_leaves_nothing(installed, tmp_path):
    make("install", f"DESTDIR={tmp_path}")
    assert list(tmp_path.rglob("slinc-slurm.h"))
    make("uninstall")
    assert list(tmp_path.rglob("*")) == []
