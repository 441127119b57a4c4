"""The configuration of `stories`: the text, its tokens, and the endings to continue."""

from __future__ import annotations

from pydantic import Field, model_validator

from iclbench import TaskConfig

#: The default column, and the default number of tokens.
TEXT, VOCABULARY = "text", 1024


class StoriesConfig(TaskConfig):
    """The stories, their tokens, and the generated endings."""

    data: str = Field(
        "tales",
        description="tales (in this package), generated (from task_seed; few words), tinystories, "
        "children-stories, another set on the hub (owner/name), or a path; join several by +",
    )
    column: str = Field(TEXT, description="name of the column that holds the stories")
    revision: str | None = Field(
        None,
        description="revision of the data set on the hub; null: the newest when it is first "
        "fetched",
    )
    tokenizer: str = Field(
        "bpe", description="bpe (trained on the stories), gpt2, or the path of a tokenizer"
    )
    vocabulary: int = Field(
        VOCABULARY, ge=258, description="tokenizer=bpe: number of tokens in the vocabulary"
    )
    length: int = Field(
        32,
        ge=2,
        description="T, number of tokens that a model sees; stories are packed in windows of T + 1",
    )
    held_out: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="share of held-out stories; null: 0.2, or the tales' own split",
    )
    prefixes: int | None = Field(
        None, ge=1, description="number of read-out positions of a window, evenly spaced; null: all"
    )
    endings: int = Field(20, ge=0, description="number of held-out stories to continue")
    beginning: int = Field(
        16, ge=1, description="number of tokens of a story that the model is given"
    )
    temperature: float = Field(
        0.0, ge=0, description="sampling temperature; 0: the most probable token"
    )
    top_k: int | None = Field(
        None, ge=1, description="sample from the k most probable tokens; null: all"
    )
    top_p: float | None = Field(
        None,
        gt=0,
        le=1,
        description="sample from the most probable tokens with this total probability; null: all",
    )
    cache: bool = Field(
        True, description="generate with the model's key-value cache, if it has one"
    )

    @model_validator(mode="after")
    def _fits(self) -> StoriesConfig:
        if self.beginning >= self.length:
            raise ValueError(f"beginning={self.beginning} must be below length={self.length}")
        if self.prefixes is not None and self.prefixes > self.length:
            raise ValueError(f"prefixes={self.prefixes} exceeds length={self.length}")
        if self.tokenizer != "bpe" and self.vocabulary != VOCABULARY:
            raise ValueError(f"vocabulary is that of tokenizer={self.tokenizer}; leave it out")
        if self.temperature == 0 and (self.top_k is not None or self.top_p is not None):
            raise ValueError("top_k and top_p need a temperature above 0")
        return self
