#!/usr/bin/env python3
# tests/house/check_kernels.py - adding a kernel touches only its own files
"""usage: check_kernels.py SOURCE_DIR | --self-test

Reads the rows of kernels.def and prints a table: for each kernel its type, its header, its sources
and its users. Fails where adding or removing the kernel would change another file:
  own     a kernel has no header of its own, no source of its own, or a source without its line in
          src/kernels/CMakeLists.txt
  shared  a header or source of its own also belongs to a kernel that is not a form of it
  named   a file of src or include includes its header or names its type or entry, and is neither
          its own, nor kernels.def, nor a client (src/model, src/kernels/host,
          src/qa), nor a header or
          source of another kernel, nor listed below with a reason

The header is that of the row. A source is a file of the header's folder in src/kernels that
includes the header first or has its name, alone or with a suffix. A type's name counts where the
header can be seen through includes, an entry where the catalog can; `Enum::Name` is the name of
something else."""
import re
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from source_text import split

ROWS = "include/ptxgen/kernels/kernels.def"
UMBRELLA = "include/ptxgen/kernels.hpp"
DESCRIPTION = "include/ptxgen/kernels/description.hpp"
CMAKE = "src/kernels/CMakeLists.txt"
ROW = re.compile(r'#include "([^"]+)"\s*PTXGEN_KERNEL\((\w+)\)')
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
DOC = re.compile(r"KernelDoc\s+\w+(?:\[\])?\s*=?\s*(\{.*?\};)", re.S)
ENUM = re.compile(r"\benum class \w+[^{;]*\{[^}]*\}")
# Models, what runs on the host (a kernel may have a function there, none needs one), and the
# checklist, whose lines are about kernels that the specification names.
CLIENTS = ("src/model/", "include/ptxgen/model/", "src/kernels/host/", "src/qa/")

BENCH = ["src/cli/commands/bench_job.cpp"]
# Code that names a kernel without being a client or another kernel: the reason, and the files.
USERS = {
    "GemvProblem": ("a family: Launcher::gemv, plans on disk, the C API, commands of its own",
                    ["include/ptxgen/runtime/launch/launcher.hpp", "src/capi/launch.cpp",
                     "src/cli/commands/gemv.cpp", "src/cli/commands/gemv_job.cpp",
                     "src/cli/commands/gemv_job.hpp", "src/cli/commands/plan.cpp",
                     "src/cli/commands/predict.cpp", "src/cli_common/gemv_problem.cpp",
                     "src/runtime/launch/families.cpp",
                     "src/runtime/launch/launcher.cpp", "src/runtime/launch/tuned_json.cpp",
                     "src/runtime/launch/tuned_plans.cpp", "src/runtime/launch/tuned_plans.hpp"]),
    "GemmProblem": ("a family: Launcher::matmul, its ranking and predictions in the program",
                    ["src/cli/commands/gemm_ranking.cpp", "src/cli/commands/plan.cpp",
                     "src/runtime/launch/launcher.cpp"]),
    "GemmMma": ("predicted by name in the program", ["src/cli/commands/gemm_ranking.cpp"]),
    "GemmNaive": ("predicted by name in the program", ["src/cli/commands/gemm_ranking.cpp"]),
    "GemmTiled": ("predicted by name in the program", ["src/cli/commands/gemm_ranking.cpp"]),
    "FlashAttention": ("predicted by name in the program",
                       ["src/cli/commands/predict.cpp",
                        "include/ptxgen/kernels/attention/flash_predict.hpp"]),
    "FlashAttentionTensorCore": ("predicted by name in the program",
                                 ["src/cli/commands/predict.cpp",
                                  "include/ptxgen/kernels/attention/flash_predict.hpp"]),
    "FlashAttentionWgmma": ("predicted by name in the program",
                            ["src/cli/commands/predict.cpp",
                             "include/ptxgen/kernels/attention/flash_predict.hpp"]),
    "GemmWgmma": ("predicted by name in the program", ["src/cli/commands/gemm_ranking.cpp"]),
    "Dequantize": ("a gate of ptxgen qa for the blocks of a model",
                   ["src/cli/commands/qa_model.cpp"]),
    "Vadd": ("an operation of ptxgen bench, its default",
             [*BENCH, "src/cli/commands/bench.cpp"]),
    "Copy": ("an operation of ptxgen bench; the code of an error",
             [*BENCH, "src/runtime/launch/cold_rounds.cpp"]),
    "FmaRpt": ("an operation of ptxgen bench", BENCH),
}
# Kernels of one header that are no forms of one kernel.
TOGETHER = [{"Vadd", "Copy", "FmaRpt"}]  # the operations of ptxgen bench


def entries_of(header):
    """The entries that the descriptions of a header name: kName, or a KernelDoc's first text."""
    names = set(re.findall(r'\bkName = "(\w+)"', header))
    for doc in DOC.findall(header):
        names.update(re.findall(r'\{\s*"(\w+)",', doc))
        names.update(re.findall(r'"(\w+)"', doc.split(",")[0]))
    return names


class Tree:
    """The texts of src and include, their includes, and what each can see."""

    def __init__(self, source):
        self.texts = {}
        for folder in ("src", "include"):
            for path in sorted((source / folder).rglob("*")):
                if path.suffix in (".cpp", ".hpp", ".h", ".def"):
                    name = path.relative_to(source).as_posix()
                    self.texts[name] = path.read_text(encoding="utf-8")
        self.includes = {name: [self.resolved(target) for target in INCLUDE.findall(text)]
                         for name, text in self.texts.items()}
        self.seen, self.parts = {}, {}
        self.cmake = re.findall(r"[\w/.]+", (source / CMAKE).read_text(encoding="utf-8"))

    def resolved(self, target):
        for folder in ("include/", "src/"):
            if folder + target in self.texts:
                return folder + target
        return target

    def read(self, name):
        """The code of a file without enumerations, and its strings of one word."""
        if name not in self.parts:
            code, prose = split(self.texts[name])
            strings = re.findall(r'"(\w+)"', re.sub(r"//.*|/\*.*?\*/", "", prose))
            self.parts[name] = (ENUM.sub("", code), set(strings))
        return self.parts[name]

    def visible(self, name):
        """The files that `name` includes, directly or not."""
        if name not in self.seen:
            found, queue = set(), [name]
            while queue:
                for target in self.includes.get(queue.pop(), ()):
                    if target not in found:
                        found.add(target)
                        queue.append(target)
            self.seen[name] = found
        return self.seen[name]


class Kernel:
    def __init__(self, tree, header, type_name):
        self.type = type_name
        self.header = "include/" + header
        text = tree.texts.get(self.header, "")
        # A form of a template is described by the template: GeluErf is Gelu<GeluForm::Erf>.
        alias = re.search(rf"\busing {type_name} = (\w+)<", text)
        self.names = {type_name} | ({alias.group(1)} if alias else set())
        # Of several in one header the one that the type is called by, if one is.
        entries = entries_of(text)
        same = {name for name in entries if name.replace("_", "") == type_name.lower()}
        self.entries = same or entries
        self.sources = sorted(self.find_sources(tree))
        self.users = []

    def own(self):
        return [self.header, *self.sources]

    def find_sources(self, tree):
        stem, folder = Path(self.header).stem, "src/kernels/" + Path(self.header).parent.name + "/"
        for name, includes in tree.includes.items():
            if not name.startswith(folder):
                continue
            path = Path(name)
            belongs = path.stem == stem or (path.stem.startswith(stem + "_")
                                            and self.header in tree.visible(name))
            if belongs or includes[:1] == [self.header]:
                yield name


def read_kernels(tree):
    """The rows of kernels.def. A source that fits several headers is that of the longest name; a
    folder's files without a header belong to the kernel of the folder that has no other source."""
    kernels = [Kernel(tree, header, name) for header, name in ROW.findall(tree.texts[ROWS])]
    stems = {kernel.header: len(Path(kernel.header).stem) for kernel in kernels}
    for kernel in kernels:
        kernel.sources = [name for name in kernel.sources if not any(
            name in other.sources and stems[other.header] > stems[kernel.header]
            for other in kernels)]
    taken = {name for kernel in kernels for name in kernel.own()}
    for kernel in kernels:
        if not kernel.sources:
            folder = "src/kernels/" + Path(kernel.header).parent.name + "/"
            public = str(Path(kernel.header).parent) + "/"
            kernel.sources = [name for name in tree.texts
                              if name.startswith((folder, public)) and name not in taken]
    return kernels


def names_it(kernel, tree, name):
    """Whether a file includes the kernel's header, names its type, or has its entry in a string."""
    code, strings = tree.read(name)
    knows_kernels = not tree.visible(name).isdisjoint((UMBRELLA, DESCRIPTION))
    if kernel.header in tree.includes[name] or knows_kernels and strings & kernel.entries:
        return True
    if kernel.header not in tree.visible(name):
        return False
    return any(re.search(rf"(?<!::)\b{word}\b|\bptxgen::{word}\b", code) for word in kernel.names)


def are_forms(one, other):
    """Whether two kernels are forms of one: Swiglu and BatchedSwiglu, GeluErf and GeluTanh."""
    a, b = sorted((one.type, other.type), key=len)
    common = next((i for i, c in enumerate(a) if c != b[i]), len(a))
    return a in b or common >= 4 or any({a, b} <= together for together in TOGETHER)


def check_kernel(kernel, kernels, tree, findings):
    say = lambda rule, text: findings.append(f"{kernel.type}: {text} [{rule}]")
    if kernel.header not in tree.texts:
        say("own", f"{kernel.header}, the header of its row, is missing; add it")
    compiled = [name for name in kernel.sources if name.endswith(".cpp")]
    if not compiled:
        say("own", "no file of src/kernels includes its header first; give it a source of its own")
    for name in compiled:
        if name.removeprefix("src/kernels/") not in tree.cmake:
            say("own", f"{name} has no line in {CMAKE}; add it")
    for other in kernels:
        shared = sorted(set(kernel.own()) & set(other.own()))
        if shared and not are_forms(kernel, other):
            say("shared", f"{', '.join(shared)} belongs to {other.type} too; split it")
    others = {name for other in kernels for name in other.own()}
    listed = USERS.get(kernel.type, ("", []))[1]
    for name in tree.texts:
        if name in kernel.own() or name == ROWS or not names_it(kernel, tree, name):
            continue
        kernel.users.append(name)
        if not (name.startswith(CLIENTS) or name in others or name in listed):
            say("named", f"{name} names it; describe in {kernel.header} what that file needs to "
                         "know, or list the file with a reason in check_kernels.py")
    for name in listed:
        if name not in kernel.users:
            say("named", f"{name} is listed as its user and does not name it; remove it there")


def check(source):
    """(table, findings, number of kernels)"""
    tree, findings = Tree(source), []
    kernels = read_kernels(tree)
    umbrella = tree.texts.get(UMBRELLA, "")
    if umbrella.count(ROWS.removeprefix("include/")) != 1:
        findings.append(f"{UMBRELLA}: does not include kernels.def, once [own]")
    for kernel in kernels:
        check_kernel(kernel, kernels, tree, findings)
    lines = [f"{'kernel':22}{'header':45}{'sources':9}users"]
    for kernel in kernels:
        shown = [name.removeprefix("src/").removeprefix("include/") for name in kernel.users]
        lines.append(f"{kernel.type:22}{kernel.header.removeprefix('include/ptxgen/kernels/'):45}"
                     f"{len(kernel.sources):<9}{', '.join(shown) or '-'}")
    return lines, findings, len(kernels)


def self_test():
    """A good tree passes; each violation, planted alone, is found by its rule."""
    good = {
        ROWS: '#include "ptxgen/kernels/e/silu.hpp"\nPTXGEN_KERNEL(Silu)\n'
              '#include "ptxgen/kernels/e/relu.hpp"\nPTXGEN_KERNEL(Relu)\n',
        UMBRELLA: '#include "ptxgen/kernels/kernels.def"\n',
        DESCRIPTION: "struct KernelDescription;\n",
        CMAKE: "target_sources(x PRIVATE\n  e/silu.cpp\n  e/relu.cpp)\n",
        "include/ptxgen/kernels/e/silu.hpp": 'struct Silu {};\nKernelDoc text{"silu", "x"};\n',
        "include/ptxgen/kernels/e/relu.hpp": 'struct Relu {};\nKernelDoc text{"relu", "x"};\n',
        "src/kernels/e/silu.cpp": '#include "ptxgen/kernels/e/silu.hpp"\n',
        "src/kernels/e/relu.cpp": '#include "ptxgen/kernels/e/relu.hpp"\n',
        "src/model/forward.cpp": '#include "ptxgen/kernels.hpp"\nSilu silu;\n',
        "src/cli/a.cpp": '#include "ptxgen/kernels.hpp"\n// "silu", Silu\nint silu = X::Silu;\n'
                         "enum class X { Silu };\n",
    }
    wrong = [
        ("own", CMAKE, "target_sources(x PRIVATE\n  e/relu.cpp)\n"),
        ("own", "src/kernels/e/silu.cpp", None),
        ("own", "include/ptxgen/kernels/e/silu.hpp", None),
        ("own", UMBRELLA, '#include "ptxgen/kernels/e/silu.hpp"\n'),
        ("shared", ROWS, good[ROWS].replace("e/relu.hpp", "e/silu.hpp")),
        ("named", "src/runtime/a.cpp", '#include "ptxgen/kernels.hpp"\nSilu silu;\n'),
        ("named", "src/runtime/a.cpp", '#include "ptxgen/kernels/e/silu.hpp"\n'),
        ("named", "src/runtime/a.cpp",
         '#include "ptxgen/kernels/description.hpp"\nbool f(n) { return n == "silu"; }\n'),
    ]
    failures = []
    for rule, changed, text in [("", "", ""), *wrong]:
        files = {**good, **({changed: text} if changed else {})}
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                if content is not None:
                    path = Path(folder, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(content)
            findings = check(Path(folder))[1]
        found = {re.search(r"\[(\w+)\]$", text).group(1) for text in findings}
        if rule not in found and (rule or found):
            failures.append(f"{changed or 'the good tree'}: expected {rule or 'nothing'}, "
                            f"found {findings}")
    print("\n".join(failures) or f"{len(wrong)} violations found, the good tree passed")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    table, findings, kernels = check(Path(sys.argv[1]))
    print("\n".join([*table, *findings]))
    print(f"{kernels} kernels checked, {len(findings)} findings")
    return 1 if findings or kernels == 0 else 0


sys.exit(main())
