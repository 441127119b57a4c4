"""Images for tests of `iclbench features`, and a short way to call the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

FASHION = Path("/usr/share/datasets/fashion-mnist")
NOWHERE = Path("/nowhere")


def make_images(folder, classes=3, images=7, side=20):
    """A folder of random images, one subfolder per class."""
    rng = np.random.default_rng(0)
    for c in range(classes):
        (folder / f"class-{c}").mkdir(parents=True)
        for i in range(images):
            pixels = rng.integers(0, 255, (side, side + c, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class-{c}" / f"{i}.png")
    return folder


def run_features(cli, data, out, *options, backbone="pixels"):
    """Run `iclbench features`."""
    return cli("features", "--data", data, "--backbone", backbone, "--out", out, *options)


def assert_error(result, message, code=2):
    """Fail unless the command printed one line of error, apart from its progress."""
    lines = [
        line for line in result.err.strip().splitlines() if "images" not in line or "error" in line
    ]
    assert result.code == code, result.err
    assert len(lines) == 1
    assert message in lines[0], lines[0]
