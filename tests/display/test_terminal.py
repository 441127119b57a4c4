"""Lines as wide as the terminal."""

from __future__ import annotations

from iclbench.display.terminal import print_hanging


def test_a_line_of_a_list_goes_on_below_where_its_text_began(capsys, monkeypatch):
    text = ("  board  model: unsupported: " + "reason " * 12).rstrip()
    monkeypatch.delenv("COLUMNS", raising=False)
    print_hanging(text, 9)
    assert capsys.readouterr().out.splitlines() == [text]
    monkeypatch.setenv("COLUMNS", "60")
    print_hanging(text, 9)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("  board  model: unsupported: reason")
    assert max(map(len, [first, *others])) <= 60
    assert all(line.startswith(" " * 9 + "reason") for line in others)
    assert " ".join([first, *map(str.strip, others)]) == text
