"""What of a configuration is a site's policy: kept by every search, unless the site says that it may change."""

from __future__ import annotations

from collections.abc import Mapping

#: Parts of the policy, and the fields of a queue that each consists of.
POLICY: Mapping[str, tuple[str, ...]] = {
    "limits": ("max_run", "max_run_cores"),
    "user-limits": ("max_user_run", "max_user_cores"),
    "starvation": ("starvation",),
    "priorities": ("priority",),
    "fairshare": (),  # no field of a queue: that the order reads shares
    "qos": (),  # that it reads the QOS of jobs
    "shortpools": (),  # nor this
    "sharing": (),  # whether jobs have nodes alone, by queues or types of nodes
}
KEEP, MAY_CHANGE = "keep", "may-change"
FORMS = f"{KEEP}, {MAY_CHANGE}, or either for each of {', '.join(POLICY)}, like {{limits: {MAY_CHANGE}}}"


def parse_policy(value: object) -> tuple[str, ...]:
    """Return the parts that may change; ValueError for what is none."""
    if value in (KEEP, MAY_CHANGE):
        return tuple(POLICY) if value == MAY_CHANGE else ()
    if isinstance(value, Mapping):
        parts = {part: parse_policy(each) if isinstance(each, str) else None for part, each in value.items()}
        if not set(parts) - set(POLICY) and None not in parts.values():
            return tuple(part for part in POLICY if parts.get(part))
    elif isinstance(value, tuple) and not set(map(str, value)) - set(POLICY):
        return tuple(part for part in POLICY if part in value)
    raise ValueError("no policy")


def policy_text(parts: tuple[str, ...]) -> str:
    """Write the parts that may change as a configuration file has them."""
    if set(parts) == set(POLICY):
        return MAY_CHANGE
    return "{" + ", ".join(f"{part}: {MAY_CHANGE}" for part in parts) + "}"
