"""Architectures, solvers, and constructions of exact weights."""

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
    """Exact weights from a formula, for the same module that is trained."""

    #: One line for `iclbench describe`.
    summary: ClassVar[str] = ""
    #: The arguments of `--weights-args`, a class derived from `Config`.
    Config: ClassVar[type[Config]] = Config

    @abstractmethod
    def build(
        self, signature: Signature, args: Any, task: Task[Any]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the architecture's configuration and a state dict in float64.

        For `--init` the state dict may be partial, and the other parameters are initialized; for
        `--weights` it has to be whole. Raises UsageError if the formula does not fit the signature
        or the task.
        """


class Architecture(ABC):
    """A named, configurable way to build an `nn.Module` for a signature."""

    #: What users type: lower-case words joined by hyphens.
    name: ClassVar[str]
    #: The arguments of the model, a class derived from `Config`.
    Config: ClassVar[type[Config]] = Config
    #: Exact weights from a formula, by the name that `--weights` and `--init` take.
    constructions: ClassVar[Mapping[str, Construction]] = {}
    #: Names in Config that affect only the initial parameters. Replicas that differ in nothing else
    #: are trained as one program.
    replica_args: ClassVar[frozenset[str]] = frozenset()
    #: Whether it computes in float64 too. If not, a run in float64 is refused.
    float64: ClassVar[bool] = True
    #: Values of arguments in Config that tuning chooses from; empty: the usual depths and widths.
    search_args: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    #: Names in Config that recipes leave as they are: they mean something else here than elsewhere.
    own_args: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def supports(self, signature: Signature, config: Any) -> str | None:
        """Return None, or why this architecture can't answer the signature."""

    @classmethod
    def of_recipe(cls, model_args: Mapping[str, Any]) -> dict[str, Any]:
        """A recipe's arguments without those that the model keeps to itself."""
        return {name: value for name, value in model_args.items() if name not in cls.own_args}

    def uses(self, config: Any) -> tuple[str, ...]:
        """Return the names of other registered models whose code this one runs.

        Their plugins are named in the record.
        """
        return ()

    @abstractmethod
    def build(self, signature: Signature, config: Any) -> nn.Module:
        """Return a module that maps a prompt to a prediction (B, P, W), in torch's default dtype.

        P is the number of read-out positions and W the output width. Beside `forward`, the module
        may offer the protocols of `iclbench.CAPABILITIES`.
        """

    def convert_weights(
        self, state: Mapping[str, Tensor], signature: Signature, config: Any
    ) -> Mapping[str, Tensor]:
        """Return weights that another program saved, as a state dict of this module.

        Called for a safetensors file without iclbench's metadata, before names and shapes are
        compared with the module's. Rename keys here, and transpose or split tensors. Raises
        UsageError for weights that can't be converted. By default they are returned as they are.
        """
        return state


class Solver(Architecture):
    """An architecture without parameters, which reads the prompt's fields and is never trained."""

    #: Whether predictions ignore the examples' relation to the query: such rows are marked chance.
    chance: ClassVar[bool] = False
