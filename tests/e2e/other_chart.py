"""A stand-in for the chart slurm of the Slinky project: what that chart rendered, as tests/fixtures recorded it, as release `slurm`, changed
only as far as this machine needs. Its keys are objects of the release, made by chance and read again at each upgrade."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pods import BUSYBOX
from recorded import APPLIED
from slincdev.common import REPO
from slincdev.crds import from_yaml

RECORDED = REPO / "tests/fixtures/slinky-main"
DEFAULTS = REPO / "charts/slurm/tests/values/slinky.yaml"

KEYS = """\
{{- range $name, $key := dict "slurm-auth-slurm" "slurm.key" "slurm-auth-jwt" "jwt.key" }}
{{- $found := lookup "v1" "Secret" $.Release.Namespace $name }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels: {helm.sh/chart: slurm-1.2.1, app.kubernetes.io/managed-by: Helm, app.kubernetes.io/part-of: slurm, app.kubernetes.io/version: "26.05"}
type: Opaque
immutable: true
data:
  {{ $key }}: {{ if $found }}{{ get $found.data $key }}{{ else }}{{ randAscii 1024 | b64enc }}{{ end }}
{{- end }}
"""

CONF = "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity\nMinJobAge=10"  # the kernel here wants what the tests of the operator want
FILES = {"cgroup.conf": "CgroupPlugin=disabled\n"}
PARTITION = "State=UP Default=YES MaxTime=UNLIMITED"
# What the recorded objects were made with, and what this machine needs: one node, no volume, no database.
VALUES = {
    "configFiles": FILES,
    "controller": {"persistence": {"enabled": False}, "extraConf": CONF},
    "loginsets": {"slinky": {"service": {"spec": {"type": "ClusterIP"}}}},
    "nodesets": {"slinky": {"oversubscribeNode": True, "partition": {"enabled": True, "config": PARTITION}, "slurmd": {"resources": {"requests": {"cpu": "50m"}}},
                            "podSpec": {"terminationGracePeriodSeconds": 5}}},
}
HERE = {
    "Controller": {"accountingRef": None, "extraConf": CONF, "configFileRefs": [{"name": "slurm-config-extra"}], "persistence": {"enabled": False}},
    "LoginSet": {"service": {"spec": {"type": "ClusterIP"}}},
    "NodeSet": {"replicas": 1, "oversubscribeNode": True, "partition": {"enabled": True, "config": PARTITION}, "slurmd": {"resources": {"requests": {"cpu": "50m"}}},
                "template": {"spec": {"terminationGracePeriodSeconds": 5}}},
}


def with_our_images(text: str, tag: str) -> str:
    """Texts `repository:tag` and the pairs of a values file."""
    text = re.sub(r"ghcr\.io/slinkyproject/(\w+):26\.05-ubuntu26\.04", rf"localhost/slinc/\1:{tag}", text).replace("docker.io/library/alpine:latest", BUSYBOX)
    text = re.sub(r"ghcr\.io/slinkyproject/(\w+)\n(\s+)tag: 26\.05-ubuntu26\.04", rf"localhost/slinc/\1\n\2tag: {tag}", text)
    name, _, version = BUSYBOX.rpartition(":")
    return re.sub(r"docker\.io/library/alpine\n(\s+)tag: latest", rf'{name}\n\1tag: "{version}"', text)


def lay_over(into: dict, over: dict) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            lay_over(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value


def applied(plural: str, name: str) -> dict:
    """An object as the other chart rendered it."""
    one = next(one for one in from_yaml((RECORDED / f"{plural}.yaml").read_text()) if one["metadata"]["name"] == name)
    return json.loads(one["metadata"]["annotations"][APPLIED])


def make(folder: Path, namespace: str, tag: str) -> Path:
    """The chart, with the other chart's defaults as its values; only for `helm upgrade --reuse-values` do these matter."""
    chart = folder / "slurm"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: slurm\nversion: 1.2.1\nappVersion: '26.05'\n")
    (chart / "values.yaml").write_text(with_our_images(DEFAULTS.read_text(), tag))
    (chart / "templates/keys.yaml").write_text(KEYS)
    objects = [applied("controllers", "slurm"), applied("restapis", "slurm"), applied("loginsets", "slurm-login-slinky"), applied("nodesets", "slurm-worker-slinky"),
               applied("secrets", "slurm-sssd-conf"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slurm-config-extra"}, "data": FILES}]
    for one in objects:
        one["metadata"]["namespace"] = namespace
        lay_over(one.get("spec", {}), HERE.get(one["kind"], {}))
        (chart / f"templates/{one['kind'].lower()}.yaml").write_text(with_our_images(json.dumps(one), tag))
    return chart
