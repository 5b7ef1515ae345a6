"""The SAC benchmark: what is made of measurements, without measuring anything."""

import doctest
import os
import signal

import numpy as np
import pytest
from benchmarks.peers.sac import products
from benchmarks.peers.sac.case import Case
from benchmarks.records import Row

from benchmarks import records, sac, sac_page, turns

CASE = "Hopper, training steps"


def speed(contestant: str, rate: float, cores: int = 1, *, cpu: float | None = None) -> Row:
    return {
        "processor": "made up",
        "lanes": 16,
        "forced": 0,
        "version": "rollin 1, numpy 2" if contestant == "rollin cpu" else "theirs 3, numpy 2",
        "case": CASE,
        "cores": cores,
        "contestant": contestant,
        "per_second": rate,
        "per_cpu_second": cpu,
        "rounds": 7,
    }


def test_examples_of_docstrings() -> None:
    failed, tried = doctest.testmod(records)
    assert tried > 0
    assert failed == 0


# ------------------------------------------------------------------ committed pages


def test_the_page_of_speeds_follows_from_the_committed_records() -> None:
    assert sac_page.PAGE.read_text() == sac_page.page()


def test_every_speed_has_its_cpu_and_version() -> None:
    for row in records.read(sac_page.DATA / "speed.csv"):
        assert "family" in row["processor"]
        assert row["lanes"] in sac_page.INSTRUCTIONS
        assert row["version"]
        assert row["contestant"] in (*sac_page.CONTESTANTS, *sac_page.FLOORS)
        assert row["case"] in sac_page.CASES


# ------------------------------------------------------------------ speeds


def test_the_best_peer_does_equal_updates() -> None:
    rows = [speed("rollin cpu", 300), speed("SBX CrossQ", 500), speed("RLtools", 120)]
    assert sac_page.best_peer([*rows, speed("SB3", 90)], CASE, 1) == ("RLtools", 120)
    assert sac_page.best_peer([*rows, speed("jaxrl", 130)], CASE, 1) == ("jaxrl", 130)


def test_the_best_peer_on_two_cores_may_use_one() -> None:
    rows = [speed("RLtools", 120), speed("RLtools", 100, 2), speed("jaxrl", 110, 2)]
    assert sac_page.best_peer(rows, CASE, 2) == ("RLtools", 120)
    rows = [*rows[:2], speed("jaxrl", 121, 2)]
    assert sac_page.best_peer(rows, CASE, 2) == ("jaxrl", 121)
    assert sac_page.best_peer(rows, CASE, 1) == ("RLtools", 120)


def test_the_best_peer_by_cpu_time_is_another_one() -> None:
    rows = [speed("RLtools", 120, cpu=125.0), speed("jaxrl", 110, cpu=150.0), speed("SB3", 130)]
    assert sac_page.best_peer(rows, CASE, 1, "per_cpu_second") == ("jaxrl", 150.0)


def test_a_table_of_speeds() -> None:
    rows = [speed("rollin cpu", 300), speed("RLtools", 120), speed("SBX CrossQ", 7.44)]
    rows += [speed("rollin cpu", 500, 2)]
    assert sac_page.table(rows, (1, 2)).splitlines() == [
        "| per second | cores | rollin cpu | RLtools | SBX CrossQ | rollin cpu / best peer |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| {CASE} | 1 | 300 | 120 | 7.4 | **2.50×** (RLtools) |",
        f"| {CASE} | 2 | 500 | – | – | **4.17×** (RLtools) |",
    ]


def test_a_busy_machine_is_told() -> None:
    quiet = [speed(name, 99, cpu=100.0) for name in ("rollin cpu", "RLtools")]
    quiet += [speed("SB3", 98, cpu=100.0)]
    assert "99 % of it in the median and 98 %" in sac_page.busy(quiet)
    loaded = [speed("rollin cpu", 50, cpu=100.0), speed("SB3", 150, 2, cpu=80.0)]
    assert "50 % of it in the median and 50 %" in sac_page.busy(loaded)
    assert sac_page.busy([speed("rollin cpu", 50)]) == "CPU time was not recorded."


def test_only_rows_of_the_same_cpu_and_width_are_replaced(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sac, "DATA", tmp_path)
    other = {**speed("SB3", 5), "processor": "another"}
    narrow = {**speed("SB3", 6), "lanes": 8}
    two = speed("SB3", 7, 2)
    sac.add("speed.csv", [other, narrow, two, speed("SB3", 8)])
    sac.add("speed.csv", [speed("rollin cpu", 9)], ("case", "cores"))
    assert records.read(tmp_path / "speed.csv") == [other, narrow, two, speed("rollin cpu", 9)]


def test_who_takes_part() -> None:
    wide, small = sac_page.TASKS["Hopper"], sac_page.TASKS["small networks"]
    assert "SBX CrossQ" in sac.contestants(wide, 1, None)
    assert not set(sac_page.SLOW) & set(sac.contestants(small, 1, None))
    assert not set(sac_page.SLOW) & set(sac.contestants(wide, 1, 8))
    assert set(sac_page.FLOORS) <= set(sac.contestants(wide, 1, None))
    assert not set(sac_page.FLOORS) & set(sac.contestants(wide, 2, None))
    assert not sac.can("RLtools", "updates", wide)
    assert sac.can("RLtools", "steps", wide)


def test_narrow_vectors_are_asked_of_everybody() -> None:
    plain, narrow = turns.environment(2), turns.environment(1, 8)
    assert plain["OMP_NUM_THREADS"] == "2"
    assert narrow["OMP_NUM_THREADS"] == "1"
    assert narrow["ROLLIN_LANES"] == "8"
    assert "AVX2" in narrow["XLA_FLAGS"]
    assert "RL_TOOLS_COMPILER" not in plain


def test_a_page_says_who_was_kept_to_less() -> None:
    rows = [speed("rollin cpu", 300), speed("RLtools", 120)]
    assert "kept to AVX2" not in sac_page.section("made up", 16, rows)
    rows = [{**row, "lanes": 8, "forced": 1} for row in rows]
    assert "kept to AVX2" in sac_page.section("made up", 8, rows)
    assert "Not measured here: rollin cpu, bfloat16; rollin jax; jaxrl" in sac_page.section(
        "made up", 8, rows
    )


def test_versions_are_named_once() -> None:
    rows = [speed("rollin cpu", 1), speed("SB3", 1)]
    assert records.versions_of(rows) == "rollin 1, numpy 2, theirs 3"


# ------------------------------------------------------------------ turns


def test_contestants_take_turns_and_end() -> None:
    case = Case("Hopper-v5", (8, 8), 4, 1)
    workers = turns.launch_all([("products, OpenBLAS", case)] * 2, "no python of peers")
    turns.take_turns(workers, "updates", 3, 0.001)
    for worker in workers:
        seen = os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert seen is not None
        assert seen.si_status == signal.SIGSTOP  # until its turn comes
        assert f"numpy {np.__version__}" in worker.version
        assert len(worker.turns["updates"]) == 3
        assert worker.median("updates").per_cpu_second > 0
        worker.close()
        assert worker.process.returncode == -signal.SIGKILL


def test_a_contestant_that_fails_says_why() -> None:
    case = Case("Nothing-v0", (8, 8), 4, 1)
    with pytest.raises(SystemExit, match=r"OpenBLAS ended with code 1:[^$]*Nothing-v0"):
        turns.launch_all([("products, OpenBLAS", case)], "no python of peers")


# ------------------------------------------------------------------ products


def test_padded_rows_are_an_odd_number_of_cache_lines_apart() -> None:
    for columns in (1, 16, 17, 256, 300):
        array = np.arange(3.0 * columns, dtype=np.float32).reshape(3, columns)
        copy = products.padded(array)
        assert np.array_equal(copy, array)
        assert copy.strides[0] % (2 * 64) == 64
        assert copy.ctypes.data % 64 == 0


@pytest.mark.parametrize("kind", ["forward", "weights", "inputs"])
def test_libraries_multiply_what_they_should(kind) -> None:
    random = np.random.default_rng(0)
    x, y, w = (random.standard_normal(s).astype("f") for s in ((8, 3), (8, 5), (3, 5)))
    a, b, out = products.OpenBLAS(Case("Hopper-v5", (8, 8), 4, 1)).prepare(kind, x, y, w)
    wanted = {"forward": x @ w, "weights": x.T @ y, "inputs": y @ w.T}[kind]
    assert np.allclose(np.matmul(a, b), wanted, atol=1e-5)
    assert np.allclose(out, wanted, atol=1e-5)  # the trials have left it there


def test_our_kernels_multiply_what_they_should() -> None:
    random = np.random.default_rng(0)
    x, y, w = (random.standard_normal(s).astype("f") for s in ((8, 20), (8, 40), (20, 40)))
    ours = products.Ours(Case("Hopper-v5", (8, 8), 4, 1))
    wanted = {"forward": x @ w, "weights": x.T @ y, "inputs": y @ w.T}
    for kind, product in wanted.items():
        row, kept = ours.prepare(kind, x, y, w)
        ours.compiled(np.array([row], np.int64), 1)
        panels = kept[2][:, : len(product)]
        found = np.concatenate(list(panels), axis=1)[:, : product.shape[1]]
        assert np.allclose(found, product, atol=1e-4), kind
