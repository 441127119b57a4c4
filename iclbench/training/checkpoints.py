"""Checkpoints of a training in progress, and the weights that a training leaves.

Both are safetensors files. They are written to a temporary name and renamed, so a killed run never
leaves a partial file. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ..api.config import Config, parse_config
from ..api.errors import CheckpointError, RecordError
from ..api.names import visible
from ..files import write_atomically
from ..nn.training_form import tensors_of

FORMAT = 6


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and JSON values: everything that a training needs to continue."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def save(self, path: Path) -> None:
        """Write atomically to `path`."""
        tensors = {name: _standalone(tensor) for name, tensor in self.tensors.items()}
        values = json.dumps({"format": FORMAT, **self.values})
        write_atomically(path, save(tensors, metadata={"iclbench": values}))

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Read `path`; raises CheckpointError for a damaged file or another format."""
        values = cls.load_values(path)
        with _readable(path) as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return cls(tensors, values)

    @classmethod
    def load_values(cls, path: Path) -> dict[str, Any]:
        """Read the values of `path` alone; raises CheckpointError as `load` does."""
        with _readable(path) as file:
            values = json.loads((file.metadata() or {})["iclbench"])
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise unusable(path, "is of another format")
        return values


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[Any]:
    """The open file; raises CheckpointError if it or what the block reads is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError, KeyError, ValueError, RecursionError) as error:
        raise unusable(path, f"can't be read ({error})") from None


def unusable(path: Path, reason: str) -> CheckpointError:
    """The error for a checkpoint that nothing can continue from."""
    return CheckpointError(f"checkpoint {path} {reason}; delete it to start afresh")


def other_code(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Why a checkpoint of other code is refused: the packages and plugins that differ."""
    names = sorted(name for name in {**before, **now} if before.get(name) != now.get(name))
    return f"was made by other code of {', '.join(names)}"


def weights_bytes(
    states: Mapping[int | None, Mapping[str, Tensor]], model: str, model_args: dict[str, Any]
) -> bytes:
    """Return the bytes of a safetensors file with the weights of several seeds.

    Tensors are named `seed/name`, or `name` in a state dict without a seed. The architecture and
    its arguments are in the file, so it can be loaded without anything else.
    """
    tensors = {
        name if seed is None else f"{seed}/{name}": _standalone(tensor)
        for seed, state in states.items()
        for name, tensor in state.items()
    }
    about = json.dumps({"model": model, "model_args": model_args}, sort_keys=True)
    return save(tensors, metadata={"iclbench": about})


def _standalone(tensor: Tensor) -> Tensor:
    """A copy as a file can hold it: contiguous, on the CPU, sharing no memory with others."""
    return tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)


class _About(Config):
    """The metadata of a weights file."""

    model: str | None = None
    model_args: dict[str, Any] = {}


@dataclass(frozen=True)
class Weights:
    """A weights file: one state dict per seed (None in a plain state dict), and its model."""

    states: dict[int | None, dict[str, Tensor]]
    model: str | None
    model_args: dict[str, Any]


def load_weights(path: Path) -> Weights:
    """Read a file of `weights_bytes` or a plain state dict; raises RecordError for any other."""
    states: dict[int | None, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("iclbench", "{}")
            about = parse_config(_About, json.loads(text), f"{path}: metadata")
            for name in file.keys():  # noqa: SIM118
                seed, slash, rest = name.partition("/")
                seeded = bool(slash) and seed.isascii() and seed.isdigit()
                if seeded and seed != str(int(seed)):
                    # The tensor would take the place of the one under the seed's usual name.
                    raise RecordError(f"checkpoint {path} names a tensor {visible(name, 100)}")
                key = int(seed) if seeded else None
                states.setdefault(key, {})[rest if seeded else name] = file.get_tensor(name)
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError) as error:
        if _is_pickle(path):
            raise RecordError(f"{path} was written by torch.save; {_conversion(path)}") from None
        raise RecordError(f"checkpoint {path} can't be read: {error}") from None
    if not states:
        raise RecordError(f"checkpoint {path} holds no tensors")
    return Weights(states, about.model, about.model_args)


def _is_pickle(path: Path) -> bool:
    """Whether a file begins as those of `torch.save` do: a zip archive, or formerly a pickle."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        start = file.read(4)
        return start in {b"PK\x03\x04", b"\x80\x02\x8a\x0a"}
    return False


def _conversion(path: Path) -> str:
    """How to convert a file of `torch.save`, as the end of a sentence."""
    code = (
        "import sys, torch; from safetensors.torch import save_file; "
        "saved = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
        "keys = [k for k in ('model', 'state_dict', 'model_state_dict') if k in saved]; "
        "state = saved[keys[0]] if keys else saved; "
        "save_file({n: t.contiguous().clone() for n, t in state.items()}, sys.argv[2])"
    )
    files = f"{shlex.quote(str(path))} {shlex.quote(str(path.with_suffix('.safetensors')))}"
    return (
        "it may run code when it is read, so iclbench reads safetensors only. "
        f'Convert the state dict: python -c "{code}" {files}'
    )


def load_state(
    module: nn.Module, state: Mapping[str, Tensor], source: str, partial: bool = False
) -> None:
    """Copy `state` into `module`, cast to its dtype; raises RecordError where it does not fit.

    What the module's own state dict leaves out may be missing, and so may all but the first name of
    a tensor that has several.
    """
    of_module = dict(
        itertools.chain(
            module.named_parameters(remove_duplicate=False),
            module.named_buffers(remove_duplicate=False),
        )
    )
    unexpected = sorted(set(state) - set(of_module))
    missing = sorted(tensors_of(module).keys() & module.state_dict().keys() - set(state))
    # Buffers that a module computes, such as a table of positions, may be of another length.
    computed = dict(module.named_buffers()).keys() - module.state_dict().keys()
    state = {n: t for n, t in state.items() if n not in computed or t.shape == of_module[n].shape}
    wrong = [
        f"{name} is {tuple(state[name].shape)}, not {tuple(of_module[name].shape)}"
        for name in sorted(set(state) & set(of_module))
        if state[name].shape != of_module[name].shape
    ]
    problems = (
        [f"{name} is not in the model" for name in unexpected] + wrong + _untied(of_module, state)
    )
    if not partial:
        problems += [f"{name} is missing" for name in missing]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise RecordError(f"{source} does not fit the model: {'; '.join(problems[:3])}{more}")
    with torch.no_grad():
        for name, value in state.items():
            of_module[name].copy_(value)


def _untied(of_module: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> list[str]:
    """The pairs of names of one tensor of a model that have different values in a state."""
    first: dict[int, str] = {}
    pairs = [
        (first.setdefault(id(of_module[name]), name), name) for name in state if name in of_module
    ]
    return [
        f"{name} and {again} differ, but are one tensor in the model"
        for name, again in pairs
        if name != again and not _are_equal(state[name], state[again])
    ]


def _are_equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=0.0, atol=0.0, equal_nan=True)
