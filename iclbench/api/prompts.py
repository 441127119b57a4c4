"""Prompts, batches, and the signature that a model is built for.

B is the batch size, S the length of the sequence form, N the number of examples, Q the number of
queries, and D and K the dimensions of inputs and outputs. Every field is a tensor with leading
dimension B, so prompts can be stacked and vmapped. A prompt's `sequence()` is its sequence form:
real features (B, S, d) and ids (B, S), int64, 0 if unused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from .errors import PluginError

Target = Literal[
    "query", "prefixes", "positions", "weights", "gradient", "solution", "class", "token"
]

UNASKED = -1
"""The target, among ids or classes, at a read-out position where a prompt asks for nothing."""


def _no_ids(tokens: Tensor) -> Tensor:
    return torch.zeros(tokens.shape[:2], dtype=torch.int64, device=tokens.device)


class Regression(NamedTuple):
    """In-context regression: examples (x, y), and queries whose outputs are asked for.

    tokens (B, S, d), the sequence form; x (B, N, D); y (B, N, K); query (B, Q, D).
    """

    tokens: Tensor
    x: Tensor
    y: Tensor
    query: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """Return tokens (B, S, d) and no ids."""
        return self.tokens, _no_ids(self.tokens)

    @classmethod
    def interleaved(cls, x: Tensor, y: Tensor, *, separate: bool = False) -> Regression:
        """The prompt x₁, y₁, x₂, … and last the query, S = 2N + 1, for targets after every prefix.

        x is (B, N+1, D), the query last, and y (B, N, 1). A value's token is (y, 0, …, 0). With
        `separate` tokens have the width D + 1, and an input's is (0, x).
        """
        batch, count, dim = x.shape
        values = pad(y, (0, dim - 1 + separate))
        inputs = pad(x, (1, 0)) if separate else x
        # Stacking along a new dimension after the examples' interleaves them.
        pairs = torch.stack([inputs[:, :-1], values], dim=2).view(batch, 2 * (count - 1), -1)
        return cls(torch.cat([pairs, inputs[:, -1:]], dim=1), x[:, :-1], y, x[:, -1:])

    def inputs(self) -> Tensor:
        """The inputs of the examples, and the queries: (B, N + Q, D)."""
        return torch.cat([self.x, self.query], dim=1)

    def masked_after(self, prefix: int) -> Regression:
        """An interleaved prompt with the answer after `prefix` examples, and the rest, replaced."""

        def replaced(t: Tensor, start: int) -> Tensor:
            # 1 − 3t changes every value but ¼, also zeros.
            return torch.cat([t[:, :start], 1.0 - 3.0 * t[:, start:]], dim=1)

        # The last read-out is the query's own, which it may see.
        last = self.query if prefix == self.x.shape[1] else 1.0 - 3.0 * self.query
        # Read-out k is token 2k; the next token is its answer.
        tokens = replaced(self.tokens, 2 * prefix + 1)
        return Regression(tokens, replaced(self.x, prefix + 1), replaced(self.y, prefix), last)


class Ridge(NamedTuple):
    """In-context ridge regression: a Regression prompt with a penalty and a step size.

    tokens (B, S, d), the sequence form; x (B, N, D); y (B, N, K); query (B, Q, D); ridge (B,), the
    λ of ½‖y − Xw‖² + ½λ‖w‖²; step (B,), the η of gradient descent on it (Hagiwara 2025,
    eqs. 33–36).
    """

    tokens: Tensor
    x: Tensor
    y: Tensor
    query: Tensor
    ridge: Tensor
    step: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """Return tokens (B, S, d) and no ids."""
        return self.tokens, _no_ids(self.tokens)


class LinearSystem(NamedTuple):
    """Linear systems Ax = b; smaller ones are padded with zeros to N.

    a (B, N, N); b (B, N); x0 (B, N), a starting point; size (B,), int64, the number of equations.
    The sequence form consists of the rows (aᵢ, bᵢ), then (x₀, 1): (B, N + 1, N + 1).
    """

    a: Tensor
    b: Tensor
    x0: Tensor
    size: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """Return tokens (B, N + 1, N + 1) and no ids."""
        rows = torch.cat([self.a, self.b.unsqueeze(2)], dim=2)
        last = torch.cat([self.x0, torch.ones_like(self.x0[:, :1])], dim=1)
        tokens = torch.cat([rows, last.unsqueeze(1)], dim=1)
        return tokens, _no_ids(tokens)

    @staticmethod
    def fill_padding(a: Tensor, size: Tensor) -> Tensor:
        """Matrices a (B, N, N) with a₁₁ on the diagonal beyond `size` (B,).

        They are invertible, and padding changes neither the solution nor the extreme eigenvalues.
        """
        padded = torch.arange(a.shape[1], device=a.device) >= size[:, None]
        return a + torch.diag_embed(torch.where(padded, a[:, :1, 0], 0.0))


class Categorical(NamedTuple):
    """In-context classification: examples (x, y), and queries whose classes are asked for.

    x (B, N, D); y (B, N), int64 in [0, C); query (B, Q, D). The sequence form has the inputs as
    real features (B, N + Q, D) and the classes as ids (B, N + Q), counted from 1; 0 at queries.
    """

    x: Tensor
    y: Tensor
    query: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """Return inputs (B, N + Q, D) and ids (B, N + Q)."""
        no_ids = torch.zeros(self.query.shape[:2], dtype=self.y.dtype, device=self.y.device)
        return torch.cat([self.x, self.query], dim=1), torch.cat([self.y + 1, no_ids], dim=1)


class Sequence(NamedTuple):
    """A plain sequence of real vectors: tokens (B, S, d)."""

    tokens: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """Return tokens (B, S, d) and no ids."""
        return self.tokens, _no_ids(self.tokens)


class Text(NamedTuple):
    """A text as ids of a vocabulary: ids (B, T), int64."""

    ids: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """Return no real features, (B, T, 0), and ids (B, T)."""
        return torch.zeros(*self.ids.shape, 0, device=self.ids.device), self.ids

    def masked_after(self, position: int, vocabulary: int) -> Text:
        """The text with every id after `position` replaced by another one of the vocabulary."""
        seen = position + 1
        return Text(torch.cat([self.ids[:, :seen], (self.ids[:, seen:] + 1) % vocabulary], dim=1))


class Batch(NamedTuple):
    """A prompt with its target.

    `target` has the shape of a prediction, (B, P, W), or (B, P) for classes and tokens. There it is
    `UNASKED` at read-out positions where the prompt asks for nothing: prompts may ask at positions
    of their own. `truth` holds tensors (B, …) that only the task may use, for its metrics and
    bounds.
    """

    prompt: Any
    target: Tensor
    truth: Mapping[str, Tensor] = MappingProxyType({})


def require_batch(value: object, task: str) -> Batch:
    """What a task's `arrange` gave; raises PluginError if it is no Batch."""
    if not isinstance(value, Batch):
        kind = type(value).__name__
        raise PluginError(f"task {task}: arrange() gives a {kind}, not an iclbench.Batch")
    return value


@dataclass(frozen=True)
class Signature:
    """The static facts that a model is built for.

    A prediction is (B, P, W) for P = len(readout) positions and W = output_width.
    """

    #: The type of the prompts.
    prompt: type
    #: What is asked for; solvers go by it.
    target: Target
    #: S, the largest number of positions.
    length: int
    #: d of the real features; 0 if a prompt has only ids.
    input_width: int
    #: W, the number of values per read-out.
    output_width: int
    #: Positions at which the prediction is read out. All of them may be one position, whose state
    #: then answers P questions: see `reads_one_state`.
    readout: tuple[int, ...]
    #: Whether later tokens contain the answers.
    causal: bool = False
    #: Number of ids; 0 if a prompt has none.
    vocabulary: int = 0
    #: Number of classes; 0 if the target is none.
    classes: int = 0
    #: Shapes of the prompt's fields without B, by name, for models that read those fields.
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Whether prompts and targets may also be smaller than stated here.
    varies: bool = False

    @property
    def reads_one_state(self) -> bool:
        """Whether several predictions are read from the state of a single position.

        A linear map would predict the same each time, so the model decodes the state: it needs a
        read-out that knows which of the P predictions it makes.
        """
        return len(self.readout) > 1 and len(set(self.readout)) == 1

    def target_shape(self, target: Tensor) -> tuple[int, ...]:
        """Return the shape that `target` must have: (B, P, W), or (B, P) for classes and tokens.

        If sizes vary, W is the target's, up to `output_width`.
        """
        width = self.output_width
        if self.varies and target.ndim == 3:
            width = min(width, target.shape[2])
        shape = (len(target), len(self.readout), width)
        return shape if target.is_floating_point() else shape[:2]


P = TypeVar("P")


def map_tensors(function: Callable[..., Tensor], *prompts: P) -> P:
    """Apply `function` to corresponding fields of one or more prompts of the same type."""
    first = cast(Any, prompts[0])
    fields = zip(*cast(Any, prompts), strict=True)
    return cast(P, type(first)(*(function(*values) for values in fields)))


def stack(batches: list[Batch]) -> Batch:
    """Stack batches: every field becomes (len(batches), …); drops truth."""
    prompts = [batch.prompt for batch in batches]
    stacked = map_tensors(lambda *fields: torch.stack(fields), *prompts)
    return Batch(stacked, torch.stack([batch.target for batch in batches]))


def with_lead(batch: Batch, *lead: int) -> Batch:
    """Reshape every field (n, …) to (*lead, …), where n is the product of `lead`; drops truth."""

    def reshape(t: Tensor) -> Tensor:
        return t.reshape(*lead, *t.shape[1:])

    return Batch(map_tensors(reshape, batch.prompt), reshape(batch.target))


def to_device(prompt: P, device: torch.device | str) -> P:
    """Move every field of a prompt to `device`."""
    return map_tensors(lambda tensor: tensor.to(device), prompt)


def real_dtype(prompt: Any) -> torch.dtype:
    """The dtype of a prompt's real fields; float64 if it has none."""
    dtypes = {field.dtype for field in prompt if field.is_floating_point()}
    return dtypes.pop() if dtypes else torch.float64
