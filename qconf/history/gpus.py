"""What is in a history of GPUs: how much jobs take of them, by type, queue and user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim.metrics.bottleneck import bottleneck, first_places
from parsim.model.node_types import GPUS
from parsim.prepare.node_types import resources_of
from qconf.config import SiteConfig
from qconf.history.chunks import read
from qconf.history.history import History

HOUR = 3600
KIND = "gpu:"  #: how the feature or resource begins that is a kind of GPUs
ANY = "any"
MOST_USERS = 5

Floats = NDArray[np.float64]


def of_gpus(history: History, config: SiteConfig) -> dict[str, Any] | None:
    """Summarise the GPUs of a history, cleaned with `config`; None where it has none.

    With types of nodes, those of a job are of its first place (rule "places of a job"), or of any where it may have
    places of several types and names none; else a type is what its job asks for.
    """
    jobs = history.jobs
    code, texts = pd.factorize(jobs["needs"])
    wanted = [read(text) for text in texts]
    gpus = np.array([sum(chunk.count * chunk.amount(GPUS) for chunk in request) for request in wanted], dtype=np.int64)[
        code
    ]
    there = sum(each.count * each.gpus for each in config.nodes)
    if not gpus.any() and not there:
        return None
    hours = gpus * jobs["runtime"].to_numpy() / HOUR
    kind = np.array([_kind(request) for request in wanted], dtype=object)[code]
    kinds: list[tuple[str, NDArray[np.int64], int | None]] = []  # type, what each job has of it, how many there are
    found: dict[str, Any] = {
        "jobs": int((gpus > 0).sum()),
        "gpu_hours": round(float(hours.sum()), 3),
        "machine_gpus": there or None,
        "offered_load": None,
        "bottleneck": None,
        "others_on_gpu_nodes": None,  # jobs without GPUs that may use nodes with some
    }
    if there:
        workload, system = history.workload(config), config.system()
        first, last = history.span
        window = (last - first) / HOUR
        amounts, row = first_places(workload, system)
        on = amounts[:, :, resources_of(system.node_types).index(GPUS)][row]
        with_gpus = {each.name for each in config.nodes if each.gpus}
        may = [queue.name for queue in config.queues if queue.nodes is None or with_gpus & {*queue.nodes}]
        found |= {
            "offered_load": round(float(hours.sum() / (there * window)), 6) if window else None,
            "bottleneck": bottleneck(workload, system).resource,
            "others_on_gpu_nodes": int((jobs["queue"].isin(may).to_numpy() & (gpus == 0)).sum()),
        }
        several = [name for name in may if len(with_gpus & {*(config.queue(name).nodes or with_gpus)}) > 1]
        names_none = np.array([not any(chunk.features for chunk in request) for request in wanted], dtype=np.bool_)
        of_any = (kind == ANY) & names_none[code] & (gpus > 0) & jobs["queue"].isin(several).to_numpy()
        kinds += [
            (each.name, np.where(of_any, 0, on[:, t]), each.count * each.gpus)
            for t, each in enumerate(config.nodes)
            if each.gpus
        ]
        kinds += [(ANY, np.where(of_any, gpus, 0), None)] * bool(of_any.any())
    else:
        kinds += [(name, np.where(kind == name, gpus, 0), None) for name in sorted({*kind[gpus > 0].tolist()})]
    seconds = jobs["runtime"].to_numpy()
    types = [(name, amount > 0, amount * seconds / HOUR) for name, amount, _ in kinds]
    queues = [(name, (jobs["queue"] == name).to_numpy() & (gpus > 0), hours) for name in config.names]
    users = [(name, (jobs["user"] == name).to_numpy() & (gpus > 0), hours) for name in _users(jobs, hours)]
    found["types"] = [each | {"gpus": count} for each, (_, _, count) in zip(_rows(types, hours), kinds, strict=True)]
    return found | {"queues": list(_rows(queues, hours)), "users": list(_rows(users, hours))}


def _kind(request: Any) -> str:  # noqa: ANN401 - a Request
    """Return the kinds of GPUs that a job asks for; GPUs of any kind where it names none."""
    words = {word for chunk in request for word in (*chunk.features, *dict(chunk.resources)) if word.startswith(KIND)}
    named = sorted(word.removeprefix(KIND) for word in words)
    return ", ".join(named) or ANY


def _users(jobs: pd.DataFrame, hours: Floats) -> list[str]:
    """Return the users who take most GPU-hours, at most so many, the first the most."""
    used = pd.Series(hours).groupby(jobs["user"].to_numpy()).sum().sort_values(ascending=False, kind="stable")
    return [str(name) for name, value in used.items() if value > 0 and name][:MOST_USERS]


def _rows(of: list[tuple[str, NDArray[np.bool_], Floats]], hours: Floats) -> Iterator[dict[str, Any]]:
    for name, members, own in of:
        used = float(own[members].sum())
        share = round(used / max(float(hours.sum()), 1e-9), 6)
        yield {"name": name, "jobs": int(members.sum()), "gpu_hours": round(used, 3), "share": share}
