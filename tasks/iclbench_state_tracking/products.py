"""Products of all prefixes of words in a finite group."""

from __future__ import annotations

import torch
from torch import Tensor

from .groups import multiplication_table


def prefix_products(elements: Tensor, group: str) -> Tensor:
    """g₁, g₁g₂, …, g₁⋯g_T of words (B, T), as numbers of elements (B, T)."""
    table = multiplication_table(group).to(elements.device)
    products = [elements[:, 0]]
    for t in range(1, elements.shape[1]):
        products.append(table[products[-1], elements[:, t]])
    return torch.stack(products, dim=1)
