"""parsim simulates batch queues: when would each job of a log have started on this machine, with these queues.

>>> import parsim
>>> workload = parsim.Workload(submit=[0, 1, 2], cores=[4, 4, 1], runtime=[50, 50, 9], walltime=[60, 60, 10])
>>> parsim.simulate(workload, parsim.System.single(cores=5)).start.tolist()
[0, 50, 2]
"""

from parsim import metrics, verify
from parsim.explain import Reason, explain
from parsim.model.fairshare import Fairshare, Share
from parsim.model.needs import Quota
from parsim.model.node_types import Chunk, NodeType
from parsim.model.qos import QOS
from parsim.model.schedule import Interruptions, Schedule
from parsim.model.state import UNSTARTED, State, Window
from parsim.model.system import Pool, Queue, System
from parsim.model.throttles import Throttle
from parsim.model.workload import Workload
from parsim.planning.plan import PlannedRun, Policy, plan
from parsim.simulate import simulate

__all__ = [
    "QOS",
    "UNSTARTED",
    "Chunk",
    "Fairshare",
    "Interruptions",
    "NodeType",
    "PlannedRun",
    "Policy",
    "Pool",
    "Queue",
    "Quota",
    "Reason",
    "Schedule",
    "Share",
    "State",
    "System",
    "Throttle",
    "Window",
    "Workload",
    "explain",
    "metrics",
    "plan",
    "simulate",
    "verify",
]
