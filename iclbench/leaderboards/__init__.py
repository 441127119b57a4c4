"""Leaderboards: tables and figures made from records alone."""

from .figures import Figure
from .tables import Board, boards, leaderboard, render

__all__ = ["Board", "Figure", "boards", "leaderboard", "render"]
