"""Tables that commands write, each with the list of dropped records next to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from qconf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

DROPPED = "dropped.csv"


def check_table(output: Path, inputs: Sequence[Path]) -> None:
    """Raise InputError if writing a table, or the list of dropped records next to it, would destroy a file."""
    from qconf.history.records import DROPPED as COLUMNS
    from qconf.text import refuse_overwrite

    if output.name == DROPPED:
        raise InputError("is the name of the list of dropped records", file=output, fix="choose another name")
    beside = output.parent / DROPPED
    refuse_overwrite(inputs, (output, beside), "choose another name")
    if beside.is_file() and not beside.read_bytes().startswith(",".join(COLUMNS).encode()):
        fix = "choose another folder: the dropped records are listed in a file of this name"
        raise InputError("is there already and no list of dropped records", file=beside, fix=fix)


def write_table(output: Path, text: Iterable[str], dropped: pd.DataFrame) -> None:
    """Write a table (gzipped if the name ends in .gz) and the list of dropped records next to it; both or none."""
    import gzip

    from qconf.inert import csv_text
    from qconf.text import all_or_nothing

    with all_or_nothing(output.parent) as scratch:
        with (scratch / output.name).open("wb") as plain, ExitStack() as stack:
            packed = gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if output.suffix == ".gz" else None
            stream = plain if packed is None else stack.enter_context(packed)
            for part in text:
                stream.write(part.encode())
        (scratch / DROPPED).write_bytes(csv_text(dropped).encode())
