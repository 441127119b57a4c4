"""The architectures `lsa` and `elsa` on the paper's input matrices."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from iclbench import Architecture, Config, Signature, TrainingContext, initialize

from .fast import FastMatrixModel, takes_replicas
from .forms import LAYOUTS, InputMatrix, Layout
from .modules import ELSA, LSA, Stack, Step
from .ridge_gd import ExtendedRidgeGD, RidgeGD


class MatrixConfig(Config):
    """Options of `lsa`, and with other defaults of `elsa`."""

    form: Literal["designed", "enumerated"] = Field(
        "designed",
        description="form of the input matrix: designed (eq. 37 of the paper) or enumerated (eq. "
        "56)",
    )
    layers: int = Field(1, ge=0, description="number of modules before the output module")
    heads: int = Field(3, ge=1, description="number of heads of each block")
    blocks: int = Field(1, ge=1, description="number of blocks in sequence within a module")
    shared: bool = Field(False, description="whether all modules share their parameters")
    mlp: bool = Field(
        False, description="whether a ReLU MLP follows each module, on every row of H"
    )
    mlp_ratio: int = Field(
        4, ge=1, description="hidden size of the MLP, as a multiple of the number of columns of H"
    )
    init_std: float = Field(0.02, gt=0, description="standard deviation of initial weights")
    step: float | None = Field(
        None,
        gt=0,
        description="N·η for prompts without a step size, whose λ is 0; null: 1/(1 + √(D/N))²",
    )

    @model_validator(mode="after")
    def _has_an_mlp_of_that_size(self) -> Self:
        if not self.mlp and self.mlp_ratio != 4:
            raise ValueError("mlp_ratio needs mlp=true")
        return self


class ExtendedConfig(MatrixConfig):
    """The paper's ELSA: the enumerated form, two blocks of four heads."""

    form: Literal["designed", "enumerated"] = Field(
        "enumerated",
        description="form of the input matrix: designed (eq. 37 of the paper) or enumerated (eq. "
        "56)",
    )
    heads: int = Field(4, ge=1, description="number of heads of each block")
    blocks: int = Field(2, ge=1, description="number of blocks in sequence within a module")
    init_std: float = Field(0.01, gt=0, description="standard deviation of initial weights")


class MatrixModel(nn.Module):
    """Modules applied to the prompt's input matrix H₀; the prediction is one cell of the result.

    Constructions write `stack.steps.t.blocks.j.{weights, biases}` and
    `output.blocks.j.{weights, biases}`, so these names are public.
    """

    def __init__(self, layout: Layout, config: MatrixConfig, stack: Stack, output: Step) -> None:
        super().__init__()
        self.layout = layout
        self.input = InputMatrix(config.form, config.step)
        self.stack: Stack = stack
        self.output: Step = output

    def forward(self, prompt: Any) -> Tensor:
        """Return the prediction at the query, (B, 1, 1) (eqs. 55 and 86)."""
        row, column = self.layout.output
        H: Tensor = self.output(self.states(prompt)[-1])
        return H[..., row : row + 1, column : column + 1]

    @property
    def iterates(self) -> int:
        """T, the number of modules before the output module."""
        return self.stack.depth

    def trajectory(self, prompt: Any) -> Tensor:
        """Return w before the first and after every module, (B, layers + 1, D)."""
        dim = prompt.x.shape[2]
        # w is the last column in both forms; in eq. 37 the row below it belongs to the output.
        return torch.stack([H[:, :dim, -1] for H in self.states(prompt)], dim=1)

    def states(self, prompt: Any) -> list[Tensor]:
        """Return H₀, …, H_T, each (B, m, s)."""
        return self.stack.states(self.input(prompt))

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: every module reads all of H, which has one size."""
        return (self.layout.rows * self.layout.columns,) * (self.stack.depth + 1)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`; None for leading replicas with an MLP or ELSA."""
        steps = [*self.stack.steps, self.output]
        if context.replicas == "leading" and not all(takes_replicas(s, context) for s in steps):
            return None
        return FastMatrixModel(self, context)


class LinearSelfAttention(Architecture):
    """Modules H + Σ_k LSA_k(H) on the input matrix of a regression (Hagiwara, eqs. 37–55)."""

    name = "lsa"
    Config: ClassVar[type[Config]] = MatrixConfig
    constructions = {"ridge-gd": RidgeGD()}
    replica_args = frozenset({"init_std"})

    def supports(self, signature: Signature, config: MatrixConfig) -> str | None:
        """Support prompts with X, y and one query of known shapes that ask for its output."""
        shapes = signature.shapes
        missing = [name for name in ("x", "y", "query") if name not in shapes]
        if missing:
            return f"it needs the shape of {', '.join(missing)}, which the task does not state"
        if signature.target == "class":
            return (
                "its input matrix holds real outputs and its prediction is one cell; "
                f"{self.name}-tokens embeds classes"
            )
        if signature.target != "query":
            return f"it answers query, not {signature.target}"
        if shapes["y"][1] != 1 or shapes["query"][0] != 1:
            return "it predicts one value for one query"
        if config.step is not None and "step" in shapes:
            return "the prompts state a step size; omit the model's step"
        return None

    def build(self, signature: Signature, config: MatrixConfig) -> nn.Module:
        """Return a model for the signature's N examples in D dimensions."""
        layout = LAYOUTS[config.form](*signature.shapes["x"])
        # Without layers there is no module, even if modules share their parameters.
        distinct = min(1, config.layers) if config.shared else config.layers
        steps: list[nn.Module] = [self._step(layout, config) for _ in range(distinct)]
        output = Step([self.block(layout, config) for _ in range(config.blocks)], None)
        return MatrixModel(layout, config, Stack(steps, config.layers), output)

    def _step(self, layout: Layout, config: MatrixConfig) -> Step:
        blocks = [self.block(layout, config) for _ in range(config.blocks)]
        if not config.mlp:
            return Step(blocks, None)
        s, hidden = layout.columns, config.mlp_ratio * layout.columns
        mlp = nn.Sequential(nn.Linear(s, hidden), nn.ReLU(), nn.Linear(hidden, s))
        initialize(mlp, config.init_std)
        return Step(blocks, mlp)

    def block(self, layout: Layout, config: MatrixConfig) -> nn.Module:
        """Return one multi-head block."""
        return LSA(layout.columns, config.heads, config.init_std)


class ExtendedLinearSelfAttention(LinearSelfAttention):
    """Modules H + ELSA₂(ELSA₁(H)) with four heads each (Hagiwara, eqs. 56–86)."""

    name = "elsa"
    Config = ExtendedConfig
    constructions = {"ridge-gd": ExtendedRidgeGD()}

    def block(self, layout: Layout, config: MatrixConfig) -> nn.Module:
        """Return one multi-head block with bias matrices."""
        return ELSA(layout.rows, layout.columns, config.heads, config.init_std)
