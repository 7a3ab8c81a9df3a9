#!/usr/bin/env python3
# tests/house/check_predictions.py - predicted figures in texts have their error beside them
"""usage: check_predictions.py TREE | --self-test

In README.md and docs/, a paragraph or table that gives predicted times, rates or shares must say
how far they may be off, or that another has the figures: a percentage that is an error, an error
band, or 'unproved'. A table belongs to the paragraph ahead of it. docs/predictions.md has the
errors themselves."""
import re
import sys
from pathlib import Path

FIGURE = re.compile(r"\d ?(us|ms|GB/s|TB/s|tokens|%)(\W|$)")
ERROR = re.compile(r"error|off by|within \d|unproved|low\b|high\b|estimat|\bless\b")
PREDICTED = re.compile(r"\bpredict", re.IGNORECASE)


def blocks(text):
    """(line, block): paragraphs with the tables that follow; code in fences is left out."""
    current, begin, fenced = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        if line.startswith("```"):
            fenced = not fenced
            continue
        if fenced or line.startswith("    "):
            continue
        if line.strip():
            if not current:
                begin = number
            current.append(line)
            continue
        if current:
            yield begin, "\n".join(current)
            current = []


def joined(text):
    """Tables joined to the paragraph ahead of them."""
    result = []
    for begin, block in blocks(text):
        if block.startswith("|") and result:
            result[-1] = (result[-1][0], result[-1][1] + "\n" + block)
        else:
            result.append((begin, block))
    return result


def findings(text):
    rows = []
    for begin, block in joined(text):
        # Of a table, each row with the word is judged alone.
        parts = block.split("\n") if block.startswith("|") else [block]
        for part in parts:
            if PREDICTED.search(part) and FIGURE.search(part) and not ERROR.search(part):
                rows.append((begin, part.split("\n")[0]))
    return rows


def self_test():
    bad = "The first choice is predicted to take 12.3 us.\n"
    table = "Predicted times:\n\n| gpu | us |\n|---|---|\n| h200 | 12 us |\n"
    assert len(findings(bad)) == 1
    assert len(findings(table)) == 1
    assert findings(bad.rstrip() + " The error is 20 % at most.\n") == []
    assert findings("It takes 12.3 us.\n") == []
    assert findings("```\npredicted: 12.3 us\n```\n") == []


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    tree = Path(sys.argv[1])
    wrong = 0
    for path in [tree / "README.md", *sorted((tree / "docs").glob("*.md"))]:
        for line, text in findings(path.read_text(encoding="utf-8")):
            print(f"{path.relative_to(tree)}:{line}: a prediction without its error: {text}")
            wrong += 1
    if wrong:
        print("say how far such predictions are off (docs/predictions.md)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
