"""The study of other people's agents: its runs in order, and a finished one as a record."""

from typing import Any

import pytest
from studies.shared import keep

from rollin.runs.records import MetricAt, read_records, write_records
from studies import foreign


def test_seeds_come_one_after_the_other_with_all_arms():
    planned = list(foreign.jobs(["ppo", "sac"], ["1/12"], seeds=2, steps=10))
    assert [(job.seed, job.agent, job.arm) for job in planned[:5]] == [
        (0, "ppo", "bare"), (0, "ppo", "rollin"), (0, "sac", "bare"), (0, "sac", "rollin"),
        (0, "sac", "fresh"),
    ]  # fmt: skip
    assert len({job.file for job in planned}) == 10


TOLD: dict[str, Any] = {
    "seconds": 2.0, "steps": 1100, "hidden": 90, "updates": 900, "K": 11, "completed": None,
    "advances": [[400, 1, "mean return 81"], [800, 2, "mean return 90"]], "goals": 0.25,
    "return_final": 0.5, "versions": {"rollin": "0.1.0"}, "processor": "a CPU",
}  # fmt: skip


def test_collected_records_stay_beside_others_and_replace_their_like(tmp_path):
    one, two = (foreign.Job("ppo", "bare", "1/12", seed, 1000) for seed in (0, 1))
    keep([foreign.record_of(one, TOLD), foreign.record_of(two, TOLD)], tmp_path)
    again = foreign.record_of(two, {**TOLD, "goals": 0.5})
    other = foreign.record_of(foreign.Job("sac", "fresh", "1/12", 1, 1000), TOLD)
    keep([again, other], tmp_path)
    found = {
        (r.labels["agent"], r.seed): r.value(MetricAt("goals")) for r in read_records(tmp_path)
    }
    assert found == {("ppo", 0): 0.25, ("ppo", 1): 0.5, ("sac", 1): 0.25}


def test_a_finished_run_becomes_a_record(tmp_path):
    job = foreign.Job("sac", "rollin", "1/12", 3, 1000)
    for name, data in write_records([foreign.record_of(job, TOLD)]).items():
        (tmp_path / name).write_bytes(data)
    (record,) = read_records(tmp_path)
    assert record.labels == {"agent": "sac", "arm": "rollin", "delta": "1/12", "beta": "0.2"}
    assert (record.k, record.K, record.costs.rollin_steps) == (2, 11, 90)
    assert record.value(MetricAt("kappa")) == pytest.approx(2 / 11)
    assert record.value(MetricAt("goals")) == 0.25
    assert [switch.step for switch in record.switches] == [0, 400, 800]
