"""Leaderboards: tables made from records alone."""

from .tables import Board, boards, leaderboard, render

__all__ = ["Board", "boards", "leaderboard", "render"]
