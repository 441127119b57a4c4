"""`iclbench features`: folders of images, interruptions, and bad input."""

from __future__ import annotations

import gzip
import hashlib
import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from features_support import NOWHERE, assert_error, make_images, run_features
from PIL import Image

from iclbench_imagenet import extraction, sources
from iclbench_imagenet.backbones import Pixels
from iclbench_imagenet.extraction import Extraction, projection
from iclbench_imagenet.sources import SUFFIXES, Folder, find_source
from iclbench_imagenet.store import FILE, read_features


def test_a_folder_of_images_becomes_features(tmp_path, cli):
    result = run_features(cli, make_images(tmp_path / "photos"), tmp_path / "out", "--batch", "4")
    assert result.code == 0, result.err
    assert "21 images of 3 classes" in result.out
    read = read_features(tmp_path / "out")
    assert read.about.classes == ("class-0", "class-1", "class-2")
    assert torch.bincount(read.labels).tolist() == [7, 7, 7]
    assert read.features.shape == (21, 768)
    assert read.about.data == "photos"
    with Image.open(tmp_path / "photos" / "class-1" / "2.png") as image:
        small = np.asarray(image.resize((16, 16), Image.Resampling.BICUBIC), np.float32)
    expected = torch.from_numpy(small).permute(2, 0, 1).flatten() / 255
    torch.testing.assert_close(read.features[9].float(), expected, atol=1e-3, rtol=0)
    assert not (tmp_path / "out" / "parts").exists()
    args = f"images={tmp_path / 'out'},ways=2"
    result = cli("run", "--model", "zero", "--task", "imagenet", "--task-args", args)
    assert_error(result, "2-way contexts need 2 classes: 1 of the 3 classes")


class Interrupted(Pixels):
    """Raises KeyboardInterrupt after a number of batches."""

    def __init__(self, batches):
        self.left = batches

    def __call__(self, images):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().__call__(images)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_killed_extraction_continues_to_the_same_file(tmp_path, after, seconds):
    source = Folder(make_images(tmp_path / "photos"))
    whole = Extraction(source, Pixels(), tmp_path / "whole", batch=4)
    digest = whole.run()
    killed = Extraction(source, Interrupted(after), tmp_path / "killed", batch=4,
                        checkpoint_seconds=seconds)  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    assert not (tmp_path / "killed" / FILE).exists()
    progress = []
    continued = Extraction(source, Pixels(), tmp_path / "killed", batch=4)
    assert continued.run(lambda done, total: progress.append((done, total))) == digest
    assert progress[0] == (after * 4 if seconds == 0 else 0, 21)
    files = [(tmp_path / name / FILE).read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1]


def test_extractions_are_not_mixed(tmp_path, cli):
    photos, out = make_images(tmp_path / "photos"), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        Extraction(Folder(photos), Interrupted(1), out, batch=4, checkpoint_seconds=0).run()
    assert_error(
        run_features(cli, photos, out), "holds parts of another extraction; --force starts afresh"
    )
    assert run_features(cli, photos, out, "--force").code == 0
    assert_error(
        run_features(cli, photos, out), "holds features already; --force extracts them again"
    )
    before = (out / FILE).read_bytes()
    assert run_features(cli, photos, out, "--force").code == 0
    assert (out / FILE).read_bytes() == before


def test_per_class_and_project(tmp_path, cli):
    photos = make_images(tmp_path / "photos")
    assert run_features(cli, photos, tmp_path / "all", "--dtype", "float32").code == 0
    result = run_features(cli, photos, tmp_path / "out", "--per-class", "2", "--project", "10",
                "--dtype", "float32")  # fmt: skip
    assert result.code == 0
    whole, reduced = read_features(tmp_path / "all"), read_features(tmp_path / "out")
    assert reduced.labels.tolist() == [0, 0, 1, 1, 2, 2]
    rows = torch.tensor([0, 1, 7, 8, 14, 15])
    expected = whole.features[rows].double() @ projection(768, 10)
    torch.testing.assert_close(reduced.features, expected.float())
    assert reduced.about.projection == "random, to 10"
    wide = torch.randn(200, 400, generator=torch.Generator().manual_seed(0)).double()
    ratio = (wide @ projection(400, 300)).square().sum(1) / wide.square().sum(1)
    assert float(ratio.mean()) == pytest.approx(1, abs=0.02)


def write_idx(folder, pixels, labels):
    """Write images and labels as a pair of IDX files; return the labels' file."""
    for kind, values in (("images-idx3", pixels), ("labels-idx1", labels)):
        header = bytes([0, 0, 8, values.ndim]) + b"".join(
            n.to_bytes(4, "big") for n in values.shape
        )
        path = folder / f"train-{kind}-ubyte.gz"
        path.write_bytes(gzip.compress(header + values.tobytes()))
    return path


def test_idx_files(tmp_path, cli):
    pixels = np.random.default_rng(0).integers(0, 255, (12, 28, 28), dtype=np.uint8)
    labels = np.arange(12, dtype=np.uint8) % 3
    labels_file = write_idx(tmp_path, pixels, labels)
    assert run_features(cli, tmp_path, tmp_path / "out").code == 0
    read = read_features(tmp_path / "out")
    assert read.labels.tolist() == labels.tolist()
    assert read.about.classes == ("0", "1", "2")
    again = find_source(str(tmp_path), "train", NOWHERE, NOWHERE).images([3])[0]
    assert np.array_equal(np.asarray(again)[..., 1], pixels[3])
    labels_file.write_bytes(gzip.compress(gzip.decompress(labels_file.read_bytes())[:-1]))
    assert_error(
        run_features(cli, tmp_path, tmp_path / "bad"), "is not an IDX file of bytes in 1 dimensions"
    )


def test_damaged_idx_files_and_empty_ones_are_errors(tmp_path, cli):
    labels = np.arange(2, dtype=np.uint8)
    labels_file = write_idx(tmp_path, np.zeros((2, 28, 28), dtype=np.uint8), labels)
    content = bytearray(labels_file.read_bytes())
    content[10:14] = b"\xff" * 4
    labels_file.write_bytes(content)
    assert_error(run_features(cli, tmp_path, tmp_path / "out"), "can't be read")
    write_idx(tmp_path, np.zeros((0, 28, 28), dtype=np.uint8), labels[:0])
    assert_error(run_features(cli, tmp_path, tmp_path / "out"), "has no images")


@pytest.mark.parametrize("name", ["plan.json", "other.safetensors"])
def test_foreign_files_among_the_parts_of_an_extraction(tmp_path, cli, name):
    photos, out = make_images(tmp_path / "photos"), tmp_path / "out"
    (out / "parts").mkdir(parents=True)
    (out / "parts" / name).write_bytes(b"")
    result = run_features(cli, photos, out)
    if name == "plan.json":
        assert_error(result, "holds parts of another extraction")
        result = run_features(cli, photos, out, "--force")
    assert result.code == 0


def test_fashion_mnist_is_recognized_by_its_pixels(tmp_path, monkeypatch):
    pixels = np.zeros((10, 28, 28), dtype=np.uint8)
    write_idx(tmp_path, pixels, np.arange(10, dtype=np.uint8))
    assert find_source(str(tmp_path), "train", NOWHERE, NOWHERE).groups is None
    monkeypatch.setattr(sources, "FASHION_PIXELS", hashlib.sha256(pixels.tobytes()).hexdigest())
    source = find_source(str(tmp_path), "train", NOWHERE, NOWHERE)
    assert (source.data, source.classes[9], source.groups[9]) == (
        "fashion-mnist", "Ankle boot", "footwear"
    )  # fmt: skip
    assert source.licence.startswith("MIT")


def test_a_file_that_is_not_an_image_is_an_error(tmp_path, cli):
    photos = make_images(tmp_path / "photos")
    (photos / "class-1" / "3.png").write_bytes(b"no image")
    assert_error(
        run_features(cli, photos, tmp_path / "out"), "class-1/3.png can't be read: cannot identify"
    )
    assert not (tmp_path / "out" / FILE).exists()


def test_a_truncated_image_is_an_error(tmp_path, cli):
    photos = make_images(tmp_path / "photos")
    file = photos / "class-0" / "0.png"
    file.write_bytes(file.read_bytes()[:300])
    assert_error(run_features(cli, photos, tmp_path / "out"), "class-0/0.png can't be read: ")


def test_features_that_are_not_finite_are_an_error(tmp_path, cli, monkeypatch):
    def broken(self, images):
        features = torch.zeros(len(images), 4)
        features[1, 2] = math.nan
        return features

    monkeypatch.setattr(Pixels, "__call__", broken)
    photos = make_images(tmp_path / "photos")
    assert_error(run_features(cli, photos, tmp_path / "out"), "features of image 1 are not finite")
    monkeypatch.setattr(Pixels, "__call__", lambda s, images: torch.full((len(images), 2), 1e6))
    assert_error(
        run_features(cli, photos, tmp_path / "b"), "are not finite in float16; try float32"
    )
    assert run_features(cli, photos, tmp_path / "c", "--dtype", "float32").code == 0


@pytest.mark.parametrize("content", ["nothing", "a folder", "a text"])
def test_a_folder_without_images_is_an_error(tmp_path, cli, content):
    empty = tmp_path / "empty"
    empty.mkdir()
    if content != "nothing":
        (empty / "class").mkdir()
    if content == "a text":
        (empty / "class" / "notes.txt").write_text("no image")
    assert_error(
        run_features(cli, empty, tmp_path / "out"), "holds no images in a folder for each class"
    )
    assert_error(run_features(cli, tmp_path / "none", tmp_path / "out"), "there is no such folder")
    assert {".png", ".jpg", ".jpeg"} <= SUFFIXES


def test_emoji_without_their_font_are_an_error(tmp_path, cli):
    result = run_features(cli, "emoji", tmp_path / "out", "--font", tmp_path / "none.ttf")
    assert_error(result, "none.ttf; it is in Debian's fonts-noto-color-emoji")


@pytest.mark.slow
def test_a_killed_process_continues(tmp_path):
    photos = make_images(tmp_path / "photos", classes=4, images=50, side=200)
    command = [sys.executable, "-m", "iclbench", "features", "--data", str(photos), "--backbone",
               "pixels", "--batch", "4", "--checkpoint-seconds", "0"]  # fmt: skip
    subprocess.run([*command, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "killed")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        parts = tmp_path / "killed" / extraction.PARTS
        while len(list(parts.glob("*.safetensors"))) < 5 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / FILE).exists()
    again = subprocess.run(
        [*command, "--out", str(tmp_path / "killed")], check=True, capture_output=True, text=True
    )
    assert not again.stderr.startswith("0 of")
    files = [(tmp_path / name / FILE).read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1]
