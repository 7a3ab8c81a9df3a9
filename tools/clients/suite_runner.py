# tools/clients/suite_runner.py - runs files of tests, in several processes
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from clients import HERE

COLLECTING = 300  # seconds until the first test of a file must have begun
MARK = "\n@@ptxgen test "  # in the log, before what a test writes


@dataclass
class Runner:
    """How tests are run, and where the result of each is written."""
    python: Path
    environment: dict
    report: Path  # a line of JSON for each step
    seconds: int = 60  # limit for each test
    together: bool = False  # go on in the same process after a failure
    pytest: list = field(default_factory=list)  # its options
    folder: Path = None  # where it runs
    deadline: float = float("inf")  # of time.monotonic()

    @property
    def log(self):
        return self.report.with_suffix(".log")

    def steps(self):
        with open(self.report, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def results(self):
        """The last word on each test; one that began and has no end is 'began'."""
        last = {}
        for step in self.steps():
            before = last.get(step["test"])
            if before is None or before["outcome"] in ("began", "passed"):
                last[step["test"]] = step
        return last

    def begin(self, resume=False):
        kept = self.results().values() if resume else []
        self.report.write_text("".join(json.dumps(step) + "\n" for step in kept
                                       if step["outcome"] != "began"))
        if not resume:
            self.log.write_text("")

    def ended(self):
        return {test: step for test, step in self.results().items() if step["outcome"] != "began"}

    def logs(self):
        """What was written while each test ran; under "" what belongs to none."""
        first, *parts = self.log.read_text(errors="replace").split(MARK)
        logs = {"": first}
        for part in parts:
            test, _, text = part.partition("\n")
            logs[test] = logs.get(test, "") + text
        return logs

    def run(self, target):
        """All tests of a file, or of some of its tests; False if the time is over."""
        # Without capture the log has what native code says before it aborts.
        command = [self.python, "-m", "pytest", "-q", "-s", "-p", "suite_plugin", "-p",
                   "no:cacheprovider", "--rootdir", self.folder or ".", *self.pytest, target]
        settings = self.environment | {
            "PTXGEN_SUITE_REPORT": str(self.report),
            "PTXGEN_SUITE_TOGETHER": "1" if self.together else "",
            "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [
                self.environment.get("PYTHONPATH")])])}
        while time.monotonic() < self.deadline:
            before = len(self.steps())
            status, ending = self.process(command, settings)
            if ending is None:
                return False
            if not self.ended_early(target, before, status, ending):
                return True
        return False

    def run_script(self, target):
        """A file that is a test itself; False if the time is over."""
        if target in self.results():
            return True
        self.tell(test=target, outcome="began")
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"{MARK}{target}\n")
        begin, size = time.monotonic(), self.log.stat().st_size
        status, ending = self.process([self.python, target], self.environment)
        if ending is None:
            return False
        said = self.log.read_bytes()[size:].decode(errors="replace").rsplit("\n", 20)[1:]
        self.tell(test=target, outcome="failed" if status else "passed", when="call",
                  seconds=time.monotonic() - begin,
                  reason=ending + ": " + "\n".join(said) if status else "")
        return True

    def tell(self, **step):
        with open(self.report, "a", encoding="utf-8") as report:
            report.write(json.dumps(step) + "\n")

    def process(self, command, environment):
        """Its exit status, and in words how it ended: None if the time for all tests is over."""
        with open(self.log, "ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL, start_new_session=True,
                                       cwd=self.folder)
            try:
                ending = self.watch(process)
            finally:
                end(process)
        return process.returncode, ending

    def ended_early(self, target, before, status, ending):
        """Notes tests that did not end. True: tests of the file are left."""
        left = [test for test, step in self.results().items() if step["outcome"] == "began"]
        now = self.steps()[before:]
        for test in left:
            self.tell(test=test, outcome="failed", reason=ending)
        if not now and status not in (0, 5):
            self.tell(test=str(target), outcome="failed", reason=f"no test began: {ending}")
        return bool(left) or (not self.together and any(
            step["outcome"] == "failed" and "when" in step for step in now))

    def watch(self, process):
        """Waits for the process, or ends it when one test takes too long. Says how it ended; None if
        the time for all tests is over."""
        size, since, began = -1, time.monotonic(), False
        while process.poll() is None:
            time.sleep(0.1)
            if time.monotonic() > self.deadline:
                end(process)
                return None
            now = self.report.stat().st_size
            if now != size:
                began = began or size >= 0
                size, since = now, time.monotonic()
            elif time.monotonic() - since > (self.seconds if began else COLLECTING):
                end(process)
                return f"too long: not done after {self.seconds if began else COLLECTING} s"
        if process.returncode < 0:
            return f"crash: {signal.Signals(-process.returncode).name}"
        return f"the process ended with {process.returncode}"


def end(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
