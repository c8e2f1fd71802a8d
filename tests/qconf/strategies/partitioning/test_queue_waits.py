import numpy as np
import pytest

from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.queue_waits import QueueWaits


def stairs(nodes):
    """Parts of two queues' waits: one falls at 40 nodes, the other with each node."""
    return np.array([100.0 if nodes[0] < 40 else 10.0, float(100 - nodes[1])])


def feasible(low=(5, 5)):
    return Feasible(100, np.array(low))


def test_the_edge_of_a_stair_is_found_among_few():
    """All 91 divisions: the best is the last that has 40 nodes or more, where the other queue has most."""
    simulated = {(n, 100 - n): stairs((n, 100 - n)) for n in (5, 50, 95)}
    for _ in range(12):
        nodes = QueueWaits(simulated, feasible()).next([np.array(min(simulated, key=lambda n: simulated[n].sum()))])
        assert tuple(nodes.tolist()) not in simulated
        simulated[tuple(nodes.tolist())] = stairs(nodes)
    assert min(simulated, key=lambda each: simulated[each].sum()) == (40, 60)


@pytest.mark.parametrize("low", [(5, 5), (48, 48)])
def test_only_feasible_divisions_are_proposed_each_once_until_none_is_left(low):
    simulated = {(50, 50): stairs((50, 50))}
    while (nodes := QueueWaits(simulated, feasible(low)).next([np.array((50, 50))])) is not None:
        assert feasible(low).keeps(nodes)
        assert tuple(nodes.tolist()) not in simulated
        simulated[tuple(nodes.tolist())] = stairs(nodes)
    assert len(simulated) == 100 - sum(low) + 1
