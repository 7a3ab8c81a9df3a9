# tests/mutation/mutant_tree.py - the built copy, and what a mutant rebuilds
"""One copy of the project is built once and then left alone. A mutant compiles only what its change
reaches, in a mirror of the sources, and links it in front of the library; so mutants can be judged
side by side, and nothing has to be put back.
"""
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time

SOURCES = ("src", "include")
MEMORY = 8 << 30  # bytes that a mutant may write before it is taken for one that never ends
LOOK = 0.2  # seconds between two looks at that
LIBRARY = "CMakeFiles/ptxgen.dir/"  # its objects
PREFIX = "precompiled.hpp"
PRECOMPILED = ("#include <",) + tuple(f'#include "ptxgen/{module}'
                                      for module in ("support", "ptx/", "ptx.", "analysis"))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    """Leaves a file alone that is already so, so that it is not built again."""
    if os.path.isfile(path) and read(path) == content:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def said_by(call, folder):
    """None if the command succeeds, else the end of what it printed."""
    run = subprocess.run(call, cwd=folder, capture_output=True, text=True, errors="replace")
    return (run.stdout + run.stderr)[-4000:] if run.returncode else None


def resident(pid):
    """The bytes of memory that the process has touched; 0 where that is not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def passes(command, folder, timeout):
    """(whether the program passes, how it ended, the end of what it printed)

    What it has touched is looked at now and then. A limit of the system would count what it only
    reserves: the emulator takes many times the machine's memory, and tests depend on it."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    end = time.monotonic() + timeout
    while True:
        try:
            output, _ = process.communicate(timeout=min(LOOK, max(0, end - time.monotonic())))
            break
        except subprocess.TimeoutExpired:
            too_large = resident(process.pid) > MEMORY
            if too_large or time.monotonic() >= end:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return False, "too large" if too_large else "timeout", ""
    if process.returncode in (0, 77):  # 77: a case was skipped, none failed
        return True, "passed", ""
    return False, "failed", output.decode(errors="replace")[-2000:]


class Tree:
    """The copy of `root` in the folder `work`, with one build."""

    def __init__(self, root, work, jobs):
        self.root, self.work, self.jobs = root, work, jobs
        self.build_folder = os.path.join(work, "build", "dev")
        self.linker = ["-fuse-ld=lld"] if shutil.which("ld.lld") else []
        self.commands, self.including = None, None

    def files(self):
        """What belongs to the project, by git where it is one of its checkouts."""
        call = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(call, cwd=self.root, capture_output=True)
        if listed.returncode == 0:
            return sorted(name for name in listed.stdout.decode().split("\0") if name)
        names = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if f != "build" and not f.startswith(".")]
            names += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
        return sorted(names)

    def prepare(self, programs):
        """Copies the tree and builds the programs; None, or what was said against it."""
        for name in self.files():
            source = os.path.join(self.root, name)
            if os.path.isfile(source):
                write(os.path.join(self.work, name), read(source))
                shutil.copymode(source, os.path.join(self.work, name))
        # What a mutant leaves unused is no reason not to run it.
        call = ["cmake", "--preset", "dev", "-DPTXGEN_BUILD_CLI=OFF", "-DPTXGEN_BUILD_EXAMPLES=OFF",
                "-DPTXGEN_WERROR=OFF"]
        said = said_by(call, self.work)
        if said is not None:
            return said
        call = ["cmake", "--build", self.build_folder, "--parallel", str(self.jobs), "--target"]
        return said_by(call + programs, self.work)

    def digest(self, program):
        """Of all that decides what the program says: itself, and the files that tests read."""
        digest = hashlib.sha256(read(os.path.join(self.build_folder, "tests", program)))
        for name in self.files():
            path = os.path.join(self.work, name)
            if name.startswith("tests/") and not name.endswith((".cpp", ".hpp", ".py", ".md")):
                if not name.startswith("tests/mutation/") and os.path.isfile(path):
                    digest.update(name.encode() + read(path))
        return digest.hexdigest()

    def read_build(self):
        """How each object is compiled, and for each header the objects that include it."""
        with open(os.path.join(self.build_folder, "compile_commands.json"), encoding="utf-8") as file:
            calls = [(shlex.split(c["command"]), c["file"]) for c in json.load(file)]
        self.commands = {call[call.index("-o") + 1]: (call, source) for call, source in calls}
        self.including = {}
        run = subprocess.run(["ninja", "-t", "deps"], cwd=self.build_folder, capture_output=True,
                             text=True, check=True)
        for line in run.stdout.splitlines():
            if line and not line.startswith(" "):
                target = line.split(":")[0]
            elif line:
                name = os.path.normpath(os.path.join(self.build_folder, line.strip()))
                self.including.setdefault(name, []).append(target)

    def objects_of(self, file):
        """The objects that a change of the file reaches."""
        if self.commands is None:
            self.read_build()
        path = os.path.join(self.work, file)
        built = [target for target, (_, source) in self.commands.items() if source == path]
        return built or self.including.get(path, [])

    def mirror(self, folder, files):
        """A copy of the sources in the folder, in which these files are changed one at a time."""
        for name in self.files():
            if name.startswith(tuple(s + "/" for s in SOURCES)):
                source = os.path.join(self.work, name)
                if os.path.isfile(source):
                    write(os.path.join(folder, name), read(source))
        self.precompile(folder, files)

    def precompile(self, folder, files):
        """Standard and low public headers of the files, which are most of what a mutant compiles.

        Of all files together, so none whose names are ambiguous after `using namespace ptx`, as
        the builder's are."""
        headers = set()
        for file in files:
            for line in read(os.path.join(self.work, file)).decode().splitlines():
                if line.startswith(PRECOMPILED):
                    headers.add(line)
        prefix = os.path.join(folder, PREFIX)
        write(prefix, ("\n".join(sorted(headers)) + "\n").encode())
        targets = [t for file in files for t in self.objects_of(file) if t.startswith(LIBRARY)]
        if targets:
            call = self.mirrored(targets[0], folder, prefix + ".gch")
            call[call.index("-c") + 1] = prefix
            call[call.index("-c"):call.index("-c")] = ["-x", "c++-header"]
            said_by(call, self.build_folder)  # without it everything takes longer, no more

    def compile(self, file, content, folder):
        """({object: where it is compiled with this content}, None or what the compiler said)"""
        path = os.path.join(folder, file)
        original = read(path)
        objects = {}
        write(path, content)
        try:
            for target in self.objects_of(file):
                objects[target] = os.path.join(folder, "objects", target)
                os.makedirs(os.path.dirname(objects[target]), exist_ok=True)
                call = self.mirrored(target, folder, objects[target])
                if target.startswith(LIBRARY) and not file.startswith("include/"):
                    call += ["-include", os.path.join(folder, PREFIX)]
                said = said_by(call, self.build_folder)
                if said is not None:
                    return {}, said
            return objects, None if objects else "nothing is built from it"
        finally:
            write(path, original)

    def mirrored(self, target, folder, output):
        call = list(self.commands[target][0])
        call[call.index("-o") + 1] = output
        for part in SOURCES:
            here, there = os.path.join(self.work, part), os.path.join(folder, part)
            call = [word.replace(here, there) for word in call]
        return call + ["-O0", "-g0", f"-ffile-prefix-map={folder}={self.work}"]

    def link(self, program, objects, folder):
        """(the command that runs the program with these objects, None or what the linker said)

        An object of the library is in front of the library, which then has nothing to add to
        it. Another one takes the place of the program's own."""
        target = os.path.join("tests", program)
        run = subprocess.run(["ninja", "-t", "commands", "-s", target], cwd=self.build_folder,
                             capture_output=True, text=True, check=True)
        links = [c for c in run.stdout.strip().split(" && ") if f" -o {target} " in c + " "]
        call = shlex.split(links[0])
        output = os.path.join(folder, program)
        call[call.index("-o") + 1] = output
        ours = [o for name, o in sorted(objects.items()) if name.startswith(LIBRARY)]
        call = [objects.get(word, word) for word in call]
        call[1:1] = ours + self.linker + ["-Wl,-S"]
        return self.run_call(output), said_by(call, self.build_folder)

    @staticmethod
    def run_call(path):
        return [path, "--abort", "--order", "decl"]
