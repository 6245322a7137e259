"""What befalls a Slurm cluster while the operator runs: tokens end, the database goes away, the definitions are upgraded."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Iterator

import pytest
from database import make_database, start_database, stop_database
from definitions import installed, older_chart
from slincdev.cluster import Cluster
from slincdev.common import Fail
from slincdev.crds import CHART
from slincdev.parts import ensure_images, import_images
from slurm_operator import Operator, Site

HOME = "operator-outages"
IMAGES = ["slurmctld", "slurmrestd", "slurmdbd", "mariadb", "busybox"]
LIFETIME_S = 25  # a fifth of it is left when it is renewed


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory) -> Iterator[Operator]:
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    with installed(cluster, HOME):
        one = Operator(cluster, tmp_path_factory.mktemp("operator"))
        try:
            yield one.start().wait_until_it_leads()
            one.stop()
        finally:
            one.end()
            Site(cluster, HOME).end_pods()


@pytest.fixture(scope="module")
def site(cluster: Cluster, operator: Operator) -> Site:
    found = Site(cluster, HOME)
    keys, storage = found.make_keys(), make_database(found)
    found.make("accountings", "slurm", keys | {"slurmdbd": found.image("slurmdbd"), "storageConfig": storage})
    found.make("controllers", "slurm", keys | {
        "slurmctld": found.image("slurmctld"), "logfile": found.busybox, "persistence": {"enabled": False}, "accountingRef": {"name": "slurm"},
        "extraConf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity"})
    found.make("restapis", "slurm", {"controllerRef": {"name": "slurm"}, "slurmrestd": found.image("slurmrestd")})
    found.make("tokens", "short", {"username": "slurm", "jwtKeyRef": keys["jwtKeyRef"], "lifetime": f"{LIFETIME_S}s"})
    for plural, name in {"accountings": "slurm", "controllers": "slurm", "restapis": "slurm", "tokens": "short"}.items():
        found.wait_until_ready(plural, name, 90)
    return found


@pytest.fixture(scope="module", autouse=True)
def first_token(site: Site) -> str:
    """It counts; when the stories of the database have been told it has ended."""
    first = site.secret("short-jwt-slurm", "SLURM_JWT").decode()
    assert site.rest_status(first) == 200
    return first


def claims(token: str) -> dict:
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def accounting_answers(site: Site) -> bool:
    with contextlib.suppress(Fail):
        return f"{HOME}_slurm" in site.kubectl("exec", "slurm-controller-0", "-c", "slurmctld", "--", "sacctmgr", "-nP", "show", "cluster", "format=cluster")
    return False


def database(site: Site, plural: str) -> dict:
    return site.conditions(plural, "slurm").get("DatabaseReachable", {})


def is_database_there(site: Site, status: str) -> bool:
    """Both custom resources say so."""
    return all(database(site, plural).get("status") == status for plural in ("accountings", "controllers"))


def test_a_lost_database_is_told_where_people_look_until_it_is_back(site, eventually):
    """slurmdbd and slurmctld run on: their pods stay ready."""
    eventually("the cluster is registered", lambda: accounting_answers(site))
    eventually("the conditions say that the database answers", lambda: is_database_there(site, "True"))
    stop_database(site)
    eventually("the conditions say that it does not", lambda: is_database_there(site, "False"))
    lost = database(site, "accountings")
    assert lost["reason"] == "NotReachable" and lost["message"].startswith("not reachable since 20"), lost
    assert not accounting_answers(site)
    assert site.is_ready("accountings", "slurm") and site.is_ready("controllers", "slurm")
    start_database(site)
    eventually("accounting answers", lambda: accounting_answers(site))
    eventually("the conditions say that the database answers again", lambda: is_database_there(site, "True"))
    eventually("Events tell of both", lambda: {"NotReachable", "Responding"} <= set(site.events("slurm")))


def test_an_accounting_that_starts_without_its_database_says_so_until_it_is_there(site, eventually):
    """slurmdbd listens when it has its database. The Controller has a slurmctld that runs, and stays ready."""
    stop_database(site)
    site.api.delete(site.core("pods", "slurm-accounting-0"), {"gracePeriodSeconds": 0})

    def ready() -> dict:
        return site.conditions("accountings", "slurm")["Ready"]
    lost = eventually("the condition says so", lambda: ready() if ready()["status"] == "False" else None, 10)
    assert (lost["reason"], lost["message"]) == ("PodsNotReady", "0 of 1 pods of StatefulSet slurm-accounting are ready")
    eventually("slurmdbd asks for its database", lambda: "mysql_real_connect failed" in site.kubectl("logs", "slurm-accounting-0"))
    assert ready()["status"] == "False" and site.is_ready("controllers", "slurm")
    start_database(site)
    for plural in ("accountings", "controllers"):
        site.wait_until_ready(plural, "slurm")
    eventually("accounting answers", lambda: accounting_answers(site))
    eventually("the conditions say so", lambda: is_database_there(site, "True"))


def test_a_token_is_renewed_before_it_ends_and_slurmrestd_takes_the_new_one(site, first_token, eventually):
    """The first token has ended while the database was away."""
    def renewed() -> str | None:
        found = site.secret("short-jwt-slurm", "SLURM_JWT").decode()
        assert claims(found)["exp"] > time.time(), "whoever reads the Secret gets a token that counts"
        return found if claims(found)["iat"] > claims(first_token)["iat"] else None
    second = eventually("the token is renewed", renewed, LIFETIME_S)
    assert claims(second)["exp"] - claims(second)["iat"] == LIFETIME_S
    eventually("the first one has ended", lambda: time.time() > claims(first_token)["exp"])
    eventually("slurmrestd refuses the first one", lambda: site.rest_status(first_token) == 511)
    assert site.rest_status(site.secret("short-jwt-slurm", "SLURM_JWT").decode()) == 200
    assert site.conditions("tokens", "short")["Ready"]["status"] == "True"


def test_definitions_are_upgraded_while_the_operator_runs(site, operator, tmp_path, eventually):
    """From those of 1.2.1, which do not know `ha`: no object changes, and what changes afterwards is seen."""
    def identities() -> dict:
        objects = {(plural, name): site.api.get(site.path(plural, name)) for plural, name in (("controllers", "slurm"), ("restapis", "slurm"))}
        return {key: (one["metadata"]["uid"], one["metadata"].get("generation")) for key, one in (objects | site.children()).items()}

    site.api.delete(site.path("tokens", "short"))  # nothing is due to be written now
    eventually("its Secret is gone", lambda: not site.api.exists(site.core("secrets", "short-jwt-slurm")))
    for plural in ("restapis", "controllers"):
        site.wait_until_ready(plural, "slurm")
    before, actions = identities(), operator.actions()
    site.upgrade(older_chart(tmp_path))
    eventually("the older definition is served", lambda: not site.serve_ha())
    site.upgrade(CHART)
    eventually("the newer definition is served", site.serve_ha)
    assert operator.actions() == actions and identities() == before
    site.api.merge(site.path("restapis", "slurm"), {"spec": {"replicas": 0}})
    eventually("a change is seen", lambda: site.api.get(site.apps("deployments", "slurm-restapi"))["spec"]["replicas"] == 0)
    site.api.merge(site.path("restapis", "slurm"), {"spec": {"replicas": 1}})
    for plural in ("restapis", "controllers"):
        site.wait_until_ready(plural, "slurm")
    now = identities()
    for key in (("restapis", "slurm"), ("deployments", "slurm-restapi")):
        before.pop(key), now.pop(key)
    assert now == before
