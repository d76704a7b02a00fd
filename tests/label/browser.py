"""A headless Chromium that tests steer: the DevTools protocol through a pipe, without another package."""

import base64
import json
import os
import subprocess
import time

from tests.chromium import CHROMIUM, FLAGS

TIMEOUT = 60.0


class Browser:
    """One page of one browser. ``run`` evaluates JavaScript, the other methods act as a person does."""

    def __init__(self, folder, width=1100, height=800):
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        command = [CHROMIUM, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}"]
        command.append(f"--window-size={width},{height}")

        def take_pipes():
            os.dup2(to_browser, 13)
            os.dup2(to_us, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            command, preexec_fn=take_pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(to_us)
        self._write, self._read = os.fdopen(from_us, "wb", buffering=0), os.fdopen(from_browser, "rb", buffering=0)
        self._number, self._rest = 0, b""
        self.errors = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._write.close()
        self._read.close()

    def call(self, method, **parameters):
        """What a method of the protocol returns; errors on the console are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self.session and not method.startswith("Target."):
            message["sessionId"] = self.session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                assert "error" not in found, found
                return found["result"]
            if found.get("method") == "Runtime.exceptionThrown":
                self.errors.append(found["params"]["exceptionDetails"])

    def _receive(self):
        while b"\0" not in self._rest:
            piece = self._read.read(1 << 16)
            assert piece, "the browser ended"
            self._rest += piece
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait_for("location.href !== 'about:blank' && document.readyState === 'complete'")

    def run(self, script):
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, script):
        """Wait until the script is true; while a page loads, its names are missing."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if self.run(f"(() => {{ try {{ return {script} }} catch {{ return false }} }})()"):
                return
            time.sleep(0.05)
        raise AssertionError(f"{script} did not become true; the page says {self.run('document.body.innerText')}")

    def press(self, key, code=None):
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code or key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code or key)

    def drag(self, start, end):
        """Press the mouse at a point of the window, move it, and let go."""
        mouse = {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **mouse)
        for step in (0.25, 0.5, 0.75, 1.0):
            x, y = (a + step * (b - a) for a, b in zip(start, end, strict=True))
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **mouse)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **mouse)

    def tap(self, selector):
        """Touch the middle of an element with a finger."""
        x, y = self.middle(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def middle(self, selector):
        frame = self.frame(selector)
        return frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2

    def frame(self, selector):
        """Where an element is in the window."""
        return self.run(
            f"(() => {{ const f = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
            "return { x: f.x, y: f.y, width: f.width, height: f.height }; })()"
        )

    def take_screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
