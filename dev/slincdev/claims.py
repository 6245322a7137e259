"""Devices and cores by the DRA API: drivers that exist on paper, and a watch that notes what two claims have at the same time."""

from __future__ import annotations

import http.client
import json
import threading

from .cluster import Cluster
from .kube import Api

CORES = "cores.slinky.slurm.net"
SLICES, CLAIMS = "/apis/resource.k8s.io/v1/resourceslices", "/apis/resource.k8s.io/v1/resourceclaims"


def show_devices(api: Api, driver: str, node: str, devices: list[dict]) -> None:
    api.post(SLICES, {"metadata": {"name": f"{node}-{driver}"}, "spec": {
        "driver": driver, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}})


def fake_cores(count: int) -> dict:
    """As `slinc dra` shows them."""
    return {"name": "socket0-numa0", "allowMultipleAllocations": True, "capacity": {"cores": {"value": str(count)}}, "attributes": {
        "cores": {"string": f"0-{count - 1}"}, "nodeSockets": {"int": 1}, "nodeCoresPerSocket": {"int": count}, "threadsPerCore": {"int": 1}}}


def numbers(ranges: str) -> set[int]:
    """"0,2-3" is 0, 2 and 3."""
    bounds = [part.partition("-") for part in ranges.split(",") if part]
    return {number for first, _, last in bounds for number in range(int(first), int(last or first) + 1)}


def held_by(claim: dict) -> set[tuple]:
    """Devices for one pod, and Slurm's cores of a node, that the claim has."""
    allocation = claim.get("status", {}).get("allocation") or {}
    devices = allocation.get("devices", {})
    held = {(one["driver"], one["pool"], one["device"]) for one in devices.get("results", []) if "shareID" not in one}
    for entry in devices.get("config", []):
        if entry["opaque"]["driver"] == CORES:
            node = allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
            held |= {(CORES, node, core) for core in numbers(entry["opaque"]["parameters"]["cores"])}
    return held


class ClaimWatch:
    """Until it is closed. `twice` has what was given twice; `seen` counts the allocations."""

    def __init__(self, cluster: Cluster) -> None:
        self.api, self.holders, self.twice, self.seen = cluster.api(), {}, [], 0
        self.of_claim: dict[str, set[tuple]] = {}
        self.is_closed = False
        self.version = self.api.get(f"{CLAIMS}?limit=1")["metadata"]["resourceVersion"]
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def __enter__(self) -> ClaimWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True

    def _read(self) -> None:
        while not self.is_closed:
            connection = http.client.HTTPSConnection(self.api.host, self.api.port, context=self.api.context, timeout=600)
            connection.request("GET", f"{CLAIMS}?watch=1&resourceVersion={self.version}",
                               headers={"Authorization": f"Bearer {self.api.token}"})
            for line in connection.getresponse():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.twice.append(f"the watch ended: {event['object'].get('message')}")
                    return
                self._see(event["object"], event["type"] == "DELETED")

    def _see(self, claim: dict, is_gone: bool) -> None:
        self.version, uid = claim["metadata"]["resourceVersion"], claim["metadata"]["uid"]
        before, now = self.of_claim.get(uid, set()), set() if is_gone else held_by(claim)
        for thing in before - now:
            self.holders.pop(thing)
        for thing in now - before:
            if thing in self.holders:
                self.twice.append(f"{thing} was given to {claim['metadata']['name']} while {self.holders[thing]} had it")
            self.holders[thing] = claim["metadata"]["name"]
        self.seen += bool(now and not before)
        self.of_claim[uid] = now
