#!/usr/bin/env python3
# tests/house/check_functions.py - no function of the library is longer than 60 lines
"""usage: check_functions.py SOURCE_DIR [LINES] | --self-test

Measures the functions of src and include: the lines from the opening to the closing brace of the
body. One of more than LINES lines (default 60) needs a reason in the comment directly above it:
`// long because ...`."""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from source_text import blank, split

MAX_LINES = 60
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


def long_functions(source, max_lines):
    """[(lines, place, name)] of functions without a reason, the longest first; and how many functions
    there are."""
    found, count = [], 0
    for path in sorted(p for top in ("src", "include") for p in (source / top).rglob("*")
                       if p.suffix in (".cpp", ".hpp", ".h")):
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        for function, line, length in functions_of(text):
            count += 1
            if length > max_lines and not reason_above(lines, line):
                found.append((length, f"{path.relative_to(source)}:{line}", function))
    return sorted(found, reverse=True), count


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
    print("\n".join(failures) or "functions and reasons are found")
    return 1 if failures else 0


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    max_lines = int(arguments[1]) if len(arguments) == 2 else MAX_LINES
    found, count = long_functions(Path(arguments[0]), max_lines)
    for lines, place, name in found:
        print(f"{place}: {name} has {lines} lines, {max_lines} are allowed: split it by meaning, or say "
              "directly above it '// long because ...'")
    print(f"{count} functions, {len(found)} of more than {max_lines} lines without a reason")
    return 1 if found else 0


sys.exit(main())
