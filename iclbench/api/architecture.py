"""Architecture: a named, configurable way to build a module for a signature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from .config import Config
from .prompts import Signature

if TYPE_CHECKING:
    from .task import Task


class Construction(ABC):
    """Exact weights computed from a formula, for the same module that is trained."""

    summary: ClassVar[str] = ""
    Config: ClassVar[type[Config]] = Config

    @abstractmethod
    def build(
        self, signature: Signature, args: Any, task: Task[Any]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The architecture's configuration and a state dict in float64, which may be partial.

        Raises UsageError when the formula doesn't fit the signature.
        """


class Architecture(ABC):
    """A named, configurable way to build an `nn.Module` for a signature."""

    name: ClassVar[str]
    Config: ClassVar[type[Config]] = Config
    constructions: ClassVar[Mapping[str, Construction]] = {}
    #: Names in Config that the initial parameters alone depend on: replicas of one program may
    #: differ in them.
    replica_args: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def supports(self, signature: Signature, config: Any) -> str | None:
        """None, or the reason why this architecture can't answer the signature."""

    @abstractmethod
    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module that maps a prompt to a prediction (B, P, W), in torch's default dtype.

        One that iterates may offer `trajectory(prompt)`, its estimates of the weights
        (B, T + 1, D), and T as `iterates`.
        """


class Solver(Architecture):
    """An architecture without parameters: it sees the structured fields and is never trained."""
