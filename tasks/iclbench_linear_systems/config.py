"""The configuration of the task `linear-system`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from iclbench import TaskConfig

from .spectra import Spectrum

Sizes = tuple[Annotated[int, Field(ge=2)], ...]


#: Far more sizes than a run can train with.
MOST_SIZES = 1000


def parse_sizes(value: Any) -> Any:
    """9, "2-9", "2,4,8" or a list as a tuple of sizes; other values unchanged."""
    # True is an int in Python; left as it is, pydantic rejects it.
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, str):
        return value
    parsed: list[int] = []
    for part in value.split(","):
        low, dash, high = part.partition("-")
        try:
            first, last = int(low), int(high if dash else low)
        except ValueError:
            raise ValueError(f"{value!r} is not a size, a list or a range such as 2-9") from None
        if last < first:
            raise ValueError(f"{part!r} is an empty range")
        # Before the range is built: a mistyped one may be enormous.
        if len(parsed) + last - first + 1 > MOST_SIZES:
            raise ValueError(f"{part!r}: at most {MOST_SIZES:,} sizes")
        parsed += range(first, last + 1)
    return tuple(parsed)


class LinearSystemConfig(TaskConfig):
    """Sizes, spectrum, and the training distribution."""

    sizes: Sizes = Field(
        (9,), description="sizes N in training: a number, a list, or a range such as 2-9"
    )
    evaluate: Sizes | None = Field(None, description="sizes N in evaluation; null: `sizes`")
    # κ above 1e12 would leave the solution few digits even in float64.
    condition_number: float = Field(
        10.0,
        ge=1,
        le=1e12,
        description="κ, condition number; the eigenvalues lie in [1/κ, 1]; "
        "float32 needs one below 1e6, since rounding moves the smallest",
    )
    spectrum: Spectrum = Field(
        "log-uniform", description="distribution of the eigenvalues between the extremes"
    )
    scale: float = Field(1.0, ge=1e-6, le=1e6, description="factor on A and b")
    start: Literal["zero", "normal"] = Field(
        "zero", description="starting point x₀: 0, or drawn from N(0, I)"
    )
    mixed: bool = Field(False, description="whether to mix sizes within a training batch")
    loss: Literal["mean", "log"] = Field(
        "mean",
        description="training loss: ‖x̂ − x‖²/N, or its logarithm, which weighs all orders of "
        "magnitude equally",
    )

    @field_validator("sizes", "evaluate", mode="before")
    @classmethod
    def _parsed(cls, value: Any) -> Any:
        return parse_sizes(value)

    @model_validator(mode="after")
    def _evaluated_somewhere(self) -> LinearSystemConfig:
        for sizes in (self.sizes, self.evaluate):
            if sizes is not None and (not sizes or len(set(sizes)) != len(sizes)):
                raise ValueError("sizes must be distinct, and at least one")
        if self.evaluate is None:
            # The model is frozen. Resolved here, the record states the sizes of evaluation.
            object.__setattr__(self, "evaluate", self.sizes)
        # An option without effect would make two names for one task.
        if self.mixed and len(self.sizes) == 1:
            raise ValueError("mixed needs several sizes")
        if self.spectrum != "log-uniform" and max(self.sizes + (self.evaluate or ())) <= 2:
            raise ValueError(f"spectrum={self.spectrum} needs sizes above 2: the extremes are set")
        if self.spectrum != "log-uniform" and self.condition_number == 1:
            raise ValueError(f"spectrum={self.spectrum} needs a condition_number above 1")
        return self
