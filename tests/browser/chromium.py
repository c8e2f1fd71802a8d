"""A headless Chromium, driven over its own pipe: no port, no driver, no other program.

It speaks the DevTools protocol, messages of JSON that end in a zero byte, on the file descriptors 3 and 4.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


def available():
    return shutil.which("chromium")


class Browser:
    """One tab; `errors` are what its console complains of, `requests` the addresses that it asked for."""

    def __init__(self, timeout=60.0):
        self.timeout, self.errors, self.requests, self.count = timeout, [], [], 0
        self.profile = tempfile.TemporaryDirectory(prefix="chromium.", ignore_cleanup_errors=True)
        read, self.write = os.pipe()
        self.read, write = os.pipe()

        high = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (read, write)]  # so that 3 and 4 overwrite neither
        ends = [(os.POSIX_SPAWN_DUP2, each, 3 + i) for i, each in enumerate(high)]
        silent = [(os.POSIX_SPAWN_OPEN, i, os.devnull, os.O_RDWR, 0) for i in range(3)]
        command = ["chromium", *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = os.posix_spawn(available(), command, os.environ, file_actions=[*ends, *silent])
        for each in (read, write, *high):
            os.close(each)
        self.buffer, self.session, self.loaded = b"", None, 0
        tab = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.write)
        os.close(self.read)
        self.profile.cleanup()

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        return self._until(lambda found: found.get("id") == self.count)["result"]

    def _until(self, wanted):
        end = time.monotonic() + self.timeout
        while True:
            while b"\0" not in self.buffer:
                ready, *_ = select.select([self.read], [], [], max(end - time.monotonic(), 0))
                if not ready:
                    raise TimeoutError(f"Chromium did not answer in {self.timeout:g} s")
                part = os.read(self.read, 1 << 20)
                if not part:
                    raise RuntimeError("Chromium ended")
                self.buffer += part
            line, self.buffer = self.buffer.split(b"\0", 1)
            found = json.loads(line)
            self._note(found)
            if "error" in found:
                raise RuntimeError(found["error"]["message"])
            if wanted(found):
                return found

    def _note(self, found):
        method, params = found.get("method"), found.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path, *, width=1440, height=900, dark=False, script=True, paper=False):
        """Open a file, or an address, in a window of a size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="print" if paper else "", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.errors, self.requests = [], []
        address = path if str(path).startswith(("http://", "about:")) else Path(path).absolute().as_uri()
        self.call("Page.navigate", url=address)
        self._until(lambda found: found.get("method") == "Page.loadEventFired")
        self.call("Page.getLayoutMetrics")
        self.call("Emulation.setScriptExecutionDisabled", value=False)

    def run(self, code):
        """Return the value of an expression, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"].get("exception", {}).get("description")))
        return found["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, key, modifiers=0):
        """Press a key by its name: Tab, Enter, ArrowUp, a letter; 2 as a modifier is Ctrl, 8 is Shift."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        code = codes.get(key, ord(key.upper()[0]))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 and not modifiers & 2 else "")
        about = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", **down, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text):
        """Type a text where the focus is, in place of what is selected."""
        self.call("Input.insertText", text=text)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def picture(self, path, *, whole=True, clip=None):
        """Write what is seen, or the whole page, as PNG."""
        more = {} if clip is None else {"clip": {**clip, "scale": 1}}
        found = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole or clip is not None, **more
        )
        Path(path).write_bytes(base64.b64decode(found["data"]))
