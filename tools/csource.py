# SPDX-License-Identifier: MIT
"""What the checks in tools/ share: which files there are, and C without its comments and strings."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

_TOKEN = re.compile(r"""
    /\*.*?\*/ | //[^\n]*                    # comments
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'   # strings and characters
    """, re.DOTALL | re.VERBOSE)


def files(*folders, endings=(".c", ".h", ".S")):
    """The source files under these folders of the repository, sorted."""
    found = [p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in endings and p.is_file()]
    return sorted(found)


def name(path):
    return path.relative_to(ROOT).as_posix()


def code(path):
    """The lines of a file with comments and the insides of strings blanked; line numbers stay."""
    def blank(match):
        text = match[0]
        if text[0] in "\"'":
            return text[0] * 2
        return re.sub(r"[^\n]", " ", text)
    return _TOKEN.sub(blank, path.read_text()).splitlines()


def finish(check, problems, looked_at):
    """Prints the problems and ends the program; a check that looked at nothing has failed too."""
    for problem in problems:
        print(problem)
    if not looked_at:
        print(f"{check}: found nothing to look at")
        sys.exit(1)
    if problems:
        print(f"{check}: {len(problems)} problem{'s' if len(problems) != 1 else ''}")
        sys.exit(1)
    print(f"{check}: {looked_at} files are fine")
    sys.exit(0)
