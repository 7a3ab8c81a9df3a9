#!/usr/bin/env python3
# tests/house/source_text.py - splits C++ into code, comments and strings
import re

# Comments, raw strings, strings and characters; a quote inside a number (1'000) is none of them.
_PARTS = re.compile(r'//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'
                    r'|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)+\'', re.S)


def blank(text):
    return "\n".join([" " * len(line) for line in text.split("\n")])


def split(text):
    """(code, prose) of a C++ text, each with all lines and columns in place: in `code` comments and
    the contents of strings are blank, in `prose` everything else is."""
    code, prose, at = [], [], 0
    for found in _PARTS.finditer(text):
        code += [text[at:found.start()], blank(found.group())]
        prose += [blank(text[at:found.start()]), found.group()]
        at = found.end()
    code.append(text[at:])
    prose.append(blank(text[at:]))
    return "".join(code), "".join(prose)
