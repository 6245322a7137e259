"""The bridge without a token, and with one that Slurm does not take: it runs, its pods say what they wait for, and it goes on when the
token comes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bridge import Bridge, Site, condition, settled

NODE = "denied-0"
MISSING, REFUSED = "no such file", "Slurm cannot be used"


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "denied")


@pytest.fixture
def bridge(site, cluster, slurm, tmp_path) -> Iterator[Bridge]:
    """Not started; its token file is not there."""
    one = Bridge(cluster, slurm, tmp_path, jwtKeyFile="")
    site.add_node(NODE)
    try:
        yield one
        site.clear([NODE])
        settled(site)
        one.stop()
    finally:
        one.end()


def says(site: Site, name: str) -> str:
    found = condition(site.see(name), "SlurmPending")
    return f"{found.get('reason')}: {found.get('message')}" if found.get("status") == "True" else ""


def warnings(bridge: Bridge) -> list[str]:
    return [line for line in bridge.said().splitlines() if "the bridge cannot use Slurm" in line]


def of_namespace(site: Site) -> list[dict]:
    events = site.api.get(f"/apis/events.k8s.io/v1/namespaces/{site.namespace}/events")["items"]
    return [event for event in events if event["regarding"]["kind"] == "Namespace" and event["reason"] == "SlurmUnavailable"]


def test_pods_say_that_the_token_is_missing_or_refused_and_are_placed_when_it_comes(site, slurm, bridge, eventually):
    bridge.start().wait_until_it_leads()
    for name in ("early", "twin"):
        site.make(name)
    eventually("each says that there is no token", lambda: all(MISSING in says(site, name) for name in ("early", "twin")), 5)
    code, text = bridge.ask("/readyz")
    assert code != 200 and "slurm" in text and MISSING in text
    assert bridge.ask("/readyz?exclude=slurm")[0] == 200  # what the webhook's Service looks at
    eventually("the namespace has one event", lambda: len(of_namespace(site)) == 1)
    assert len(warnings(bridge)) == 1

    bridge.token.write_text(slurm.token())
    for name in ("early", "twin"):
        eventually(f"{name} is placed", lambda name=name: site.placed(name))
    eventually("it waits no more", lambda: condition(site.see("early"), "SlurmPending").get("status") == "False")

    eventually("the clocks were compared", lambda: "slurmctld's clock agrees with ours" in bridge.said())

    bridge.token.write_text("not.a.token")
    eventually("the new token is read", lambda: bridge.ask("/readyz")[0] != 200 or len(warnings(bridge)) == 2, 90)
    site.make("late")
    eventually("it says that Slurm refuses the bridge", lambda: REFUSED in says(site, "late"), 5)
    assert len(warnings(bridge)) == 2
    bridge.token.write_text(slurm.token())
    eventually("it is placed", lambda: site.placed("late"))
    assert "not.a.token" not in bridge.said()
