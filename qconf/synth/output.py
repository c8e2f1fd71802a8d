"""Generated months as files, and a table of them."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pandas as pd

from qconf.synth.monthly import generate_month, month_of
from qconf.synth.presets import preset_named
from qconf.text import all_or_nothing, markdown_table, write_whole


def _compressed(frame: pd.DataFrame) -> bytes:
    """CSV, gzipped without a name or a time of day, so that equal tables are equal bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=6, mtime=0) as stream:
        frame.to_csv(stream, index=False, lineterminator="\n")
    return packed.getvalue()


def write_history(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table of jobs as a gzipped CSV, whole or not at all."""
    write_whole(path, _compressed(frame))
    return path


def write_months(preset: str, months: int, seed: int, directory: Path, offered_load: float | None = None) -> list[Path]:
    """Write a file per month (``cray-xc40-2016-02.csv.gz``), all or none, and return the paths."""
    model = preset_named(preset)
    names = []
    with all_or_nothing(directory) as scratch:
        for index in range(months):
            year, month, _ = month_of(model, index)
            names.append(f"{preset}-{year}-{month:02d}.csv.gz")
            (scratch / names[-1]).write_bytes(_compressed(generate_month(preset, index, seed, offered_load)))
    return [directory / name for name in names]


def month_table(preset: str, months: int = 9, seed: int = 0, offered_load: float | None = None) -> pd.DataFrame:
    """Return a row for each month (``2015-07``): jobs per queue and in total, core-hours, load, shares in %."""
    model = preset_named(preset)
    names = [queue.name for queue in model.queues]
    rows = {}
    for index in range(months):
        year, month, length = month_of(model, index)
        frame = generate_month(preset, index, seed, offered_load)
        area = (
            (frame["cores"] * frame[["runtime", "walltime"]].min(axis=1)).groupby(frame["queue"], observed=True).sum()
        )
        total = float(area.sum())
        rows[f"{year}-{month:02d}"] = {
            **frame["queue"].value_counts()[names].astype(float),
            "jobs": len(frame),
            "Mcore-h": total / 3600e6,
            "load": total / (model.cores * length),
            **{f"{name} %": 100 * float(area[name]) / total for name in names},
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def markdown(frame: pd.DataFrame) -> str:
    """Render a `month_table` as Markdown."""
    columns = [str(column) for column in frame.columns]
    digits = [1 if column.endswith("%") else 2 if column in {"Mcore-h", "load"} else 0 for column in columns]
    rows = [
        [str(month), *(f"{value:.{places}f}" for value, places in zip(row, digits, strict=True))]
        for month, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return markdown_table(["month", *columns], rows)
