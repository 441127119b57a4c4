"""The site is written whole, or the old pages stay."""

from __future__ import annotations

from support import limited_file_size

from iclbench.files import STAGING
from iclbench.leaderboards.site.build import make_site


def test_a_full_disk_leaves_the_old_pages(cli, leaderboards, tmp_path):
    out = tmp_path / "out"
    make_site(out, leaderboards)
    (out / "runs" / "old.html").touch()
    before = {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    with limited_file_size(30_000):  # the plotting library is larger
        full = cli("leaderboard", "site", out, "--from", leaderboards)
        new = cli("leaderboard", "site", tmp_path / "new", "--from", leaderboards)
    assert full.code == new.code == 2
    assert full.err == (
        f"iclbench: error: {out} can't be written: File too large; it is unchanged\n"
    )
    assert before == {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert cli("leaderboard", "site", out, "--from", leaderboards).code == 0
    assert not (out / "runs" / "old.html").exists()


def test_what_a_killed_process_left_is_no_obstacle(leaderboards, tmp_path):
    (tmp_path / f"{STAGING}x" / "runs").mkdir(parents=True)
    make_site(tmp_path, leaderboards)
    assert (tmp_path / "index.html").exists()
