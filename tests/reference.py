"""The reference of the commands, from their own help: ``python -m tests.reference`` (or ``make reference``) writes it."""

from __future__ import annotations

from pathlib import Path

import click

from qconf.cli import qconf

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"
WIDTH = 96
HEAD = """# Commands

The help of every command, written by `make reference`. Bad input gets one message that names file,
line, field, value and what to do, and exit code 1; a wrong option gets exit code 2. Ctrl-C ends a
command with exit code 130; `tune`, `compare` and `backtest` go on with `--resume` from what they
had finished.
"""


def page() -> str:
    """Return the page as it is to be."""
    settings = {**qconf.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    group = click.Context(qconf, info_name="qconf", **settings)
    parts = [HEAD, _section("qconf", qconf.get_help(group))]
    for name in qconf.list_commands(group):
        command = qconf.get_command(group, name)
        assert command is not None
        context = click.Context(command, parent=group, info_name=name)
        parts.append(_section(f"qconf {name}", command.get_help(context)))
    return "\n".join(parts)


def _section(title: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n\n```text\n{lines}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
