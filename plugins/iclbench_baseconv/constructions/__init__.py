"""Exact BaseConv models: the primitives, gradient descent, and the gradient."""

from .descent import CausalDescent, NonCausalDescent
from .gradient import Gradient
from .primitives import AffineMap, Multiplication, Reading, Squaring

__all__ = [
    "AffineMap",
    "CausalDescent",
    "Gradient",
    "Multiplication",
    "NonCausalDescent",
    "Reading",
    "Squaring",
]
