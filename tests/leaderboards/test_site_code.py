"""Names between backticks in the notes of studies become code."""

from __future__ import annotations

from iclbench.leaderboards.site.code import with_code


def test_names_between_backticks_are_code_and_everything_is_escaped():
    assert with_code("at most that of `cart`") == "at most that of <code>cart</code>"
    assert with_code("`<b>` & x") == "<code>&lt;b&gt;</code> &amp; x"
    assert with_code("a ` alone") == "a ` alone"
