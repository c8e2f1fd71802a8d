"""Read Torque's ``print server``, known by attributes that PBS lacks, as one of PBS; it is never written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

from qconf.errors import InputError
from qconf.export.pbs.server import Attributes, Server

#: Attributes of server and queues that only Torque has.
_SERVER = (
    *("tcp_timeout", "node_check_rate", "next_job_number", "mom_job_sync", "log_level", "log_keep_days", "poll_jobs"),
    *("keep_completed", "auto_node_np", "np_default", "submit_hosts", "allow_node_submit", "job_stat_rate"),
    *("moab_array_compatible", "nppcu", "timeout_for_job_delete", "timeout_for_job_requeue", "record_job_info"),
    *("job_nanny", "record_job_script", "log_file_max_size", "log_file_roll_depth", "disable_server_id_check"),
    *("authorized_users", "node_submit_exceptions", "display_job_server_suffix", "clone_batch_size", "max_threads"),
    *("owner_purge", "mail_domain", "node_ping_rate", "resources_default.neednodes"),
    *("cray_enabled", "legacy_vmem", "tcp_incoming_timeout", "job_start_timeout", "checkpoint_dir", "extra_resc"),
    *("max_slot_limit", "max_job_array_size", "email_batch_seconds", "copy_on_rerun", "lock_file", "down_on_error"),
)
_QUEUE = (
    *("resources_default.neednodes", "resources_max.procct", "resources_min.procct", "resources_available.procct"),
    *("max_user_queuable", "acl_group_sloppy", "acl_logic_or", "disallowed_types", "features_required", "ghost_queue"),
    *("is_transit", "required_login_property", "resources_max.procs", "keep_completed"),
)
#: Attributes of the server that only PBS prints.
_PBS = ("resv_enable", "eligible_time_enable", "pbs_license_min", "max_concurrent_provision", "license_count")
_CORES = ("procct", "procs", "mppwidth", "size")
ABOUT = (
    "this is a Torque server, which is read and cannot be exported to. Its queues say nothing of order and "
    "reservations: of pbs_sched give the sched_config with --scheduler; those of Maui or Moab (RESERVATIONDEPTH, "
    "weights) write yourself: reservation_depth, order: {maui: ...}. One reservation, first come, first served, is "
    "supposed"
)


def is_torque(server: Server) -> bool:
    """Whether the output of ``print server`` is from Torque."""
    if any(key in server.attributes for key in _PBS):
        return False
    queues = (key for attributes in server.queues.values() for key in attributes)
    return any(key in _SERVER for key in server.attributes) or any(key in _QUEUE for key in queues)


def read_current(path: str | Path) -> Server:
    """Read the present state of the server to export to. Raises InputError, also for Torque."""
    server = Server.read(path)
    if is_torque(server):
        raise InputError(
            "is of Torque, to which nothing is exported: its statements are not those of PBS",
            file=path,
            fix="read it with qconf init --from-pbs, and tune without --current",
        )
    return server


def as_pbs(server: Server) -> Server:
    """Return a copy of a Torque server with PBS's attributes in its queues."""
    found = deepcopy(server)
    _limits(found.attributes)
    for attributes in found.queues.values():
        _limits(attributes)
        for name in _properties(attributes):
            attributes[f"default_chunk.{name}"] = "True"
    return found


def _limits(attributes: Attributes) -> None:
    """Convert limits of processors, and of nodes with ppn, to limits of cores."""
    for end in ("min", "max"):
        for name in _CORES:
            if (value := attributes.pop(f"resources_{end}.{name}", None)) is not None:
                attributes[f"resources_{end}.ncpus"] = value
        nodes = attributes.get(f"resources_{end}.nodes", "")
        if found := re.fullmatch(r"([0-9]+)(?::ppn=([0-9]+))?", nodes):
            del attributes[f"resources_{end}.nodes"]
            if found[2]:
                attributes.setdefault(f"resources_{end}.ncpus", str(int(found[1]) * int(found[2])))
            else:
                attributes.setdefault(f"resources_{end}.nodect", found[1])


def _properties(attributes: Attributes) -> Iterator[str]:
    """Yield the properties that the nodes of a queue's jobs must have."""
    for key in ("resources_default.neednodes", "features_required"):
        for word in re.split(r"[:,+&]", attributes.pop(key, "")):
            if re.fullmatch(r"[A-Za-z][\w.-]*", word):
                yield word
