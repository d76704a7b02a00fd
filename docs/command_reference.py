"""The reference of the commands, generated from click while the pages are built."""

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from tacit.cli import COMMANDS
from tacit.commands import group

group.COMMANDS.update(COMMANDS)


class Commands(SphinxDirective):
    """A section for ``tacit`` and for every command: what ``--help`` prints."""

    def run(self):
        top = click.Context(group.tacit, info_name="tacit", show_default=True)
        sections = [self._section("tacit", group.tacit, top)]
        for name in COMMANDS:
            command = group.tacit.get_command(top, name)
            sections.append(
                self._section(
                    f"tacit {name}",
                    command,
                    click.Context(command, top, info_name=name),
                )
            )
        return sections

    @staticmethod
    def _section(title, command, context):
        context.max_content_width = context.terminal_width = 100
        section = nodes.section(ids=[title.replace(" ", "-")], names=[title])
        section += nodes.title(text=title)
        section += nodes.literal_block(text=command.get_help(context), language="text")
        return section
