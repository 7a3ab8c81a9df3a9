#!/usr/bin/env python3
# tests/house/check_words.py - words that the field does not use
"""usage: check_words.py SOURCE_DIR | --self-test

Rejects words and phrases that have a standard term in the field: prints each place with the term to
write, and fails if there is one.

Prose is: comments and strings of C++, everything in documents, scripts and CMake files.
Identifiers are: names in C++ code, cut at underscores and capitals. Directories of PTX and CUDA
from other projects are not read."""
import functools
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from source_text import split

CODE = (".cpp", ".hpp", ".h", ".inc", ".def", ".c", ".in")
PROSE = (".md", ".py", ".cmake", ".txt", ".sh", "")
# Texts of others, and the file that names the words.
SKIPPED = ("tests/corpus/", "tests/house/check_words.py", "LICENSE")

_EACH = r"(?:each|every|first|last|next|previous|another|per|one|second|this|that|same|more)"
_IT = r"(?:an?|the|its|this|that|each|every)"

# The word, its replacement, the patterns in prose, the parts of identifiers.
WORDS = [
    ("room", "module, slot layout", [r"\brooms?\b"], ["room", "rooms"]),
    # tests/house and `house rules` are names.
    ("house", "code base", [r"(?<!tests/)(?<!src/)\bhouses?\b(?![/.]|[ -](?:tests?|rules?)\b)"], []),
    ("floor", "layer, level", [r"(?:\bone|\ban?|\bupper|\blower|\bground) floors?\b(?! ?\()",
                               r"\bfloors (?:above|below)\b", r"\bstor(?:e?ys?|eyed)\b(?<!story)"],
     ["storey"]),
    ("face", "front end, interface", [r"\b(?:an?|thin|its|the) faces?\b"], []),
    ("turn", "iteration", [rf"\b{_EACH} turns?\b", rf"\bturns? (?:of|round) {_IT}\b",
                           rf"\brounds? of {_IT} (?:\w+ )?loops?\b",
                           r"\bloops?(?:'s|s')? (?:rounds?|turns?)\b"], ["turn", "turns"]),
    ("behind", "after", [r"(?<!left )(?<!leave )(?<!leaves )\bbehind\b"], ["behind"]),
    ("word of an opcode", "modifier, qualifier",
     [rf"\bwords? (?:of|behind|after) {_IT} (?:\w+ )?(?:opcode|instruction|row|mnemonic)s?\b",
      r"\bdotted words?\b", r"\b(?:opcode|instruction|row|field|order)(?:'s)? words?\b"],
     ["word of", "words of"]),
    ("most, least", "max, min", [], ["most", "least"]),
    ("parted, meet, spoilt", "diverged, reconverge, divergent",
     [r"\b(?:un)?(?:parted|spoilt)\b", r"\bmeets? again\b",
      r"\b(?:threads?|lanes?|splits?|paths?|warps?) (?:that |which )?(?:meet|met|part)\b"],
     ["parted", "spoilt", "meet", "meets"]),
    ("story", "arrival trace", [r"\bstor(?:y|ies)\b"], ["story", "stories"]),
    ("parting, turned, stayed", "divergent branch, taken, not taken", [r"\bpartings?\b"],
     ["parting", "partings", "turned", "stayed"]),
    ("in vain", "failed poll", [r"\bin vain\b"], ["vain"]),
    ("lies, stands", "is, aligned", [r"\b(?:lie|lies|lay)\b", r"\b(?:stands?|stood)\b(?! for\b|-| alone)"],
     ["lies", "stands"]),
    ("comes to", "is, equals", [r"\b(?:comes?|came) to\b"], []),
    ("hangs on", "depends on", [r"\bh[au]ngs? (?:on|upon)\b"], ["hangs"]),
    ("nobody, whoever", "no thread, any, the caller",
     [r"\b(?:nobody|somebody|whoever|whosoever)\b"], ["nobody", "somebody", "whoever"]),
    ("one's own", "user-defined, own", [r"\bone's own\b"], []),
    ("wants", "expects, requires", [r"\bwants\b"], ["wants"]),
    ("said, made, whole, mine, given", "requested, result, full, own, input", [],
     ["=said", "=made", "=whole", "=mine", "=given"]),
    ("who may know whom", "allowed dependencies", [r"\bwho may \w+ whom\b"], []),
    ("what goes", "what is removed", [r"\bwhat goes\b"], []),
    ("no finding is a proof", "when X reports nothing, the kernel is free of Y",
     [r"\bno findings? [^.\n]{0,60}\bproof\b", r"\bis a proof that\b"], []),
    ("stands against", "reason", [r"\bstands? against\b"], []),
    ("takes for granted", "assumes",
     [r"\bt(?:ak(?:e|es|en|ing)|ook) (?:\w+ ){0,3}for (?:correct|granted)\b"], []),
    ("passes over", "skips", [rf"\bpass(?:es|ed) over (?:{_IT} )?\w*(?:statement|instruction|what|those)s?\b"],
     []),
    ("fate", "rewrite action", [r"\bfates?\b"], ["fate", "fates"]),
    ("says of itself", "metadata, description",
     [r"\b(?:says?|said|tells?|told) of (?:itself|themselves)\b"], []),
]
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def parts_of(name):
    """`kMostBytes` -> k, most, bytes."""
    return [part.lower() for part in PART.findall(name)]


def compiled(words):
    """(word, pattern of prose or None, parts of a name, pairs of parts, full names)"""
    for word, _, prose, names in words:
        singles = {name for name in names if " " not in name and name[0] != "="}
        pairs = {tuple(name.split()) for name in names if " " in name}
        exact = {name[1:] for name in names if name[0] == "="}
        yield (word, re.compile("|".join(prose)) if prose else None, singles, pairs, exact)


RULES = list(compiled(WORDS))


@functools.lru_cache(maxsize=None)
def words_in_name(name):
    parts = parts_of(name)
    if parts in (["at", "most"], ["at", "least"]):  # comparisons, as in `at most 4`
        return ()
    pairs_of_name = set(zip(parts, parts[1:]))
    return tuple(word for word, _, singles, pairs, exact in RULES
                 if name.rstrip("_").lower() in exact or not singles.isdisjoint(parts)
                 or not pairs.isdisjoint(pairs_of_name))


def find(path, text):
    """(word, line, text found) of one file."""
    code, prose = split(text) if Path(path).suffix in CODE else ("", text)
    # Only lines with prose in them, without the blanks that code has become: a fifth of the text.
    numbered = [(number, line.strip()) for number, line in enumerate(prose.lower().split("\n"), 1)
                if line and not line.isspace()]
    prose = "\n".join(line for _, line in numbered)
    for word, pattern, *_ in RULES:
        if pattern:
            for found in pattern.finditer(prose):
                yield word, numbered[prose.count("\n", 0, found.start())][0], found.group()
    for number, line in enumerate(code.split("\n"), 1):
        for name in IDENTIFIER.findall(line):
            for word in words_in_name(name):
                yield word, number, name


def files_of(source):
    listed = subprocess.run(["git", "-C", str(source), "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
    else:
        names = [str(path.relative_to(source)) for path in source.rglob("*")
                 if path.relative_to(source).parts[0] not in (".git", "build")]
    for name in sorted(name for name in names if name and not name.startswith(SKIPPED)):
        if Path(name).suffix in CODE + PROSE and (source / name).is_file():
            yield name


def findings(source):
    """A line for each use."""
    terms = {word: term for word, term, *_ in WORDS}
    for name in files_of(source):
        try:
            text = (source / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for word, line, what in find(name, text):
            yield f"{name}:{line}: '{what}' is not a word of the field: write {terms[word]}"


def self_test():
    """Every word must be found where it is meant, and not where it is something else."""
    wrong = {
        "room": ["// there is no room", "int room_for;"], "house": ["// in its house"],
        "floor": ["// one floor below", "// two storeys"], "face": ["// a thin face over it"],
        "turn": ["// each turn of the loop", "int turn;", "// the rounds of a loop"],
        "behind": ["// the parts behind it"],
        "word of an opcode": ["// words of an opcode", "// the dotted words", "auto words_of(int);"],
        "most, least": ["int kMostBytes;", "int least;", "void most(int);"],
        "parted, meet, spoilt": ["// lanes that were parted", "bool spoilt_;", "// threads meet here",
                                      "// lanes that met", "// where paths part"],
        "story": ['auto s = "the story";', "// of stories", "struct BarrierStory {};"],
        "parting, turned, stayed": ["struct Parting {};", "bool turned;"],
        "in vain": ["// waits in vain", "struct VainWait {};"],
        "lies, stands": ["// lies in memory", "bool lies_well();", "// as it stands",
                                                   "// it lay there", "// it stood"],
        "comes to": ["// comes to the same", "// came to"], "hangs on": ["// hangs on the type", "// hung upon"],
        "nobody, whoever": ["// nobody waits", "// whoever calls", "// somebody"], "one's own": ["// of one's own"],
        "wants": ['auto s = "wants .u32";'],
        "said, made, whole, mine, given": ["int made;", "bool said_;", "struct Made {};"],
        "who may know whom": ["// who may know whom"], "what goes": ["// what goes"],
        "no finding is a proof": ["// no finding of it is a proof"],
        "takes for granted": ["// takes it for correct"],
        "passes over": ["// passes over statements"], "fate": ["enum class Fate {};"],
        "says of itself": ["// what it says of itself"],
    }
    right = ["// tests/house, a house rule", "// std::floor(x), the floor of x", "// in turn, turns into",
             "// a round trip", "// 32-bit words of memory", "// at most 4, at least 2, most of it", "enum { AtMost };",
             "int almost; int history; int utmost_;", "// stands for it; a stand-in",
             "int is_made_of; bool at_most;", "// passes over one function", "// relies, replies, belied",
             "int mushroom; int returned; int overstayed;", "// understands, withstands",
             "// requires a finding", "int x = 1'000'000; // fine"]
    failures = []
    for word, texts in wrong.items():
        for text in texts:
            if word not in {found for found, *_ in find("x.cpp", text + "\n")}:
                failures.append(f"'{word}' was not found in: {text}")
    for text in right:
        for found in find("x.cpp", text + "\n"):
            failures.append(f"'{found[0]}' was found in: {text}")
    untested = {word for word, *_ in WORDS} - set(wrong) - {"stands against"}
    failures += [f"'{word}' has no test" for word in sorted(untested)]
    print("\n".join(failures) or f"{sum(map(len, wrong.values()))} uses found, {len(right)} good lines passed")
    return 1 if failures else 0


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    found = list(findings(Path(arguments[0])))
    print("\n".join(found + [f"{len(found)} uses"]))
    return 1 if found else 0


sys.exit(main())
