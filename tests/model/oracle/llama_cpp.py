# tests/model/oracle/llama_cpp.py - tokens and logits by llama.cpp
"""llama.cpp's C functions, in the library that PyPI's xllamacpp carries.

The parameter structures are taken as they come from the default functions and passed on unread (512
tokens of context, an f16 KV cache, weights mapped into memory), so no layout of theirs is repeated
here; ABI_BYTES is more than any of them has.
"""
import ctypes
import glob
import os

import numpy as np

VERSION = "2026.10.11549"  # of xllamacpp
CONTEXT = 512
ABI_BYTES = 2048


class Opaque(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * ABI_BYTES)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)),
                ("embd", ctypes.c_void_p), ("pos", ctypes.POINTER(ctypes.c_int32)),
                ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
                ("logits", ctypes.POINTER(ctypes.c_int8))]


LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
SIGNATURES = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [LOG_FUNCTION, ctypes.c_void_p]),
    "llama_model_default_params": (Opaque, []),
    "llama_context_default_params": (Opaque, []),
    "llama_model_load_from_file": (ctypes.c_void_p, [ctypes.c_char_p, Opaque]),
    "llama_init_from_model": (ctypes.c_void_p, [ctypes.c_void_p, Opaque]),
    "llama_model_get_vocab": (ctypes.c_void_p, [ctypes.c_void_p]),
    "llama_vocab_n_tokens": (ctypes.c_int32, [ctypes.c_void_p]),
    "llama_n_ctx": (ctypes.c_uint32, [ctypes.c_void_p]),
    "llama_set_n_threads": (None, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]),
    "llama_get_memory": (ctypes.c_void_p, [ctypes.c_void_p]),
    "llama_memory_clear": (None, [ctypes.c_void_p, ctypes.c_bool]),
    "llama_batch_init": (Batch, [ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]),
    "llama_batch_free": (None, [Batch]),
    "llama_decode": (ctypes.c_int32, [ctypes.c_void_p, Batch]),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [ctypes.c_void_p, ctypes.c_int32]),
    "llama_tokenize": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                                        ctypes.POINTER(ctypes.c_int32), ctypes.c_int32,
                                        ctypes.c_bool, ctypes.c_bool]),
    "llama_vocab_is_eog": (ctypes.c_bool, [ctypes.c_void_p, ctypes.c_int32]),
    "llama_free": (None, [ctypes.c_void_p]),
    "llama_model_free": (None, [ctypes.c_void_p]),
}


class Missing(Exception):
    """The library or one of its functions is not there."""


def load_library(folder):
    """`folder`: where `pip install --target` put xllamacpp."""
    found = glob.glob(os.path.join(folder, "xllamacpp", "xllamacpp*.so"))
    if not found:
        raise Missing(f"no xllamacpp in {folder}")
    library = ctypes.CDLL(found[0])
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise Missing(f"{found[0]} has no function {name}; xllamacpp {VERSION} has") from error
        function.restype, function.argtypes = result, arguments
    library.log = LOG_FUNCTION(lambda level, text, data: None)
    library.llama_log_set(library.log, None)
    library.llama_backend_init()
    return library


class LlamaCpp:
    """A model and one context, computed by one thread: more of them wait for each other in turn on a
    machine that is busy."""

    def __init__(self, library, path):
        self.library = library
        self.model = library.llama_model_load_from_file(os.fsencode(path),
                                                        library.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        self.context = library.llama_init_from_model(self.model,
                                                     library.llama_context_default_params())
        if not self.context or library.llama_n_ctx(self.context) < CONTEXT:
            raise RuntimeError(f"llama.cpp has no context of {CONTEXT} tokens for {path}")
        library.llama_set_n_threads(self.context, 1, 1)
        self.vocabulary = library.llama_model_get_vocab(self.model)
        self.tokens = library.llama_vocab_n_tokens(self.vocabulary)
        self.position = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.llama_free(self.context)
        self.library.llama_model_free(self.model)

    def tokenize(self, text):
        """With what the file asks for at the beginning; special tokens in the text are text."""
        data = text.encode()
        capacity = len(data) + 8
        tokens = (ctypes.c_int32 * capacity)()
        count = self.library.llama_tokenize(self.vocabulary, data, len(data), tokens,
                                            capacity, True, False)
        assert count >= 0
        return list(tokens[:count])

    def restart(self):
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)
        self.position = 0

    def append(self, tokens):
        """Logits [len(tokens), vocabulary] of tokens that follow those before."""
        batch = self.library.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = self.position + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = 0
            batch.logits[index] = 1
        status = self.library.llama_decode(self.context, batch)
        self.library.llama_batch_free(batch)
        if status != 0:
            raise RuntimeError(f"llama_decode gave {status}")
        self.position += len(tokens)
        return np.stack([np.ctypeslib.as_array(
            self.library.llama_get_logits_ith(self.context, index), (self.tokens,)).copy()
            for index in range(len(tokens))])

    def logits(self, tokens):
        self.restart()
        return self.append(tokens)

    def ends(self, token):
        """Whether it ends a text."""
        return self.library.llama_vocab_is_eog(self.vocabulary, token)

    def greedy(self, tokens, count):
        """The continuation, up to the token that ends the text and without it, and the logits that
        chose each token, the ending one included."""
        row, chosen, rows = self.logits(tokens)[-1], [], []
        while len(chosen) < count:
            rows.append(row)
            token = int(row.argmax())
            if self.ends(token):
                break
            chosen.append(token)
            row = self.append([token])[-1]
        return chosen, np.stack(rows)
