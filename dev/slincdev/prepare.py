"""What a cluster is made of, made in the order in which it is needed. Programs from Go modules are built in one lane, packages and images in
another, at the same time; whoever needs something waits for that alone. So a cluster starts while the rest is still being built."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from . import build, parts
from .common import Durations, say

FROM_PACKAGES = ("etcd", "containerd", "prometheus", "promtool", "registry")  # fetched, not built
CORE = ("etcd", "containerd", "kubernetes", "coredns")  # a cluster starts with these and CORE_IMAGES


class Preparation:
    """Begins at once. An error is raised where its result is waited for."""

    def __init__(self, programs: list[str], images: list[str], before_images: Callable[[], None] = lambda: None) -> None:
        """before_images: what must be done before the images that are not of every cluster."""
        go = [(name, lambda name=name: build.ensure_program(name)) for name in programs if name not in FROM_PACKAGES]
        rest = [(name, lambda name=name: build.ensure_program(name)) for name in programs if name in FROM_PACKAGES]
        rest.append(("core images", lambda: parts.ensure_images(list(parts.CORE_IMAGES))))
        more = [name for name in images if name not in parts.CORE_IMAGES]
        if more:
            rest.append(("images", lambda: (before_images(), parts.ensure_images(more))))
        self.results: dict[str, Future] = {name: Future() for name, _ in (*go, *rest)}
        self._announce(programs)
        for lane in (go, rest):
            threading.Thread(target=self._work, args=(lane,), daemon=True).start()

    def _announce(self, programs: list[str]) -> None:
        missing, known = [name for name in programs if build.is_missing(name)], Durations().read()
        if missing:
            took = sum(seconds for what, seconds in known.items() if what.split()[0] in missing)
            last = f"; it took {took / 60:.0f} min last time" if took else "; ten to fifteen minutes on two cores, once"
            say(f"  to be built, in this order: {', '.join(missing)}{last}\n"
                f"  the cluster starts when {', '.join(CORE[:-1])} and {CORE[-1]} are there; images are built beside")

    def _work(self, lane: list[tuple[str, Callable[[], None]]]) -> None:
        for name, make in lane:
            try:
                make()
                self.results[name].set_result(None)
            except BaseException as error:  # whoever waits for it gets it
                self.results[name].set_exception(error)

    def wait(self, *names: str) -> None:
        for name in names:
            if name in self.results:
                self.results[name].result()

    def wait_for_core(self) -> None:
        self.wait(*CORE, "core images")
