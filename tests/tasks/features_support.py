"""Images for tests of `iclbench features`, and the command with its usual arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

FASHION = Path("/usr/share/datasets/fashion-mnist")
NOWHERE = Path("/nowhere")


def pictures(folder, classes=3, images=7, side=20):
    rng = np.random.default_rng(0)
    for c in range(classes):
        (folder / f"class-{c}").mkdir(parents=True)
        for i in range(images):
            pixels = rng.integers(0, 255, (side, side + c, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class-{c}" / f"{i}.png")
    return folder


def ask(cli, data, out, *further, backbone="pixels"):
    return cli("features", "--data", data, "--backbone", backbone, "--out", out, *further)


def one_line(found, message, code=2):
    lines = [
        line for line in found.err.strip().splitlines() if "images" not in line or "error" in line
    ]
    assert found.code == code, found.err
    assert len(lines) == 1
    assert message in lines[0], lines[0]
