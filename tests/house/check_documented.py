#!/usr/bin/env python3
# tests/house/check_documented.py - every public type and free function has a comment
"""usage: check_documented.py SOURCE_DIR | --self-test

Fails for a class, structure, enumeration or function that a header of include/ptxgen declares at
namespace level and that has no comment: `///` directly above it, or above the first of a group of
declarations without an empty line, or after it; of a type also on a member. `to_string` needs none.
Code in `namespace detail` is not public. undocumented.txt lists names that had none when the rule
came; the list may only become shorter."""
import re
import sys
from pathlib import Path

TYPE = re.compile(r"^(?:class|struct|enum class) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^;]*)?(?: \{|$)")
FUNCTION = re.compile(r"^(?:\[\[nodiscard\]\] |\[\[noreturn\]\] |inline |constexpr |extern )*"
                      r"[\w:<>,*& ]+[ &*](\w+)\([^;{]*(?:\)|,|\()?")
SKIPPED = ("namespace", "using", "template", "requires", "static_assert", "return", "friend", "//",
           "#", "}", "class", "struct", "enum", "if", "for", "else", "extern \"C\"")


def has_documented_member(lines, first):
    for line in lines[first:]:
        if line and not line[0].isspace():
            return False
        if "///" in line:
            return True
    return False


def undocumented(text):
    """(line, name) of each declaration at namespace level without a comment."""
    documented = False   # a comment covers the group of lines that is read
    detail = False
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("namespace detail"):
            detail = True
        elif line.startswith("}  // namespace detail"):
            detail = False
        if detail:
            continue
        if not line.strip():
            documented = False
        elif line.startswith("//"):
            documented = True
        elif line[0].isspace():
            continue
        else:
            found = TYPE.match(line)
            if found and has_documented_member(lines, number):
                continue
            if not found and not line.startswith(SKIPPED):
                found = FUNCTION.match(line)
            if found and not documented and "///" not in line and found.group(1) != "to_string":
                yield number, found.group(1)


def self_test():
    good = "/// A.\nstruct A {\n  int b;\n};\n\n/// f and g.\nint f(int a);\nint g();\n\nint h();  ///< h\n"
    bad = "struct A {\n};\n\n[[nodiscard]] int f(int a);\n\nnamespace detail {\nint g();\n}  // namespace detail\n"
    assert list(undocumented(good)) == [], list(undocumented(good))
    assert [name for _, name in undocumented(bad)] == ["A", "f"], list(undocumented(bad))
    print("documented and undocumented declarations are told apart")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
if len(sys.argv) != 2:
    sys.exit(__doc__)
source = Path(sys.argv[1])
headers = sorted((source / "include" / "ptxgen").rglob("*.hpp"))
listed = set((source / "tests/house/undocumented.txt").read_text().split("\n")[1:]) - {""}
found = 0
for header in headers:
    path = header.relative_to(source).as_posix()
    for number, name in undocumented(header.read_text(encoding="utf-8")):
        if f"{path} {name}" in listed:
            continue
        print(f"{path}:{number}: '{name}' has no comment: say what it is or does")
        found += 1
if not headers:
    sys.exit("there are no public headers")
current = {f"{header.relative_to(source).as_posix()} {name}" for header in headers
           for _, name in undocumented(header.read_text(encoding="utf-8"))}
for entry in sorted(listed - current):
    print(f"tests/house/undocumented.txt: '{entry}' has a comment now: remove it from the list")
    found += 1
print(f"{len(headers)} public headers, {found} declarations without a comment, {len(listed)} listed")
sys.exit(1 if found else 0)
