"""``tacit demo``: what tacit does, on data that it draws itself."""

from __future__ import annotations

import click

from tacit.commands.options import run_options
from tacit.commands.run import CommandRun


@click.command(epilog="Example: tacit demo --out demo")
@run_options(out="demo", is_drawn=False, overwrites=True)
def demo(run: CommandRun) -> None:
    """Find a hidden motif in DNA, and how far digits are turned (half a minute)."""
    use_files_only()
    from tacit.demo import reports
    from tacit.demo.page import demo_page
    from tacit.report import render

    texts = []
    with run.writing() as folder:
        for text in reports(folder.stage):
            texts.append(text.replace(str(folder.stage), str(run.out)))
            run.say(texts[-1])
        folder.write_text("report.html", render(demo_page(texts, folder.stage)))
    run.say(f"\nOpen {run.out / 'report.html'}")


def use_files_only() -> None:
    """Pictures go to files, so no display is needed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
