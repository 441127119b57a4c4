"""The configuration of `regbench`: automata, pools of them, and words."""

from __future__ import annotations

from pydantic import Field, model_validator

from iclbench import TaskConfig

from .automata import AutomatonRange

#: The most states of an automaton.
MOST_STATES = 100


class RegBenchConfig(TaskConfig):
    """The sizes of RegBench (Akyürek et al. 2024) by default, except `fixed` and `length`."""

    symbols: int = Field(18, ge=2, le=200, description="total number of symbols of all automata")
    min_states: int = Field(
        4, ge=2, description="minimum number of states of an automaton when it is drawn"
    )
    max_states: int = Field(
        12, le=MOST_STATES, description="maximum number of states of an automaton"
    )
    max_edges: int = Field(3, ge=1, le=6, description="maximum number of edges of a state")
    automata: int = Field(5000, ge=1, description="number of training automata")
    evaluation_automata: int = Field(
        500, ge=1, description="number of evaluation automata, none of them a training automaton"
    )
    fixed: bool = Field(
        False,
        description="train in epochs on one prompt per automaton, as RegBench does; otherwise on "
        "fresh words",
    )
    min_words: int = Field(10, ge=2, description="minimum number of words in a prompt")
    max_words: int = Field(19, description="maximum number of words in a prompt")
    word_length: int = Field(
        49, ge=1, description="maximum length of a word, in symbols; lengths are uniform from 1"
    )
    length: int | None = Field(
        64,
        ge=2,
        description="T, number of tokens that a model sees; longer prompts are cut; null: the "
        "length of the longest possible prompt, as in RegBench",
    )

    @model_validator(mode="after")
    def _fits(self) -> RegBenchConfig:
        if self.min_states > self.max_states:
            raise ValueError(f"min_states={self.min_states} is above {self.max_states}, max_states")
        if self.max_edges >= self.min_states:
            raise ValueError(
                f"a state has at most max_edges={self.max_edges} edges to different other states, "
                f"of which an automaton of {self.min_states} has {self.min_states - 1}"
            )
        if self.max_edges >= self.symbols:
            raise ValueError(f"max_edges={self.max_edges} must be below symbols={self.symbols}")
        if self.min_words > self.max_words:
            raise ValueError(f"min_words={self.min_words} is above {self.max_words}, max_words")
        if self.length is None:
            # The model is frozen. Resolved here, the record states the length.
            object.__setattr__(self, "length", self.longest)
        if self.inputs > self.longest:
            raise ValueError(
                f"length={self.length} exceeds the longest possible prompt, {self.longest} ids"
            )
        return self

    @property
    def longest(self) -> int:
        """The inputs of the longest prompt: without its last symbol, which is only a target."""
        return self.max_words * (self.word_length + 1) - 2

    @property
    def inputs(self) -> int:
        """T, the symbols that a model sees."""
        assert self.length is not None
        return self.length

    @property
    def range(self) -> AutomatonRange:
        """What automata are drawn from."""
        return AutomatonRange(self.symbols, self.min_states, self.max_states, self.max_edges)
