"""The configuration that a server runs now, beside which another one is written as a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.export.nodes import of_statements, read_text
from qconf.export.pbs import qos
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server

if TYPE_CHECKING:
    from qconf.export.pbs import PbsExporter


def present(config: SiteConfig, server: Server, options: PbsExporter) -> SiteConfig | None:
    """Read what `server` runs; None where it cannot be read.

    What only the nodes say is taken to be what `config` has, where they are not given.
    """
    nodes = options.nodes
    if nodes is None and server.file is not None:
        nodes = of_statements(read_text(server.file), server.file)
    nodes = nodes if nodes and all(node.cores for node in nodes) else None
    try:
        return derive(
            server,
            nodes=nodes,
            scheduler=options.scheduler,
            cores=None if nodes else config.machine.cores,
            shares=options.shares or (),
            qos=qos.read(server.file.parent) if server.file else (),
            like=None if nodes else config,
        ).config
    except InputError:
        return None


def completed(config: SiteConfig, base: SiteConfig | None) -> tuple[SiteConfig, tuple[str, ...]]:
    """Return `config` with the limits and lists of users that the server has and it says nothing of; and whose limits.

    It says nothing of limits where it has no throttles, and nothing of a queue's users where that has no `access`.
    """
    if base is None:
        return config, ()
    without, of_qos = not config.throttles, config.qos or any(each.is_of_qos for each in config.throttles)
    kept = [
        each
        for each in base.throttles
        if (without or (each.is_of_qos and not of_qos)) and each.queue in (None, *config.names)
    ]
    lists = {queue.name: queue.access for queue in base.queues}
    changes: dict[str, object] = {"throttles": (*config.throttles, *kept)}
    if not config.qos and any(each.is_of_qos for each in kept):
        changes["qos"] = base.qos
    found = config.with_each(lambda queue: {"access": queue.access or lists.get(queue.name)}, **changes)
    return found, tuple(each.what for each in kept)
