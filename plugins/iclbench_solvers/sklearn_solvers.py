"""Lasso, decision trees and boosted trees by scikit-learn, fitted to each context.

scikit-learn is the extra `trees`. It is imported when one of these solvers is built.
"""

from __future__ import annotations

import importlib
import warnings
from abc import abstractmethod
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from iclbench import Config, Signature, UsageError

from .solver import Examples, RegressionSolver


class SklearnSolver(RegressionSolver):
    """An estimator of scikit-learn, fitted to the examples of each prompt alone, on the CPU."""

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """See `RegressionSolver`; raises UsageError without scikit-learn."""
        try:
            importlib.import_module("sklearn")
        except ImportError:
            raise UsageError(
                f"{self.name} needs scikit-learn: pip install 'iclbench[trees]'"
            ) from None
        return super().build(signature, config)

    def answer(self, examples: Examples, query: Tensor, config: Any) -> Tensor:
        """The values (B, Q, K) at query (B, Q, D); 0 without examples."""
        x, y = (t.detach().to("cpu", torch.float64) for t in (examples.x, examples.y))
        asked = query.to("cpu", torch.float64)
        values = torch.zeros(*asked.shape[:2], y.shape[2], dtype=torch.float64)
        if x.shape[1]:
            for row in range(len(x)):
                for column in range(y.shape[2]):
                    model = self.estimator(config)
                    with warnings.catch_warnings():
                        # Lasso's answer is what its steps reach; it says so on every prefix k < D.
                        warnings.filterwarnings("ignore", "Objective did not converge")
                        model.fit(x[row].numpy(), y[row, :, column].numpy())
                    values[row, :, column] = self.predicted(model, asked[row])
        return values.to(query)

    @abstractmethod
    def estimator(self, config: Any) -> Any:
        """A new estimator."""

    def predicted(self, model: Any, asked: Tensor) -> Tensor:
        """What a fitted estimator predicts at (Q, D), float64; trees have no slope anywhere."""
        return torch.as_tensor(model.predict(asked.detach().numpy()))


class LassoConfig(Config):
    """The penalty."""

    alpha: float = Field(0.01, gt=0, description="α, the penalty in ‖y − Xw‖²/2N + α‖w‖₁")


class Lasso(SklearnSolver):
    """The minimizer of ‖y − Xw‖²/2N + α‖w‖₁ by coordinate descent, without an intercept."""

    name = "lasso"
    Config = LassoConfig

    def estimator(self, config: LassoConfig) -> Any:
        """See `SklearnSolver`."""
        module = importlib.import_module("sklearn.linear_model")
        # As many steps as the source: small penalties converge slowly while k < D.
        return module.Lasso(alpha=config.alpha, fit_intercept=False, max_iter=100_000)

    def predicted(self, model: Any, asked: Tensor) -> Tensor:
        """A linear function, of which the slope is known."""
        # Elementwise: a counted matrix product would look like the solver's whole cost, but the fit
        # is not counted.
        return (asked * torch.as_tensor(model.coef_)).sum(dim=1)


class TreeConfig(Config):
    """The depth."""

    depth: int | None = Field(
        None, ge=1, description="maximum depth of the tree; null: until leaves are pure"
    )


class Cart(SklearnSolver):
    """A regression tree, grown greedily by the squared error (Breiman et al. 1984)."""

    name = "cart"
    Config = TreeConfig
    #: Trees compare inputs in float32.
    float64 = False

    def estimator(self, config: TreeConfig) -> Any:
        """See `SklearnSolver`."""
        module = importlib.import_module("sklearn.tree")
        # Ties between splits are broken at random: with a seed, the same in every run.
        return module.DecisionTreeRegressor(max_depth=config.depth, random_state=0)


class BoostingConfig(Config):
    """The trees."""

    trees: int = Field(50, ge=1, description="number of trees")
    depth: int = Field(3, ge=1, description="maximum depth of each tree")
    learning_rate: float = Field(
        0.1, gt=0, description="learning rate: factor on the predictions of each tree"
    )


class BoostedTrees(SklearnSolver):
    """Gradient-boosted regression trees on the squared error (Friedman 2001).

    Garg et al. (2022) use XGBoost, which adds a penalty on the leaves.
    """

    name = "boosted-trees"
    Config = BoostingConfig
    #: Trees compare inputs in float32.
    float64 = False

    def estimator(self, config: BoostingConfig) -> Any:
        """See `SklearnSolver`."""
        module = importlib.import_module("sklearn.ensemble")
        return module.GradientBoostingRegressor(
            n_estimators=config.trees,
            max_depth=config.depth,
            learning_rate=config.learning_rate,
            random_state=0,
        )
