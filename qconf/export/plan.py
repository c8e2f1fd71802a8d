"""Parse an export's PLAN.md: the blocks of commands under their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield heading and text of each block of commands; "Undo" before the first heading."""
    title = ""
    for heading, block in re.findall(r"^## ([^\n]*)$|^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        title = heading or title
        if block:
            yield title or "Undo", block
