"""Every alert of the exporter's chart fires on the series that it is for, and not before its time: promtool evaluates the shipped rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import REPO
from slincdev.build import bin_dir, ensure_programs

RULES = REPO / "charts/slurm-exporter/files/rules.json"
ALERTS = {rule["alert"]: rule for group in json.loads(RULES.read_text())["groups"] for rule in group["rules"] if "alert" in rule}

# Of each alert: series with their values minute by minute, the minute when it must fire, and one before when it must not.
DAY = 1440
CASES: dict[str, tuple[dict[str, str], int, int]] = {
    "SlurmUnreachable": ({'slinc_slurm_up{kind="jobs"}': "1x4 0x20"}, 10, 5),
    "SlurmDataStale": ({'slinc_slurm_age_seconds{kind="jobs"}': "1x4 60x20"}, 10, 5),
    "SlurmRestricted": ({'slinc_slurm_restricted{by="jobs"}': "0x4 1x20"}, 15, 5),
    "BackfillStalled": ({'slinc_scheduler_last_cycle_timestamp_seconds{scheduler="backfill"}': "60x40",
                         'slinc_cluster_pending_jobs{class="resources",reason="Resources"}': "3x40"}, 30, 10),
    "SchedulerCycleSlow": ({'slinc_scheduler_last_cycle_seconds{scheduler="main"}': "1x4 9x20"}, 20, 5),
    "ControllerThreadsHigh": ({"slinc_controller_threads": "3x4 250x20"}, 15, 5),
    "DbdQueueGrowing": ({"slinc_controller_dbd_queue": "0+100x60"}, 50, 5),
    "NodesDown": ({'slinc_cluster_nodes{state="down"}': "0x4 5x30", 'slinc_cluster_nodes{state="idle"}': "95x40"}, 25, 10),
    "NodeDrainedLong": ({'slinc_node_reason_timestamp_seconds{node="n1"}': f"60x{2 * DAY}",
                         'slinc_node_state{node="n1",state="drained"}': f"1x{2 * DAY}"}, DAY + 120, DAY - 60),
    "PendingNever": ({'slinc_pending_jobs{partition="a",class="never",reason="PartitionTimeLimit"}': "0x4 1x40"}, 30, 10),
    "OldestPending": ({'slinc_pending_oldest_seconds{partition="a",class="resources"}': "0x4 90000x60", 'slinc_nodes{partition="a",state="idle"}': "1x70"}, 45, 10),
    "FailureBurst": ({'slinc_jobs_finished_total{partition="a",result="failed"}': "0+9x60", 'slinc_jobs_finished_total{partition="a",result="completed"}': "0+1x60"},
                     45, 5),
    "JobsHeldByAdmin": ({'slinc_pending_jobs{partition="a",class="hold",reason="JobHeldAdmin"}': "0x4 1x120"}, 90, 30),
    "HpaBlind": ({"slinc_external_metrics_owned": "1x4 0x20"}, 15, 6),
    "BridgeNotBinding": ({"slinc_bridge_waiting_pods": "4x60", 'slinc_bridge_pods_total{reached="bound"}': "7x60", 'slinc_cluster_nodes{state="idle"}': "1x60"},
                         45, 5),
}


def test_every_alert_has_a_case() -> None:
    assert set(ALERTS) == set(CASES)


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_when_it_should(alert: str, tmp_path: Path) -> None:
    ensure_programs(["promtool"])
    series, fires, quiet = CASES[alert]
    test = {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()], "promql_expr_test": [
        {"expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)', "eval_time": f"{at}m", "exp_samples": [{"labels": "{}", "value": value}]}
        for at, value in ((quiet, 0), (fires, 1))]}
    file = tmp_path / "test.json"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run([bin_dir() / "promtool", "test", "rules", file], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
