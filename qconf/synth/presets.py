"""Presets of generated months: a machine, its queues, and targets for each month."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from qconf.errors import InputError

HOUR = 3600
JANUARY = 6  # the position of January 2016


@dataclass(frozen=True)
class QueueModel:
    """Distributions of the jobs of one queue."""

    name: str
    nodes: dict[int, float]  #: the sizes that users favour, in whole nodes, and their relative weights
    any_nodes: tuple[int, int]  #: inclusive range of the other sizes
    odd: float  #: fraction of submissions whose size is not one of `nodes`
    walltimes: dict[int, float]  #: walltimes in seconds and their weights; the queue's maximum has most of it
    burst: float  #: mean number of jobs that a user submits in one go, all of one size and walltime
    sub_node: float = 0.0  #: fraction of submissions that request 8 cores, less than a node
    failed: float = 0.07  #: fraction of jobs that fail within minutes
    killed: float = 0.06  #: fraction of jobs that are killed at their walltime
    gap: float = 240.0  #: mean seconds between two submissions of a burst
    #: Cores, GPUs and GiB of a job on each of its nodes, with weights; if empty, jobs request cores only.
    of_node: dict[tuple[int, int, int], float] = field(default_factory=dict)


@dataclass(frozen=True)
class MonthProfile:
    """Targets of one month, each tuple in the order of the preset's queues."""

    jobs: tuple[int, ...]  #: jobs submitted, hit exactly
    load: float  #: offered load: submitted core-seconds / (cores of the machine * length of the month)
    shares: tuple[float, ...]  #: core-seconds of each queue, relative to their sum


@dataclass(frozen=True)
class Preset:
    """A machine and the months of its users."""

    name: str
    cores: int
    cores_per_node: int
    first: tuple[int, int]
    queues: tuple[QueueModel, ...]
    months: tuple[MonthProfile, ...]
    users: int

    def profile(self, index: int) -> MonthProfile:
        """Return the targets of month `index`; after the last profile the first follows again."""
        return self.months[index % len(self.months)]


# Counts per month and queue: Kondameedi and Vadhiyar, CCGrid 2017, Table II. The paper gives CPU hours in
# words: 57, 22 and 21 % of the partitions made of Dec'15 are medium's, small's and small72's; medium drops in
# Jan'16 (IV.B.1); Nov'15 to Dec'15 and Jan'16 to Feb'16 change much (IV.A). The rest is our choice around that.
CRAY_XC40 = Preset(
    name="cray-xc40",
    cores=35232,
    cores_per_node=24,
    first=(2015, 7),
    queues=(
        QueueModel(
            "idqueue",
            nodes={1: 0.36, 2: 0.22, 4: 0.25, 8: 0.17},
            any_nodes=(1, 10),
            odd=0.12,
            walltimes={2 * HOUR: 0.78, HOUR: 0.12, HOUR // 2: 0.06, HOUR // 4: 0.04},
            burst=4.0,
            sub_node=0.12,
        ),
        # Walltimes above 2 h and sizes up to 1032 cores: no job of small could as well be one of idqueue.
        QueueModel(
            "small",
            nodes={1: 0.07, 2: 0.06, 4: 0.10, 8: 0.18, 16: 0.29, 32: 0.30},
            any_nodes=(3, 43),
            odd=0.15,
            walltimes={24 * HOUR: 0.80, 12 * HOUR: 0.12, 6 * HOUR: 0.05, 3 * HOUR: 0.03},
            burst=2.5,
        ),
        QueueModel(
            "small72",
            nodes={4: 0.08, 8: 0.16, 16: 0.32, 32: 0.44},
            any_nodes=(3, 43),
            odd=0.15,
            walltimes={72 * HOUR: 0.84, 48 * HOUR: 0.12, 36 * HOUR: 0.04},
            burst=1.6,
        ),
        QueueModel(
            "medium",
            nodes={64: 0.44, 128: 0.34, 256: 0.22},
            any_nodes=(44, 342),
            odd=0.18,
            walltimes={24 * HOUR: 0.82, 12 * HOUR: 0.12, 6 * HOUR: 0.06},
            burst=1.8,
        ),
        QueueModel(
            "large",
            nodes={512: 1.0},
            any_nodes=(343, 950),
            odd=0.30,
            walltimes={24 * HOUR: 0.80, 12 * HOUR: 0.20},
            burst=1.2,
            failed=0.0,  # few and reserved in advance: one that runs to its limit would miss a month's target
            killed=0.0,
        ),
    ),
    months=(
        MonthProfile((3013, 1066, 238, 324, 19), 0.70, (0.4, 21.0, 16.2, 58.6, 3.8)),
        MonthProfile((4205, 1171, 245, 1101, 13), 0.90, (0.4, 15.3, 11.2, 71.1, 2.0)),
        MonthProfile((4161, 978, 207, 454, 10), 0.79, (0.5, 17.0, 14.0, 66.6, 1.9)),
        MonthProfile((2917, 1441, 244, 640, 19), 0.86, (0.3, 17.5, 13.0, 66.2, 3.0)),
        MonthProfile((2996, 1122, 290, 454, 13), 0.84, (0.3, 16.5, 14.0, 67.0, 2.2)),
        MonthProfile((2162, 943, 179, 332, 4), 0.68, (0.3, 21.8, 20.7, 56.5, 0.7)),
        MonthProfile((2938, 844, 191, 352, 2), 0.62, (0.4, 25.6, 23.6, 50.0, 0.4)),
        MonthProfile((5198, 1410, 233, 433, 8), 0.82, (0.6, 19.0, 16.0, 62.8, 1.6)),
        MonthProfile((6449, 1588, 216, 503, 3), 0.87, (0.7, 18.5, 13.5, 66.8, 0.5)),
    ),
    users=180,
)

# The same with the fall of medium in January 2016 as drastic as the paper tells it (section IV.B): by nearly half, when
# the other queues have as much as the partitions that December's hours give them can do.
CRAY_XC40_FALL = replace(
    CRAY_XC40,
    name="cray-xc40-fall",
    months=(
        *CRAY_XC40.months[:JANUARY],
        replace(CRAY_XC40.months[JANUARY], load=0.58, shares=(0.4, 34.5, 29.0, 35.7, 0.4)),
        *CRAY_XC40.months[JANUARY + 1 :],
    ),
)

# Months as large as those of the three logs of the Parallel Workloads Archive that take longest to simulate. Machine,
# jobs and queues are those logs'; sizes, walltimes and bursts are our choice: scripts submit hundreds or thousands of
# identical jobs, so that a queue of ten thousand has but tens of shapes.
RICC = Preset(
    name="ricc",
    cores=8192,
    cores_per_node=1,
    first=(2010, 8),
    queues=(
        QueueModel(
            "batch",
            nodes={1: 0.45, 2: 0.05, 4: 0.10, 8: 0.22, 16: 0.08, 32: 0.06, 64: 0.04},
            any_nodes=(1, 64),
            odd=0.02,
            walltimes={HOUR: 0.15, 4 * HOUR: 0.20, 12 * HOUR: 0.15, 24 * HOUR: 0.25, 72 * HOUR: 0.25},
            burst=700.0,
            gap=1.0,
        ),
        QueueModel(
            "wide",
            nodes={128: 0.5, 256: 0.3, 512: 0.15, 1024: 0.05},
            any_nodes=(65, 1024),
            odd=0.05,
            walltimes={4 * HOUR: 0.3, 24 * HOUR: 0.5, 72 * HOUR: 0.2},
            burst=4.0,
        ),
    ),
    months=(MonthProfile((129_000, 1_000), 0.95, (70.0, 30.0)),),
    users=170,
)
_CURIE = QueueModel(
    "batch",
    nodes={1: 0.10, 16: 0.15, 32: 0.20, 64: 0.15, 128: 0.12, 256: 0.10, 512: 0.08, 1024: 0.06, 2048: 0.04},
    any_nodes=(1, 8192),
    odd=0.10,
    walltimes={HOUR // 2: 0.2, 2 * HOUR: 0.2, 12 * HOUR: 0.2, 24 * HOUR: 0.4},
    burst=30.0,
    gap=2.0,
)
CURIE = Preset(
    name="curie",
    cores=93_312,
    cores_per_node=1,
    first=(2012, 6),
    queues=(_CURIE,),
    months=(MonthProfile((38_000,), 0.95, (100.0,)),),
    users=300,
)
CURIE_4 = Preset(
    name="curie-4",
    cores=CURIE.cores,
    cores_per_node=1,
    first=CURIE.first,
    queues=(
        replace(_CURIE, name="short", nodes={1: 0.5, 16: 0.5}, any_nodes=(1, 31), walltimes={HOUR // 2: 1.0}),
        replace(_CURIE, name="normal", nodes={32: 0.5, 64: 0.5}, any_nodes=(32, 127), walltimes={12 * HOUR: 1.0}),
        replace(_CURIE, name="large", nodes={128: 0.5, 256: 0.5}, any_nodes=(128, 1023), burst=10.0),
        replace(_CURIE, name="huge", nodes={1024: 0.6, 2048: 0.4}, any_nodes=(1024, 8192), burst=3.0),
    ),
    months=(MonthProfile((12_000, 10_000, 13_000, 3_000), 0.95, (0.03, 4.0, 40.0, 56.0)),),
    users=300,
)
#: Of Metacentrum's queues: longest walltime in hours, share of the jobs, share of the core-seconds.
_METACENTRUM = {2: (0.30, 1.5), 4: (0.15, 1.5), 8: (0.10, 2.0), 12: (0.08, 3.0), 24: (0.15, 15.0), 48: (0.08, 18.0)}
_METACENTRUM |= {96: (0.06, 22.0), 168: (0.05, 22.0), 336: (0.02, 18.0), 720: (0.01, 16.0)}
METACENTRUM = Preset(
    name="metacentrum",
    cores=806,
    cores_per_node=1,
    first=(2009, 1),
    queues=tuple(
        QueueModel(
            f"q{hours}",
            nodes={1: 0.55, 2: 0.1, 4: 0.15, 8: 0.15, 16: 0.05},
            any_nodes=(1, 32),
            odd=0.05,
            walltimes={hours * HOUR: 1.0},
            burst=40.0,
            gap=2.0,
        )
        for hours in _METACENTRUM
    ),
    months=(
        MonthProfile(
            tuple(round(24_000 * jobs) for jobs, _ in _METACENTRUM.values()),
            0.9,
            tuple(work for _, work in _METACENTRUM.values()),
        ),
    ),
    users=140,
)

# A cluster as many universities have it, with nodes of three types: 60 for plain jobs (32 cores, 192 GiB), 16 with four
# GPUs (32 cores, 512 GiB), 4 with 2 TiB (32 cores). Loads by type: 83 % of the cores of the first, 80 % of the GPUs,
# half of the large nodes. The rest is our choice.
MIXED = Preset(
    name="mixed",
    cores=2560,
    cores_per_node=32,
    first=(2026, 1),
    queues=(
        QueueModel(
            "cpu",
            nodes={1: 0.45, 2: 0.20, 4: 0.20, 8: 0.10, 16: 0.05},
            any_nodes=(1, 24),
            odd=0.10,
            walltimes={HOUR: 0.2, 8 * HOUR: 0.3, 24 * HOUR: 0.35, 48 * HOUR: 0.15},
            burst=4.0,
            of_node={(32, 0, 64): 0.5, (16, 0, 64): 0.2, (4, 0, 16): 0.2, (32, 0, 180): 0.1},
        ),
        QueueModel(
            "gpu",
            nodes={1: 0.75, 2: 0.15, 4: 0.10},
            any_nodes=(1, 8),
            odd=0.05,
            walltimes={2 * HOUR: 0.2, 12 * HOUR: 0.3, 24 * HOUR: 0.35, 48 * HOUR: 0.15},
            burst=3.0,
            of_node={(8, 1, 64): 0.55, (16, 2, 128): 0.2, (32, 4, 400): 0.15, (4, 1, 32): 0.1},
        ),
        QueueModel(
            "bigmem",
            nodes={1: 1.0},
            any_nodes=(1, 2),
            odd=0.05,
            walltimes={8 * HOUR: 0.3, 24 * HOUR: 0.5, 48 * HOUR: 0.2},
            burst=1.5,
            of_node={(16, 0, 1000): 0.5, (8, 0, 700): 0.3, (32, 0, 1800): 0.2},
        ),
    ),
    months=(MonthProfile((2600, 1500, 150), 0.79, (62.0, 15.0, 2.0)),),
    users=120,
)

PRESETS = {each.name: each for each in (CRAY_XC40, CRAY_XC40_FALL, RICC, CURIE, CURIE_4, METACENTRUM, MIXED)}


def preset_named(name: str) -> Preset:
    """Look a preset up; `InputError` if there is none of this name."""
    if name not in PRESETS:
        raise InputError("no such preset", field="preset", value=name, fix=f"use one of {', '.join(PRESETS)}")
    return PRESETS[name]
