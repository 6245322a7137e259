"""The live page in a real browser, beside a real Slurm."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from conftest import REPO
from replica import Command, free_port
from slincdev.cluster import Cluster
from slincdev.slurm import Slurm
from waits import wait_for

NODES = 3


class Page(Command):
    """`slinc exporter` with the page, at a port of its own."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        super().__init__(folder, "exporter")
        self.slurm, self.page_port, self.key = slurm, free_port(), folder / "jwt.key"
        self.key.write_bytes(slurm.key)

    def start(self) -> Page:
        self.run("exporter", f"--server=http://{self.slurm.host}:{self.slurm.port}", f"--jwt-key-file={self.key}", "--cache-freq=1s",
                 "--metrics-bind-address=0", "--health-probe-bind-address=0", f"--ui-bind-address=127.0.0.1:{self.page_port}")
        wait_for("the page answers", 20, lambda: http.client.HTTPConnection("127.0.0.1", self.page_port, timeout=5).connect() is None,
                 hint=self.said)
        return self


@pytest.fixture(scope="module")
def page(cluster: Cluster, slurm: Slurm, tmp_path_factory) -> Iterator[Page]:
    slurm.create_nodes(f"page[0-{NODES - 1}]", 4, 4096, feature="slurm-bridge,page")
    one = Page(tmp_path_factory.mktemp("page"), slurm)
    try:
        yield one.start()
        one.stop()
    finally:
        one.end()
        slurm.delete_node(f"page[0-{NODES - 1}]")


@pytest.fixture(scope="module")
def browser(page: Page, tmp_path_factory) -> Iterator[Browser]:
    one = Browser(free_port(), tmp_path_factory.mktemp("browser") / "driver.log")
    try:
        one.open(f"http://127.0.0.1:{page.page_port}/ui/")
        yield one
    finally:
        one.end()


def held_cores(browser: Browser, node: str) -> int:
    return browser.run("const each = state.byName.get(arguments[0]); return each ? count(each.held, 'p') : -1;", node)


def drawn_cores(browser: Browser, node: str) -> set[int]:
    runs = browser.run("return state.byName.get(arguments[0]).held;", node)
    return {core for first, end, _ in runs for core in range(first, end)}


def given_cores(slurm: Slurm, job: int, node: str) -> set[int]:
    """As slurmctld says."""
    found = next(one for one in slurm.call("GET", f"/slurm/{{api}}/resources/{job}")["nodes"] if one["node"] == node)
    return {core for core in range(found["sockets_per_node"] * found["cores_per_socket"]) if int(found["core_bitmap"], 16) >> core & 1}


def test_the_page_shows_who_holds_cores_and_who_waits(browser: Browser, slurm: Slurm) -> None:
    wait_for("the page shows the nodes", 20, lambda: held_cores(browser, "page0") == 0)
    wait_for("the chart has samples", 40, lambda: browser.run("return state.history.length;") >= 2)
    running = slurm.submit("train", cpus=3, constraints="page", required_nodes=["page0"])
    waiting = slurm.submit("later", cpus=1, constraints="page", hold=True)
    try:
        wait_for("three cores of the node are held", 30, lambda: held_cores(browser, "page0") == 3)
        cores = browser.run("const cores = state.totals.cores; return [cores.pod, cores.job, document.getElementById('since').textContent];")
        assert f"now {cores[0]} by pods, {cores[1]} by Slurm jobs" in cores[2], "the chart says something else than the totals"
        wait_for("the job that is held stands in the queue", 30, lambda: "later" in browser.text("#queue"))
        assert "held" in browser.text("#queue")
        wait_for("the page knows which cores these are", 30, lambda: browser.run("return state.byName.get('page0').exact;") == 1)
        assert drawn_cores(browser, "page0") == given_cores(slurm, running, "page0")
        browser.keys("/", *"train", "\ue007")  # a pod, its node and its life by the keyboard alone: Enter opens the first match
        wait_for("the job's life is told", 20, lambda: "allocated" in browser.text("#drawer") and "running" in browser.text("#drawer"))
        assert "page0" in browser.text("#drawer")
        browser.keys("\ue00c", "\ue00c")  # Escape
        assert browser.run("return document.getElementById('drawer').hidden;")
    finally:
        slurm.cancel(running)
        slurm.cancel(waiting)
    wait_for("the cores are free again", 30, lambda: held_cores(browser, "page0") == 0)


def test_a_node_is_found_with_the_keyboard_alone(browser: Browser) -> None:
    browser.keys("/", *"page1")
    wait_for("one node matches", 10, lambda: browser.text("#found").startswith("1 of "))
    browser.keys("\ue00c", "t")
    wait_for("the table has the node", 10, lambda: "page1" in browser.text("#node-rows"))
    browser.keys("t")


def test_the_page_is_accessible_and_talks_to_nobody_else(browser: Browser) -> None:
    for theme in ("light", "dark"):
        browser.run(f"document.documentElement.dataset.theme = '{theme}'; showTheme();")
        assert browser.accessibility() == []
        browser.screenshot(Path(os.environ.get("SLINC_TEST_LOGS", REPO / "build")) / f"page-{theme}.png")
    assert browser.complaints() == []
    foreign = browser.run("return performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !n.startsWith(location.origin));")
    assert foreign == []


def test_a_lost_connection_is_said_and_mended_without_a_reload(browser: Browser, page: Page) -> None:
    page.stop()
    wait_for("the page says that it lost the connection", 20, lambda: "No connection" in browser.text("#banner"))
    assert browser.run("return state.nodes.length;") >= NODES  # what was known is still shown
    page.start()
    wait_for("the page is live again", 60, lambda: browser.text("#banner") == "")
