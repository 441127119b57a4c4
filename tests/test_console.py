"""Messages on one line, and streams that any text can be written to."""

from __future__ import annotations

import io
import socket
import subprocess
import sys

import pytest

from iclbench.console import LONGEST_LINE, one_line, output_as_messages, prepare_streams, report


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\r\n  c\td\u2028e\u0085f", "a b c d e f"),
        ("\x1b[31mred\x00\x9b", "\\x1b[31mred\\x00\\x9b"),
        ("a \udcff name\u202e", "a \\udcff name\\u202e"),
        ("plain … ä 数 ×", "plain … ä 数 ×"),
        ("", ""),
    ],
)
def test_a_message_is_one_line_that_a_terminal_only_shows(text, line, capsys):
    assert one_line(text) == line
    report(text)
    assert capsys.readouterr().err == f"iclbench: {line}\n"


def test_a_line_is_one_write_so_that_those_of_two_processes_stay_apart():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = "from iclbench.console import report; report('one'); report('two')"
    with ours, theirs:
        subprocess.run([sys.executable, "-c", program], stderr=theirs.fileno(), check=True)
        assert ours.recv(100) == b"iclbench: one\n"
        assert ours.recv(100) == b"iclbench: two\n"


def test_a_long_message_keeps_its_start_and_end():
    line = one_line("start " + "x" * 10**6 + " end")
    assert len(line) <= LONGEST_LINE + 3
    assert line.startswith("start x")
    assert line.endswith("x end")


TEXT = "1…2 · 3×4 − é “q” ≤ ² 数 \udc80"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", r'1...2 - 3x4 - e "q" <= 2 \u6570 \udc80'),
        ("latin-1", '1...2 · 3×4 - é "q" <= ² \\u6570 \\udc80'),
        ("utf-8", "1…2 · 3×4 − é “q” ≤ ² 数 \\udc80"),
    ],
)
def test_characters_that_an_encoding_lacks_are_replaced(monkeypatch, encoding, shown):
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", output)
    prepare_streams()
    print(TEXT, end="")
    output.flush()
    assert output.buffer.getvalue() == shown.encode(encoding)


def test_streams_that_do_not_exist_are_left(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    prepare_streams()
    with output_as_messages:
        print("nowhere")
    assert sys.stdout is None
