"""A MariaDB with a password, for an Accounting. It can go away and come back with its data."""

from __future__ import annotations

from slurm_operator import Site
from waits import wait_for

PASSWORD = "S3cret-Word"
FIRST = f"""\
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS 'slurm'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'%';
"""


def make_database(site: Site) -> dict:
    """The answer is the Accounting's storageConfig."""
    site.api.post(site.core("configmaps"), {"metadata": {"name": "database"}, "data": {"first.sql": FIRST}})
    site.api.post(site.core("secrets"), {"metadata": {"name": "database"}, "stringData": {"password": PASSWORD}})
    site.api.post(site.core("services"), {"metadata": {"name": "database"}, "spec": {"selector": {"app": "database"}, "ports": [{"port": 3306}]}})
    start_database(site)
    return {"host": "database", "username": "slurm", "passwordKeyRef": {"name": "database", "key": "password"}}


def start_database(site: Site) -> None:
    data = {"path": f"{site.cluster.shared}/database-{site.namespace}", "type": "DirectoryOrCreate"}
    site.api.post(site.core("pods"), {"metadata": {"name": "database", "labels": {"app": "database"}}, "spec": {
        "enableServiceLinks": False, "terminationGracePeriodSeconds": 0,
        "containers": [site.image("mariadb") | {
            "name": "main", "args": ["--init-file=/first/first.sql"], "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 1},
            "volumeMounts": [{"name": "first", "mountPath": "/first"}, {"name": "data", "mountPath": "/var/lib/mysql"}]}],
        "volumes": [{"name": "first", "configMap": {"name": "database"}}, {"name": "data", "hostPath": data}]}})


def stop_database(site: Site) -> None:
    site.api.delete(site.core("pods", "database"), {"gracePeriodSeconds": 0})
    wait_for("the database is gone", 30, lambda: not site.api.exists(site.core("pods", "database")))
