"""`iclbench view`: pages of this machine alone, which follow the records."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from iclbench import RecordStore, UsageError
from iclbench.leaderboards.site import live
from iclbench.leaderboards.site.live import LiveSite
from iclbench.leaderboards.site.server import Server


@pytest.fixture(scope="module")
def results(leaderboards, tmp_path_factory):
    """A folder of results: two records, with a secret beside them."""
    folder = tmp_path_factory.mktemp("view") / "results"
    paths = [p for p in RecordStore(leaderboards / "records").paths() if "zero" in p.name]
    shutil.copytree(leaderboards / "records" / "objects", folder / "objects")
    (folder / paths[0].parent.name).mkdir()
    for path in paths:
        shutil.copy(path, folder / path.parent.name / path.name)
    (folder / "secret.txt").write_text("secret")
    (folder.parent / "secret.txt").write_text("secret")
    return folder


@pytest.fixture(scope="module")
def site(results):
    lines: list[str] = []
    site = LiveSite(results, lines.append)
    site.refresh()
    assert lines == []
    with closing(site):
        yield site


@pytest.fixture(scope="module")
def server(site):
    with Server(site, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path, method="GET", **headers):
    """The status, headers and body of an answer; the path is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    with closing(connection):
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def test_it_serves_the_same_pages_to_this_machine_alone(server, results):
    assert server.socket.getsockname()[0] == "127.0.0.1"
    status, headers, body = ask(server, "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"connect-src 'self'" in body
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    (path, *_) = RecordStore(results).paths()
    record = path.stem.rpartition("-")[2]
    assert record.encode() in ask(server, f"/runs/{record}.html")[2]
    assert ask(server, f"/records/least-squares/{path.name}")[2] == path.read_bytes()
    assert ask(server, "/index.html", "HEAD")[2] == b""
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, "/index.html", method, **{"Content-Length": "0"})[0] == 501


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt",
        "/records/../../secret.txt", "//etc/passwd", "/etc/passwd", "/%2fetc%2fpasswd",
        "/secret.txt", "/records/secret.txt", "/index.html%00.txt", "/.iclbench-site/..",
        "/./index.html", "/runs/", "/..\\secret.txt", "/%ff%fe",
    ],
)  # fmt: skip
def test_only_files_of_the_site_are_served(server, path):
    status, _, body = ask(server, path)
    assert status == 404
    assert b"secret" not in body
    assert b"root:" not in body


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "", "0.0.0.0:{port}",
     "127.0.0.1:{port}.evil.example", "localhost:1"],
)  # fmt: skip
def test_other_hosts_are_refused_so_that_no_name_can_be_rebound(server, host):
    status, _, body = ask(server, "/", Host=host.format(port=server.server_port))
    assert status == 421
    assert b"iclbench" not in body
    good = f"localhost:{server.server_port}"
    assert ask(server, "/", Host=good)[0] == 200


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (ConnectionResetError("gone"), ""),
        (BrokenPipeError("gone"), ""),
        (TimeoutError("silent"), ""),
        (ValueError("a bug"), "iclbench: a request failed: ValueError: a bug\n"),
    ],
)
def test_a_browser_that_goes_away_is_no_news_and_a_bug_is_one_line(server, capsys, error, lines):
    try:
        raise error
    except Exception:
        server.handle_error(None, ("127.0.0.1", 1))
    assert capsys.readouterr().err == lines


def test_a_connection_that_is_reset_prints_nothing(server, capsys):
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
    for _ in range(3):
        connection = socket.create_connection(("127.0.0.1", server.server_port))
        # No lingering: closing sends a reset, as a browser's killed tab does.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(request * 20)
        connection.close()
    assert ask(server, "/")[0] == 200
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_only_this_machine_can_reach_it(server):
    assert server.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_refused_on_one_line(site):
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(UsageError, match="port 0 takes any free one"),
    ):
        # A listener that reuses addresses is refused too: this one listens.
        Server(site, taken.getsockname()[1])


def test_a_new_record_makes_a_new_site_and_a_bad_one_stops_nothing(leaderboards, results, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    lines: list[str] = []
    with closing(LiveSite(folder, lines.append)) as site:
        assert site.refresh()
        assert not site.refresh()
        before = {name for name in site.files if name.startswith("runs/")}
        bad = folder / "least-squares" / "zero-0123456789abcdef.json"
        bad.write_text("{")
        assert site.refresh()
        assert {name for name in site.files if name.startswith("runs/")} == before
        (problem,) = lines
        assert "zero-0123456789abcdef" in problem
        (new,) = (leaderboards / "records").glob("categorical/*.json")
        (folder / "categorical").mkdir()
        shutil.copy(new, folder / "categorical")
        reached: list[int] = []
        waiter = threading.Thread(target=lambda: reached.append(site.wait_for_change(2, 30)))
        waiter.start()
        assert site.refresh()
        waiter.join(timeout=30)
        assert reached == [3]
        assert "tasks/categorical.html" in site.files
        assert len(lines) == 1  # said once
        assert all(path.is_file() for path in site.files.values())
        bases = {path.parents[len(name.split("/")) - 1] for name, path in site.files.items()}
        assert len(bases) == 1
    assert not bases.pop().exists()


def test_a_record_that_arrived_before_its_files_is_shown_once_they_are_there(results, tmp_path):
    folder, lines = tmp_path / "results", []
    shutil.copytree(results, folder, ignore=shutil.ignore_patterns("objects"))
    with closing(LiveSite(folder, lines.append)) as site:
        assert site.refresh()
        assert not site.files
        assert not site.refresh()
        assert lines
        shutil.copytree(results / "objects", folder / "objects")
        assert site.refresh()
        assert any(name.startswith("runs/") for name in site.files)
        assert site.problems == []
        # A build without problems does not wait for files.
        (folder / "objects" / "zz").mkdir()
        assert not site.refresh()
        # A problem that comes back is said again.
        count = len(lines)
        shutil.rmtree(folder / "objects")
        os.utime(next(folder.glob("*/*.json")))
        assert not site.refresh()
        assert len(lines) > count
        assert site.files["index.html"].is_file()  # the pages that were built before stay


def test_events_tell_the_version_and_nothing_is_shown_without_records(tmp_path):
    lines: list[str] = []
    with closing(LiveSite(tmp_path, lines.append)) as site, Server(site, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        assert b"The pages are being built" in ask(server, "/")[2]
        site.refresh()
        page = ask(server, "/")[2]
        assert b"There are no pages yet" in page
        assert b"script" not in page
        assert len(lines) == 1
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        with closing(connection):
            connection.request("GET", "/events")
            answer = connection.getresponse()
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert answer.readline() == b"data: 1\n"
        server.shutdown()
        thread.join()


def test_usage_errors_are_one_line(cli, tmp_path):
    missing = cli("view", tmp_path / "none", "--no-open")
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = cli("view", tmp_path, "--no-open", "--port", taken.getsockname()[1])
    assert busy.code == 2
    assert busy.err.count("\n") == 1
    assert "port 0" in busy.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_code_0_and_leaves_nothing(tmp_path, number):
    (tmp_path / "results").mkdir()
    (tmp_path / "tmp").mkdir()
    words = [sys.executable, "-m", "iclbench", "view", tmp_path / "results", "--no-open",
             "--port", "0"]  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment) as process:  # fmt: skip
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line
        time.sleep(0.2)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_build_that_fails_is_tried_again_only_after_a_change(results, tmp_path, monkeypatch):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    builds, lines = [], []

    def full(*args, **kwargs):
        builds.append(args)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(live, "make_site", full)
    with closing(LiveSite(folder, lines.append)) as site:
        with pytest.raises(OSError, match="No space"):
            site.refresh()
        assert not site.refresh()
        assert len(builds) == 1
        os.utime(next(folder.glob("*/*.json")))
        with pytest.raises(OSError, match="No space"):
            site.refresh()


def test_a_site_that_is_closed_while_it_is_built_leaves_no_folder(results, monkeypatch):
    building = threading.Event()

    def slow(out, *args, **kwargs):
        building.set()
        time.sleep(0.3)
        out.mkdir(parents=True)
        (out / "index.html").write_text("built")

    monkeypatch.setattr(live, "make_site", slow)
    site = LiveSite(results, print)
    site.watch()
    assert building.wait(10)
    site.close()
    assert not site._base.exists()
    assert not site._thread.is_alive()
