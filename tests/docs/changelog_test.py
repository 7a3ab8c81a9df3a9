#!/usr/bin/env python3
# tests/docs/changelog_test.py - the changelog has the form it promises, and entries
"""usage: changelog_test.py CHANGELOG.md VERSION | --self-test

Keep a Changelog: `## [Unreleased]` first, then versions that fall; under each of them sections of
known names, none empty; VERSION, the project's, is the newest released one or still unreleased."""
import re
import sys
from pathlib import Path

SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def problems(text, version):
    """What is wrong with a changelog, as sentences."""
    found = []
    parts = re.split(r"^## ", text, flags=re.M)[1:]
    if not parts:
        return ["there is no '## [Unreleased]'"]
    names = [re.match(r"\[([^\]]+)\]", part) for part in parts]
    if not all(names):
        return ["a heading of level 2 is no version in brackets"]
    names = [name.group(1) for name in names]
    if names[0] != "Unreleased":
        found.append(f"the first version is {names[0]}, not Unreleased")
    numbers = [tuple(map(int, name.split("."))) for name in names[1:]]
    if numbers != sorted(numbers, reverse=True):
        found.append(f"versions do not fall: {', '.join(names)}")
    if numbers and tuple(map(int, version.split("."))) < numbers[0]:
        found.append(f"the project's version {version} is older than {names[1]}")
    for name, part in zip(names, parts):
        sections = re.split(r"^### ", part, flags=re.M)[1:]
        if not sections:
            found.append(f"{name} has no section")
        for section in sections:
            title, _, body = section.partition("\n")
            if title not in SECTIONS:
                found.append(f"{name} has a section '{title}'; sections: {', '.join(SECTIONS)}")
            if not re.search(r"^- \S", body, flags=re.M):
                found.append(f"{name}, {title}: no entry")
    return found


def self_test():
    good = "# C\n\n## [Unreleased]\n\n### Added\n\n- a\n\n## [0.1.0]\n\n### Fixed\n- b\n"
    assert problems(good, "0.1.0") == [], problems(good, "0.1.0")
    assert len(problems(good.replace("- a", ""), "0.1.0")) == 1
    assert len(problems(good.replace("Added", "New"), "0.1.0")) == 1
    assert len(problems(good, "0.0.9")) == 1
    assert len(problems("# C\n", "0.1.0")) == 1
    print("good and bad changelogs are told apart")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
if len(sys.argv) != 3:
    sys.exit(__doc__)
wrong = problems(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2])
for sentence in wrong:
    print(f"{sys.argv[1]}: {sentence}")
sys.exit(1 if wrong else 0)
