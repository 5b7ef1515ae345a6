"""`rollin watch`: what it serves and to whom, and that it changes nothing of what it looks at."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollin.cli import main
from rollin.cli.watch import Page, Reader, Server, Watched
from rollin.paper.four_rooms import STEPS, condition
from rollin.runs import driver
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record, run
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.files import read_json, write_json
from rollin.runs.spec import RunSpec
from tests.killing import needs_signals, stop_at
from tests.made_runs import STUDIES, sac_run
from tests.undrawn import undrawn

SPEC = condition("easy", 0.001, 0.75).spec(0, 60 / STEPS, log_every=10)
PLAIN = RunSpec("Hopper-v5", SACRunConfig(steps=20_000))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A directory of a run that has saved at its twentieth step or a little later."""
    place = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "STATUS_SECONDS", 0.0)
        stop_at(SPEC, place / "runs" / "a", 20)
    return place / "runs"


@pytest.fixture
def runs(stopped, tmp_path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "runs"))


def watch(*directories: Path) -> Watched:
    """By a clock that stands: every report takes no time, and the next may be made at once."""
    found = Watched(directories, STUDIES, clock=lambda: 0.0)
    found.refresh()
    return found


# ------------------------------------------------------------------ the server


@pytest.fixture
def server() -> Iterator[Server]:
    page = Page("<p>κ</p><!-- progress -->", "<b>now</b>", 12.0)
    with Server(lambda: page) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(
    server: Server, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_the_page_its_progress_and_its_version_are_served_from_memory(server) -> None:
    root = f"/{server.secret}/"
    assert server.address == f"http://127.0.0.1:{server.server_port}{root}"
    answer, text = ask(server, root)
    assert (answer.status, text) == (200, "<p>κ</p><b>now</b>")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert ask(server, f"{root}progress")[1] == "<b>now</b>"
    told = json.loads(ask(server, f"{root}version?now")[1])
    assert told["changed"] == 12.0
    assert told["report"] != told["progress"]
    answer, text = ask(server, root, "HEAD")
    assert (answer.status, text) == (200, "")
    assert answer.headers["Content-Length"] == str(len("<p>κ</p><b>now</b>".encode()))


def test_every_answer_forbids_frames_caches_and_foreign_scripts(server) -> None:
    for path in (f"/{server.secret}/", "/"):
        headers = ask(server, path)[0].headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha2")
        assert "connect-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Server"] == "rollin"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LocalHost", "127.0.0.1:65535"])
def test_names_of_this_machine_are_answered_also_through_a_tunnel(server, host) -> None:
    assert ask(server, f"/{server.secret}/", Host=host)[0].status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example",
     "127.0.0.1:x", "localhost@evil", "[::1]", "0.0.0.0", "127.0.0.2", ""],
)  # fmt: skip
def test_other_names_are_refused_whatever_the_path(server, host) -> None:
    for path in (f"/{server.secret}/", "/"):
        answer, text = ask(server, path, Host=host)
        assert (answer.status, text) == (403, "This page answers to 127.0.0.1 and localhost.\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "X"])
def test_nothing_but_reading(server, method) -> None:
    answer, text = ask(server, f"/{server.secret}/", method)
    assert (answer.status, text) == (405, "This page can only be read.\n")
    assert answer.headers["Allow"] == "GET, HEAD"


def test_paths_are_the_three_there_are(server, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.html").write_text("mine")
    secret = server.secret
    for path in ("/", "/x.html", f"/{secret}", f"/{secret}/x.html", f"/{secret}/../x.html",
                 f"/{secret}//", f"/{secret}/version/", "//", f"/{secret}/%2e%2e/x.html",
                 "/version", f"http://127.0.0.1/{secret}/", "*"):  # fmt: skip
        answer, text = ask(server, path)
        assert answer.status == 404, path
        assert text == "Open the address that rollin watch has printed.\n"


def test_what_is_no_request_is_refused_and_the_server_goes_on(server, capsys) -> None:
    for data in (b"\x00\x01\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                 b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"):  # fmt: skip
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as s:
            s.sendall(data)
            assert b"now" not in s.recv(1000)
    assert ask(server, f"/{server.secret}/")[0].status == 200
    assert capsys.readouterr().err == ""


def test_only_the_loopback_is_bound_and_a_taken_port_is_told(server, tmp_path, capsys) -> None:
    assert server.server_address[0] == "127.0.0.1"
    port = server.server_port
    assert main(["watch", str(tmp_path), "--port", str(port)]) == 2
    assert f"--port {port} cannot be opened: address already in use." in capsys.readouterr().err


# ------------------------------------------------------------------ what it shows


def test_an_empty_directory_is_waited_for(tmp_path) -> None:
    watched = watch(tmp_path)
    assert f"There are no runs below {tmp_path} yet." in watched.page.progress
    sac_run(tmp_path / "a", PLAIN, 12.5)
    watched.refresh()
    assert "Runs: 1 finished." in watched.page.progress
    assert "Learning curves" in watched.page.report


@undrawn()
def test_a_run_is_followed_to_its_end(runs, monkeypatch) -> None:
    monkeypatch.setattr(driver, "STATUS_SECONDS", 0.0)
    watched = watch(runs)
    first = watched.page
    assert "No run is finished yet." in first.report
    assert "Learning curves" in first.report
    assert "Every condition" not in first.report  # what it has at its end is not known
    assert "interrupted" in first.progress
    stop_at(SPEC, runs / "a", 40)
    watched.refresh()
    assert watched.page.version["report"] != first.version["report"]
    assert run(SPEC, runs / "a")
    watched.refresh()
    assert "Every condition" in watched.page.report
    assert "No run is finished yet." not in watched.page.report
    assert "Runs: 1 finished." in watched.page.progress


@undrawn()
def test_a_running_run_shows_steps_rate_and_time_left(runs) -> None:
    found = RunDirectory(runs / "a")
    status = read_json(runs / "a" / "status.json")
    kept = {name: status[name] for name in ("step", "steps", "shown")}
    found.write_status("running", **kept, steps_per_second=1234.0, eta_seconds=61.0)
    text = watch(runs).page.progress
    for cell in ("running", f"{status['step']}/60", "1,234", "1:01", status["shown"]["κ"]):
        assert f">{cell}</td>" in text
    assert '<progress max="1" value="0.' in text
    write_json(runs / "a" / "status.json", {**read_json(runs / "a" / "status.json"), "pid": 2**30})
    assert ">killed</td>" in watch(runs).page.progress


def test_a_run_that_has_not_saved_is_in_the_progress_alone(tmp_path) -> None:
    RunDirectory.claim(tmp_path / "a", SPEC, None, "").write_status(
        "running", step=1, steps=60, shown={"κ": "0.125"}
    )
    page = watch(tmp_path).page
    assert ">0.125</td>" in page.progress
    assert "it has no checkpoint yet" in page.report
    assert "Learning curves" not in page.report


@undrawn()
def test_a_damaged_run_is_passed_over_and_the_others_are_shown(tmp_path) -> None:
    sac_run(tmp_path / "a", PLAIN, 12.5)
    sac_run(tmp_path / "b", RunSpec(PLAIN.task, replace(PLAIN.config, seed=1)), 12.5)
    (tmp_path / "b" / "result.json").write_text("{")
    page = watch(tmp_path).page
    assert "Passed over" in page.report
    assert "is not valid JSON" in page.report
    assert "is not valid JSON" in page.progress
    assert "Learning curves" in page.report


@undrawn()
def test_a_directory_that_goes_away_leaves_the_last_page_and_says_so(runs) -> None:
    watched = watch(runs)
    before = watched.page.report
    runs.rename(runs.parent / "away")
    watched.refresh()
    assert watched.page.report == before
    assert f"{runs} is not a directory." in watched.page.progress
    (runs.parent / "away").rename(runs)
    watched.refresh()
    assert "is not a directory" not in watched.page.progress


@undrawn()
def test_a_report_that_fails_is_told_and_made_once_it_can_be(runs, monkeypatch) -> None:
    watched = Watched([runs], STUDIES, clock=lambda: 0.0)
    monkeypatch.setattr("rollin.cli.watch.live_report", lambda *_: 1 / 0)
    watched.refresh()
    assert "not up to date. ZeroDivisionError: division by zero" in watched.page.progress
    monkeypatch.undo()
    watched.refresh()
    assert "not up to date" not in watched.page.progress
    assert "Learning curves" in watched.page.report


def test_reports_are_made_when_something_changed_and_take_a_share_of_the_time(
    runs, monkeypatch
) -> None:
    now, made = [0.0], []

    def slow(*arguments: Any) -> str:
        now[0] += 10.0
        made.append(now[0])
        return f"report {len(made)}"

    monkeypatch.setattr("rollin.cli.watch.live_report", lambda *_: "")
    watched = Watched([runs], STUDIES, clock=lambda: now[0])
    monkeypatch.setattr("rollin.cli.watch.live_report", slow)
    for _ in range(3):
        watched.refresh()
        now[0] += 100.0
    assert made == [10.0]
    for _ in range(12):  # a look every five seconds, and something new at each
        os.utime(runs / "a" / "metrics.csv", (1000 + now[0], 1000 + now[0]))
        watched.refresh()
        now[0] += 5.0
    assert made == [10.0, 320.0, 370.0]  # of ten seconds each, with forty between them
    assert watched.page.report == "report 3"


def tree(directory: Path) -> dict[Path, Any]:
    def told(path: Path) -> Any:
        return path.read_bytes() if path.is_file() else None

    return {p: (p.lstat().st_mtime_ns, told(p)) for p in (directory, *directory.rglob("*"))}


@undrawn()
def test_looking_changes_nothing(runs) -> None:
    """Not even what a kill has left behind, which `rollin list` removes under the run's lock."""
    sac_run(runs / "b", PLAIN, 12.5)
    (runs / "a" / ".rollin-status.json.x").write_text("{")
    (runs / "a" / ".lock").unlink()
    before = tree(runs.parent)
    watched = watch(runs)
    watched.refresh()
    assert tree(runs.parent) == before


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_read_again(runs, monkeypatch) -> None:
    monkeypatch.setattr(driver, "STATUS_SECONDS", 0.0)
    read, steps = read_record, []

    def meanwhile(found: RunDirectory, at: Any) -> Any:
        if not steps:
            state = next((runs / "a" / "checkpoint").glob("state-*"))
            state.rename(state.with_suffix(".moved"))  # as if the next were complete
            steps.append(0)
            try:
                return read(found, at)
            finally:
                state.with_suffix(".moved").rename(state)
                stop_at(SPEC, runs / "a", 40)
        steps.append(read(found, at).step)
        return read(found, at)

    monkeypatch.setattr("rollin.cli.watch.read_record", meanwhile)
    reader = Reader()
    record = reader.record(RunDirectory(runs / "a"))
    assert record.step >= 40
    assert reader.record(RunDirectory(runs / "a")) is record
    assert len(steps) == 2  # the second time it was not read at all


@needs_signals
def test_ctrl_c_stops_it_with_130(tmp_path) -> None:
    words = [sys.executable, "-m", "rollin", "watch", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    late = threading.Timer(60, process.kill)  # ends a readline that would wait for ever
    late.start()
    try:
        line = process.stdout.readline()
        assert re.fullmatch(r"Live page: http://127\.0\.0\.1:\d+/[\w-]{16}/\n", line)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "\nStopped.\n")
    finally:
        late.cancel()
        process.kill()
        process.communicate()
