"""What a problem whose outputs cannot be listed refuses to do."""

from __future__ import annotations


def require_margins(kind: str, rescaling: str, rivals: bool) -> None:
    """Refuse slack rescaling, and answers that must differ from the label: both look at outputs one by one.

    >>> require_margins("Chain", "slack", False)
    Traceback (most recent call last):
    ...
    ValueError: Chain has no exact inference for slack rescaling: its outputs cannot be listed; use margin rescaling
    """
    if rescaling != "margin" or rivals:
        asked = "rivals" if rivals else f"{rescaling} rescaling"
        raise ValueError(
            f"{kind} has no exact inference for {asked}: its outputs cannot be listed; use margin rescaling"
        )
