#!/usr/bin/env python3
# tools/op_table_check.py - checks op table rows and test lines against ptxas
"""Reads the op table (include/ptxgen/ptx/*.def) and asks ptxas whether its claims hold.

By default every PTXGEN_LINE of tests/ptx/lines_*.def is taken: it must match the row it names (and
no earlier row of the mnemonic), must assemble at the lowest version that the row's needs give for
each target, and must be refused one version below and on every target the needs exclude.
PTXGEN_LAX_LINE marks lines that ptxas takes although the ISA asks for more: they only assemble.

--sweep makes lines of its own instead: every combination of the words a row admits (a sample of
--limit per row), which shows rows that admit too much or ask too little.
"""
import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PTX = os.path.join(ROOT, "include", "ptxgen", "ptx")
VERSIONS = ["6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8",
            "8.0", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0"]
TARGETS = {"75": "6.3", "80": "7.0", "86": "7.1", "87": "7.4", "89": "7.8", "90": "7.8",
           "90a": "8.0", "100": "8.6", "100a": "8.6", "100f": "8.8", "103": "8.8", "103a": "8.8",
           "103f": "8.8", "110": "9.0", "110a": "9.0", "110f": "9.0", "120": "8.7", "120a": "8.7",
           "120f": "8.8", "121": "8.8", "121a": "8.8", "121f": "8.8"}
POOLS = {"p": "pred", "b": "b8", "h": "b16", "rs": "u16", "r": "b32", "rd": "b64", "q": "b128",
         "f": "f32", "fd": "f64"}
SPECIAL = {"%clock64": 64, "%globaltimer": 64}
PRELUDE = """.version {version}
.target sm_{target}
.address_size 64
.global .align 16 .b8 g[1024];
.const .align 16 .b8 c[1024];
.shared .align 16 .b8 s[1024];
.func noargs() {{ ret; }}
.func (.param .b32 r) onearg(.param .b32 a) {{ ret; }}
.visible .entry k(.param .align 16 .b8 p[64])
{{
  .local .align 16 .b8 l[1024];
  .param .b32 a0;
  .param .b32 r0;
{pools}
  T0: .branchtargets L0, L1;
  P0: .callprototype (.param .b32 _) _ (.param .b32 _);
"""


def version_key(text):
    major, minor = text.split(".")
    return int(major), int(minor)


class Need:
    def __init__(self, text):
        condition, _, requirement = text.strip().rpartition(":")
        # `a|b+c` holds for two conditions: a+c, b+c.
        self.conditions = [frozenset(choice) for choice in itertools.product(
            *(piece.split("|") for piece in condition.split("+")))] if condition else [frozenset()]
        self.never = requirement == "never"
        version, _, sm = "0.0/0".partition("/") if self.never else requirement.partition("/")
        self.version = version_key(version)
        self.suffix = sm[-1] if sm and sm[-1] in "af" else ""
        self.sm = int(sm.rstrip("af") or 0)

    def admits(self, target):
        suffix = target[-1] if target[-1] in "af" else ""
        sm = int(target.rstrip("af"))
        if self.never:
            return False
        if self.suffix == "a":
            return suffix == "a" and sm == self.sm
        if self.suffix == "f":
            return suffix != "" and sm // 10 == self.sm // 10 and sm >= self.sm
        return sm >= self.sm


class Row:
    def __init__(self, table, ident, mnemonic, pattern, operands, needs, flags, doc):
        self.ident, self.mnemonic, self.pattern, self.doc = ident, mnemonic, pattern, doc
        self.flags = flags
        self.needs = []
        for need in needs.split(";"):
            condition, colon, alternatives = need.rpartition(":")
            self.needs += [Need(condition + colon + one) for one in alternatives.split("|")]
        self.slots = []
        self.ties = []  # (slot, field): the slot is filled exactly when the field is
        for inner, word, optional, tie in re.findall(r"\.(?:<([^>]*)>|([^.?<]+))(\??)(\w*)",
                                                     pattern):
            if tie:
                self.ties.append((len(self.slots), tie))
            field, _, words = inner.partition(":")
            words = words.split("|") if words else table.fields[field] if field else [word]
            is_type = field == "T" or (not field and word in table.types)
            self.slots.append((field, words, bool(optional), is_type))
        rest = operands
        self.operands = []
        joined = False
        for text, separator in re.findall(r"([^,|]+)([,|]?)", rest):
            self.operands.append(Operand(text.strip(), joined))
            joined = separator == "|"
        self.required = max([i + 1 for i, o in enumerate(self.operands) if not o.optional],
                            default=0)

    def match_words(self, words):
        """The words taken per slot (None where one was left out), or None."""
        taken, at = [], 0
        for _, allowed, optional, _ in self.slots:
            if at < len(words) and words[at] in allowed:
                taken.append(words[at])
                at += 1
            elif optional:
                taken.append(None)
            else:
                return None
        return taken if at == len(words) and self.tied(taken) else None

    def tied(self, taken):
        """Whether every slot that goes with a field is there exactly when the field is."""
        return all(bool(taken[at]) == any(field == tie and word for (field, *_), word
                                          in zip(self.slots, taken)) for at, tie in self.ties)

    def lowest_version(self, words, target):
        """The lowest version for these words on this target; None where there is none."""
        groups = {}
        for need in self.needs:
            for condition in need.conditions:
                if condition <= set(words):
                    groups.setdefault(condition, []).append(need)
        lowest = version_key(TARGETS[target])
        for alternatives in groups.values():
            versions = [n.version for n in alternatives if n.admits(target)]
            if not versions:
                return None
            lowest = max(lowest, min(versions))
        return next((v for v in VERSIONS if version_key(v) >= lowest), None)


class Operand:
    def __init__(self, text, joined):
        self.joined = joined
        text, question, self.with_field = text.partition("?")
        self.optional = bool(question)
        text, _, self.type = text.partition(":")
        prefix = re.match(r"[~_%#&!]*", text).group()
        self.relaxed, self.sink = "~" in prefix, "_" in prefix
        text = text[len(prefix):]
        self.memory = text.startswith("[")
        self.braces = text.startswith("{")
        text = text.strip("[]{}")
        self.name, _, self.count = text.partition("*")
        self.kind = next((k for k in "%#&!" if k in prefix), "")
        self.destination = not self.kind and not self.memory and self.name.startswith("d")

    def holds(self, taken, row):
        """True or False where a field of the opcode decides whether it is there, else None."""
        if not self.with_field:
            return None if self.optional else True
        return any(field == self.with_field and word
                   for (field, *_), word in zip(row.slots, taken))

    def vector(self, taken, row):
        if self.count == "v":
            for (field, *_), word in zip(row.slots, taken):
                if field == "vec" and word:
                    return int(word[1:])
            return 0
        return int(self.count) if self.count else 0

    def type_of(self, taken, row, table):
        """(bits, kind) or None for any."""
        types = [w for (*_, is_type), w in zip(row.slots, taken) if is_type]
        if self.memory or self.type == "*" or (not self.type and not types):
            return None
        text = self.type or "0"
        wide, as_bits = text[0] == "w" and len(text) == 2, text[0] == "x" and len(text) == 2
        if wide or as_bits:
            text = text[1]
        bits, kind = table.types[types[int(text)] if text.isdigit() else text]
        return (bits * 2 if wide else bits), ("Bits" if as_bits else kind)


class Table:
    def __init__(self):
        self.types, self.fields, self.rows = {}, {}, {}
        for _, text, bits, kind in self.calls("types.def", "PTXGEN_TYPE"):
            self.types[text] = (int(bits), kind)
        for _, name, words in self.calls("fields.def", "PTXGEN_FIELD"):
            self.fields[name] = words.split()
        for name in ("arithmetic", "memory", "control", "async", "matrix"):
            for arguments in self.calls(f"ops_{name}.def", "PTXGEN_OP"):
                row = Row(self, *arguments)
                row.file = name
                self.rows[row.ident] = row
        self.by_mnemonic = {}
        for row in self.rows.values():
            self.by_mnemonic.setdefault(row.mnemonic, []).append(row)

    @staticmethod
    def calls(file, macro):
        with open(os.path.join(PTX, file), encoding="utf-8") as stream:
            yield from macro_calls(stream.read(), macro)


def macro_calls(text, macro):
    """Arguments of each `macro(...)`, string literals joined and unquoted."""
    text = re.sub(r"^\s*//.*$|^\s*#.*$", "", text, flags=re.M)
    for start in re.finditer(re.escape(macro) + r"\(", text):
        arguments, current = [], ""
        for token in re.finditer(r'"((?:[^"\\]|\\.)*)"|([(),])|(\s+)|([^"(),\s]+)',
                                 text[start.end():]):
            literal, mark, _, other = token.groups()
            if literal is not None:
                current += literal
            elif other:
                current += other
            elif mark in (",", ")"):
                arguments.append(current)
                current = ""
                if mark == ")":
                    break
        yield arguments


def split_operands(text):
    """Top level operands; (text, joined) each, `d|p` taken apart."""
    found, depth, current = [], 0, ""
    joined = False
    for char in text + ",":
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        if depth == 0 and char in ",|":
            if current.strip():
                found.append((current.strip(), joined))
            joined = char == "|"
            current = ""
        else:
            current += char
    return found


def register_type(text):
    """Declared type of a pool register; None for anything else."""
    match = re.fullmatch(r"%([a-z]+)(\d+)", text)
    if match and match.group(1) in POOLS and int(match.group(2)) < 32:
        return POOLS[match.group(1)]
    return None


def fits(text, operand, wanted, table):
    """Whether one plain operand is allowed where `operand` with type `wanted` is expected."""
    if text == "_":
        return operand.sink
    declared = register_type(text)
    if declared is None:
        if operand.destination or operand.kind in ("%", "!"):
            return False
        if operand.kind == "&" and re.fullmatch(r"[A-Za-z_$][\w$]*(\+\d+)?", text):
            return True
        special = text.startswith("%")
        if special:
            return operand.kind != "#"
        return bool(re.fullmatch(r"-?\d+|0[fd][0-9A-F]+", text))
    if operand.kind == "#":
        return False
    if wanted is None:
        return True
    bits, kind = table.types[declared]
    if kind == "Predicate" or wanted[1] == "Predicate":
        return kind == wanted[1]
    if bits != wanted[0] and not (operand.relaxed and bits > wanted[0]):
        return False
    if "Bits" in (kind, wanted[1]):
        return True
    integers = ("Unsigned", "Signed")
    return kind == wanted[1] or (kind in integers and wanted[1] in integers)


def match_operands(row, taken, operands, table):
    at = 0
    for spec in row.operands:
        holds = spec.holds(taken, row)
        if holds is False:
            continue
        if at == len(operands) or operands[at][1] != spec.joined:
            if holds is None:
                continue
            return False
        text = operands[at][0]
        at += 1
        if spec.memory:
            if not text.startswith("["):
                return False
            continue
        if spec.name in ("label", "table", "callee", "returns", "arguments"):
            continue
        if spec.kind == "!":
            text = text.removeprefix("!")
        wanted = spec.type_of(taken, row, table)
        count = spec.vector(taken, row)
        if count:
            if not text.startswith("{"):
                return False
            parts = [t for t, _ in split_operands(text[1:-1])]
            if len(parts) != count or not all(fits(p, spec, wanted, table) for p in parts):
                return False
        elif text.startswith("{") and (spec.braces or spec.count == "v"):
            if not fits(text[1:-1].strip(), spec, wanted, table):
                return False
        elif text[0] in "{[(" or not fits(text, spec, wanted, table):
            return False
    return at == len(operands)


def match_line(table, text):
    """(row, words) of the first row that the line matches, or None."""
    body = re.sub(r"^@!?%p\d+ ", "", text).removesuffix(";")
    opcode, _, rest = body.partition(" ")
    mnemonic, *words = opcode.split(".")
    operands = split_operands(rest)
    for row in table.by_mnemonic.get(mnemonic, []):
        taken = row.match_words(words)
        if taken is not None and match_operands(row, taken, operands, table):
            return row, words
    return None


class Assembler:
    def __init__(self, path):
        self.path = path
        pools = [f"  .reg .{type_} %{name}<32>;" for name, type_ in POOLS.items()]
        self.pools = "\n".join(pools)
        self.broken = set()  # targets this ptxas does not know

    def refused(self, lines, version, target, whole):
        """{index: message} of the lines refused; `whole` goes on to generate code."""
        found = {}
        while len(found) < len(lines):
            errors, crashed = self.run(lines, found, version, target, whole)
            found.update(errors)
            if errors:
                continue
            if not crashed:
                break
            left = [i for i in range(len(lines)) if i not in found]
            if len(left) == 1:
                found[left[0]] = "ptxas crashed"
                break
            for part in (left[:len(left) // 2], left[len(left) // 2:]):
                inner = self.refused([lines[i] for i in part], version, target, whole)
                found.update({part[i]: message for i, message in inner.items()})
            break
        return found

    def run(self, lines, skip, version, target, whole):
        text = PRELUDE.format(version=version, target=target, pools=self.pools)
        # q registers are unknown below PTX 8.3 and sm_70.
        if version_key(version) < (8, 3):
            text = text.replace("  .reg .b128 %q<32>;\n", "")
        first = text.count("\n") + 1
        for index, line in enumerate(lines):
            text += ("" if index in skip else line) + "\n"
        text += "L0:\nL1:\n  ret;\n" + ("" if whole else "  poison.s33 %r1;\n") + "}\n"
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text)
            file.flush()
            result = subprocess.run(
                [self.path, f"-arch=sm_{target}", "-O0", "-o", os.devnull, file.name],
                capture_output=True, text=True, check=False)
        errors = {}
        for number, message in re.findall(r"line (\d+); \w+\s*: (.*)", result.stdout +
                                          result.stderr):
            index = int(number) - first
            if "error" in result.stderr + result.stdout and 0 <= index < len(lines):
                if "advisory" not in message and not message.startswith("Advisory"):
                    errors.setdefault(index, message)
        # A signal, or an error that is no line's: the lines after it were not looked at.
        crashed = result.returncode < 0 or (whole and result.returncode != 0)
        return errors, crashed and not errors


def combinations(row, limit):
    choices = [words + ([None] if optional else []) for _, words, optional, _ in row.slots]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total <= limit:
        return list(itertools.product(*choices))
    chooser = random.Random(row.ident)
    return sorted({tuple(chooser.choice(c) for c in choices) for _ in range(limit)}, key=str)


def example(row, taken, table, number):
    """A line with these words and made-up operands."""
    text = row.mnemonic + "".join("." + w for w in taken if w)
    out = ""
    for position, spec in enumerate(row.operands):
        holds = spec.holds(taken, row)
        if holds is False or (holds is None and number % 2):
            continue
        wanted = spec.type_of(taken, row, table)

        def register(index, wanted=wanted):
            if wanted is None:
                return f"%r{index}"
            bits, kind = wanted
            if kind == "Float" and bits >= 32:
                return f"%{'f' if bits == 32 else 'fd'}{index}"
            names = {1: "p", 4: "b", 8: "b", 16: "h", 32: "r", 64: "rd", 128: "q"}
            return f"%{names[bits]}{index}"
        if spec.memory:
            operand = "[%rd1]"
        elif spec.kind == "#":
            operand = "0"
        elif spec.relaxed and wanted and wanted[0] < 16:
            operand = f"%h{position}"
        else:
            count = spec.vector(taken, row)
            operand = register(position + 1)
            if count:
                parts = [register(position + 1 + i) for i in range(count)]
                operand = "{" + ", ".join(parts) + "}"
        out += ("|" if spec.joined else ", " if out else "") + operand
    return f"{text} {out};" if out else text + ";"


def read_lines(names):
    lines = []
    folder = os.path.join(ROOT, "tests", "ptx")
    for file in sorted(os.listdir(folder)):
        match = re.fullmatch(r"lines_(\w+)\.def", file)
        if match and (not names or match.group(1) in names):
            with open(os.path.join(folder, file), encoding="utf-8") as stream:
                text = stream.read()
            lines += [(*line, False) for line in macro_calls(text, "PTXGEN_LINE")]
            lines += [(*line, True) for line in macro_calls(text, "PTXGEN_LAX_LINE")]
    return lines


def check(lines, assembler, whole, report):
    """lines: (text, row, words). Calls report(text, row, what) for each claim that fails."""
    jobs = {}
    for line in lines:
        _, row, words = line
        for target, target_version in TARGETS.items():
            lowest = row.lowest_version(words, target)
            if lowest is None:
                jobs.setdefault((target, "9.0", False), []).append(line)
                continue
            jobs.setdefault((target, lowest, True), []).append(line)
            before = VERSIONS[VERSIONS.index(lowest) - 1] if lowest != VERSIONS[0] else None
            if before and version_key(before) >= version_key(target_version):
                jobs.setdefault((target, before, False), []).append(line)

    def work(job):
        (target, version, expected), batch = job
        found = {}
        for start in range(0, len(batch), 400):
            part = [line[0] for line in batch[start:start + 400]]
            for index, message in assembler.refused(part, version, target,
                                                    whole and expected).items():
                found[start + index] = message
        return found

    ordered = sorted(jobs.items())
    with ThreadPoolExecutor(2) as pool:
        for ((target, version, expected), batch), found in zip(ordered, pool.map(work, ordered)):
            for index, (text, row, _) in enumerate(batch):
                where = f"sm_{target} PTX {version}"
                if expected and index in found:
                    report(text, row, target, version, f"refused at {where}: {found[index]}")
                if not expected and index not in found:
                    report(text, row, target, version, f"accepted at {where}, below its needs")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--limit", type=int, default=300, help="combinations per row")
    parser.add_argument("--row", action="append", help="only rows whose id matches this pattern")
    parser.add_argument("parts", nargs="*", help="arithmetic, memory, control, async, matrix")
    options = parser.parse_args()
    table = Table()
    assembler = Assembler(options.ptxas)
    try:
        subprocess.run([options.ptxas, "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print(f"SKIP: no ptxas found as '{options.ptxas}'")
        return 77

    def wanted(row):
        if options.parts and row.file not in options.parts:
            return False
        return not options.row or any(re.fullmatch(r, row.ident) for r in options.row)

    failures = 0
    lines, lax = [], set()
    if options.sweep:
        for row in filter(wanted, table.rows.values()):
            for number, taken in enumerate(combinations(row, options.limit)):
                text = example(row, taken, table, number)
                lines.append((text, row, [w for w in taken if w]))
    else:
        seen = set()
        for ident, text, is_lax in read_lines(options.parts):
            if ident not in table.rows:
                print(f"{ident}: no such row")
                failures += 1
                continue
            matched = match_line(table, text)
            seen.add(ident)
            if not wanted(table.rows[ident]):
                continue
            if matched is None or matched[0].ident != ident:
                got = matched[0].ident if matched else "nothing"
                print(f"{ident}: '{text}' matches {got}")
                failures += 1
            else:
                lines.append((text, *matched))
                if is_lax:
                    lax.add(text)
        for row in filter(wanted, table.rows.values()):
            if row.ident not in seen:
                print(f"{row.ident}: no test line")
                failures += 1

    per_line = {}

    def report(text, row, target, version, what):
        if text in lax and "accepted" in what:
            return
        per_line.setdefault((row.ident, text), []).append((target, version, what))

    check(lines, assembler, not options.sweep, report)
    for (ident, text), found in sorted(per_line.items()):
        refused = sum("refused" in what for _, _, what in found)
        if refused == len(TARGETS):
            print(f"{ident}: {text}\n    refused everywhere: {found[0][2].partition(': ')[2]}")
            continue
        print(f"{ident}: {text}\n    {found[0][2]}")
        others = [f"{t}@{v}{'-' if 'refused' in w else '+'}" for t, v, w in found[1:]]
        if others:
            print("    also (+ accepted, - refused): " + " ".join(others))
    failures += len(per_line)
    print(f"{len(lines)} lines, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
