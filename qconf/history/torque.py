"""Read the node requests of Torque jobs and of Cray systems under PBS, which are no chunks, as chunks.

References
----------
Torque Administrator Guide, "Requesting Resources"; Cray's PBS resources "mppwidth", "mppnppn" and "mppdepth".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from parsim.model.node_types import Chunk, Request
from qconf.history.chunks import NAMES, mebibytes_of_pbs

REQUEST = "Resource_Request_2.0"  #: Torque 6: like ``-L tasks=2:lprocs=4 -L tasks=1:lprocs=all``
#: Resources that a PBS job without a select never has.
_FORMS = ("nodes", "neednodes", "procs", "size", "mppwidth", "gpus", "feature", "features")
#: Resources of a job that describe its nodes and cores.
OF_NODES = (*_FORMS, "ncpus", "mppnppn", "mppdepth", "mem", "pmem")
_CORES = ("ppn", "ncpus", "cpp", "lprocs")
#: Words of a request for the use of nodes and GPUs, not for properties of a node.
_USES = re.compile(
    r"shared|excl|exclusive(?:_thread|_process)?|default|reseterr|usecores|usethreads|allowcores|allowthreads"
    r"|(?:tpn|place|maxtpn|cpt|pack|thread|swap|opsys)(?:=.*)?"
)


def is_in_form(resources: Mapping[str, object]) -> bool:
    """Whether a job without a select is a request of Torque or Cray; one with ncpus alone is of PBS."""
    return "ncpus" not in resources or any(name in resources for name in (*_FORMS, REQUEST))


def slots(exec_host: str) -> Counter[str]:
    """Return a job's cores by host, from an exec_host like ``n1/0-3+n2/2``, ``n1/0*8`` or ``n1/1+n1/2``."""
    found: Counter[str] = Counter()
    for part in filter(None, exec_host.split("+")):
        host, _, held = part.partition("/")
        index, _, times = held.partition("*")
        found[host] += int(times) if times.isdigit() else _indices(index)
    return found


def _indices(text: str) -> int:
    """Count the indices in a list like ``0-3,6``; one if it is empty."""
    count = 0
    for part in text.split(","):
        low, _, high = part.partition("-")
        count += int(high) - int(low) + 1 if low.isdigit() and high.isdigit() and int(high) >= int(low) else 1
    return count


def requested(resources: Mapping[str, str], exec_host: str = "") -> tuple[int, Request, bool]:
    """Return the cores of a job (0 if unknown), its chunks, and whether its request could be read.

    The cores are the largest of those in ``nodes``, ``procs``, ``size``, ``mppwidth``, ``ncpus`` and `exec_host`.
    `resources` are the job's among `OF_NODES` and `REQUEST`, `exec_host` the hosts that it was given, as in `slots`.
    """
    given = slots(exec_host)
    alone = max(_number(resources, name) for name in ("ncpus", "procs", "size"))
    try:
        request = _request(resources, given, alone)
    except ValueError:
        return max(alone, sum(given.values())), (), False
    return max(sum(chunk.count * chunk.cores for chunk in request), alone, sum(given.values())), request, True


def _request(resources: Mapping[str, str], given: Mapping[str, int], alone: int) -> Request:
    """Return the chunks of a job; `alone` is its cores outside ``nodes``, `given` the cores it got by host."""
    hosts = {*given, *(host.partition(".")[0] for host in given)}
    request = _by_nodes(resources, hosts)
    if alone > sum(chunk.count * chunk.cores for chunk in request):  # next to `nodes=1`, the default of many sites
        single = len(request) == 1 and request[0].count == 1 and _number(resources, "ncpus") == alone
        request = (replace(request[0], cores=alone),) if single else (Chunk(alone, 1),)
    if 0 < sum(chunk.count * chunk.cores for chunk in request) < sum(given.values()):
        request = _widened(request, given)
    features, gpus = _features(resources, hosts), _number(resources, "gpus")
    more = {"gpus": gpus} if gpus and len(request) == request[0].count == 1 else {}
    if "pmem" in resources:
        memory = [mebibytes_of_pbs(resources["pmem"]) * chunk.cores for chunk in request]
    elif "mem" in resources and request:
        memory = [-(-mebibytes_of_pbs(resources["mem"]) // sum(chunk.count for chunk in request))] * len(request)
    else:
        memory = [0] * len(request)
    return tuple(
        replace(
            chunk,
            features=chunk.features | features,
            resources={**({"memory": each} if each else {}), **more, **dict(chunk.resources)},
        )
        for chunk, each in zip(request, memory, strict=True)
    )


def _by_nodes(resources: Mapping[str, str], hosts: Iterable[str]) -> Request:
    """Return the chunks of mppwidth, of a Torque 6 request or of nodes; empty if the job asks for cores alone."""
    if width := _number(resources, "mppwidth"):
        depth = _number(resources, "mppdepth") or 1
        each = min(_number(resources, "mppnppn") or 1, width)
        whole, rest = divmod(width, each)
        return _counted([(whole, Chunk(1, each * depth)), *([(1, Chunk(1, rest * depth))] if rest else [])])
    if REQUEST in resources:
        return _counted(_part(text.strip(), hosts) for text in resources[REQUEST].split("-L ") if text.strip())
    text, _, use = resources.get("nodes", "").partition("#")
    found = _counted(_part(part, hosts) for part in text.split("+") if part)
    return tuple(replace(chunk, exclusive=True) for chunk in found) if use.startswith("excl") else found


def _counted(parts: Iterable[tuple[int, Chunk]]) -> Request:
    found: dict[Chunk, int] = {}
    for count, chunk in parts:
        found[chunk] = found.get(chunk, 0) + count
    return tuple(replace(chunk, count=count) for chunk, count in found.items() if count)


def _part(text: str, hosts: Iterable[str]) -> tuple[int, Chunk]:
    """Read ``2:ppn=8:avx``, ``n1:ppn=4`` or ``tasks=2:lprocs=4`` as a count and one chunk."""
    first, *rest = text.split(":")
    if first.isdigit():
        count = int(first)
    else:
        count, rest = 1, [first] * (first not in hosts) + rest
    cores, amounts, features = 1, dict[str, int](), set[str]()
    for word in filter(None, rest):
        name, is_value, value = word.partition("=")
        if name == "tasks" and value.isdigit():
            count = int(value)
        elif name in _CORES:
            cores = int(value) if value.isdigit() else cores
        elif name in ("mem", "memory"):
            amounts["memory"] = mebibytes_of_pbs(value)
        elif _USES.fullmatch(word):
            continue
        elif value.isdigit():
            amounts[NAMES.get(name, name)] = int(value)
        elif not re.fullmatch(r"[\w.=-]+", word):
            raise ValueError(f"nodes={text[:40]} has {word[:40]!r}")
        else:
            features.add(value if name.startswith("feature") and is_value else word)
    return count, Chunk(1, cores, amounts, frozenset(features))


def _widened(request: Request, given: Mapping[str, int]) -> Request:
    """Widen chunks to the cores that a job was given beyond its request, if that is possible."""
    cores = sum(given.values())
    if len(request) == 1 and cores % request[0].count == 0:
        return (replace(request[0], cores=cores // request[0].count),)
    if any(chunk.resources or chunk.features for chunk in request):
        return request
    return _counted((1, Chunk(1, count)) for count in given.values() if count)


def _features(resources: Mapping[str, str], hosts: Iterable[str]) -> frozenset[str]:
    """Return the properties that all nodes of a job must have, including those of ``neednodes``.

    A queue's default of ``neednodes`` directs its jobs to its nodes.
    """
    found = {each for name in ("feature", "features") for each in re.split(r"[:,&]", resources.get(name, "")) if each}
    if (needed := resources.get("neednodes", "")) != resources.get("nodes", ""):
        parts = [_part(part, hosts)[1].features for part in needed.partition("#")[0].split("+") if part]
        found |= set.intersection(*map(set, parts)) if parts else set()
    return frozenset(found)


def _number(resources: Mapping[str, str], name: str) -> int:
    text = resources.get(name, "")
    return int(text) if text.isdigit() and len(text) <= 9 else 0
