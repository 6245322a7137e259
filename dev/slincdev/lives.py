"""The pods of one namespace as the API server's watch tells them, with the moment of each step: made, bound, gone. Whoever waits for a
pod is woken by its change."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .common import PATIENCE, Fail
from .kube import Api

JOB_LABEL = "scheduler.slinky.slurm.net/slurm-jobid"


@dataclass
class Life:
    """One pod, by its uid; the moments are of time.monotonic(), 0.0 for what has not happened."""

    pod: dict
    made: float = field(default_factory=time.monotonic)
    bound: float = 0.0
    gone: float = 0.0

    @property
    def name(self) -> str:
        return self.pod["metadata"]["name"]

    @property
    def node(self) -> str:
        return self.pod["spec"].get("nodeName", "")

    @property
    def phase(self) -> str:
        return self.pod["status"]["phase"]

    @property
    def job(self) -> str:
        return self.pod["metadata"].get("labels", {}).get(JOB_LABEL, "")

    def says(self, kind: str) -> str:
        """The message of a condition that is True; "" while it says only that nobody has looked at it."""
        found = self.pod["status"].get("conditions", [])
        return next((one.get("message", "") for one in found if one["type"] == kind and one["status"] == "True" and one["reason"] != "Pending"), "")


class Lives:
    """Begins to watch at once, and until the program ends."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.of: dict[str, Life] = {}
        self.changed, self.broken = threading.Condition(), ""
        self.connection = http.client.HTTPSConnection(api.host, api.port, context=api.context, timeout=3600)
        self.connection.request("GET", f"/api/v1/namespaces/{namespace}/pods?watch=true", headers={"Authorization": f"Bearer {api.token}"})
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise Fail(f"the pods of {namespace} cannot be watched: {self.answer.read().decode(errors='replace')}")
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        why = "the API server has ended it"
        try:
            for line in self.answer:
                self._note(json.loads(line))
        except (OSError, http.client.HTTPException, ValueError, KeyError, AttributeError) as error:
            why = repr(error)
        with self.changed:
            self.broken = why
            self.changed.notify_all()

    def _note(self, event: dict) -> None:
        with self.changed:
            life = self.of.setdefault(event["object"]["metadata"]["uid"], Life(event["object"]))
            life.pod = event["object"]
            if life.node and not life.bound:
                life.bound = time.monotonic()
            if event["type"] == "DELETED":
                life.gone = time.monotonic()
            self.changed.notify_all()

    def all(self) -> list[Life]:
        """Those that are there, by name."""
        return sorted((life for life in self.of.values() if not life.gone), key=lambda life: life.name)

    def story(self, name: str) -> list[Life]:
        """Those with this label."""
        return [life for life in self.all() if life.pod["metadata"].get("labels", {}).get("story") == name]

    def named(self, name: str) -> Life | None:
        return next((life for life in self.all() if life.name == name), None)

    def wait(self, what: str, check: Callable[[], object], seconds: float = 60) -> object:
        """Until check() gives something true, asked again at every change; it must not block."""
        seconds *= PATIENCE
        end = time.monotonic() + seconds
        with self.changed:
            while not (answer := check()):
                left = end - time.monotonic()
                if self.broken:
                    raise Fail(f"{what}: the watch of pods has ended ({self.broken})")
                if left <= 0:
                    raise Fail(f"{what}: not after {seconds:g} s")
                self.changed.wait(left)
            return answer

    def placed(self, story: str, size: int) -> list[Life]:
        """All of them, once they all have a node."""
        def all_are_bound() -> list[Life] | None:
            found = self.story(story)
            return found if len(found) == size and all(life.bound for life in found) else None
        return self.wait(f"all of {story} ({size}) have a node", all_are_bound)
