"""Tables as LaTeX: a `tabular`, and everything around it as comments, so that it can be input."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from .table import Table, cell_of, shown_columns

_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "|": "$|$", '"': "''", "\n": " ", "\t": " ",
}  # fmt: skip
#: Symbols of the package amssymb.
_AMS = {
    "▲": r"$\blacktriangle$", "◆": r"$\blacklozenge$", "■": r"$\blacksquare$",
    "◇": r"$\lozenge$", "□": r"$\square$", "▽": r"$\triangledown$",
}  # fmt: skip
_SYMBOLS = {
    "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "≈": r"$\approx$",
    "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "∞": r"$\infty$", "√": r"$\surd$",
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "…": r"\dots{}", "–": "--", "—": "---",
    "‘": "`", "’": "'", "“": "``", "”": "''", "●": r"$\bullet$", "○": r"$\circ$",
    "◐": r"$\odot$", "§": r"\S{}",
    "†": r"\dag{}", "‡": r"\ddag{}", "∈": r"$\in$", "∑": r"$\sum$", "‖": r"$\|$", "°": r"$^\circ$",
    "½": r"$\frac{1}{2}$", "′": "$'$", "ᵀ": r"$^{\top}$", "⊤": r"$\top$", "⁻": "$^-$",
    "ᵢ": "$_i$", "ⱼ": "$_j$", "ₖ": "$_k$", "ₙ": "$_n$", "⋯": r"$\cdots$", "ℓ": r"$\ell$",
    "↦": r"$\mapsto$", "∂": r"$\partial$", "∏": r"$\prod$", "∗": "$*$", "∘": r"$\circ$",
    "∫": r"$\int$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "⊙": r"$\odot$", "€": "EUR", "\u00a0": "~", "\u202f": r"\,",
    "\u2009": r"\,",
}  # fmt: skip
#: Greek letters; capitals that are like Latin ones have no word.
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu", "µ": "mu", "ν": "nu",
    "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi",
    "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda",
    "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_MINUS = re.compile(r"(?<![\w.)\]-])-(?=\d)|(?<=\de)-(?=\d)")
_BETWEEN_HYPHENS = re.compile(r"(?<=-)(?=-)")
_LETTER = re.compile("LATIN (SMALL|CAPITAL) ")
#: What stands above or below the line, by its plain character.
_LEVELS = {"<sub>": "_", "<super>": "^"}


def latex(text: str) -> str:
    """The text as LaTeX needs it, with symbols in words of LaTeX.

    An accented letter stays, as UTF-8. A character that LaTeX knows no word for is its number.
    """
    # A hyphen before a number is a minus; two hyphens side by side would become a dash.
    text = _MINUS.sub("−", unicodedata.normalize("NFC", text))
    parts = ("".join(map(_character, part)) for part in _BETWEEN_HYPHENS.split(text))
    return "{}".join(parts)


def _character(character: str) -> str:
    for known in (_ESCAPED, _SYMBOLS, _AMS):
        if character in known:
            return known[character]
    if character in _GREEK:
        return f"$\\{_GREEK[character]}$"
    if character.isascii() or _LETTER.match(unicodedata.name(character, "")):
        return character
    level, _, plain = unicodedata.decomposition(character).partition(" ")
    if level in _LEVELS:
        return f"${_LEVELS[level]}{latex(chr(int(plain, 16)))}$"
    return f"U+{ord(character):04X}"


def comment(text: str) -> str:
    """The text as lines that LaTeX skips."""
    return "\n".join(f"% {line}".rstrip() for line in text.splitlines() or [""])


def as_latex(table: Table) -> str:
    """A `tabular`; the packages that it needs and its title are comments above, its notes below."""
    columns = shown_columns(table)
    head = [column.heading for column in columns]
    rows = [[cell_of(row.get(column.name)).text for column in columns] for row in table.rows]
    symbols = {character for line in (head, *rows) for text in line for character in text}
    packages = "amssymb,booktabs" if symbols & _AMS.keys() else "booktabs"
    form = "".join("r" if column.right else "l" for column in columns)
    lines = [
        comment(f"needs \\usepackage{{{packages}}}"),
        *([comment(table.title)] if table.title else []),
        f"\\begin{{tabular}}{{{form}}}",
        "\\toprule",
        _line(head),
        "\\midrule",
        *map(_line, rows),
        "\\bottomrule",
        "\\end{tabular}",
        *map(comment, table.notes),
    ]
    return "\n".join(lines) + "\n"


def _line(texts: Iterable[str]) -> str:
    line = " & ".join(map(latex, texts))
    # After the end of the line before, these would be its arguments.
    return f"{'{}' if line.startswith(('[', '*')) else ''}{line} \\\\"
