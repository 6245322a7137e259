"""A headless Chromium, spoken to by WebDriver: plain JSON over HTTP, so nothing but Debian's two packages is needed."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from slincdev.common import Fail, cache_dir, run
from waits import wait_for



AXE = "axe-core-python==0.1.0"  # a Python package that brings the checker of accessibility as a script


def axe_script() -> str:
    folder = cache_dir() / AXE.replace("==", "-")
    if not list(folder.glob("*.whl")):
        run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, AXE])
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return wheel.read("axe_core_python/axe.min.js").decode()


class Browser:
    def __init__(self, port: int, log: Path, width: int = 1440, height: int = 900) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}", f"--log-path={log}"], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        wait_for("chromedriver answers", 20, lambda: self._call("GET", "/status")["ready"])
        options = {"binary": "/usr/bin/chromium", "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                                           f"--window-size={width},{height}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}
        self.session = f"/session/{self._call('POST', '/session', wanted)['sessionId']}"

    def _call(self, method: str, path: str, body: dict | None = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Fail(f"the browser: {json.load(error)['value'].get('message', '')[:400]}") from error

    def open(self, url: str) -> None:
        self._call("POST", f"{self.session}/url", {"url": url})

    def run(self, script: str, *args: Any) -> Any:
        """The value of a script's `return`."""
        return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script: str) -> Any:
        """The value that the script gives to its last argument, a function."""
        return self._call("POST", f"{self.session}/execute/async", {"script": script, "args": []})

    def text(self, selector: str) -> str:
        return self.run("const e = document.querySelector(arguments[0]); return e ? e.innerText : '';", selector)

    def keys(self, *keys: str) -> None:
        """Presses and releases each, as a person at the keyboard does."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def complaints(self) -> list[str]:
        """Errors of scripts, refused requests and what the page's policy forbids."""
        return [line["message"] for line in self._call("POST", f"{self.session}/se/log", {"type": "browser"}) if line["level"] == "SEVERE"]

    def accessibility(self) -> list[str]:
        """What axe-core finds wrong, with the first element of each finding."""
        self.run(axe_script())
        return self.run_async("const done = arguments[0]; axe.run().then((found) => done(found.violations.map("
                              "(each) => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`)));")

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._call("GET", f"{self.session}/screenshot")))

    def end(self) -> None:
        try:
            self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(20)
