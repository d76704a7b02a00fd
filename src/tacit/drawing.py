"""What all pictures share: colours, and matplotlib or an error that names the extra."""

from __future__ import annotations

from typing import Any

INK, BLUE, ORANGE, GREY, RED = "#222222", "#1f6fb4", "#d9622b", "#9a9a9a", "#d03b2b"


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "tacit[plot]"') from error
    return plt
