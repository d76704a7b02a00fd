"""One self-contained HTML page per run: nothing is fetched, so it opens from disk without a network.

A page is built of blocks (`page`), charts are inline SVG (`charts`), and `render` turns both into one file.

>>> from tacit.report import Page, Prose, Section, render
>>> html = render(Page("Motifs", sections=[Section("What was found", [Prose("<nothing>")])]))
>>> "&lt;nothing&gt;" in html and "<nothing>" not in html
True
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
