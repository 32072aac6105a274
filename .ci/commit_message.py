"""Check a commit's message: `python .ci/commit_message.py FILE`, as Git's commit-msg hook calls it.

Exit code 1 and one sentence where the subject is no imperative of at most 72 characters, as far as
its first word shows, or where no body says why.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
#: Fewer words than these give no reason.
FEWEST_WORDS = 5
#: Git writes these itself.
_BY_GIT = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")
#: "part: Verb ..." or "Verb ...".
_SUBJECT = re.compile(r"(?:[^\s:]+(?: [^\s:]+){0,2}: )?(?P<verb>\S+)")
#: Other forms of a verb; "embed", "feed" and "string" only look like them.
_TRAILER = re.compile(r"[A-Z][\w-]*: ")
_NOT_IMPERATIVE = re.compile(r"(?!.*(?:eed|bed|tring|bring)$)\w{2,}(?:ed|ing)$", re.IGNORECASE)


def fault(message: str) -> str | None:
    """A sentence on what is wrong with a message, or None."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if _BY_GIT.match(subject):
        return None
    if len(subject) > LONGEST:
        return f"commit message: its subject has {len(subject)} characters; allowed: {LONGEST}"
    verb = _SUBJECT.match(subject)
    if verb is None or subject.endswith("."):
        return f"commit message: its subject is {subject!r}; expected one without a full stop"
    if _NOT_IMPERATIVE.match(verb["verb"]):
        return f"commit message: its subject begins with {verb['verb']!r}; expected an imperative"
    if len(lines) > 1 and lines[1].strip():
        return "commit message: its second line is not empty; expected an empty line"
    words = [word for line in lines[2:] if not _TRAILER.match(line) for word in line.split()]
    if len(words) < FEWEST_WORDS:
        found = " ".join(words) or "nothing"
        return f"commit message: its body is {found!r}; expected a sentence that says why"
    return None


if __name__ == "__main__":
    found = fault(Path(sys.argv[1]).read_text("utf-8"))
    if found is not None:
        sys.exit(found)
