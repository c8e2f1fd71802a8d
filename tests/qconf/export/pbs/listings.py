"""Servers as sites have them: what ``print server`` prints, in a short form; and at random, with nodes and settings.

One number gives all of a random one, which is faster than to draw each attribute by itself.
"""

from random import Random

from hypothesis import strategies as st

from qconf.export import exporter
from qconf.export.nodes import Node
from qconf.export.pbs.server import Scheduler
from tests.qconf.export.sites import written

NAMES = ["workq", "small", "medium", "large", "long", "short", "debug", "gpu", "bigmem", "express", "R1", "q_2h", "a-b"]
CLOCKS = ["00:30:00", "01:00:00", "02:00:00", "12:00:00", "24:00:00", "72:00:00", "168:00:00", "30:00"]
SIZES = ["4gb", "100gb", "512mb", "263842748kb", "2tb"]
TRUTHS = ["True", "False"]
SCOPES = [
    *("o:PBS_ALL", "u:PBS_GENERIC", "u:alice", "u:bob", "g:PBS_GENERIC", "g:physics", "g:chem"),
    *("p:PBS_GENERIC", "p:ml"),
]
LISTED = ["alice", "bob", "+carol", "-dave", "+@.example.org"]
FORMULAS = [
    "queue_priority",
    "walltime",
    "-ncpus",
    "eligible_time * 2 + queue_priority * 1000",
    "(eligible_time + walltime) / max(walltime, 1)",
    "queue_priority * 32 - log(max(walltime, 1))",
    "fairshare_factor * 10 + ngpus",
    "1000 if queue_priority > 5 else eligible_time",
]
HOOK = ["create hook check_walltime", 'set hook check_walltime event = "queuejob,modifyjob"']
RESOURCES = [
    *("create resource Qlist", "set resource Qlist type = string_array", "set resource Qlist flag = h"),
    *("create resource gpunode", "set resource gpunode type = boolean", "set resource gpunode flag = h"),
    *("create resource scratch", "set resource scratch type = long", "set resource scratch flag = nh"),
]


def listing(queues, *server):
    """Return what ``print server`` prints of queues, and of the attributes of the server.

    Each line is of a queue, like ``small: max_run = [o:PBS_ALL=4]; Priority = 7``; it has jobs and takes and starts
    them where the line does not say otherwise.
    """
    lines = []
    for line in queues.strip().splitlines():
        name, _, text = line.partition(":")
        given = [each.strip() for each in text.split(";") if each.strip()]
        usual = ["queue_type = Execution", None, "enabled = True", "started = True"]
        own = {each.split()[0] for each in given}
        lines.append(f"create queue {name}")
        for each in usual:
            held = given if each is None else [] if each.split()[0] in own else [each]
            lines += [f"set queue {name} {attribute}" for attribute in held]
    return "\n".join([*lines, *(f"set server {each}" for each in server)]) + "\n"


def exported_for(folder, config, server=""):
    """Write an export into a folder, for a server that prints this; return the files."""
    (folder / "server").write_text(server)
    files = exporter("pbs").of(**({"current": folder / "server"} if server else {})).export(config).files
    written(folder, files)
    return files


class Site:
    """Draws one server."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.older = self.one_in(5)

    def one_in(self, chance):
        return self.random.randrange(chance) == 0

    def value(self, values):
        return self.random.randint(*values) if isinstance(values, tuple) else self.random.choice(values)

    def some(self, chance, **attributes):
        """Yield some of these attributes; ``__`` stands for the dot before a resource."""
        for key, values in attributes.items():
            if self.one_in(chance):
                yield f"{key.replace('__', '.')} = {self.value(values)}"

    def ranges(self):
        for end in ("min", "max"):
            often = 3 if end == "max" else 8
            yield from self.some(often, **{f"resources_{end}__ncpus": (1, 4000), f"resources_{end}__walltime": CLOCKS})
            rare = {"nodect": (1, 64), "mem": SIZES, "ngpus": (0, 8), "mppwidth": (1, 4000), "mpiprocs": (1, 99)}
            yield from self.some(8, **{f"resources_{end}__{name}": values for name, values in rare.items()})

    def defaults(self):
        place = ["free", "scatter", "excl", "scatter:excl", "pack"]
        held = {"walltime": CLOCKS, "ncpus": (1, 8), "mem": SIZES, "nodect": [1], "place": place}
        yield from self.some(5, **{f"resources_default__{name}": values for name, values in held.items()})

    def limits(self):
        if self.older:
            old = ("max_running", "max_user_run", "max_group_run", "max_user_res__ncpus", "max_queuable")
            yield from self.some(4, **dict.fromkeys(old, (1, 4000)))
            return
        for key in (
            "max_run",
            "max_run_res.ncpus",
            "max_queued",
            "max_run_soft",
            "max_run_res.ngpus",
            "max_run_res.mem",
        ):
            for scope in self.random.sample(SCOPES, self.random.randint(1, 3)) if self.one_in(5) else ():
                yield f"{key} = [{scope}={self.value(SIZES if key.endswith('mem') else (1, 4000))}]"

    def execution(self):
        yield "queue_type = Execution"
        yield from self.some(2, Priority=(-1024, 1023) if self.one_in(3) else (0, 200))
        yield from (*self.ranges(), *self.defaults(), *self.limits())
        for kind in ("user", "group", "host"):
            if self.one_in(6):
                yield f"acl_{kind}_enable = {self.value(TRUTHS)}"
                yield f'acl_{kind}s = "{",".join(self.random.sample(LISTED, self.random.randint(1, 4)))}"'
        yield from self.some(
            8,
            backfill_depth=(0, 200),
            from_route_only=TRUTHS,
            kill_delay=(1, 600),
            max_array_size=(1, 999),
            checkpoint_min=(1, 60),
            default_chunk__ncpus=(1, 8),
            default_chunk__mem=SIZES,
            default_chunk__Qlist=NAMES,
            default_chunk__gpunode=["True"],
            partition=["P1"],
            resources_available__ncpus=(1, 4000),
        )
        yield f"enabled = {self.value(['True', 'True', 'True', 'False'])}"
        yield f"started = {self.value(['True', 'True', 'False'])}"

    def route(self, names):
        yield "queue_type = Route"
        yield from self.ranges()
        yield from self.some(5, resources_default__walltime=CLOCKS, from_route_only=["True"], route_lifetime=[0, 3600])
        listed = self.random.sample(names, self.random.randint(1, len(names)))
        yield f'route_destinations = "{",".join(listed)}"'
        yield f"enabled = {self.value(['True', 'True', 'False'])}"
        yield f"started = {self.value(['True', 'True', 'False'])}"

    def server(self, names):
        yield from self.some(1 if len(names) > 2 else 2, default_queue=names)
        yield from self.some(3, job_sort_formula=[f'"{each}"' for each in FORMULAS])
        yield from self.some(
            3,
            scheduling=TRUTHS,
            eligible_time_enable=TRUTHS,
            backfill_depth=(0, 200),
            node_group_enable=["True"],
            node_group_key=["rack"],
            scheduler_iteration=(1, 900),
            log_events=(1, 2047),
            query_other_jobs=["True"],
            default_chunk__ncpus=[1],
            resources_available__nodes=(1, 999),
            max_array_size=(1, 9999),
            managers=["root@*"],
            acl_roots=["root"],
            flatuid=["True"],
        )
        yield from (*self.defaults(), *self.some(6, resources_max__walltime=CLOCKS), *self.limits())

    def printed(self):
        """Return what ``print server`` prints; the first queue at least takes jobs."""
        names = self.random.sample(NAMES, self.random.randint(1, 6))
        lines = list(RESOURCES)
        for name in names:
            held = list(self.route(names) if name != names[0] and self.one_in(4) else self.execution())
            if name == names[0]:
                shut = ("enabled", "from_route_only", "resources_m")
                held = [*(each for each in held if not each.startswith(shut)), "enabled = True"]
            lines += [f"create queue {name}", *(f"set queue {name} {each}" for each in held)]
        lines += [f"set server {each}" for each in self.server(names)]
        return "\n".join([*lines, *(HOOK if self.one_in(4) else [])]) + "\n"

    def nodes(self):
        """Return nodes as pbsnodes shows them: all alike, or of two types; some with a Qlist or a boolean."""
        found = []
        for prefix in self.value([["n"], ["n", "g"]]):
            cores, sharing = self.value([16, 64, 128]), self.value(["default_shared", "default_excl", "force_excl"])
            qlist = self.value(["", "", "small", "small,large", "gpu"])
            held = {"ncpus": str(cores), "mem": "263842748kb"} | ({"Qlist": qlist} if qlist else {})
            held |= {"ngpus": "4", "gpunode": "True"} if prefix == "g" else {}
            shown = {"exclusive": sharing != "default_shared", "resources": held, "sharing": sharing}
            found += [Node(f"{prefix}{i}", cores, qlist, **shown) for i in range(self.random.randint(1, 20))]
        return found

    def scheduler(self):
        """Return the settings of a scheduler."""
        values = {
            "by_queue": ["True", "False"],
            "round_robin": ["False", "True"],
            "strict_ordering": ["false", "True"],
            "fair_share": ["false", "true"],
            "help_starving_jobs": ["false", "true"],
            "preemptive_sched": ["true", "false"],
            "job_sort_key": ["walltime LOW", "ncpus HIGH", "cput LOW"],
            "half_life": ["24:00:00"],
            "fairshare_usage_res": ["cput", "ncpus*walltime", "(ncpus+20*ngpus)*walltime", "walltime*mem*.5", "cput+1"],
            "fairshare_decay_factor": ["0.99588268", ".5", "1"],
            "peer_queue": ["workq workq@other.example.org"],
            "resources": ["ncpus, mem, arch, host, vnode, ngpus, Qlist"],
            "node_sort_key": ["sort_priority HIGH"],
        }
        found = {name: self.value(options) for name, options in values.items() if self.one_in(2)}
        return Scheduler({name: {"prime": value, "non_prime": value} for name, value in found.items()})


def sites():
    """Draw servers."""
    return st.integers(0, 2**32 - 1).map(Site)
