"""Folders of features for tests of the task imagenet."""

from __future__ import annotations

import torch

from iclbench.api.config import parse_config
from iclbench_imagenet.store import About, write_features
from iclbench_imagenet.task import ImageNet

CPU = torch.device("cpu")


def make_task(**config):
    return ImageNet(parse_config(ImageNet.Config, config, "task imagenet"))


def make_header(classes, images, width, groups=None):
    return About(
        data="made", images_sha256="0", backbone="none", weights_sha256="0", classes=classes,
        images=images, width=width, groups=groups,
    )  # fmt: skip


def make_folder(path, sizes=(6, 7, 8, 9), width=3, seed=0, **changes):
    """A folder of random features of classes a, b, c, …, shuffled; `changes` replace its parts."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels), generator=generator)]
    features = torch.randn(len(labels), width, generator=generator).half()
    names = tuple("abcdefghij"[: len(sizes)])
    images, groups = changes.get("images", len(labels)), changes.get("groups")
    header = make_header(changes.get("names", names), images, width, groups)
    write_features(path, changes.get("features", features), changes.get("labels", labels), header)
    return path


SMALL = {"ways": 2, "shots": 3, "test_classes": 2}
