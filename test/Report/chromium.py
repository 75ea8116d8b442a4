"""Drives a headless Chromium with the standard library alone: its DevTools protocol over two pipes.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


class Chromium:
    """`with Chromium() as browser` opens one page at a time, with any width and colour scheme."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="fp8-chromium-")
        read_commands, self.write = os.pipe()
        self.read, write_events = os.pipe()

        def connect():
            # The browser reads commands from 3 and writes events to 4; the copies avoid that one overwrites
            # the other.
            commands, events = os.dup(read_commands), os.dup(write_events)
            high = [os.dup2(commands, 60), os.dup2(events, 61)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                   "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.profile}",
                   "--remote-debugging-pipe", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(command, preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_commands)
        os.close(write_events)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read, 1 << 20)
            assert part, "expected an answer of chromium but it has ended"
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        """Sends a command and returns its result; events that arrive before it are added to
        `events`."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.write, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, f"{expression}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def open(self, path, width, scheme, height=900):
        """Opens a file and waits until the page reports that it is drawn."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=f"file://{path}")
        deadline = time.time() + 60
        while self.evaluate("document.body?.dataset.ready") != "yes":
            assert time.time() < deadline, f"expected {path} to be drawn within a minute; {self.problems()}"
            time.sleep(0.1)

    def problems(self):
        """Returns errors and warnings of the console, exceptions, and requests to other places."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(parameters["args"])
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"])
            elif method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:")):
                found.append(parameters["request"]["url"])
        return found

    def move(self, x, y, click=False):
        """Moves the mouse; with `click` also clicks."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path):
        """Saves the whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(data))
