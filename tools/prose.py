#!/usr/bin/env python3
"""The language of comments, documents and option texts: plain technical English (CONTRIBUTING.md, Language).

    tools/prose.py            check all tracked files; exit status 1 if there are findings
    tools/prose.py PATH...    only these files or folders
    tools/prose.py --count    only the number of findings in each folder

It finds sentences of more than WORDS words in comments, paragraphs and the texts of config/config.def, and lines of them
over COLUMNS columns. It finds sentences that open with a pronoun in the place of a noun, and words that were retired in
favour of the field's terms."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = 30
COLUMNS = 120

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# "What is needed: ..." has no subject that a reader can name. "What a worker does" as a title has none either.
OPENING = re.compile(r"^(What|Whatever|Whose|Whom|Who|Whoever|That which|Those (that|who|which)|"
                     r"Of (one|what|those|these|which|whom)|They that)\b(?!.*\?$)")
RETIRED = {
    "keeper": "progress thread", "carrier": "lane thread", "visitor": "pending connection", "strand": "chain queue",
    "parcel": "packed frame", "dictator": "address owner", "stranded": "orphaned", "shy": "backed off",
    "crowded": "over quota",
}
# The text of an option: the last argument of its row, strings that follow each other.
OPTION_TEXT = re.compile(r'((?:"(?:[^"\\]|\\.)*"\s*)+)\)$', re.M)
RETIRED_WORD = re.compile(r"\b(" + "|".join(RETIRED) + r")s?\b", re.I)


# Documents that a program writes, and entries that say what was measured when.
GENERATED = ("docs/PROTOCOL.md", "docs/CONFIG.md", "bench/results/")


def paragraphs(text):
    """(line, text) of each paragraph or item of a document, without tables, drawings and code."""
    first, block, fenced = 0, [], False
    for number, line in enumerate(text.splitlines() + [""], 1):
        fence = line.lstrip().startswith("```")
        if fence or fenced or re.match(r"\s*$|\s*\||#|    |<!--|\s*([-*]|\d+\.) ", line):
            if block:
                yield first, "\n".join(block)
            first, block = 0, []
            if re.match(r"\s*([-*]|\d+\.) ", line) and not fence and not fenced:
                first, block = number, [re.sub(r"^\s*([-*]|\d+\.) ", "", line)]
            fenced ^= fence
        else:
            first = first or number
            block.append(line.strip())


def comments(path, text):
    """(line, text) of each comment; comments of one line that follow each other are one."""
    if path.suffix == ".md":
        yield from paragraphs(text)
    elif path.suffix in (".c", ".h", ".def", ".cl"):
        for match in COMMENT.finditer(text):
            if match.group().startswith("/"):
                yield text.count("\n", 0, match.start()) + 1, match.group()
        if path.name == "config.def":
            for match in OPTION_TEXT.finditer(text):
                yield text.count("\n", 0, match.start()) + 1, re.sub(r'"\s*"', "\n", match.group(1)).strip('" \n')
    elif path.suffix in (".py", ".sh", ".cmake", ".txt") or text.startswith("#!"):
        first, block = 0, []
        for number, line in enumerate(text.splitlines() + [""], 1):
            stripped = line.strip()
            if stripped.startswith("#") and not stripped.startswith("#!"):
                first = first or number
                block.append(stripped)
            elif block:
                yield first, "\n".join(block)
                first, block = 0, []


def sentences(comment):
    """Its sentences, without the comment's marks, code in indented lines, and drawings."""
    lines = []
    for line in comment.splitlines():
        line = re.sub(r"^\s*(/\*+|\*+/|\*|//+|#+)", "", line)
        line = re.sub(r"\*+/\s*$", "", line)
        # Indented lines are code, tables or drawings.
        lines.append("\n" if re.match(r"\s{3,}|\s*$|.*(---|===|──)", line) else line.strip())
    text = " ".join(lines)
    for part in re.split(r"\n|(?<=[.:;?!])\s+", text):
        part = part.strip(" -*")
        if part:
            yield part


def check(path):
    text = path.read_text(errors="replace")
    for line, comment in comments(path, text):
        for offset, one in enumerate(comment.splitlines()):
            if len(one) > COLUMNS:
                yield line + offset, f"a line of {len(one)} columns"
        for sentence in sentences(comment):
            count = len(re.findall(r"[A-Za-z0-9_'`]+", sentence))
            if count > WORDS:
                yield line, f"a sentence of {count} words: {sentence[:80]}"
            if OPENING.match(sentence):
                yield line, f"opens without a noun: {sentence[:80]}"
            retired = RETIRED_WORD.search(sentence)
            if retired:
                word = retired.group(1).lower()
                yield line, f"\"{word}\" is \"{RETIRED[word]}\": {sentence[:80]}"


def main(arguments):
    counting = "--count" in arguments
    wanted = [a for a in arguments if not a.startswith("-")] or ["."]
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "--", *wanted], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    found = Counter()
    for name in files:
        path = ROOT / name
        if name.startswith(("fuzz/corpus/", "tools/prose.py", *GENERATED)) or not path.is_file():
            continue
        for line, what in check(path):
            found["/".join(name.split("/")[:2])] += 1
            if not counting:
                print(f"{name}:{line}: {what}")
    if counting:
        for folder, count in sorted(found.items()):
            print(f"{count:6} {folder}")
    print(f"{sum(found.values())} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
