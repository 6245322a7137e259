"""The pytest plugin of every part that is made of pytest files: it writes one JSON line per test, keeps the output of
a failed test in a file of its own, and refuses tests that are expected to fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ORDER = ("first", None, "faults", "last")  # the marks that order end-to-end tests; None: tests without one


def order_by_marks(items: list[pytest.Item]) -> None:
    """Orders the tests by their marks; tests of the same mark stay in the order of the files."""
    def rank(item: pytest.Item) -> int:
        return max((ORDER.index(mark.name) for mark in item.iter_markers() if mark.name in ORDER), default=ORDER.index(None))
    items.sort(key=rank)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--results", type=Path, help="the file for one JSON line per test; logs of tests go into a folder of its name")
    parser.addoption("--log-all", action="store_true", help="keep the output of tests that pass, too")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.results:
        config.pluginmanager.register(Results(config.option.results, config.option.log_all))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item.nodeid for item in items if item.get_closest_marker("xfail")]
    if marked:
        raise pytest.UsageError("a test may not be marked as expected to fail: " + ", ".join(marked))


def log_name(test: str) -> str:
    """A file name for a test: its module, its name and its parameters."""
    module, _, name = test.partition("::")
    return re.sub(r"[^\w.-]+", "_", f"{Path(module).name}::{name}")[:150] + ".log"


class Results:
    def __init__(self, file: Path, log_all: bool) -> None:
        self.file, self.folder, self.log_all = file, file.with_suffix(""), log_all
        self.reports: dict[str, list[pytest.TestReport]] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")

    def _write(self, fact: dict) -> None:
        with open(self.file, "a") as file:
            file.write(json.dumps(fact) + "\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._write({"selected": len(session.items)})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test is over with its teardown. One that fails in any of its three phases has failed."""
        reports = self.reports.setdefault(report.nodeid, [])
        reports.append(report)
        if report.when != "teardown":
            return
        outcomes = {one.outcome for one in self.reports.pop(report.nodeid)}
        outcome = next(name for name in ("failed", "skipped", "passed") if name in outcomes)
        self._write({"test": report.nodeid, "outcome": outcome, "seconds": round(sum(one.duration for one in reports), 2)})
        if outcome == "failed" or self.log_all:
            self._keep_log(report.nodeid, reports)

    def _keep_log(self, test: str, reports: list[pytest.TestReport]) -> None:
        lines = [test]
        for report in reports:
            lines.append(f"\n---- {report.when}: {report.outcome} in {report.duration:.1f} s\n{report.longreprtext}")
        lines += [f"\n---- {title}\n{text}" for title, text in reports[-1].sections]
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / log_name(test)).write_text("\n".join(lines) + "\n")
