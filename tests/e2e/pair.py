"""Two replicas of the bridge, of which one leads and any may die."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bridge import Bridge, Site, settled
from waits import wait_for


@contextlib.contextmanager
def pair_at_work(site: Site, folder: Path, names: list[str]) -> Iterator[list[Bridge]]:
    """The first one leads, and Slurm has the nodes; after the block all of it is gone, and the rules hold."""
    pair = [Bridge(site.cluster, site.slurm, folder, name) for name in ("first", "second")]
    try:
        pair[0].start().wait_until_it_leads()
        pair[1].start()
        wait_for("the nodes are in Slurm", 60, lambda: site.are_registered(names))
        yield pair
        start_missing(pair)
        site.clear(names)
        settled(site)
        for one in pair:
            one.stop()
    finally:
        for one in pair:
            one.end()


def start_missing(pair: list[Bridge]) -> None:
    for one in pair:
        if not one.process:
            one.start()


def leader(pair: list[Bridge]) -> Bridge | None:
    return next((one for one in pair if one.process and one.leads()), None)


def other(pair: list[Bridge], one: Bridge) -> Bridge:
    return pair[1] if one is pair[0] else pair[0]
