"""H + Σ_k LSA_k(H), and cells of one of its rows, each as one step of autograd.

For training where nothing is vmapped: products with weights are of all rows of all prompts, and
gradients are added up while they are computed. Equal to the operators one by one except for
rounding. It can't be differentiated twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def add_lsa(H: Tensor, weights: Tensor) -> Tensor:
    """H + Σ_k (HW₃)(HW₁)ᵀ(HW₂), (..., B, m, n) → the same; weights (..., 3, heads, n, n)."""
    result: Tensor = _AddLSA.apply(H, weights)  # type: ignore[no-untyped-call]
    return result


def add_lsa_cells(H: Tensor, weights: Tensor, row: int, columns: slice) -> Tensor:
    """Some columns of one row of `add_lsa`, (..., B, m, n) → (..., B, 1, c)."""
    result: Tensor = _AddLSACells.apply(H, weights, row, columns)  # type: ignore[no-untyped-call]
    return result


class _AddLSA(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, H: Tensor, weights: Tensor) -> Tensor:
        each, flat, first, second, third = _parts(H, weights)
        heads, (prompts, m, n) = weights.shape[-3], each.shape
        inner, outer = _wide(torch.bmm(third, first.mT), heads), _wide(second, heads)
        # Rows of `left` and `right` are those of the prompts, each row's heads together.
        left = torch.bmm(flat, inner).view(prompts, m * heads, n)
        right = torch.bmm(flat, outer).view(prompts, m * heads, n)
        scores = _turned(torch.bmm(left, each.mT), heads)
        ctx.save_for_backward(each, flat, first, third, left, right, scores, inner, outer)
        ctx.shapes = H.shape, weights.shape
        return torch.baddbmm(each, scores, right).view(H.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        each, flat, first, third, left, right, scores, inner, outer = ctx.saved_tensors
        shape, of_shape = ctx.shapes
        heads = of_shape[-3]
        of_each = grad.reshape(each.shape)
        of_scores = _turned_back(torch.bmm(of_each, right.mT), heads)
        of_left = torch.bmm(of_scores, each).view(*flat.shape[:2], inner.shape[2])
        of_right = torch.bmm(scores.mT, of_each).view(of_left.shape)
        of_inner, of_outer = torch.bmm(flat.mT, of_left), torch.bmm(flat.mT, of_right)
        of_both = _narrow(of_inner, heads), _narrow(of_outer, heads)
        of_weights = _of_weights(*of_both, first, third, of_shape)
        of_H = None
        if ctx.needs_input_grad[0]:
            of_H = torch.baddbmm(of_each, of_scores.mT, left).view(flat.shape)
            of_H.baddbmm_(of_left, inner.mT).baddbmm_(of_right, outer.mT)
            of_H = of_H.view(shape)
        return of_H, of_weights


class _AddLSACells(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, H: Tensor, weights: Tensor, row: int, columns: slice) -> Tensor:
        each, flat, first, second, third = _parts(H, weights)
        heads, replicas, (prompts, _, n) = weights.shape[-3], flat.shape[0], each.shape
        size = prompts // replicas
        asked = each[:, row].view(replicas, size, n)
        inner = _wide(torch.bmm(third, first.mT), heads)
        left = torch.bmm(asked, inner).view(prompts, heads, n)
        scores = _of_rows(left, each)
        mixed = _of_columns(scores, each).view(replicas, size, heads * n)
        outer = second[..., columns].reshape(replicas, heads * n, -1)
        ctx.save_for_backward(each, asked, first, third, left, scores, mixed, inner, outer)
        ctx.row, ctx.columns, ctx.shapes = row, columns, (H.shape, weights.shape)
        found = torch.baddbmm(asked[..., columns], mixed, outer)
        return found.view(*H.shape[:-2], 1, found.shape[2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        each, asked, first, third, left, scores, mixed, inner, outer = ctx.saved_tensors
        shape, of_shape = ctx.shapes
        heads = of_shape[-3]
        of_found = grad.reshape(*asked.shape[:2], grad.shape[-1])
        of_mixed = torch.bmm(of_found, outer.mT).view(left.shape)
        of_scores = _of_rows(of_mixed, each)
        of_left = _of_columns(of_scores, each)
        wide = of_left.view(mixed.shape)
        of_second = torch.zeros_like(first)
        of_columns = torch.bmm(mixed.mT, of_found)
        of_second[..., ctx.columns] = of_columns.view(*first.shape[:2], -1)
        of_inner = torch.bmm(asked.mT, wide)
        of_weights = _of_weights(_narrow(of_inner, heads), of_second, first, third, of_shape)
        of_H = None
        if ctx.needs_input_grad[0]:
            of_H = _outer(scores, of_mixed).add_(_outer(of_scores, left))
            prompts, _, n = each.shape
            of_H[:, ctx.row] += torch.bmm(wide, inner.mT).view(prompts, n)
            of_H[:, ctx.row, ctx.columns] += of_found.view(prompts, grad.shape[-1])
            of_H = of_H.view(shape)
        return of_H, of_weights, None, None


def _parts(H: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
    """H by prompts, (P, m, n), and by replicas, (R, Bm, n); W₁, W₂, W₃ (R · heads, n, n)."""
    heads, n, _ = weights.shape[-3:]
    each = H.reshape(-1, *H.shape[-2:])
    by_replica = weights.view(-1, 3, heads, n, n)
    first, second, third = (t.reshape(-1, n, n) for t in by_replica.unbind(1))
    replicas, prompts, m = by_replica.shape[0], *each.shape[:2]
    flat = each.reshape(replicas, prompts * m // replicas, n)
    return each, flat, first, second, third


# With one head each of these leaves its tensor as it is.


def _wide(weights: Tensor, heads: int) -> Tensor:
    """(R · heads, n, n) → (R, n, heads · n)."""
    if heads == 1:
        return weights
    return weights.view(-1, heads, *weights.shape[1:]).transpose(1, 2).flatten(2)


def _narrow(wide: Tensor, heads: int) -> Tensor:
    """The reverse of `_wide`."""
    if heads == 1:
        return wide
    return wide.view(*wide.shape[:2], heads, -1).transpose(1, 2).flatten(0, 1)


def _turned(scores: Tensor, heads: int) -> Tensor:
    """Scores (P, m · heads, m) of rows and heads by rows → (P, m, m · heads), by rows and heads."""
    if heads == 1:
        return scores
    m = scores.shape[-1]
    return scores.view(scores.shape[0], m, heads, m).transpose(2, 3).flatten(2)


def _turned_back(scores: Tensor, heads: int) -> Tensor:
    """The reverse of `_turned`."""
    if heads == 1:
        return scores
    m = scores.shape[-2]
    return scores.view(scores.shape[0], m, m, heads).transpose(2, 3).flatten(1, 2)


def _of_weights(
    of_product: Tensor, of_second: Tensor, first: Tensor, third: Tensor, shape: torch.Size
) -> Tensor:
    """The gradient in W₁, W₂, W₃, of their shape (..., 3, heads, n, n), of those in W₃W₁ᵀ, W₂."""
    each = (*shape[:-4], *shape[-3:])
    parts = [torch.bmm(of_product.mT, third), of_second, torch.bmm(of_product, first)]
    return torch.stack([part.reshape(each) for part in parts], dim=-4)


# Sums where there is one row a prompt, since products with one row are slow.


def _of_rows(left: Tensor, each: Tensor) -> Tensor:
    """left Hᵀ, (P, heads, n) and (P, m, n) → (P, heads, m)."""
    if left.shape[1] == 1:
        return (left * each).sum(dim=2).unsqueeze(1)
    return torch.bmm(left, each.mT)


def _of_columns(scores: Tensor, each: Tensor) -> Tensor:
    """scores H, (P, heads, m) and (P, m, n) → (P, heads, n)."""
    if scores.shape[1] == 1:
        return (scores.mT * each).sum(dim=1, keepdim=True)
    return torch.bmm(scores, each)


def _outer(scores: Tensor, left: Tensor) -> Tensor:
    """scoresᵀ left, (P, heads, m) and (P, heads, n) → (P, m, n)."""
    return scores.mT * left if scores.shape[1] == 1 else torch.bmm(scores.mT, left)
