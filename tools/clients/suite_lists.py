# tools/clients/suite_lists.py - lists of clients' own tests, and what their results mean
"""A list (suites/CLIENT.txt) holds names only, a line each, with columns between ` | `:

    run      FILE or FILE::TEST           a file or a test that pytest runs
    script   FILE                         a file that is a test itself: right if it ends with status 0
    leave    TESTS | WHY                  not run
    refused  TESTS | TEXT | WHY           fails because the stand-in refuses what it calls
    other    TESTS | TEXT | WHY           fails for a reason that has nothing to do with the stand-in
    true     TESTS | TEXT | WHY           the finding with TEXT is right: the test does what it names

TESTS is the name of a test with `*` for any text. TEXT is a regular expression for a part of the
error, or of the stand-in's log; without it a result is not what the list expects. Everything else
that fails is wrong, and every other finding is false."""
import re
from collections import Counter
from dataclasses import dataclass, field

COUNTS = ("run", "right", "refused", "other", "skipped", "wrong", "findings", "false")
COLUMNS = {"run": 1, "script": 1, "leave": 2, "refused": 3, "other": 3, "true": 3}
# pytest writes its dots in front of it.
STANDIN = re.compile(r"ptxgen emulated driver: (?:error|warning): ")


@dataclass(frozen=True)
class Row:
    tests: str
    text: str = ""
    why: str = ""

    def names(self, test):
        return re.fullmatch(".*".join(map(re.escape, self.tests.split("*"))), test, re.S) is not None

    def fits(self, test, *texts):
        return self.names(test) and any(re.search(self.text, text) for text in texts)


@dataclass
class SuiteList:
    rows: dict = field(default_factory=lambda: {verb: [] for verb in COLUMNS})

    def why_left(self, test):
        """Why a test is not run; None if it is."""
        return next((row.why for row in self.rows["leave"] if row.names(test)), None)


def read_list(path):
    """Raises ValueError with the line and what is wrong with it."""
    result = SuiteList()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        verb, _, rest = line.strip().partition(" ")
        columns = [column.strip() for column in rest.split(" | ")]
        where = f"{path.name}:{number}: "
        if verb not in COLUMNS:
            raise ValueError(f"{where}'{verb}' is none of {', '.join(COLUMNS)}")
        if len(columns) != COLUMNS[verb] or not all(columns):
            raise ValueError(f"{where}'{verb}' has {COLUMNS[verb]} columns between ' | ', "
                             f"here are {len([column for column in columns if column])}")
        if verb == "leave":
            columns.insert(1, "")
        try:
            re.compile(columns[1] if len(columns) > 1 else "")
        except re.error as error:
            raise ValueError(f"{where}'{columns[1]}' is no regular expression: {error}") from None
        result.rows[verb].append(Row(*columns))
    if not result.rows["run"] and not result.rows["script"]:
        raise ValueError(f"{path.name}: no line 'run' or 'script': nothing would be tested")
    return result


@dataclass
class Verdicts:
    """Names of tests by verdict, with reasons; findings that no row knows."""
    right: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    refused: dict = field(default_factory=dict)
    other: dict = field(default_factory=dict)
    wrong: dict = field(default_factory=dict)
    findings: int = 0
    false: list = field(default_factory=list)

    @property
    def run(self):
        return len(self.right) + len(self.refused) + len(self.other) + len(self.wrong)

    @property
    def good(self):
        return self.run > 0 and not self.wrong and not self.false


def entries(log):
    """What the stand-in wrote into a log, an entry each: its lines after the first are indented."""
    for start in STANDIN.finditer(log):
        lines = log[start.start():].splitlines()
        more = next((i for i, line in enumerate(lines) if i and not line.startswith(" ")), len(lines))
        yield "\n".join(lines[:more])


def is_finding(entry):
    return "in a launch of kernel '" in entry


def judge(suite, found, logs):
    """found: the last step of each test; logs: what was written while it ran, by its name."""
    verdicts = Verdicts()
    for test, step in found.items():
        said = [step.get("reason", ""), logs.get(test, "")]
        if step["outcome"] == "passed":
            verdicts.right.append(test)
        elif step["outcome"] in ("skipped", "xfailed"):
            verdicts.skipped.append(test)
        else:
            for verb in ("refused", "other"):
                row = next((row for row in suite.rows[verb] if row.fits(test, *said)), None)
                if row is not None:
                    getattr(verdicts, verb)[test] = row.why
                    break
            else:
                verdicts.wrong[test] = step.get("reason", "")
    for test, log in logs.items():
        for entry in filter(is_finding, entries(log)):
            verdicts.findings += 1
            if not any(row.fits(test, entry) for row in suite.rows["true"]):
                verdicts.false.append((test, entry))
    return verdicts


def stale_rows(suite, verdicts):
    """Rows of failures that did not happen, where their tests ran: the list can be shortened."""
    failed = verdicts.refused | verdicts.other | verdicts.wrong
    ran = [*verdicts.right, *failed]
    return [row for verb in ("refused", "other") for row in suite.rows[verb]
            if any(map(row.names, ran)) and not any(map(row.names, failed))]


def row_of(verdicts):
    return [verdicts.run, len(verdicts.right), len(verdicts.refused), len(verdicts.other),
            len(verdicts.skipped), len(verdicts.wrong), verdicts.findings, len(verdicts.false)]


def details_of(name, suite, verdicts, unfinished):
    for word in ("refused", "other"):
        for why, count in Counter(getattr(verdicts, word).values()).most_common():
            yield f"{name}: {word} {count}: {why}"
    for test, reason in verdicts.wrong.items():
        yield f"{name}: WRONG {test}: {' '.join(reason.split())[:300]}"
    for test, entry in verdicts.false:
        yield f"{name}: FALSE FINDING in {test or '(no test)'}: {entry}"
    for row in stale_rows(suite, verdicts):
        yield f"{name}: no longer fails, take it off the list: {row.tests}"
    for target in unfinished:
        yield f"{name}: UNFINISHED {target}: the time for this client is over"
