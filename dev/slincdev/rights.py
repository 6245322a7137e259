"""Rights of an account in Kubernetes: which calls need which, which a rendered chart gives, and which an audit log shows in use."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

VERBS = {"WATCH": "watch", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
RULE = re.compile(r"  - apiGroups: \[(.*)\]\n    resources: \[(.*)\]\n(?:    resourceNames: \[(.*)\]\n)?    verbs: \[(.*)\]\n")
PATHS = re.compile(r"  - nonResourceURLs: \[.*\]\n    verbs: \[.*\]\n")  # what others may ask of us, and nothing that we call


class Right(NamedTuple):
    verb: str
    group: str
    resource: str  # with its subresource: "pods/binding"
    where: str  # "cluster", or "home": the namespace of the bridge alone
    name: str  # of the one object that it is about; at home only


# Of every account, by roles of Kubernetes' own (system:basic-user).
GIVEN_TO_ALL = {Right("create", "authentication.k8s.io", "selfsubjectreviews", "cluster", "")}

# Of accounts whose servers ask who somebody is and what they may (system:auth-delegator).
OF_JUDGES = {Right("create", "authentication.k8s.io", "tokenreviews", "cluster", ""),
             Right("create", "authorization.k8s.io", "subjectaccessreviews", "cluster", "")}


def right_for(method: str, path: str, home: str) -> Right | None:
    """What a call needs, its path without query; a watch has the method WATCH. None: a question which kinds there are, which all may ask."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    verb = VERBS.get(method) or ("get" if name else "list")
    is_home = namespace == home
    return Right(verb, group, f"{plural}/{subresource}" if subresource else plural, "home" if is_home else "cluster", name if is_home else "")


def words(text: str | None) -> list[str]:
    return [word.strip().strip('"') for word in (text or "").split(",")]


def rights_given(rendered: str) -> dict[str, set[Right]]:
    """By the roles of a rendered chart, whose names are those of the accounts."""
    found: dict[str, set[Right]] = {}
    for text in rendered.split("\n---\n"):
        kind = re.search(r"^kind: (ClusterRole|Role)$", text, re.M)
        if not kind:
            continue
        head, _, rules = f"{text.rstrip()}\n".partition("\nrules:\n")
        rules = PATHS.sub("", rules)
        account = re.search(r"^  name: (\S+)$", head, re.M)[1]
        assert not RULE.sub("", rules).strip(), f"rules of {account} that cannot be read: {RULE.sub('', rules)}"
        found.setdefault(account, set()).update(
            Right(verb, group, resource, "home" if kind[1] == "Role" else "cluster", name)
            for groups, resources, names, verbs in RULE.findall(rules)
            for group in words(groups) for resource in words(resources) for name in words(names) for verb in words(verbs))
    return found


def audited(log: Path, since: int, home: str) -> dict[str, dict[Right, set[str]]]:
    """By the API server's audit log from this byte on, for each account: what it needed, and what was decided (allow, forbid)."""
    found: dict[str, dict[Right, set[str]]] = {}
    for line in log.read_bytes()[since:].splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break  # it is being written
        event = json.loads(line)
        method = {"get": "GET", "list": "GET", "watch": "WATCH", "create": "POST", "update": "PUT"}.get(event["verb"], event["verb"].upper())
        right = right_for(method, event["requestURI"].partition("?")[0], home) if "objectRef" in event else None
        if right and "authorization.k8s.io/decision" in event.get("annotations", {}):
            account = event["user"]["username"].rpartition(":")[2]
            found.setdefault(account, {}).setdefault(right, set()).add(event["annotations"]["authorization.k8s.io/decision"])
    return found
