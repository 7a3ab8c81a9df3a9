#!/usr/bin/env python3
# tests/house/check_functions.py - no function of the library is longer than 60 lines
"""usage: check_functions.py SOURCE_DIR [--list [LINES]] [--lower | --measure] | --self-test

Measures the functions of src and include: the lines from the opening to the closing brace of the
body. A longer one needs a reason in the comment directly above it: `// long because ...`. Those
without are listed in long_functions.txt, `FOLDER NAME LINES`; they may not grow, and the list may
only shrink. A function that was split or moved to another folder is taken out by --lower.
  --list [LINES]  prints every function that is longer than so many lines (default 60)
  --lower         writes the list anew, without what is gone and with smaller figures
  --measure       writes what is there as the list: after a merge, never to hide a new function"""
import re
import sys
from collections import defaultdict
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from source_text import blank, split

MAX_LINES = 60
LIST = Path(__file__).with_name("long_functions.txt")
SCOPE = re.compile(r"(?:inline |typedef )?(?:namespace|class|struct|union|enum|extern)\b")
NAME = re.compile(r"((?:[A-Za-z_~]\w*(?:<[^<>()]*>)?::)*(?:operator\s*(?:\(\)|[^\s(]+|\w+)|~?[A-Za-z_]\w*))\s*\(")
PIECE = re.compile(r"[{};:\n]|[^{};:\n]+")
NOT_BLANK = re.compile(r"\s*(\S?)")
NOT_NAMES = {"noexcept", "decltype", "alignas", "explicit"}


def without_preprocessor(code):
    return re.sub(r"(?m)^[ \t]*#(?:[^\n\\]|\\.|\\\n)*",
                  lambda found: blank(found.group()), code)


def without_prefix(header):
    """A declaration without attributes and without the `template` and `requires` in front of it."""
    header = re.sub(r"\[\[.*?\]\]", " ", header, flags=re.S).lstrip()
    for word, opening, closing in (("template", "<", ">"), ("requires", "(", ")"),
                                   ("__attribute__", "(", ")")):
        if re.match(rf"{word}\s*{re.escape(opening)}", header):
            depth = 0
            for at, char in enumerate(header):
                depth += (char == opening) - (char == closing)
                if char == closing and depth == 0:
                    return without_prefix(header[at + 1:])
    return header


def is_scope(header):
    return SCOPE.match(without_prefix(header)) is not None


def name_of(header):
    header = without_prefix(header)
    for found in NAME.finditer(header):
        name = re.sub(r"\s+", "", found.group(1))
        if name.split("::")[-1] not in NOT_NAMES and not header[:found.start()].rstrip().endswith("="):
            return name
    return None


def functions_of(text):
    """(name, first line of the declaration, lines of the body) of each function of a file."""
    code = without_preprocessor(split(text)[0])
    line = 1
    header_at, header = None, []  # what was read since the last end of a statement
    stack = []  # of braces: (kind, line, header, line of the header)
    for found in PIECE.finditer(code):
        char = found.group()
        in_body = bool(stack) and stack[-1][0] == "body"
        if char == "{":
            begins = "".join(header)
            if in_body or (stack and stack[-1][0] == "value"):
                kind = stack[-1][0]
            elif is_scope(begins):
                kind = "scope"
            elif "(" in begins:
                kind = "body"
            else:
                kind = "value"
            outermost = not in_body or not stack
            stack.append((kind, line, begins if outermost else None, header_at))
            if kind == "scope":
                header_at, header = None, []
        elif char == "}":
            if not stack:
                return  # no C++ that this test can follow
            kind, begin, begins, begin_at = stack.pop()
            next_char = NOT_BLANK.match(code, found.end()).group(1)
            if kind == "scope":
                header_at, header = None, []
            elif begins is not None and (kind == "value" or next_char in (",", "{", ")", ";")):
                header = [begins, "\0"]  # an initializer: the statement goes on
                header_at = begin_at
            elif begins is not None:
                name = name_of(begins.replace("\0", ""))
                if name:
                    yield name, begin_at or begin, line - begin + 1
                header_at, header = None, []
        elif not stack or stack[-1][0] == "scope":
            if char == ";" or (char == ":" and "".join(header).strip() in
                               ("public", "private", "protected")):
                header_at, header = None, []
            else:
                if header_at is None and not char.isspace():
                    header_at = line
                if header_at is not None:
                    header.append(char)
        if char == "\n":
            line += 1


def reason_above(lines, line):
    """Whether the comment that ends above a line (from 1) says `long because`."""
    at = line - 2
    while at >= 0 and lines[at].lstrip().startswith("//"):
        if "long because " in lines[at]:
            return True
        at -= 1
    return False


def folder_of(path):
    parts = Path(path).parts[:-1]
    return "/".join(parts[:3] if parts[0] == "include" else parts[:2])


def long_functions(source, max_lines):
    """{(folder, name): [(lines, place)]} of functions without a reason, the longest first; and how
    many functions there are."""
    found, count = defaultdict(list), 0
    for path in sorted(p for top in ("src", "include") for p in (source / top).rglob("*")
                       if p.suffix in (".cpp", ".hpp", ".h")):
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        name = str(path.relative_to(source))
        for function, line, length in functions_of(text):
            count += 1
            if length > max_lines and not reason_above(lines, line):
                found[folder_of(name), function].append((length, f"{name}:{line}"))
    for places in found.values():
        places.sort(reverse=True)
    return found, count


def read_list(text):
    """{(folder, name): [lines]}"""
    listed = defaultdict(list)
    for row in text.split("\n"):
        if row and not row.startswith("#"):
            folder, name, lines = row.split()
            listed[folder, name].append(int(lines))
    for lines in listed.values():
        lines.sort(reverse=True)
    return listed


def check(found, listed):
    """(too long, could be lowered) as messages."""
    above, below = [], []
    for key in sorted(set(found) | set(listed)):
        have, allowed = found.get(key, []), listed.get(key, [])
        for i, (lines, place) in enumerate(have):
            if i >= len(allowed):
                above.append(f"{place}: {key[1]} has {lines} lines, {MAX_LINES} are allowed: split it "
                             "by meaning, or say directly above it '// long because ...'")
            elif lines > allowed[i]:
                above.append(f"{place}: {key[1]} has {lines} lines and had {allowed[i]}: a function of "
                             "long_functions.txt may only shrink")
            elif lines < allowed[i]:
                below.append(f"{place}: {key[1]} has {lines} lines and had {allowed[i]}")
        below += [f"{key[0]}: {key[1]} of {lines} lines is gone" for lines in allowed[len(have):]]
    return above, below


def list_text(rows):
    head = "# Functions of more than 60 lines without a reason; check_functions.py, the list may only shrink.\n"
    return head + "".join(f"{folder} {name} {lines}\n" for (folder, name), lines in sorted(rows))


SAMPLE = """// a.cpp - x
#include <x>
namespace a {
namespace {
constexpr std::array<int (*)(), 2> kTable = {{{f}, {g}}};
int free_function(int a,
                  int b) {
  if (a) {
    return '{';
  }
  const auto l = [&](int x) { return x; };
  return "}" == R"(})" ? l(b) : 0;  // }
}
// long because it is a table
template <class T>
int reasoned() {

}
struct S : B<int (*)()> {
  S() : a_(1), b_{2}, c_{f({})} {
    g();
  }
  bool operator()(int x) const noexcept {
    return x;
  }
  ~S();
  int a_, b_{3};
  std::function<void()> h_{[] {}};
};
#define M(x) \\
  { x
}
template <class T>
  requires(sizeof(T) > 1)
auto S::member(T t) -> std::vector<int> {

}
}
extern "C" {
int c_function(void) { return 0; }
}
"""


def self_test():
    failures = []
    got = [(name, line, lines) for name, line, lines in functions_of(SAMPLE)]
    want = [("free_function", 6, 7), ("reasoned", 15, 3), ("S", 20, 3), ("operator()", 23, 3),
            ("S::member", 33, 3), ("c_function", 40, 1)]
    if got != want:
        failures.append(f"expected {want}\n   found {got}")
    if not reason_above(SAMPLE.split("\n"), 15) or reason_above(SAMPLE.split("\n"), 6):
        failures.append("reasons are not read")
    found = {("src/a", "f"): [(90, "p:1"), (70, "p:2")], ("src/a", "g"): [(61, "q:1")]}
    listed = read_list("# x\nsrc/a f 90\nsrc/a f 71\nsrc/a g 61\nsrc/a h 99\n")
    above, below = check(found, listed)
    if above or len(below) != 2:
        failures.append(f"a good list gives {above}, {below}")
    above, _ = check(found, read_list("src/a f 89\nsrc/a f 71\n"))
    if len(above) != 2:
        failures.append(f"a list with a longer and a new function gives {above}")
    print("\n".join(failures) or "functions, reasons and the list are read as they should")
    return 1 if failures else 0


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    source = Path(arguments[0])
    if "--list" in arguments:
        at = arguments.index("--list") + 1
        found, _ = long_functions(source, int(arguments[at]) if at < len(arguments) else MAX_LINES)
        for (_, name), places in sorted(found.items(), key=lambda row: -row[1][0][0]):
            print("\n".join(f"{lines:5} {place} {name}" for lines, place in places))
        return 0
    found, count = long_functions(source, MAX_LINES)
    listed = read_list(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}
    if "--measure" in arguments:
        listed = {key: [lines for lines, _ in places] for key, places in found.items()}
    if "--lower" in arguments or "--measure" in arguments:
        rows = [(key, min(lines, allowed)) for key, places in found.items()
                for (lines, _), allowed in zip(places, listed.get(key, []))]
        LIST.write_text(list_text(rows), encoding="utf-8")
    above, below = check(found, listed)
    print("\n".join(f"note: {line}; --lower takes it over" for line in below))
    print("\n".join(above))
    print(f"{count} functions, {sum(map(len, found.values()))} of more than {MAX_LINES} lines without a "
          f"reason, {len(above)} not allowed")
    return 1 if above or count == 0 else 0


sys.exit(main())
