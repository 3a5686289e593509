"""Headless Chromium through its DevTools protocol over a pipe: no driver, no package, one file.

Chromium started with --remote-debugging-pipe reads commands from descriptor 3 and writes answers and events to
descriptor 4, as JSON that ends in a zero byte. https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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
    "--remote-debugging-pipe",
)
# Descriptors 3 and 4 may be in use in this process, so a small one takes its place and then becomes the browser.
LAUNCHER = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(commands, 3), os.dup2(answers, 4), os.close(commands), os.close(answers)
os.execv(sys.argv[3], sys.argv[3:])
"""
TIMEOUT = 60.0
OVERFLOW = """
[...document.querySelectorAll('body *')].filter(e => !e.closest('.wide') && !e.closest('svg')
  && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + '.' + e.className).slice(0, 5)
"""


def find_browser() -> str | None:
    """The path of a Chromium; None where there is none, or no descriptors to talk through."""
    if sys.platform == "win32":
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page. Events are kept in ``events`` as they come."""

    def __init__(self, executable: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="hashlearn-browser-")
        from_us, self._commands = os.pipe()
        self._answers, to_us = os.pipe()
        arguments = [executable, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(from_us), str(to_us), *arguments],
            pass_fds=(from_us, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._held = b""
        self._last = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path: Path) -> None:
        """Load a file and wait until all of it is there."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not self.named("Page.loadEventFired"):
            self._next()
        self.evaluate("Promise.all([...document.images].map(image => image.decode().catch(() => null)))")

    def named(self, method: str) -> list[dict[str, Any]]:
        """The events of one name so far."""
        return [event["params"] for event in self.events if event["method"] == method]

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        outcome = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in outcome:
            raise RuntimeError(f"{expression}: {outcome['exceptionDetails']}")
        return outcome["result"].get("value")

    def problems(self) -> list[Any]:
        """What has failed since the page was opened: errors, messages, and requests for anything but the page."""
        logged = [event["entry"] for event in self.named("Log.entryAdded")]
        asked = [event["request"]["url"] for event in self.named("Network.requestWillBeSent")]
        files = [url for url in asked if url.startswith("file:")]
        return [
            *self.named("Runtime.exceptionThrown"),
            *self.named("Runtime.consoleAPICalled"),
            *(entry for entry in logged if entry["level"] in ("error", "warning")),
            *(url for url in asked if not url.startswith(("file:", "data:"))),
            *files[1:],
        ]

    def overflowing(self) -> list[str]:
        """Elements that stick out of the page, first with how far it scrolls sideways if it does."""
        wide = self.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return [*([f"{wide[0]} px of {wide[1]}"] if wide[0] > wide[1] else []), *self.evaluate(OVERFLOW)]

    def look(self, width: int, height: int = 900, scheme: str = "light", media: str = "screen") -> None:
        """The size of the window, the colour scheme and the medium."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def screenshot(self, path: Path, top: int = 0, height: int | None = None) -> bytes:
        """The page from ``top`` on, all of it if there is no height, as a PNG file."""
        whole = self.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        shown = min(height or whole[1], max(whole[1] - top, 1))
        clip = {"x": 0, "y": top, "width": whole[0], "height": shown, "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        content = base64.b64decode(answer["data"])
        path.write_bytes(content)
        return content

    def close(self) -> None:
        """End the browser and remove its profile."""
        self._session = None
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for descriptor in (self._commands, self._answers):
            os.close(descriptor)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _next(self) -> dict[str, Any]:
        """The next message, kept if it is an event."""
        deadline = time.monotonic() + TIMEOUT
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._answers], [], [], max(deadline - time.monotonic(), 0.0))
            if not ready:
                raise TimeoutError(f"the browser has been silent for {TIMEOUT:g} s")
            piece = os.read(self._answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has closed its end")
            self._held += piece
        whole, self._held = self._held.split(b"\0", 1)
        message = json.loads(whole)
        if "method" in message:
            self.events.append(message)
        return message
