"""Mutation tests: break the rules of the code one by one, and check that a test notices.

``python -m tests.mutations``
    Break each rule of the table in memory, without changing files, and print the test that notices: random cases of
    `tests/parsim/test_random.py` of the disciplines named in the rule's row, then the first of all disciplines; or the
    test file named there. Kernels run as plain Python. The last line counts the mutations that were noticed.

Arguments select rules by the beginning of their names.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from joblib import cpu_count

from tests.beside import ROOT


class Mutation(NamedTuple):
    """A rule, its file (without .py), a text in it, that text's replacement, and disciplines or tests that notice."""

    rule: str
    file: str
    before: str
    after: str
    noticed_by: str

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return str(ROOT / f"{self.file}.py")

    def broken(self) -> str:
        """Return the file's text with the rule broken; ValueError if `before` is not there exactly once."""
        text = Path(self.path).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            raise ValueError(f"{self.rule}: {self.file} has {self.before!r} {text.count(self.before)} times")
        return text.replace(self.before, self.after)


class Breaking(SourceFileLoader, MetaPathFinder):
    """Import hook that loads one module with a rule broken."""

    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation
        super().__init__(mutation.file.removesuffix("/__init__").replace("/", "."), mutation.path)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find only the mutated module."""
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        """Compile the mutated text."""
        return compile(self.mutation.broken(), self.path, "exec")


def notices(mutation: Mutation) -> str:
    """Break a rule in this process, and return the case or test that notices, "" if none does."""
    sys.meta_path.insert(0, Breaking(mutation))
    if mutation.file.startswith("parsim/"):
        from tests.interpreted import interpret

        interpret()
    if "/" in mutation.noticed_by:
        import pytest

        arguments = ["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not slow"]
        failed = pytest.main([*arguments, *mutation.noticed_by.split()]) == pytest.ExitCode.TESTS_FAILED
        return mutation.noticed_by if failed else ""
    from parsim.prepare import one_list, packing
    from tests import fuzz, generate, golden
    from tests.parsim.test_random import seeds

    for discipline in mutation.noticed_by.split():
        for seed in seeds(discipline):
            case = fuzz.case(discipline, seed)
            slow = case.reference()
            for looks, many in ((packing.LOOKS, one_list.MANY), (-1, 0)):
                packing.LOOKS, one_list.MANY, kept = looks, many, (packing.LOOKS, one_list.MANY)
                try:
                    right = fuzz.same(case.simulate(), slow)
                except (ArithmeticError, AssertionError, LookupError, RuntimeError, ValueError) as error:
                    return f"{discipline} {seed}: {error!r}"
                packing.LOOKS, one_list.MANY = kept
                if not right:
                    return f"{discipline} {seed}"
    known = json.loads(golden.FILE.read_text(encoding="utf-8"))["disciplines"]
    return next((name for name in generate.TESTED if golden.few(name) != known[name][0]), "")


def main() -> int:
    """Print a line per rule and a total; return 1 if a mutation is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("rules", nargs="*", metavar="RULE")
    given = parser.parse_args()
    chosen = [each for each in RULES if each.rule.startswith(tuple(given.rules or ("",)))]
    if given.here:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST, MOST))
        print(f"\n{notices(chosen[0])}")
        return 0

    def apart(mutation: Mutation) -> str:
        """Return the result of `notices` in a separate process."""
        mutation.broken()
        command = [sys.executable, "-m", "tests.mutations", "--here", mutation.rule]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if run.returncode:
            return "does not end" if run.returncode < 0 else f"fails: {run.stderr.strip().splitlines()[-1]}"
        return run.stdout.split("\n")[-2]

    caught = 0
    with ThreadPoolExecutor(cpu_count()) as pool:
        for mutation, by in zip(chosen, pool.map(apart, chosen), strict=True):
            caught += bool(by)
            print(f"{mutation.file}: {mutation.rule}: {by or 'NOT NOTICED'}", flush=True)
    print(f"{caught} of {len(chosen)} are noticed")
    return int(caught < len(chosen))


MOST = 150  #: seconds of processor time for one rule
ENGINE = "parsim/engine/"
RULES = [
    Mutation(rule, ("" if file.startswith(("parsim/", "qconf/")) else ENGINE) + file, before, after, noticed_by)
    for rule, file, before, after, noticed_by in (
        ("backfill may end at the shadow", "fast/easy", "w <= slack or c <= extra", "w < slack or c <= extra", "easy"),
        ("a long job takes of the extra cores", "fast/easy", "if w > slack:\n", "if w < 0:\n", "tests/test_naive.py"),
        ("a shorter queue mate ahead is the head job", "fast/easy", "elif rank[j] < waiting.rank[first]:",
         "elif False:",
         "alike single-orders"),
        ("a starving job goes ahead", "fast/easy", "rescan |= begin_starving(",
         "rescan = rescan or False and begin_starving(", "alike single-orders shared shared-all"),
        ("of equal ends all count for the shadow", "resources/running",
         "while i < end and (running.keys[i] >> bits) <= instant:",
         "while i < end and (running.keys[i] >> bits) < instant:", "shared-limits easy"),
        ("backfill past the shadow has the extra cores", "starts", "cores = min(cores, partition.extra)",
         "cores = min(cores, partition.free)", "shared-limits shared-all"),
        ("a start past the shadow takes of the extra cores", "starts", "partition.extra -= cores\n", "pass\n",
         "shared-limits shared-all"),
        ("a job is the head job after reserve_after", "visit",
         "and now - s.jobs[j].submit >= settings.reservation_delay",
         "and now - s.jobs[j].submit > settings.reservation_delay", "reserve-after reserve-after-all"),
        ("a first job that waits too long is passed by none", "visit",
         "return now - partition.first_since >= s.settings.reservation_delay", "return False", "nothing nothing-all"),
        ("a head job that is too wide for the list blocks none", "visit", "and waiting.cores[i] <= partition.cores\n",
         "and True\n", "hybrid-all hybrid-combined"),
        ("jobs of an instant come before its pass", "events", "s.jobs[arriving].submit <= now:",
         "s.jobs[arriving].submit < now:", "shared-limits"),
        ("all ends of an instant come before its pass", "events",
         "while progress.running > 0 and (s.ends[0] >> bits) == now:",
         "if progress.running > 0 and (s.ends[0] >> bits) == now:", "shared-limits"),
        ("a plan stands until something starts", "visit", "stands &= s.progress.running == running  # nothing started",
         "stands |= False", "tests/test_naive.py"),
        ("of one list the pool comes last", "events", "p = (turn + count - 1) % count if pool_first else turn",
         "p = count - 1 - turn", "hybrid-all partitioned-all"),
        ("starving jobs go first", "lists/waiting",
         "starving = queue.starvation < NEVER and job.submit + queue.starvation <= now", "starving = False",
         "shared-all shared-starvation"),
        ("a job starves from the instant on", "events", "if instant > now:", "if instant >= now:",
         "shared-starvation shared-all"),
        ("the longest go first by ljf", "lists/waiting", "np.float64(walltime) if kind == LJF",
         "-np.float64(walltime) if kind == LJF", "tests/test_naive.py"),
        ("wfp3 weighs cores", "lists/waiting", "np.float64(job.cores) / (w * w * w)", "1.0 / (w * w * w)",
         "shared-orders shared-all"),
        ("equal ratios go by submission", "order",
         "return comes_before(s, waiting.job[i], waiting.job[k])",
         "return comes_before(s, waiting.job[k], waiting.job[i])",
         "tests/test_naive.py"),
        ("the pool goes by factor", "lists/waiting", "return np.float64(queue.weight) / min(", "return 1.0 / min(",
         "hybrid-all hybrid-pool"),
        ("eligible time is not negative", "order", "eligible[i] = max(eligible[i], 0.0)", "eligible[i] = eligible[i]",
         "period period-limits active-all"),
        ("eligible time stands while a limit holds", "order",
         "eligible[i] -= np.float64(_held_for(s.held[waiting.job[begin + i]], now))", "pass",
         "formula-limits queues-formula-limits"),
        ("what is undefined is 0", "order", "waiting.value[begin + i] = 0.0 if math.isnan(v) else v",
         "waiting.value[begin + i] = v",
         "hybrid-formula period-hybrid preempt-formula fairshare-formula partitioned-all"),
        ("formulas are read by the period", "order",
         "calculated = np.float64(now - since_calculated(s.settings, now))", "calculated = np.float64(now)",
         "period period-limits"),
        ("on one list held time does not count", "fast/holding", "s.origin[j] += now - s.since[j]",
         "pass", "formula-limits reserve-after-formula-limits"),
        ("a limit of jobs", "gates/counters", "above = jobs > gate.max_run or", "above = jobs > gate.max_run + 1 or",
         "shared-limits"),
        ("a limit of cores", "gates/counters", "or amount > gate.max_run_amount or work", "or work", "shared-limits"),
        ("a limit of jobs of a user", "parsim/prepare/gates", '{"max_run": "max_user_run", ', "{", "shared-limits"),
        ("an unknown user has no limit", "parsim/prepare/gates", "np.where(user < 0, NO_GATE, user",
         "np.where(user < 0, workload.queue, user", "shared-limits shared-all"),
        ("a head job counts in its limits", "starts", "job.is_head_job = True\n        count_use(s, j, 1)",
         "job.is_head_job = True\n        count_use(s, j, 0)", "shared-limits shared-all"),
        ("a throttle of running jobs", "parsim/prepare/gates", "table[k][field] = limit", "table[k][field] = limit + 1",
         "throttled throttled-all"),
        ("a throttle of work", "gates/counters", "work = gate.ends - gate.running * now", "work = gate.ends",
         "throttled throttled-all"),
        ("a throttle of eligible jobs", "gates/counters", "gate.eligible >= gate.max_eligible",
         "gate.eligible > gate.max_eligible", "entering entering-all"),
        ("a throttle of queued jobs", "gates/counters", "gate.queued >= gate.max_queued",
         "gate.queued > gate.max_queued", "entering entering-all"),
        ("a QOS is exempt from a limit", "gates/counters",
         "return gates.exempt[j, column] if gates.exempt.size > 0 else np.uint8(0)", "return np.uint8(0)",
         "qos qos-all"),
        ("a quota", "parsim/prepare/gates", "= k, quota.amounts", "= k, 1", "needs:shared-limits needs:shared-all"),
        ("a quota changes", "gates/needs", "gates.each[change.gate].max_run_amount = change.most", "pass",
         "needs:shared-limits needs:shared-all"),
        ("a job waits for others", "gates/needs", "waits = needs.unmet[j] > 0", "waits = needs.unmet[j] > 1",
         "needs:shared-limits"),
        ("a job that waited for others starves later", "gates/needs", "starving = now + s.queues[job.queue].starvation",
         "starving = NEVER", "needs:shared-all needs:shared-starvation needs:hybrid-all"),
        ("the pool opens above the delay", "lists/homes", "seconds * numerator // denominator + 1, latest)",
         "seconds * numerator // denominator, latest)", "hybrid-all hybrid-pool"),
        ("a job too wide for its partition goes to the pool", "lists/homes", "if job.cores > partition_cores[home]:",
         "if job.cores >= partition_cores[home]:", "hybrid-all"),
        ("entry by moving leaves the partition", "events", "leave_list(s, job.home, j, now)\n        job.home = pool",
         "pass", "hybrid-move"),
        ("a combined job leaves the head job its cores", "starts", "if not alone and until > partition.shadow:",
         "if False:", "tests/test_naive.py"),
        ("a combined job takes of its own partition first", "starts", "n = min(partition.free, c - 1)",
         "n = min(partition.free, 1)", "hybrid-combined"),
        ("a reserved job takes shares in proportion", "plans/reservations",
         "if usable[p] and (best < 0 or idle[p] > idle[best]):",
         "if usable[p] and (best < 0 or idle[p] < idle[best]):", "reservations reservations-all"),
        ("a starving job keeps reservations off", "plans/reservations",
         "(first == NEVER or not comes_before(s, first, j))", "True",
         "reservations-starvation reservations-all"),
        ("a head job ends before a reservation or leaves its share", "starts", "partition.extra -= partition.share",
         "pass", "reservations reservations-all reservations-starvation"),
        ("each queue has a head job", "plans/queue_head_jobs",
         "return heads.begin[s.waiting.queue[i] if s.settings.single_list else 0] == NEVER",
         "return heads.count[0] == 0", "queues queues-all"),
        ("a node stays idle for head jobs of queues", "plans/queue_head_jobs",
         "if 0 < kept > idle_now(s, types, p, d) - heads.out[d]:", "if False:", "queues queues-all"),
        ("beside head jobs a job may use what is kept for it", "plans/queue_head_jobs",
         "if heads.exempt.shape[0] == 0:", "if True:", "shortpool-queues kept-queues"),
        ("so many head jobs by depth", "plans/queue_head_jobs", "return heads.count[0] < heads.depth",
         "return heads.count[0] + 1 < heads.depth", "tests/parsim/test_head_jobs.py"),
        ("limits are planned for top jobs", "gates/planned", "if is_above(gates.each[row], jobs, amount, work,",
         "if False and is_above(gates.each[row], jobs, amount, work,",
         "throttled-held-reserve held-reserve hybrid-held-reserve"),
        ("planned limits forget what has ended", "gates/planned", "if end <= moment:\n            break",
         "if end <= moment:\n            pass", "held-reserve hybrid-held-reserve"),
        ("top jobs keep off plans that begin later", "plans/promises", "if begin < other.begin < until:",
         "if begin < other.begin < begin:", "nodes nodes-all hybrid-nodes"),
        ("pivots go by submission", "parsim/planning/multiqueue",
         "while i > 0 and waiting[classes[order[i - 1]].first] > waiting[classes[k].first]:", "while False:",
         "multiqueue"),
        ("others delay no pivot", "parsim/planning/multiqueue", "if plan.free[k] < cores:\n            return 0",
         "if k == 0 and plan.free[k] < cores:\n            return 0", "multiqueue"),
        ("a job that ends early gives its time back", "parsim/planning/conservative", "elif early and waits > 0:",
         "elif False:",
         "planned"),
        ("a plan needs its cores for its whole walltime", "resources/profile",
         "while j < last and times[j] < end and free[j] >= need:", "while j < last and times[j] < end:",
         "planned multiqueue"),
        ("a window takes cores from its begin on", "resources/windows", "return window.known_from <= now < window.end",
         "return window.known_from < now < window.end", "state:queues state:queues-all"),
        ("a window whose end is not known ends early", "resources/windows",
         "size = change(profile, size, now, window.known_end, taken[k, 0])", "pass", "state:planned state:multiqueue"),
        ("use decays", "fairshare", "u = (used + np.float64(since)) * fair.factor", "u = used + np.float64(since)",
         "fairshare fairshare-all"),
        ("groups of users share", "fairshare", "u if d == depth - 1 else u + (effective - u) * node.part", "u",
         "fairshare fairshare-formula fairshare-all"),
        ("jobs of a pass do not count as active", "fairshare",
         "nodes[user].before if nodes[user].passed == now else nodes[user].jobs", "nodes[user].jobs",
         "tests/test_naive.py"),
        ("what is charged is rounded to parts", "parsim/prepare/charges",
         "return max(parts) if most else sum(parts, Fraction(0))", "return sum(parts, Fraction(0))",
         "tests/parsim/test_fairshare.py"),
        ("the lowest tier is preempted first", "preempt/victims", "return a < b\n    if s.start[i]",
         "return a > b\n    if s.start[i]", "preempt preempt-qos"),
        ("the last started is preempted first", "preempt/victims", "return s.start[i] > s.start[k]",
         "return s.start[i] < s.start[k]", "preempt"),
        ("no more are preempted than it takes", "preempt/victims", "if not starts or may_start(s, p, j, until):",
         "if not starts:", "preempt preempt-limits"),
        ("who keeps what was done runs the rest", "preempt/victims",
         "job.runtime -= ran\n        job.walltime -= ran", "pass",
         "preempt"),
        ("preempted jobs wait from the next second on", "preempt/preempting",
         "return preempting.progress.at + 1 if preempting.progress.at == now else NEVER", "return NEVER", "preempt"),
        ("a job takes all its resources of one type", "resources/node_types",
         "fits &= types.amounts[row, d] <= min(idle[d], left[d])",
         "fits &= d > 0 or types.amounts[row, d] <= min(idle[d], left[d])", "typed-all typed-alike typed-requests"),
        ("a long job leaves the head job its resources", "resources/node_types",
         "left if past else types.idle[p])\n    if row < 0:", "types.idle[p])\n    if row < 0:",
         "typed-all typed-requests"),
        ("scattered chunks are on different nodes", "resources/chunks", "most = min(most, np.int64(1))", "pass",
         "tests/parsim/test_node_types.py -k scattered"),
        ("a chunk alone on its node", "resources/chunks", "if unshared != UNSHARED and not given:", "if False:",
         "placed-alone"),
        # qconf
        ("waits may grow by the grace", "qconf/evaluation/guard_rails",
         "now > max(self.factor * then, then + self.grace, most)", "now > max(self.factor * then, most)",
         "tests/qconf/evaluation/test_holdout.py"),
        ("utilization may fall more in fewer days", "qconf/evaluation/guard_rails", "max(MONTH / days, 1.0)", "1.0",
         "tests/qconf/evaluation/test_holdout.py"),
        ("of equals the shortest longest waits", "qconf/recommend/ladder", "found.after.longest, other.name not in",
         "other.name not in", "tests/qconf/recommend/test_recommend.py -k equals"),
        ("the lowest rung from which none gains more", "qconf/recommend/ladder",
         "worthwhile(compare(higher, row), least_gain, ", "worthwhile(higher.bootstrap, least_gain, ",
         "tests/qconf/recommend/test_recommend.py -k rung"),
        ("a job stays in the queue that it names", "qconf/config/routing", "queue[jobs & (named == i)] = i", "pass",
         "tests/qconf/test_config.py -k stays"),
        ("hours and minutes alone are no duration", "qconf/config/durations", "if days and hours > 23:",
         "if days and hours > 99:", "tests/qconf/test_config.py -k duration"),
        ("a limit of seconds is rounded up to a minute", "qconf/export/slurm/queues", "-(-bound // 60) * 60 for bound",
         "bound // 60 * 60 for bound", "tests/qconf/export/slurm/test_scripts.py -k seconds"),
        ("limits of a queue are not those of all jobs", "qconf/export/slurm/queues",
         'return f"{name}-queue" if name.lower() == throttles.QOS else name', "return name",
         "tests/qconf/export/slurm/test_scripts.py -k normal"),
        ("the least walltime of a queue of PBS is inclusive", "qconf/export/pbs/queues", "format_clock(above + 1) if",
         "format_clock(above) if", "tests/qconf/export/pbs/test_routing.py -k no_queue"),
        ("priorities keep their ratios", "qconf/export/priorities", "if distinct[-1] / unit <= highest:",
         "if distinct[-1] / unit < 0:", "tests/qconf/export/test_priorities.py"),
        ("limits of what nodes have are read", "qconf/export/pbs/throttles", "if name in counted}", "if False}",
         "tests/qconf/export/pbs/test_types.py -k limits"),
        ("several kinds of GPUs of a node count apart", "qconf/export/slurm/types",
         'if kind and f"{name}:{kind}".lower() in apart:', "if False:",
         "tests/qconf/export/slurm/test_types.py -k several"),
        ("a requeued run that did not run is no load", "qconf/history/readers/sacct_runs",
         "kept = ~before | ((start[last] != UNKNOWN) & (end[last] > start[last]))", "kept = ~before | (last >= 0)",
         "tests/qconf/history/test_sacct.py"),
        ("the parts of a job have their cores together", "qconf/history/readers/sacct_runs", 'job["cores"].sum()',
         'job["cores"].max()', "tests/qconf/history/test_sacct.py"),
    )
]  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
