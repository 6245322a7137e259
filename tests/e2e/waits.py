"""Waiting for what the cluster will show."""

from __future__ import annotations

import http.client
from collections.abc import Callable

from slincdev import common
from slincdev.kube import ApiError
from slincdev.slurm import SlurmError

_has_time = True
PASSING = (ApiError, SlurmError, OSError, http.client.HTTPException)  # a server that was asked in a bad moment


def stop_waiting() -> None:
    """From now on each check is made once: somebody wants the run to end."""
    global _has_time
    _has_time = False


def wait_for(what: str, calm_s: float, check: Callable[[], object], every: float = 0.1, hint: Callable[[], str] | None = None,
             forgiven: tuple[type[Exception], ...] = PASSING) -> object:
    """Polls a check until it gives something true; a question that fails is asked again. A limit tells a hang from a slow machine
    and is no goal: tests give what a calm machine needs at most, and a busy one gets PATIENCE times as long."""
    last: object = None

    def ask() -> object:
        nonlocal last
        try:
            last = check()
        except forgiven as error:
            last = error
            return None
        return last

    def tell() -> str:
        return f"last seen: {last!r}" + (f"; {hint()}" if hint else "")

    return common.wait_for(what, calm_s if _has_time else 0, ask, every, tell)
