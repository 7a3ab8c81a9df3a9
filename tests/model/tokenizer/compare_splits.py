#!/usr/bin/env python3
# tests/model/tokenizer/compare_splits.py - pre-tokenizers against another engine of regular expressions
"""usage: compare_splits.py PROGRAM PACKAGES

PROGRAM (tokenizer_splits.cpp) cuts texts as each pre-tokenizer does; the same is done here with the
patterns of the models and PyPI's `regex`, which PACKAGES may hold. Exit status 77: there is none."""
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.append(sys.argv[2])
import texts as sources

try:
    import regex
except ImportError:
    print(f"SKIP: no package regex (PyPI) in {sys.argv[2]} or elsewhere; scripts/setup installs it")
    sys.exit(77)

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
QWEN2 = (r"""'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"""
         r"""| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
PATTERNS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "qwen2": [QWEN2],
    "llama-bpe": [QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")],
}
SEED, COUNT = 20, 1500


def split(patterns, text):
    pieces = [text] if text else []
    for pattern in patterns:
        expression = regex.compile(pattern, regex.V1)
        cut = []
        for piece in pieces:
            done = 0
            for match in expression.finditer(piece):
                cut += [piece[done:match.start()], match.group()]
                done = match.end()
            cut.append(piece[done:])
        pieces = [piece for piece in cut if piece]
    return pieces


def main():
    texts = sources.all_texts(SEED, COUNT)
    differences = 0
    for name, patterns in PATTERNS.items():
        done = subprocess.run([sys.argv[1], name], input="\0".join(texts).encode(), stdout=subprocess.PIPE)
        if done.returncode == 77:
            print(done.stdout.decode(), end="")
            return 77
        assert done.returncode == 0, f"{sys.argv[1]} {name}: status {done.returncode}"
        answers = done.stdout.decode().split("\0")[:-1]
        assert len(answers) == len(texts), f"{len(answers)} answers to {len(texts)} texts"
        pieces = 0
        for text, answer in zip(texts, answers):
            expected = split(patterns, text)
            pieces += len(expected)
            if answer.split("\x01")[:-1] != expected:
                differences += 1
                print(f"{name}: {text!r}\n  gives    {answer.split(chr(1))[:-1]}\n  expected {expected}")
        print(f"{name}: {len(texts)} texts, {pieces} pieces")
    if differences:
        print(f"{differences} texts are cut in another way")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
