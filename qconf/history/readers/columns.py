"""Map the columns of a table to ours, by our names, synonyms of other programs, a known trace, or options."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from qconf.config.problems import did_you_mean
from qconf.errors import InputError
from qconf.history.readers.sources import Source
from qconf.history.records import FIELDS, TIMES


@dataclass(frozen=True)
class Preset:
    """The columns of one kind of table; a table with all of `columns` and `also` is of this kind."""

    columns: Mapping[str, str]  #: the table's name by ours
    units: Mapping[str, str] = field(default_factory=dict)  #: units other than seconds and MiB
    states: Mapping[str, str] = field(default_factory=dict)  #: our state by the table's
    also: tuple[str, ...] = ()  #: other columns that identify the kind
    optional: Mapping[str, str] = field(default_factory=dict)  #: columns that may be absent


#: Job states by their number in Slurm's database.
SLURM_STATES = dict(
    enumerate((
        *("pending", "running", "suspended", "completed", "cancelled", "failed", "timeout", "node_fail", "preempted"),
        *("boot_fail", "deadline", "out_of_memory"),
    ))
)  # fmt: skip

PRESETS = {
    # The job table of Slurm's database, as slurmdbd has it: the MIT Supercloud's trace is one.
    "supercloud": Preset(
        {"job_id": "id_job", "user": "id_user", "submit": "time_submit", "start": "time_start", "end": "time_end",
         "walltime": "timelimit", "cores": "cpus_req", "queue": "partition", "state": "state", "tres": "tres_alloc"},
        units={"walltime": "min"},
        states={str(number): name for number, name in SLURM_STATES.items()},
        optional={"suspended": "time_suspended", "group": "account"},
    ),
    # NREL, Eagle and its successors.
    "eagle": Preset(
        {"job_id": "job_id", "user": "user", "group": "account", "state": "state", "queue": "partition", "qos": "qos",
         "submit": "submit_time", "start": "start_time", "end": "end_time", "runtime": "run_time",
         "walltime": "wallclock_req", "cores": "processors_req"},
        also=("nodes_req",),
        optional={"gpus": "gpus_req"},
    ),
    # F-DATA of Fugaku.
    "fdata": Preset(
        {"job_id": "jid", "user": "usr", "cores": "cnumat", "submit": "adt", "start": "sdt", "end": "edt",
         "walltime": "elpl", "runtime": "duration"},
        also=("qdt", "nnumr"),
    ),
    # Helios of SenseTime; its column `queue` is the wait of a job.
    "helios": Preset(
        {"job_id": "job_id", "user": "user", "queue": "vc", "gpus": "gpu_num", "cores": "cpu_num", "state": "state",
         "submit": "submit_time", "start": "start_time", "end": "end_time", "runtime": "duration"},
        also=("node_num", "queue"),
    ),
    # PM100 of CINECA's Marconi100.
    "pm100": Preset(
        {"job_id": "job_id", "user": "user_id", "group": "group_id", "qos": "qos", "queue": "partition",
         "submit": "submit_time", "start": "start_time", "end": "end_time", "runtime": "run_time",
         "walltime": "time_limit", "cores": "num_cores_alloc", "gpus": "num_gpus_alloc", "memory": "mem_alloc",
         "state": "job_state"},
        units={"walltime": "min", "memory": "gb"},
        also=("num_nodes_alloc",),
    ),
}  # fmt: skip


REQUIRED = ("job_id", "submit", "runtime", "walltime", "cores", "queue")
DURATIONS = ("runtime", "walltime", "suspended", "wait")
NODES = ("nodes", "cores_per_node")
#: Columns of a job's node request, beside its cores.
CHUNKS = ("chunks", "gpus", "memory", "node_type", "place")
#: Columns from which a missing required one is computed.
INSTEAD = {"runtime": (("start", "end"),), "cores": (("nodes",), ("tres",))}
KNOWN = (*FIELDS, *NODES, *CHUNKS, "tres", "suspended", "wait")
#: Other programs' names for our columns, without blanks and underscores; used only if our own name is absent.
SYNONYMS = {
    "job_id": "jobid id job jid jobidraw jobnumber idjob jobno jobnum localjobid",
    "submit": "submittime submitted submission submissiontime submittimestamp submitdate timesubmit submitat "
    "submittedat submittimets submittedtime queuedtimestamp queuedtime queuedat createdat creationtime created ctime "
    "qdate",
    "start": "starttime started timestart startedat starttimestamp begin begintime startdate "
    "starttimets dispatchtime startingtime",
    "end": "endtime ended timeend endedat endtimestamp finish finished finishtime finishedat completed completiontime "
    "completedat enddate endtimets",
    "runtime": "elapsed elapsedtime elapsedraw duration runduration walltimeused usedwalltime actualruntime "
    "wallclockused timeused usedtime resourcesusedwalltime executiontime wallduration wallclocktime",
    "walltime": "requestedwalltime walltimerequested walltimereq reqwalltime requestedtime reqtime estimate timelimit "
    "timelimitraw wallclockreq wallclocklimit wallclockrequested requestedwallclock walltimelimit maxwalltime "
    "timerequested timereq limit resourcelistwalltime requestedruntime elapsedlimit runlimit hrt",
    "cores": "procs processors nproc ncpus cpus ncores numcores numcpus corecount cpucount alloccpus cpusalloc "
    "numcoresalloc coresalloc allocatedcores coresused numprocs nprocs slots allocatedprocessors processorsreq "
    "reqcpus cpusreq numcoresreq coresrequested requestedcores requestedprocessors resourcelistncpus cpunum "
    "requestednumberofresources processorcount totalcpus totalcores",
    "queue": "partition queuename partitionname queueid vc",
    "user": "userid username iduser usr owner euser systemusername uid",
    "state": "status jobstate jobstatus",
    "group": "account groupid groupname project projectname gid",
    "qos": "qosname",
    "suspended": "timesuspended suspendedtime",
    "wait": "waittime waitingtime waited timewaited queuewait queuewaittime",
    "tres": "tresalloc alloctres",
    "gpus": "ngpus numgpus gpusalloc gpusreq gpunum numgpusalloc gpucount allocgpus",
    "memory": "mem memreq memoryreq reqmem memalloc requestedmemory",
    "node_type": "nodetype",
}
#: The same for columns that are only read if there is no column of cores.
OF_NODES = {
    "nodes": "nnodes nodecount numnodes nodesreq nodesalloc allocnodes numnodesalloc nodesused nodenum numnodesreq",
    "cores_per_node": "cpuspernode coresperhost",
}
#: Units in seconds or MiB; `excel` means Excel's days, `hh:mm` and `mm:ss` the meaning of two numbers.
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
SIZES = {"b": 2.0**-20, "kb": 2.0**-10, "mb": 1.0, "gb": 2.0**10, "tb": 2.0**20}
EXCEL, CLOCKS = "excel", {"hh:mm": 3600, "mm:ss": 60}
#: Other words for units.
WORDS = {
    "s": "sec secs second seconds",
    "min": "m mins minute minutes",
    "h": "hr hrs hour hours",
    "d": "day days",
    "ms": "millis millisecond milliseconds",
    "us": "microsecond microseconds",
    "ns": "nanosecond nanoseconds",
    "kb": "k kib",
    "mb": "m mib",
    "gb": "g gib",
    "tb": "t tib",
    "b": "byte bytes",
}
#: Names of columns that have a unit of their own.
OWN_UNITS = {"timelimitraw": "min"}


@dataclass(frozen=True)
class Columns:
    """Positions and units of our columns in a table, by our name."""

    at: Mapping[str, int]
    names: Sequence[str]  #: all column names of the table
    units: Mapping[str, str] = field(default_factory=dict)
    preset: Preset | None = None

    def unused(self, name: str) -> list[str]:
        """Return the table's columns that are not read, but have another program's name of our column `name`."""
        words, used = SYNONYMS[name].split(), self.at.values()
        return [given for i, given in enumerate(self.names) if i not in used and plain(given) in words]

    def scale(self, name: str) -> float:
        """Return the factor that converts a column's numbers to seconds or MiB; 1 without a unit."""
        return units_of(name).get(self.units.get(name, ""), 1.0)


def units_of(name: str) -> dict[str, float]:
    """Return the possible units of our column `name`, with their factors; empty if it has none."""
    if name in (*DURATIONS, *TIMES):
        return SECONDS
    return SIZES if name == "memory" else {}


def unit(name: str, word: str) -> str:
    """Return the canonical unit that a word means for a column, else ""."""
    word = word.lower()
    return next((each for each in _known_units(name) if word in (each, *WORDS.get(each, "").split())), "")


def _known_units(name: str) -> list[str]:
    return [*units_of(name), *((EXCEL,) if name in TIMES else CLOCKS if name in DURATIONS else ())]


def check(columns: Mapping[str, str], units: Mapping[str, str]) -> None:
    """Raise `InputError` for unknown columns, presets or units in the options."""
    for name in (*columns, *units):
        if name not in KNOWN and not (name == "preset" and name in columns):
            fix = f"name one of {', '.join(KNOWN)}"
            raise InputError(f"is none of our columns{did_you_mean(name, KNOWN)}", field="column", value=name, fix=fix)
    if columns.get("preset", "") not in ("", *PRESETS):
        message = f"is no known kind of table{did_you_mean(columns['preset'], PRESETS)}"
        fix = f"name one of {', '.join(PRESETS)}, or columns like walltime=time_limit,cores=num_cores"
        raise InputError(message, field="--columns", value=columns["preset"], fix=fix)
    for name, word in units.items():
        if not unit(name, word):
            known = ", ".join(_known_units(name))
            fix = f"write one of {known}" if known else "leave it out: it has none"
            raise InputError(f"is no unit of {name}", field="--units", value=word, fix=fix)


def plain(name: str) -> str:
    """Normalise a name for comparison: ``Submit Time``, ``submit_time`` and ``SubmitTime`` are equal."""
    return re.sub(r"[\W_]+", "", name.lower())


def _stem(name: str, of: str) -> tuple[str, str]:
    """Split off a unit at the end of a name, like ``WALLTIME_SECONDS`` or ``Elapsed (h)``; return stem and unit."""
    words = re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name))
    found = unit(of, words[-1]) if len(words) > 1 else ""
    return ("".join(words[:-1]).lower(), found) if found else (plain(name), "")


def looks_like_jobs(names: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Whether a header may be that of a table of jobs: a known trace, or two known columns."""
    if any(_fits(preset, names) for preset in PRESETS.values()):
        return True
    given = {plain(name) for name in names if name.strip()}
    known = {plain(name) for name in chain(FIELDS, NODES, columns.values())}
    known |= set(" ".join([*SYNONYMS.values(), *OF_NODES.values()]).split())
    stems = {stem for name in names for of in ("runtime", "memory") for stem in _stem(name, of)[:1]}
    return len((given | stems) & known) >= 2


def resolve(
    names: Sequence[str], columns: Mapping[str, str], units: Mapping[str, str], source: Source, line: int = 1
) -> Columns:
    """Map a table's columns to ours. Raises `InputError` if a required column is missing, or a name is there twice."""
    names = [name.strip() for name in names]
    wanted = {name: given for name, given in columns.items() if name != "preset"}
    at = {name: _given(names, name, given, source, line) for name, given in wanted.items() if given}
    found = dict(units)
    preset = _preset(names, columns.get("preset", ""), source, line)
    if preset is None:
        _guess(names, at, found, wanted, source, line)
    else:
        of_preset = {**preset.columns, **{name: each for name, each in preset.optional.items() if each in names}}
        at = {name: names.index(each) for name, each in of_preset.items() if name not in wanted} | at
        for name, word in preset.units.items():
            if name not in wanted:
                found.setdefault(name, word)
    computed = {name for name, ways in INSTEAD.items() if any({*others} <= {*at} for others in ways)}
    missing = [name for name in REQUIRED if name not in {*at, *wanted, *computed}]
    if missing and preset is None:
        raise _missing(missing, names, at, source, line)
    return Columns(at, names, {name: unit(name, word) for name, word in found.items()}, preset)


def _fits(preset: Preset, names: Sequence[str]) -> bool:
    return {*preset.columns.values(), *preset.also} <= {name.strip() for name in names}


def _preset(names: Sequence[str], wanted: str, source: Source, line: int) -> Preset | None:
    """Return the named preset, else the largest one whose columns are all present, else None."""
    if not wanted:
        fitting = [preset for preset in PRESETS.values() if _fits(preset, names)]
        return max(fitting, key=lambda each: len(each.columns) + len(each.also), default=None)
    lacks = [name for name in PRESETS[wanted].columns.values() if name not in names]
    if lacks:
        fix = f"leave out --columns {wanted}, or name the columns like walltime=time_limit"
        raise source.error(f"is no table of {wanted}: no column {', '.join(lacks)}", fix, line=line)
    return PRESETS[wanted]


def _given(names: Sequence[str], name: str, given: str, source: Source, line: int) -> int:
    exact = [i for i, each in enumerate(names) if each == given]
    alike = exact or [i for i, each in enumerate(names) if plain(each) == plain(given)]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise source.error("two columns of this name", "keep one", line=line, field="column", value=given)
    near = difflib.get_close_matches(given, names, n=1)
    message = f"no column {given!r} among {', '.join(filter(None, names))}" + (f": is it {near[0]!r}?" if near else "")
    raise source.error(message, f"correct --columns {name}=...", line=line)


def _guess(
    names: Sequence[str],
    at: dict[str, int],
    units: dict[str, str],
    wanted: Mapping[str, str],
    source: Source,
    line: int,
) -> None:
    """Add to `at` the columns with our name or a synonym, and to `units` their units."""
    taken = set(at.values())
    own = Counter(plain(name) for i, name in enumerate(names) if name and i not in taken)
    for field_ in KNOWN:
        if field_ in wanted:
            continue
        if (field_ in OF_NODES and "cores" in at) or (field_ == "wait" and "start" in at):
            continue
        words = [plain(field_), *SYNONYMS.get(field_, OF_NODES.get(field_, "")).split()]
        for rank in words:
            for i, name in enumerate(names):
                stem, of_name = (plain(name), "") if plain(name) == rank else _stem(name, field_)
                if i in taken or stem != rank:
                    continue
                if own[plain(name)] > 1:
                    raise source.error("two columns of this name", "keep one", line=line, field="column", value=name)
                at[field_] = i
                taken.add(i)
                if of_name := of_name or OWN_UNITS.get(rank, ""):
                    units.setdefault(field_, of_name)
                break
            if field_ in at:
                break


def _missing(
    missing: Sequence[str], names: Sequence[str], at: Mapping[str, int], source: Source, line: int
) -> InputError:
    message = f"no column {', '.join(missing)} among {', '.join(filter(None, names)) or 'nothing'}"
    left = [name for i, name in enumerate(names) if name and i not in at.values()]
    guesses = {name: near for name in missing if (near := _near(name, left))}
    if guesses:
        message += "".join(f": is {name} {near!r}?" for name, near in guesses.items())
    example = next(iter(guesses.items()), (missing[0], "NAME"))
    quoted = f"'{example[0]}={example[1]}'" if re.search(r"\W", example[1]) else f"{example[0]}={example[1]}"
    fix = (
        f"say which it is, like --columns {quoted}, or --columns {missing[0]}= where the table has none; a header of "
        f"{','.join(REQUIRED)} needs no option; start and end do for runtime, nodes for cores"
    )
    return source.error(message, fix, line=line)


def _near(name: str, left: Sequence[str]) -> str:
    """Return the column name most similar to one of ours, "" if none is similar."""
    words = [plain(name), *SYNONYMS.get(name, "").split()]
    scores = {given: max(difflib.SequenceMatcher(None, plain(given), word).ratio() for word in words) for given in left}
    best = max(scores, key=scores.__getitem__, default="")
    return best if best and scores[best] >= 0.7 else ""
