# tests/corpus/producers/programs.py - stored programs and how they are written
"""A program is PTX texts, the launches that use them, inputs by seed and results from NumPy.

Inputs are made of a seed alone, by the same arithmetic here and in tests/producers: element i is
number i of SplitMix64 from `seed`, taken modulo `steps`, times `step`, plus `low`. These products
are exact in every type used here.
"""
import json
import os
import re

import numpy as np

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32,
         "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "u8": np.uint8, "i8": np.int8,
         "u16": np.uint16, "bf16": np.uint16}


def random_numbers(seed, count):
    """The first `count` numbers of SplitMix64 from `seed`."""
    mask = np.uint64(0xFFFFFFFFFFFFFFFF)
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, count + 1,
                                                                        dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) & mask
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB) & mask
        return z ^ (z >> np.uint64(31))


class Buffer:
    """Device memory of a program: random from a seed, all one value, or not initialised."""

    def __init__(self, name, kind, shape, fill, data):
        self.name, self.kind, self.shape, self.fill, self.data = name, kind, shape, fill, data

    def described(self):
        count = int(np.prod(self.shape))
        return {"type": self.kind, "count": count, **self.fill}


class Program:
    def __init__(self, name):
        self.name = name
        self.buffers = {}
        self.launches = []
        self.expected = {}
        self.texts = {}

    def random(self, name, shape, kind="f32", low=-2.0, step=1 / 16, steps=64):
        """A buffer of random multiples of `step` from `low` on. Returns its values as an array."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        seed = 1000 * len(self.buffers) + sum(map(ord, self.name))
        numbers = random_numbers(seed, int(np.prod(shape))) % np.uint64(steps)
        values = numbers.astype(np.float64) * step + low
        data = values.astype(np.float32 if kind == "bf16" else TYPES[kind]).reshape(shape)
        self.buffers[name] = Buffer(name, kind, shape, {"seed": seed, "low": low, "step": step,
                                                        "steps": steps}, data)
        return data

    def filled(self, name, shape, kind="f32", value=0):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.buffers[name] = Buffer(name, kind, shape, {"value": value}, None)

    def output(self, name, shape, kind="f32"):
        """A buffer that the program has to write before anything reads it."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.buffers[name] = Buffer(name, kind, shape, {}, None)

    def launch(self, text, grid, block, args, entry=None, shared=0, file=None):
        """`args`: names of buffers, (type, value) pairs, and lists of both for structures."""
        if file is not None:
            self.texts[file] = text
        entry = entry or re.search(r"\.entry\s+([\w$]+)", text).group(1)
        three = lambda size: list(size) + [1] * (3 - len(size))
        file = self.text_file(text)
        self.launches.append({"text": file, "entry": entry, "grid": three(grid),
                              "block": three(block), "shared": shared,
                              "arguments": [written(a) for a in args]})

    def text_file(self, text):
        for file, known in self.texts.items():
            if known == text:
                return file
        number = f".{len(self.texts)}" if self.texts else ""
        file = f"{self.name}{number}.ptx"
        self.texts[file] = text
        return file

    def expect(self, name, values, tolerance=1e-5):
        """`tolerance`: of the difference, relative to the larger of 1 and the expected value."""
        flat = np.asarray(values).reshape(-1)
        integer = np.issubdtype(flat.dtype, np.integer)
        self.expected[name] = {"tolerance": 0 if integer else tolerance,
                               "values": [int(v) if integer else float(f"{float(v):.7g}")
                                          for v in flat]}

    def described(self):
        return {"name": self.name,
                "buffers": {n: b.described() for n, b in self.buffers.items()},
                "launches": self.launches, "expected": self.expected}


def written(argument):
    if isinstance(argument, str):
        return {"buffer": argument}
    if isinstance(argument, list):
        return {"structure": [written(a) for a in argument]}
    kind, value = argument
    return {kind: value}


def neutral(text):
    """The text without the folders of the machine that printed it, and lines without blanks."""
    text = re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", text)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n\0") + "\n"


def write(folder, producer, version, programs):
    """One folder for a producer: texts, and programs.json that says what to do with them."""
    folder = os.path.join(folder, producer)
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        os.remove(os.path.join(folder, old))
    for program in programs:
        for file, text in program.texts.items():
            with open(os.path.join(folder, file), "w") as out:
                out.write(neutral(text))
    lines = [json.dumps(p.described()) for p in programs]
    with open(os.path.join(folder, "programs.json"), "w") as out:
        out.write(json.dumps({"producer": producer, "version": version})[:-1] +
                  ', "programs": [\n' + ",\n".join(lines) + "\n]}\n")
    texts = len({file for p in programs for file in p.texts})
    print(f"{producer} {version}: {len(programs)} programs, {texts} texts")
