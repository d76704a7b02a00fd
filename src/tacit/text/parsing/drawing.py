"""Trees as pictures: inline SVG for reports."""

from __future__ import annotations

from markupsafe import Markup, escape

from tacit.text.parsing.brackets import Node, count_words

LETTER, ROW, GAP = 8, 34, 10
"""Pixels per letter, per level, and between words."""

WRONG = "fill: #c2410c; font-weight: 700"
"""How a mistake is written."""

MAX_NAME = 18
"""Letters of a word that are shown."""


def draw_tree(tree: Node, wrong: frozenset[tuple[str, int, int]] = frozenset()) -> Markup:
    """A tree as SVG in its own size, which scrolls; labelled spans in ``wrong`` are in the colour of mistakes. Words
    are below their brackets, so that no lines cross.

    >>> from tacit.text.parsing.brackets import parse_tree
    >>> "<svg" in draw_tree(parse_tree("(NP (DT a) (NN dog))"))
    True
    """
    parts: list[str] = []
    state = {"x": float(GAP), "word": 0}

    def text(x: float, y: float, content: str, style: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" style="{style}">{escape(content)}</text>'

    def line(x1: float, y1: float, x2: float, y2: float) -> str:
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        return f'<line {ends} stroke="currentColor" stroke-opacity="0.4"/>'

    def visit(node: Node, level: int, letters: int = 0) -> tuple[float, float]:
        # letters: of the longest label of the chain above
        y = ROW * level
        letters = max(letters, len(node.label))
        if node.word is not None:
            word = node.word if len(node.word) <= MAX_NAME else node.word[: MAX_NAME - 1] + "…"
            width = LETTER * max(len(word), letters) + GAP
            x = state["x"] + width / 2
            state["x"] += width
            state["word"] += 1
            parts.append(text(x, y, node.label))
            parts.append(text(x, y + 16, word, "font-weight: 600"))
            return x, y
        first = int(state["word"])
        letters = letters if len(node.children) == 1 else 0
        ends = [visit(child, level + 1, letters) for child in node.children]
        x = (ends[0][0] + ends[-1][0]) / 2
        parts.extend(line(x, y + 4, a, b - 12) for a, b in ends)
        is_wrong = (node.label, first, int(state["word"])) in wrong
        parts.append(text(x, y, node.label, WRONG if is_wrong else ""))
        return x, y

    visit(tree, 1)
    width, height = state["x"] + GAP, ROW * _depth(tree)
    title = f"tree of {count_words(tree)} words"
    return Markup(
        f'<div style="overflow-x: auto"><svg viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
        f'role="img" aria-label="{title}">{"".join(parts)}</svg></div>'
    )


def _depth(node: Node) -> int:
    return 2 if node.word is not None else 1 + max(map(_depth, node.children))
