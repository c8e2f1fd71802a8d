"""Node requests of jobs as PBS chunks; the requests of Slurm, Torque and tables are translated to chunks.

The column `needs` of a history holds a chunk as a word like ``chunk:2:cores=16,gpus=2,memory=65536,bigmem``: the count,
the amounts that each chunk takes of one node (memory in MiB), and the features that its node must have. A word like
``place:scatter,excl`` is their placement: each on a node of its own (scatter), on nodes without other jobs (excl).

References
----------
OpenPBS User's Guide, "Requesting Resources in Chunks"; Slurm, sacct, "ReqTRES"; sbatch, "--constraint".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np

from parsim.model.node_types import Chunk, NodeType, Request, amounts, exclusively
from parsim.model.state import Window
from parsim.model.system import System
from parsim.prepare.chunks import fits
from parsim.prepare.node_types import Demand
from parsim.prepare.state import closed_nodes
from qconf.config import KEPT, SiteConfig
from qconf.config.routing import Column, Mask, Texts, shortpool_gaps_of_types

GPUS = re.compile(r"[:,]gpus=0*[1-9]")
CHUNK = re.compile(r"chunk:(\d{1,9}):(\S+)")
PLACE = re.compile(r"place:(\S+)")
#: Resource names of PBS and Slurm, each with our name.
NAMES = {"ncpus": "cores", "cpu": "cores", "ngpus": "gpus", "naccelerators": "gpus", "mem": "memory"}
#: Words of a PBS chunk that are no demand: its use inside the job, its host, and the resource that an export adds.
NOT_TAKEN = ("mpiprocs", "ompthreads", "nchunk", "vmem", "host", "vnode", "arch", "nice", "walltime", KEPT)
SIZE = re.compile(r"(\d{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)
TRES_SIZE = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?([KMGTP]?)")
MIB = 2**20
USED_ALONE = ("gpumem", "gpuutil")  #: usage that Slurm measures of GPUs, no resource of nodes
#: Placement words of PBS and of `needs`, each with its field of `Chunk`.
PLACES = {"scatter": "scattered", "excl": "exclusive"}
PLACE_WORDS = {"", "free", "pack", "scatter", "excl", "shared"}
CORES_ALONE = "tells of no nodes: asks for cores alone, on any that its queue may use"
WITH_GPUS = "had GPUs: cores alone are simulated"
OF_TYPE = re.compile(r"[:,]gpu:[^\s,=]+=0*[1-9]")
ANY_TYPE = "had GPUs of a type, and nodes: name no type (features: ['gpu:a100']): any are simulated"
UNREADABLE = "chunks that cannot be read: cores alone are simulated"
OTHER_CORES = "chunks of other cores than the job's: cores alone are simulated"


def words(request: Iterable[Chunk]) -> str:
    """Write a request as the words of `needs`: each chunk, then the placement."""
    chunks = [f"chunk:{chunk.count}:{','.join(_parts(chunk))}" for chunk in request]
    place = [word for word, name in PLACES.items() if any(getattr(chunk, name) for chunk in request)]
    return " ".join([*chunks, *([f"place:{','.join(place)}"] if place else [])])


def _parts(chunk: Chunk) -> list[str]:
    amounts = [("cores", chunk.cores), *dict(chunk.resources).items()]
    return [*(f"{name}={amount}" for name, amount in amounts), *sorted(chunk.features)]


@lru_cache(maxsize=4096)
def read(text: str) -> Request:
    """Read the chunks in a text of `needs`; empty if the job asks for cores alone."""
    found = []
    place = {PLACES[word]: True for words in PLACE.findall(text) for word in words.split(",") if word in PLACES}
    for count, parts in CHUNK.findall(text):
        amounts = dict(part.split("=", 1) for part in parts.split(",") if re.fullmatch(r"[^=]+=\d{1,13}", part))
        resources = {name: int(amount) for name, amount in amounts.items()}
        features = frozenset(part for part in parts.split(",") if part.split("=", 1)[0] not in amounts)
        found.append(Chunk(int(count), resources.pop("cores", 0), resources, features, **place))
    return tuple(found)


def of_select(select: str, place: str = "") -> Request:
    """Read the select and place of a PBS job as chunks; raise ValueError if they cannot be read.

    `select` is like ``2:ncpus=16:ngpus=2:mem=64gb+1:ncpus=4``, `place` like ``scatter:excl``, see `placed`.
    """
    found = []
    for part in select.split("+"):
        first, *rest = part.split(":")
        count, each = (int(first), rest) if re.fullmatch(r"\d{1,9}", first) else (1, [first, *rest])
        resources, features = {"cores": 1}, set()
        for word in filter(None, each):
            name, is_value, value = word.partition("=")
            if not is_value or not name:
                raise ValueError(f"select={select[:40]} has {word[:40]!r}, which is no resource")
            if name in NOT_TAKEN or value.lower() == "false":
                continue
            if name == "mem":
                resources["memory"] = mebibytes_of_pbs(value)
            elif re.fullmatch(r"\d{1,12}", value):
                resources[NAMES.get(name, name)] = int(value)
            else:
                features.add(name if value.lower() == "true" else f"{name}={value}")
        found.append(Chunk(count, resources.pop("cores"), resources, frozenset(features)))
    return placed(found, place)


def placed(chunks: Sequence[Chunk], place: str) -> Request:
    """Return the chunks with the placement of a PBS ``place``; raise ValueError if it cannot be read.

    `place` is like ``scatter:excl``, at most one word of each kind. ``pack`` merges the chunks into one; ``exclhost``
    counts as ``excl``, ``vscatter`` as ``scatter``; ``group=`` is ignored.
    """
    wanted = {{"exclhost": "excl", "vscatter": "scatter"}.get(word, word) for word in place.split(":")}
    if strange := sorted(word for word in wanted - PLACE_WORDS if not word.startswith("group=")):
        raise ValueError(f"place={place[:40]} has {strange[0][:40]!r}")
    for several in (wanted & {"free", "pack", "scatter"}, wanted & {"excl", "shared"}):
        if len(several) > 1:  # PBS refuses it
            raise ValueError(f"place={place[:40]} has {' and '.join(sorted(several))}, of which a job has one")
    if "pack" in wanted and chunks:
        chunks = [_packed(chunks)]
    return tuple(replace(chunk, exclusive="excl" in wanted, scattered="scatter" in wanted) for chunk in chunks)


def _packed(chunks: Sequence[Chunk]) -> Chunk:
    """Merge chunks that must be on one node."""
    names = {name for chunk in chunks for name in dict(chunk.resources)}
    resources = {name: sum(chunk.count * chunk.amount(name) for chunk in chunks) for name in names}
    cores = sum(chunk.count * chunk.cores for chunk in chunks)
    return Chunk(1, cores, resources, frozenset().union(*(chunk.features for chunk in chunks)))


def mebibytes(text: str) -> int:
    """Read a size like 64gb or 512mb as MiB, rounded up; a bare number is MiB. Raises ValueError."""
    return int(text) if re.fullmatch(r"\d{1,12}", text) else mebibytes_of_pbs(text)


def mebibytes_of_pbs(text: str) -> int:
    """Read a size of PBS as MiB, rounded up; a bare number is bytes. Raises ValueError."""
    if (size := bytes_of_pbs(text)) is None:
        raise ValueError(f"mem={text[:40]} is no size")
    return -(-size // MIB)


def bytes_of_pbs(text: str) -> int | None:
    """Read a size of PBS as bytes: a bare number is bytes, a word (w) has eight. None if it is no size."""
    match = SIZE.fullmatch(text)
    if match is None:
        return None
    scale: int = 1024 ** " kmgtp".index(match[2].lower() or " ") * (8 if match[3].lower() == "w" else 1)
    return int(match[1]) * scale


def of_tres(tres: str, features: str = "") -> Request:
    """Read the TRES of a Slurm job, like ``cpu=32,mem=128G,node=2,gres/gpu=4``, as chunks, one for each node.

    A GPU of a type counts twice: as a GPU and as ``gpu:a100``, which `requests` looks up; so does any generic resource.
    Remainders of an uneven division go to the first nodes, as do `features` (read by `wanted_features`) that only some
    nodes need. Empty if the TRES name cores alone; raises ValueError if TRES or features cannot be read.
    """
    amounts: dict[str, int] = {}
    wanted = wanted_features(features)
    for name, value in (word.split("=", 1) for word in tres.split(",") if "=" in word):
        gres = name.removeprefix("gres/")
        if (gres == name and name not in ("cpu", "mem", "node")) or gres in USED_ALONE:
            continue
        match = TRES_SIZE.fullmatch(value)
        if match is None:
            raise ValueError(f"{name[:40]}={value[:40]} is no amount")
        scaled = (int(match[1]) + float(f"0.{match[2] or 0}")) * 1024 ** " KMGTP".index(match[3] or " ")
        own = {"gpu": "gpus"}.get(gres, NAMES.get(gres, gres))
        amounts[own] = -(-int(scaled) // MIB) if own == "memory" and match[3] else int(scaled)
    nodes, cores = max(1, amounts.pop("node", 1)), amounts.pop("cores", 0)
    of_types: Counter[str] = Counter()
    for name, amount in amounts.items():
        gres, is_type, _ = name.partition(":")
        of_types[{"gpu": "gpus"}.get(gres, gres)] += amount if is_type else 0
    amounts = {**+of_types, **{name: amount for name, amount in amounts.items() if amount}}
    of_node = [names for count, names in wanted.some for _ in range(count)]
    if len(of_node) > nodes:
        raise ValueError(f"features {features[:60]} of {len(of_node)} nodes, of which the job had {nodes}")
    if not (amounts or wanted.all or of_node) or not cores:
        return ()
    whole = {"memory": -(-amounts.pop("memory") // nodes)} if "memory" in amounts else {}
    of_node += [frozenset()] * (nodes - len(of_node))
    on_node = Counter(
        (_on(cores, nodes, node), tuple((name, _on(amount, nodes, node)) for name, amount in amounts.items()), names)
        for node, names in enumerate(of_node)
    )
    return tuple(
        Chunk(count, own, dict(rest) | whole, wanted.all | names) for (own, rest, names), count in on_node.items()
    )


def tres_of_gres(text: str) -> str:
    """Convert generic resources of older Slurm versions, like ``gpu:a100:2,fpga:1``, to TRES."""
    found: Counter[str] = Counter()
    for item in filter(None, re.sub(r"\([^)]*\)", "", text).split(",")):
        name, *rest = item.split(":")
        number = rest.pop() if rest and re.fullmatch("[0-9]{1,12}", rest[-1]) else "1"
        if re.fullmatch(r"[A-Za-z][\w-]*", name):
            found[":".join([f"gres/{name}", *rest[:1]])] += int(number)
    return ",".join(f"{name}={count}" for name, count in found.items())


def _on(amount: int, nodes: int, node: int) -> int:
    return amount // nodes + (node < amount % nodes)


@lru_cache(maxsize=4096)
def written(how: Callable[..., Request], *texts: str) -> tuple[str, bool]:
    """Read texts by `of_select` or `of_tres`; return the words of `wanted_chunks`, and whether they are readable."""
    try:
        found = how(*texts) if texts[0] else ()
    except ValueError:
        return "", False
    return wanted_chunks(found), True


def wanted_chunks(request: Request) -> str:
    """Write a request as `words` does; "" if it is only single cores, which fit on any nodes."""
    return words(request) if any(chunk != Chunk(chunk.count, 1) for chunk in request) else ""


def spread(cores: int, gpus: int, memory: int, features: Iterable[str]) -> Request:
    """Divide a job's total cores, GPUs and MiB into the smallest equal chunks: for logs that have totals only."""
    count = gcd(cores, gpus) if gpus else cores
    resources = {"gpus": gpus // count, "memory": -(-memory // count)}
    return (Chunk(count, cores // count, resources, frozenset(features)),)


def requests(texts: Texts, cores: Column, config: SiteConfig) -> tuple[Column, list[Request]]:
    """Return each job's request of a site's nodes, as an index into the distinct requests, and these.

    Resources that no node has are ignored, as a batch system ignores what it does not schedule; features are kept.
    A type, like ``gpu:a100``, is a feature unless the nodes count it; it is ignored if no node names a type.
    The index, shape (n,), is -1 for cores alone, and -2 if the chunks do not add up to the job's cores.
    """
    number = np.full(cores.size, -1, dtype=np.int64)
    known: dict[Request, int] = {}
    of: dict[tuple[str, int], int] = {}
    vocabulary = _Vocabulary(config)
    for row, key in enumerate(zip(texts, cores.tolist(), strict=True)):
        if "chunk:" not in key[0]:
            continue
        if key not in of:
            found = _of_cores(vocabulary.counted(read(key[0])), key[1])
            of[key] = known.setdefault(found, len(known)) if found else -2
        number[row] = of[key]
    return number, list(known)


def taken(number: Column, of_jobs: Sequence[Request], resource: str) -> Column:
    """Return the amount of a resource that each job takes, shape (n,); 0 for cores alone (-1 in `number`)."""
    return amounts(of_jobs, resource)[number]


class _Vocabulary:
    """Resources and types of a site's nodes by lower-case name, since Slurm's accounting changes the case."""

    def __init__(self, config: SiteConfig) -> None:
        self.amounts = {name.lower(): name for each in config.nodes for name, amount in each.amounts.items() if amount}
        self.types = {name.lower(): name for each in config.nodes for name in each.features if ":" in name}
        #: Resources of which the nodes name types.
        self.typed = {name.partition(":")[0] for name in (*self.amounts, *self.types) if ":" in name}

    def counted(self, request: Request) -> Request:
        """Return a request without the resources that the site does not count."""
        found = [self._chunk(chunk) for chunk in request]
        return tuple(chunk for chunk in found if chunk is not None)

    def _chunk(self, chunk: Chunk) -> Chunk | None:
        resources = {}
        features = {self.types.get(name.lower(), name) if ":" in name else name for name in chunk.features}
        for name, amount in dict(chunk.resources).items():
            if name.lower() in self.amounts:
                resources[self.amounts[name.lower()]] = amount
            elif amount and ":" in name and name.partition(":")[0].lower() in self.typed:
                features.add(self.types.get(name.lower(), name))
        if not (chunk.cores or resources):
            return None
        return replace(chunk, resources=resources, features=frozenset(features))


def _of_cores(request: Request, cores: int) -> Request:
    """Return chunks with the job's cores; a single kind of chunk is widened if the job had more cores than that."""
    total = sum(chunk.count * chunk.cores for chunk in request)
    if total == cores:
        return request
    if len(request) == 1 and cores > total and cores % request[0].count == 0:
        return (replace(request[0], cores=cores // request[0].count),)
    return ()


def with_kept_cores(
    request: Column, cores: Column, of_jobs: Sequence[Request], config: SiteConfig
) -> tuple[Column, list[Request]]:
    """Make jobs without GPUs demand the resource `KEPT`, if the site keeps cores for GPU jobs; else remove it.

    A job of cores alone becomes chunks of one core, unless it has more cores than any type of nodes. `request` and
    `cores`, shape (n,), are as in `Workload`; returns the new `request` and `of_jobs`.
    """
    found = [_kept(each, keeps=config.keeps_cores) for each in of_jobs]
    if not config.keeps_cores:
        return request, found
    widest = max(each.count * each.cores for each in config.nodes)
    alone = (request < 0) & (cores <= widest)
    sizes, number = np.unique(cores[alone], return_inverse=True)
    request = request.copy()
    request[alone] = len(found) + number
    return request, [*found, *((Chunk(size, 1, {KEPT: 1}),) for size in sizes.tolist())]


def _kept(request: Request, *, keeps: bool) -> Request:
    if keeps and not any(chunk.amount("gpus") for chunk in request):
        return tuple(replace(chunk, resources={**dict(chunk.resources), KEPT: chunk.cores}) for chunk in request)
    if not any(chunk.amount(KEPT) for chunk in request):
        return request
    return tuple(
        replace(chunk, resources={name: n for name, n in dict(chunk.resources).items() if name != KEPT})
        for chunk in request
    )


def without_place(
    number: Column,
    of_jobs: list[Request],
    cores: Column,
    queue: Column,
    system: System,
    owned: Sequence[Sequence[NodeType]] | None = None,
) -> Mask:
    """Mark jobs too large for the empty nodes of their queue, shape (n,); `owned` defaults to `system.owned_types`."""
    owned = system.owned_types if owned is None else owned
    kept = np.where(number < 0, -cores, number)
    pairs, of = np.unique(np.stack((queue, kept), axis=1), axis=0, return_inverse=True)
    never = np.zeros(len(pairs), dtype=np.bool_)
    for k, (q, which) in enumerate(pairs.tolist()):
        names = system.queues[q].node_types
        may_use = tuple(names is None or each.name in names for each in system.node_types)
        request = None if which < 0 else of_jobs[which]
        request = exclusively(request, -which) if system.queues[q].exclusive else request
        p = 0 if system.is_whole else q
        never[k] = not fits(system, owned[p], Demand(p, may_use, request, -which))
    return never[of.reshape(-1)]


def without_time(
    number: Column, of_jobs: list[Request], cores: Column, walltime: Column, queue: Column, config: SiteConfig
) -> Mask:
    """Mark jobs too long for the gaps between shortpools that also do not fit on the other nodes, shape (n,)."""
    out = np.zeros(cores.size, dtype=np.bool_)
    system = config.system()
    for kept, longest in shortpool_gaps_of_types(config):
        closed = np.array(closed_nodes(Window(0, 1, node_types=kept), system), dtype=np.int64)
        owned = system.owned_types
        edges = np.cumsum([0, *(each.nodes for its in owned for each in its)])
        lost = iter(np.diff(np.searchsorted(closed, edges)).tolist())
        left = [[replace(each, nodes=each.nodes - next(lost)) for each in its] for its in owned]
        out |= (walltime > longest) & without_place(number, of_jobs, cores, queue, system, left)
    return out


Clauses = frozenset[frozenset[str]]  #: a node has at least one feature of each clause

_TOKEN = re.compile(r"\s*([&,|()\[\]*]|[\w.:@/+-]+)")
MOST_CLAUSES = 16  #: clauses


class Features(NamedTuple):
    """Features that the nodes of a job must have."""

    all: frozenset[str]  #: of every node
    some: tuple[tuple[int, frozenset[str]], ...] = ()  #: of a number of nodes each


class _Term(NamedTuple):
    clauses: Clauses
    counted: tuple[tuple[int, Clauses], ...] = ()


def wanted_features(text: str) -> Features:
    """Read the --constraint of a Slurm job: ``a100|v100``, ``(a100|h100)&nvme``, ``[rack1*2&rack2*1]``.

    The result is a set of features that a node must all have; the feature ``a100|v100`` is satisfied by either (rule
    "chunks on nodes"). Raises ValueError if it is malformed, or no condition on single nodes.
    """
    words, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"features {text[:60]!r}")
        words.append(match[1])
        at = match.end()
    words.reverse()
    term = _alternatives(words) if words else _Term(frozenset())
    if words:
        raise ValueError(f"features {text[:60]!r}")
    return Features(_clauses(term.clauses), tuple((count, _clauses(clauses)) for count, clauses in term.counted))


def _clauses(clauses: Clauses) -> frozenset[str]:
    least = [each for each in clauses if not any(other < each for other in clauses)]
    if len(least) > MOST_CLAUSES:
        raise ValueError(f"features in more than {MOST_CLAUSES} alternatives")
    return frozenset("|".join(sorted(each)) for each in least)


def _alternatives(words: list[str]) -> _Term:
    """Read an expression of operators, from left to right."""
    term = _feature(words)
    while words and words[-1] in ("&", ",", "|"):
        operator, other = words.pop(), _feature(words)
        if operator != "|":
            term = _Term(term.clauses | other.clauses, (*term.counted, *other.counted))
        elif term.counted or other.counted:
            raise ValueError("numbers of nodes among alternatives of features")
        else:
            term = _Term(frozenset(one | two for one in term.clauses for two in other.clauses))
        if len(term.clauses) > MOST_CLAUSES**2:
            raise ValueError(f"features in more than {MOST_CLAUSES} alternatives")
    return term


def _feature(words: list[str]) -> _Term:
    """Read a feature or a bracketed expression, with its number of nodes."""
    word = words.pop() if words else ""
    if word in ("(", "["):
        term = _alternatives(words)
        if not words or words.pop() != {"(": ")", "[": "]"}[word]:
            raise ValueError("a bracket of features that is not closed")
    elif not word or word in "&,|)]*":
        raise ValueError("an operator of features without one")
    else:
        term = _Term(frozenset([frozenset([word])]))
    if words and words[-1] == "*":
        words.pop()
        count = words.pop() if words else ""
        if not re.fullmatch("[0-9]{1,6}", count) or term.counted or not int(count):
            raise ValueError("no number of nodes after the * of a feature")
        return _Term(frozenset(), ((int(count), term.clauses),))
    return term
