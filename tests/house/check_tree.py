#!/usr/bin/env python3
# tests/house/check_tree.py - layers, file headers, file length, machine paths
"""usage: check_tree.py SOURCE_DIR | --self-test

Fails when a file of the tree breaks one of these rules:
  layer    a module includes a module of an upper or the same layer (docs/architecture.md)
  include  an include that leaves its folder by `..`, or a public header that includes what costs
           too much or must stay inside (docs: architecture, style)
  header   the first line is not `// path/file.cpp - purpose in under ten words`
  length   800 lines or more, and no `long because ...` in the header line; not in src and include,
           where check_functions.py measures functions
  paths    a path that exists on one machine only, or a name of a private package host
  plural   a plural made by hand in src, where count_text (support/count.hpp) makes it"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LAYER_TABLE = "docs/architecture.md"
LAYER_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \|", re.M)


def read_layers(source):
    """Module -> layer from the table of docs/architecture.md. Upper layers may include lower ones;
    modules of one layer do not include each other. `all` is the umbrella header over the whole
    library, below those that may include it; tests may include anything."""
    layers = {}
    for layer, folders in LAYER_ROW.findall((source / LAYER_TABLE).read_text(encoding="utf-8")):
        for folder in re.findall(r"`([\w/]+)`", folders):
            layers[Path(folder).name] = int(layer)
    if len(layers) < 2:
        raise SystemExit(f"{LAYER_TABLE} has no table of layers: rows '| 3 | `src/builder` | ... |'")
    layers["all"] = max(layers.values()) - 0.5
    return layers


MAX_LINES = 800
CODE = (".cpp", ".hpp", ".h", ".cu", ".inc")
SCRIPT = (".py", ".cmake", ".sh")
BANNED_IN_PUBLIC = ("functional", "memory", "iostream", "filesystem", "regex", "fstream", "sstream",
                    "map", "unordered_map", "mutex", "thread", "spdlog/", "fmt/", "nlohmann/",
                    "CLI/")
# Public headers that no other header includes and that need a library of the host application.
FOR_HOSTS = ("include/ptxgen/log_spdlog.hpp",)

# Written in pieces, or this file would find itself. The temporary folder itself is a fact of POSIX,
# a file in it is not; /home/me stands for anybody's.
MACHINE_PATHS = re.compile(r"(?<![\w.$}/-])/(?:(?:wo" r"rk|ro" r"ot|mn" r"t)\b(?![\w-]*\.hpp)"
                           r"|tm" r"p/\w|ho" r"me/(?!me\b))")
# `count == 1 ? " byte" : " bytes"` and `count == 1 ? "" : "s"`.
HAND_MADE_PLURAL = re.compile(r'== 1 \? (?:" ?(\w+)\b[^"]*" : " ?\1e?s\b|"" : "e?s")')
PRIVATE_HOSTS = re.compile("|".join(["arti" "factory", "ne" "xus\\.", "127\\.0\\." "0\\.1"]))


def module_of(path):
    """The module that a file of the tree belongs to, or None where no layer applies."""
    parts = Path(path).parts
    if parts[:2] == ("include", "ptxgen"):
        if len(parts) > 3:
            return parts[2]
        stem = Path(parts[2]).stem
        if stem in ("version", "log_spdlog"):
            return "support"
        if stem == "ptxgen":
            return "capi" if parts[2].endswith(".h") else "all"
        return stem
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] in ("examples", "bench"):
        return parts[0]
    return None


def included_module(name, layers):
    """The module that `#include "name"` leads to, or None for others' headers."""
    parts = Path(name).parts
    if parts[0] == "ptxgen":
        return module_of(Path("include") / name)
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if len(parts) > 1 and parts[0] in layers:  # include path src/
        return parts[0]
    return None


def check_file(path, text, layers):
    """Findings of one file as (line, rule, message)."""
    suffix = Path(path).suffix
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()

    for number, line in enumerate(lines, 1):
        for pattern in (MACHINE_PATHS, PRIVATE_HOSTS):
            if found := pattern.search(line):
                yield number, "paths", (f"'{found.group()}' means something on one machine only; "
                                        "use a relative path or an option")

    if suffix in CODE and path.startswith("src/"):
        for number, line in enumerate(lines, 1):
            if HAND_MADE_PLURAL.search(line):
                yield number, "plural", "write count_text(count, \"noun\") of support/count.hpp"

    if suffix in CODE + SCRIPT or Path(path).name == "CMakeLists.txt":
        yield from check_header_line(path, lines, "//" if suffix in CODE else "#")
        measured_by_function = path.startswith(("src/", "include/"))
        if (len(lines) >= MAX_LINES and not measured_by_function
                and "long because " not in "".join(lines[:2])):
            yield len(lines), "length", (
                f"{len(lines)} lines, a file has fewer than {MAX_LINES}: split it, or say in the "
                "header line 'long because ...'")
    if suffix in CODE:
        yield from check_includes(path, lines, layers)


def check_header_line(path, lines, comment):
    first = 1 if lines and lines[0].startswith("#!") else 0
    shown = Path(path)
    if shown.parts[0] == "include":
        shown = shown.relative_to("include")
    line = lines[first] if first < len(lines) else ""
    prefix = f"{comment} {shown} - "
    if not line.startswith(prefix) or not line[len(prefix):].strip():
        yield first + 1, "header", f"the first line must be '{prefix}purpose in under ten words'"
        return
    purpose = re.split(r"[;,]? long because ", line[len(prefix):])[0]
    if len(purpose.split()) > 10:
        yield first + 1, "header", f"the purpose has {len(purpose.split())} words, ten are the most"


def check_includes(path, lines, layers):
    module = module_of(path)
    public = path.startswith("include/") and path not in FOR_HOSTS
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not found:
            continue
        name = found.group(1)
        if ".." in Path(name).parts:
            yield number, "include", f"'{name}' leaves its folder: include it from src/ or include/"
            continue
        if public and any(name == banned or (banned.endswith("/") and name.startswith(banned))
                          for banned in BANNED_IN_PUBLIC):
            yield number, "include", f"<{name}> does not belong into a public header"
        if public and "/" in name and not name.startswith("ptxgen/"):
            yield number, "include", f"'{name}' is not installed with the public headers"
        other = included_module(name, layers)
        if module is None or other is None or module == other:
            continue
        if module not in layers or other not in layers:
            unknown = module if module not in layers else other
            yield number, "layer", f"'{unknown}' has no row in the table of {LAYER_TABLE}"
        elif layers[other] >= layers[module]:
            where = "an upper one" if layers[other] > layers[module] else "the same one"
            yield number, "layer", (f"{module} (layer {layers[module]}) includes '{name}' of {other} "
                                    f"(layer {layers[other]}): a layer may not include {where}")


def files_of(source):
    """Tracked and new files, or everything outside build/ where there is no repository."""
    listed = subprocess.run(["git", "-C", str(source), "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
    top = subprocess.run(["git", "-C", str(source), "rev-parse", "--show-toplevel"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    if listed.returncode == 0 and top.stdout and Path(top.stdout.strip()) == source.resolve():
        names = listed.stdout.decode().split("\0")
        return sorted(name for name in names if name and (source / name).is_file())
    return sorted(str(path.relative_to(source)) for path in source.rglob("*")
                  if path.is_file() and path.relative_to(source).parts[0] not in (".git", "build"))


def check_tree(source):
    findings = []
    layers = read_layers(source)
    checked = 0
    for name in files_of(source):
        try:
            text = (source / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # seeds of a fuzzer and the like
        checked += 1
        findings += [f"{name}:{line}: {message} [{rule}]"
                     for line, rule, message in check_file(name, text, layers)]
    return checked, findings


SELF_TEST_LAYERS = """| 6 | `src/cli`, `src/capi` | x |
| 5 | `src/runtime` | x |
| 4 | `src/kernels` | x |
| 3 | `src/builder` | x |
| 3 | `src/optimize` | x |
| 1 | `src/ptx` | x |
| 0 | `src/support` | x |
"""


def self_test():
    """Every rule must find its violation, and nothing else."""
    wrong = {
        "src/ptx/a.cpp": ("layer", "// src/ptx/a.cpp - x\n#include \"ptxgen/builder/b.hpp\"\n"),
        "src/builder/b.cpp": ("layer", "// src/builder/b.cpp - x\n"
                              "#include \"optimize/pass.hpp\"\n"),
        "src/kernels/c.cpp": ("layer", "// src/kernels/c.cpp - x\n#include <ptxgen/runtime.hpp>\n"),
        "include/ptxgen/ptx/d.hpp": ("layer", "// ptxgen/ptx/d.hpp - x\n"
                                     "#include \"ptxgen/ptxgen.hpp\"\n"),
        "src/runtime/e.cpp": ("include", "// src/runtime/e.cpp - x\n#include \"../cli/x.hpp\"\n"),
        "include/ptxgen/f.hpp": ("include", "// ptxgen/f.hpp - x\n#include <functional>\n"),
        "include/ptxgen/log_spdlog.hpp": ("layer", "// ptxgen/log_spdlog.hpp - x\n"
                                          "#include \"ptxgen/ptx/ir.hpp\"\n"),
        "include/ptxgen/ptx/g.hpp": ("include", "// ptxgen/ptx/g.hpp - x\n#include <fmt/core.h>\n"),
        "src/ptx/h.cpp": ("header", "// src/ptx/other.cpp - x\n"),
        "src/ptx/i.cpp": ("header", "// src/ptx/i.cpp - one two three four five six seven eight "
                          "nine ten eleven\n"),
        "cmake/j.cmake": ("header", "set(a b)\n"),
        "tests/ptx/k.cpp": ("length", "// tests/ptx/k.cpp - x\n" + "\n" * 799),
        "docs/l.md": ("paths", "built in /" + "work/main\n"),
        "scripts/m": ("paths", "#!/bin/bash\ncd /" + "tmp/x\n"),
        "docs/o.md": ("paths", "see /" + "home/ann/x\n"),
        "src/ptx/p.cpp": ("plural", "// src/ptx/p.cpp - x\n"
                          "auto t = number(n) + (n == 1 ? \" byte\" : \" bytes\");\n"),
        "src/ptx/q.cpp": ("plural", "// src/ptx/q.cpp - x\nauto s = n == 1 ? \"\" : \"s\";\n"),
        "docs/n.md": ("paths", "see https://arti" + "factory.example/\n"),
    }
    right = {
        "src/ptx/a.cpp": "// src/ptx/a.cpp - x\n#include \"ptxgen/support/error.hpp\"\n"
                         "#include \"ptxgen/ptx/module.hpp\"\n#include \"ptx/lexer.hpp\"\n",
        "src/cli/b.cpp": "// src/cli/b.cpp - x\n#include <ptxgen/ptxgen.hpp>\n".replace(
            "ptxgen/ptxgen", "ptxgen/runtime"),
        "include/ptxgen/ptxgen.hpp": "// ptxgen/ptxgen.hpp - x\n#include \"ptxgen/runtime.hpp\"\n",
        "include/ptxgen/version.hpp": "// ptxgen/version.hpp - x\n",
        "include/ptxgen/log_spdlog.hpp": "// ptxgen/log_spdlog.hpp - x\n#include <memory>\n"
                                         "#include <spdlog/logger.h>\n",
        "src/ptx/c.cpp": "// src/ptx/c.cpp - x\n" + "\n" * 900,
        "tests/ptx/c.cpp": "// tests/ptx/c.cpp - one table; long because it is one\n" + "\n" * 900,
        "tests/ptx/d.cpp": "// tests/ptx/d.cpp - x\n#include <ptxgen/runtime.hpp>\n",
        "scripts/e.py": "#!/usr/bin/env python3\n# scripts/e.py - x\n",
        "docs/f.md": "see build/work/x, $HOME/work, /tmp, /home/me/.cache and https://docs.nvidia.com/home/\n",
        "data.bin": "\x00\x01",
    }
    failures = []
    for cases, is_wrong in ((wrong, True), (right, False)):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / LAYER_TABLE).parent.mkdir(parents=True)
            (root / LAYER_TABLE).write_text(SELF_TEST_LAYERS)
            for name, content in cases.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content[1] if is_wrong else content)
            checked, findings = check_tree(root)
            if checked != len(cases) + 1:  # and the table
                failures.append(f"{len(cases)} files were written and {checked} were checked")
            for name, content in cases.items():
                mine = [text for text in findings if text.startswith(name + ":")]
                rules = [re.search(r"\[(\w+)\]$", text).group(1) for text in mine]
                if rules[:1] != ([content[0]] if is_wrong else []) or len(set(rules)) > 1:
                    failures.append(f"{name}: expected {content[0] if is_wrong else 'nothing'}, "
                                    f"found {mine}")
    print("\n".join(failures) or f"{len(wrong)} violations found, {len(right)} good files passed")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    checked, findings = check_tree(Path(sys.argv[1]))
    print("\n".join(findings))
    print(f"{checked} files checked, {len(findings)} findings")
    return 1 if findings or checked == 0 else 0


sys.exit(main())
