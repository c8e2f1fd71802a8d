"""PLAN.md of an export, as what follows it reads it: blocks of commands under their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield title and text of each block of commands."""
    title = ""
    for heading, block in re.findall(r"^## ([^\n]*)$|^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        title = heading or title
        if block:
            yield title or "Undo", block
