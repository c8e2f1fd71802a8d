"""What decides on a server which queue takes a job, for the script that moves jobs."""

from __future__ import annotations

from qconf.export.pbs.server import ACCESS, Attributes, Server, is_true, is_type, seconds


def admission(server: Server) -> dict[str, dict[str, object]]:
    """Return of each queue, and of the server by the name "", what its routing and its limits on one job look at."""
    queues = {name: _of_queue(attributes) for name, attributes in server.queues.items()}
    return {"": _resources(server.attributes), **queues}


def _resources(attributes: Attributes) -> dict[str, object]:
    found: dict[str, dict[str, str]] = {}
    for key, value in attributes.items():
        kind, _, name = key.partition(".")
        if kind in ("resources_min", "resources_max", "resources_default"):
            found.setdefault(kind.removeprefix("resources_"), {})[name] = value
    return dict(found)


def _of_queue(attributes: Attributes) -> dict[str, object]:
    found = _resources(attributes)
    if is_type(attributes, "route"):
        found["to"] = [name.strip() for name in attributes.get("route_destinations", "").split(",") if name.strip()]
    lists = {
        kind: [name.strip() for name in attributes.get(names, "").split(",") if name.strip()]
        for kind, (names, switch) in ACCESS.items()
        if is_true(attributes.get(switch))
    }
    if lists:
        found["lists"] = lists
    for key in ("max_array_size", "route_lifetime"):
        if key in attributes:
            found[key] = seconds(attributes[key])
    return found | {key: True for key in ("enabled", "started") if is_true(attributes.get(key))}
