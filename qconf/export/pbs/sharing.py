"""Whether jobs share PBS's nodes: `sharing` of the nodes, and the default `place` of a server and of queues."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qconf.config import QueueConfig, SiteConfig
from qconf.export.nodes import Node
from qconf.export.pbs.server import Attributes, Server
from qconf.hosts import fold
from qconf.text import grouped

PLACE = "resources_default.place"
EXCLUSIVE = ("excl", "exclhost")


def place(config: SiteConfig, queue: QueueConfig, server: Server) -> str:
    """Return the default `place` of a queue, or nothing: that it has, with or without nodes of their own for jobs."""
    now = server.queues.get(queue.name, {}).get(PLACE, "")
    if not config.nodes:
        return now
    words = [word for word in now.split(":") if word and (queue.exclusive or word not in EXCLUSIVE)]
    if queue.exclusive and not {*EXCLUSIVE} & {*words}:
        words = [*(word for word in words if word != "shared"), EXCLUSIVE[0]]
    if not words and not queue.exclusive and has_alone(server.attributes):
        words = ["free"]  # as the server's default has it, without nodes of their own
    return ":".join(words)


def has_alone(attributes: Attributes) -> bool:
    """Whether the jobs of a server or a queue have their nodes alone, by the default `place`."""
    return bool({*EXCLUSIVE} & {*attributes.get(PLACE, "").split(":")})


def of_sharing(nodes: Sequence[Node]) -> list[str]:
    """Name the nodes whose `sharing` is simulated otherwise than PBS has it, or is none that PBS has."""
    found = []
    for value, names in grouped((node.sharing, node.name) for node in nodes).items():
        if value == "ignore_excl":
            why = "PBS lets jobs that ask for excl share them; such jobs have nodes alone in the simulation"
        elif value and value != "default_shared" and not re.fullmatch("(default|force)_excl(host)?", value):
            why = "PBS has no such value: taken as default_shared"
        else:
            continue
        found.append(f"nodes {fold(names)}: sharing = {value}: {why}")
    return found
