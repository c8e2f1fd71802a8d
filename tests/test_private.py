"""Namespaces for a private batch system."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers import machine

pytestmark = pytest.mark.skipif(machine.unavailable() is not None, reason="namespaces are not allowed here")

_HELD = """
from tests.servers.machine import PrivateMachine

class Machine(PrivateMachine):
    host = "somehost"

with Machine("") as machine:
    machine.run("sleep 600 > /dev/null 2>&1 &")
    print(machine.first, flush=True)
    input()
"""


def test_nothing_is_left_of_them_when_who_started_them_is_killed():
    holder = subprocess.Popen([sys.executable, "-c", _HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first = Path("/proc", holder.stdout.readline().strip())
    assert first.is_dir()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    end = time.monotonic() + 30
    while first.is_dir() and time.monotonic() < end:
        time.sleep(0.2)
    assert not first.is_dir()
