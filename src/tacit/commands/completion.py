"""``tacit completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tacit.commands.group import tacit


@click.command(epilog="Example: tacit completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in your shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(tacit, {}, "tacit", "_TACIT_COMPLETE").source())
