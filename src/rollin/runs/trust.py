"""Whose run directories may name code: those that this user made, and those that are trusted.

The task of a run, or its agent, may be module:factory, whose code is imported and called when the
run resumes or is evaluated. config.json of such a run is signed with a key that only its user can
read. One that came from elsewhere is not, or not with that key.
"""

import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.imports import is_factory, name_code
from rollin.runs.files import ConfigFile, seal
from rollin.safe_open import read_bounded

KEY_BYTES = 32


def code_in(task: str, config: Mapping[str, Any]) -> list[str]:
    """The code that a run imports: a task module:factory, or module:id of Gymnasium's, and options.

    A file of arrays is none, though its path may hold a colon; an import of it is refused by
    `rollin.imports.check_code`.
    """
    tasks = [task] if ":" in task and not task.endswith(".npz") else []
    return tasks + [v for v in config.values() if isinstance(v, str) and is_factory(v)]


def signature(spec: dict[str, Any]) -> str | None:
    """The user's signature of engine, task and options; None if there can be none."""
    key = _key(make=True)
    return None if key is None else _signed(spec, key)


def check_trust(path: Path, config: ConfigFile, *, trust: bool) -> None:
    """Let the code of a run be imported if this user made the run, or says --trust.

    path: of the run; config: what its config.json holds.
    """
    named = code_in(config.task, config.config)
    if named and not (trust or _made_here(config)):
        raise RollinError(
            f"{path} names code, {', '.join(named)}, and this user did not make it (or did so with "
            "a version before 0.2.0): the code is not run. If you trust it, add --trust."
        )
    for name in named:
        name_code(name)


def _made_here(config: ConfigFile) -> bool:
    key = _key(make=False)
    if key is None or config.signature is None:
        return False
    spec = {"engine": config.engine, "task": config.task, "config": config.config}
    return hmac.compare_digest(_signed(spec, key).encode(), config.signature.encode())


def _signed(spec: dict[str, Any], key: bytes) -> str:
    return hmac.new(key, seal(spec).encode(), hashlib.sha256).hexdigest()


def _key(*, make: bool) -> bytes | None:
    """The user's key; None if there is none and none can be made."""
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:  # a user without a home
        return None
    path = state / "rollin" / "key"
    with suppress(OSError):
        if make and not os.path.lexists(path):
            _make_key(path)
    with suppress(RollinError):
        found = read_bounded(path, KEY_BYTES)
        return found if len(found) == KEY_BYTES else None
    return None


def _make_key(path: Path) -> None:
    """Write a key that only its user can read; of several processes at a time the first wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)  # which only its user can read
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
