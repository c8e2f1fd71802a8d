"""The machine: how its cores are divided, before and after, and what the size of a partition does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from qconf.config import SiteConfig
from qconf.recommend import Curve
from qconf.report.figures.base import HUES, Figure
from qconf.report.story import Story
from qconf.report.svg import LETTER, Drawing, Scale, decades, ticks, wait_ticks
from qconf.report.wording import count, hours

BAR = 34


def machine_bar(configs: Sequence[tuple[str, SiteConfig]], looks: Mapping[str, str]) -> Figure:
    """Draw a bar for each named configuration: a part for each partition, pool, type of nodes, or the whole."""
    drawing = Drawing(0)
    cores = configs[0][1].machine.cores
    x = Scale(0, cores, 84, drawing.width - 12)
    top = 8.0
    notes = []
    for name, config in configs:
        drawing.text(x.start - 8, top + BAR / 2 + 4, name, "end head")
        panel = drawing.panel(x, Scale(0, 1, top + BAR, top), grid="")
        left = 0
        for part, size, look in parts(config, looks):
            title = f"{part}: {count(size)} cores, {100 * size / cores:.0f} %"
            panel.bar((left, left + size), (0, 1), f"fill part {look}", title)
            room = x.at(left + size) - x.at(left) - 8
            for text in (f"{part}, {count(size)} cores", part):
                if LETTER * len(text) <= room:
                    panel.text(left, 0.5, text, "on", dx=5)
                    break
            left += size
        if config.mode != "shared":
            each = ", ".join(f"{part} {count(size)}" for part, size, _ in parts(config, looks))
            notes.append(f"{name[0].upper()}{name[1:]}: {each} cores.")
        reserved = [queue.name for queue in config.queues if queue.reservation and config.mode != "shared"]
        if reserved:
            notes.append(f"Jobs of {', '.join(reserved)} get cores of all parts, by reservation.")
        top += BAR + 10
    top += 4
    drawing.panel(x, Scale(0, 1, top, top), x_ticks=ticks(0, cores), x_title="cores", grid="")
    drawing.height = top + 38
    text = " ".join(["How the cores are divided.", *notes])
    return Figure("machine", drawing.svg(text), text)


def parts(config: SiteConfig, looks: Mapping[str, str]) -> Iterator[tuple[str, int, str]]:
    """Yield the parts of a machine, of a shared one its types of nodes: name, cores, look."""
    if config.mode == "shared" and config.nodes:
        for i, each in enumerate(config.nodes):
            yield f"nodes {each.name}", each.count * each.cores, ("whole", "pool")[i % 2]
        return
    if config.mode == "shared":
        yield "shared by all queues", config.machine.cores, "whole"
        return
    for queue in config.queues:
        if queue.partition:
            yield queue.name, queue.partition, looks.get(queue.name, f"q{HUES - 1}")
    if config.pool_cores:
        yield "common pool", config.pool_cores, "pool"


def curves_figure(
    curves: Sequence[Curve],
    what: Literal["waits", "utilizations"],
    marks: Mapping[str, SiteConfig],
    looks: Mapping[str, str],
) -> Figure:
    """Draw mean wait or utilization of each queue alone against its partition's size; `marks` have sizes to mark.

    As Figures 1 and 2 of Kondameedi and Vadhiyar, CCGrid 2017.
    """
    waits = what == "waits"
    drawing = Drawing(0)
    shown = {name: config for name, config in marks.items() if config.mode != "shared"}
    entries = [(f"line {looks[curve.queue]}", curve.queue) for curve in curves]
    top = drawing.legend([*entries, *((f"dot {name} ring", f"size {name}") for name in shown)]) + 22
    sizes = [size for curve in curves for size in curve.sizes if size > 0]
    values = {c.queue: np.array(c.waits if waits else [100 * use for use in c.utilizations]) for c in curves}
    high = max((float(v) for each in values.values() for v in each if math.isfinite(v)), default=1.0)
    low, high = (60.0, max(high, 600.0)) if waits else (0.0, max(high, 100.0))
    x = Scale(min(sizes), max(*sizes, min(sizes) + 1), 62, drawing.width - 12, log=True)
    y = Scale(low, high, top + 240, top, log=waits)
    panel = drawing.panel(
        x, y, x_ticks=decades(x.low, x.high), y_ticks=wait_ticks(low, high) if waits else ticks(low, high),
        y_title="mean wait of the queue alone" if waits else "utilization of the partition, %",
        x_title="partition size, cores", grid="xy", unit="s" if waits else "%",
    )  # fmt: skip
    for curve in curves:
        panel.line(curve.sizes, values[curve.queue], looks[curve.queue], curve.queue)
        for name, config in shown.items():
            size = next((queue.partition for queue in config.queues if queue.name == curve.queue), 0)
            finite = np.isfinite(values[curve.queue])
            if finite.any() and min(curve.sizes) <= size <= max(curve.sizes):
                at = float(np.interp(size, np.array(curve.sizes)[finite], values[curve.queue][finite]))
                panel.dot(size, at, f"dot {name} ring", f"{curve.queue}, {name}: {count(size)} cores", 6)
    drawing.height = y.start + 42
    text = (
        "Mean wait of each queue alone on a partition, against its size; what is below a minute stands at the edge."
        if waits
        else "Utilization of the same partitions: a large one idles, a small one makes jobs wait."
    )
    return Figure("wait-by-size" if waits else "utilization-by-size", drawing.svg(text), text)


def path_figure(found: Story) -> Figure | None:
    """Draw the mean wait after each stage of a story, the stages that were tried and not kept as rings."""
    stages = [chapter for chapter in found.chapters if chapter.wait is not None or chapter.rejected]
    waits = [chapter.wait for chapter in stages if chapter.wait is not None]
    if len(waits) < 2:
        return None
    present = [] if found.current is None else [found.current]
    every = [*waits, *(each for stage in stages for each in stage.rejected), *present]
    drawing = Drawing(0)
    entries = [("line after", f"{found.strategy}, kept"), ("dot plain hollow", "tried, not kept")]
    top = drawing.legend([*entries, *(("line before", "current configuration") for _ in present)]) + 22
    x = Scale(-0.5, len(stages) - 0.5, 62, drawing.width - 12)
    y = Scale(0, max(every) / 3600 * 1.05, top + 170, top)
    panel = drawing.panel(x, y, y_ticks=ticks(0, y.high), y_title="mean wait on the training set, h", unit="h")
    for wait in present:
        panel.line([x.low, x.high], [wait / 3600] * 2, "before", "current")
    line = [(i, stage.wait / 3600) for i, stage in enumerate(stages) if stage.wait is not None]
    panel.line([i for i, _ in line], [wait for _, wait in line], "after", found.strategy)
    step = x.at(1) - x.at(0)
    for i, stage in enumerate(stages):
        for wait in stage.rejected:
            panel.dot(i, wait / 3600, "dot plain hollow", f"tried, not kept: {hours(wait)} h", 3)
        if stage.wait is not None:
            panel.dot(i, stage.wait / 3600, "dot after", f"{stage.title}: {hours(stage.wait)} h")
        words = stage.title.split()
        for k, word in enumerate(words[:3]):
            room = max(4, int(step / LETTER) + 1)
            drawing.text(x.at(i), y.start + 15 + 13 * k, word[:room], "tick middle")
    drawing.height = y.start + 58
    text = "What each stage made of the mean wait of the training set, epochs weighted."
    return Figure("partition-path", drawing.svg(text), text)
