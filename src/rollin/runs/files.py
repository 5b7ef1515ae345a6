"""Files of runs: written so that nothing ever leaves half of one behind, and read into types.

A JSON or TOML file is decoded strictly: an unknown or missing key, or a value of another type, is
one sentence with the name of the file and the key. Keys that a later version added have defaults,
so that older files can still be read.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from rollin.curriculum.progress import Advance, Progress
from rollin.errors import RollinError, reason
from rollin.runs.systems import patiently, sync_directory
from rollin.untrusted import (
    LARGEST,
    ExcessError,
    finite,
    is_factory,
    name_code,
    open_bounded,
    parse_json,
    read_bounded,
)

# ------------------------------------------------------------------ writing and reading

PART = 1 << 20  # bytes of a file that are in memory at a time
TEMPORARY = ".rollin-"  # how names of unfinished files begin


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write to a temporary name beside `path`, sync, rename: readers see the old or the new file.

    durable=False skips the sync, for files that are only looked at (a live status).
    """
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{TEMPORARY}{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        patiently(lambda: Path(temporary).replace(path))
        if durable:
            sync_directory(path.parent)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise RollinError(f"{path} could not be written: {reason(error)}.") from error


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Atomically write a value as indented JSON."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:  # JSON has no NaN
        raise RollinError(
            f"{path} could not be written: it would hold a number that is not finite."
        ) from error
    # a path that the system's encoding cannot express, in a command, is written as it can be
    write_atomically(path, text.encode(errors="replace"), durable=durable)


def read_json(path: Path, most: int = LARGEST) -> dict[str, Any]:
    """Read a JSON object of at most so many bytes, or say which file is broken."""
    data = read_bounded(path, most)
    try:
        value = parse_json(data.decode(), finite)
    except ExcessError as error:
        raise RollinError(f"{path} cannot be read: {error}. Restore the original.") from error
    except ValueError as error:
        raise RollinError(
            f"{path} is not valid JSON ({error}): the file was cut off or edited; "
            "move its directory away and run again."
        ) from error
    if b"\\u" in data and not _encodable(value):
        raise RollinError(
            f"{path} cannot be read: it holds half of a letter (a lone surrogate). Put back what "
            "was there."
        )
    if not isinstance(value, dict):
        raise RollinError(
            f"{path} cannot be read: it must hold a JSON object, got {type(value).__name__}."
        )
    return value


def _encodable(value: Any) -> bool:
    """Whether all text can be written again, which half of a surrogate pair cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def sha256(data: bytes) -> str:
    """The checksum of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path, most: int) -> str:
    """The checksum of a file of at most so many bytes, which is read part by part."""
    sum_ = hashlib.sha256()
    with open_bounded(path, most) as file:
        while part := file.read(PART):
            sum_.update(part)
    return sum_.hexdigest()


def seal(values: Any) -> str:
    """The checksum of plain values, the same before they are written and after they are read."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode())


def remove_temporaries(directory: Path) -> None:
    """Delete what a kill in the middle of a write has left behind."""
    for path in directory.glob(f"{TEMPORARY}*"):
        remove_file(path)


def remove_file(path: Path) -> None:
    """Delete a file, if it is there."""
    patiently(lambda: path.unlink(missing_ok=True))


def is_occupied(directory: Path, *ours: str) -> bool:
    """Whether something is there that must not be replaced: a file, or a directory in use.

    ours: names that may be there.
    """
    try:  # one look: another process may make the directory meanwhile
        names = os.listdir(directory)
    except FileNotFoundError:
        return False
    except NotADirectoryError:  # a file, or something below one
        return directory.exists()
    return any(not name.startswith(TEMPORARY) and name not in ours for name in names)


def own_directory(path: Path) -> None:
    """Create a directory inside a run's; refuse a link in its place."""
    check_own(path)
    make_directory(path)


def check_own(path: Path) -> None:
    """Refuse a link in the place of a directory inside a run's."""
    if path.is_symlink():
        raise RollinError(f"{path} is a link: put a directory there, or nothing.")


def make_directory(path: Path) -> None:
    """Create a directory with its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RollinError(
            f"The directory {path} could not be made: {reason(error)}. Choose another --out."
        ) from error


# ------------------------------------------------------------------ what they hold

FileType = TypeVar("FileType", bound=Struct)
Plain = TypeVar("Plain")

MOST = 2**53  # beyond, a float64 does not count one by one
Count = Annotated[int, Meta(ge=0, le=MOST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0)]
Name = Annotated[str, Meta(max_length=4096)]  # a task may be a path
Labels = Annotated[dict[Name, Name], Meta(max_length=256)]
Names = Annotated[list[Name], Meta(max_length=256)]
Shown = Annotated[dict[Name, Name], Meta(max_length=64)]  # a column each


class ConfigFile(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """config.json: what a run is, and what belongs to it. The spec's hash is of the first three.

    family, labels, scale: the condition of a study that it was run for, at which share of its
    length; key: the condition's, without seed and length; signature: of the user who began a run
    whose task is code.
    """

    engine: Name
    task: Name
    config: dict[str, Any]
    spec_hash: Name | None = None
    fingerprint: Name | None = None
    versions: Labels = {}
    command: str = ""
    processor: Name = ""
    curriculum: dict[str, list[Any]] | None = None
    family: Name = ""
    labels: Labels = {}
    scale: Annotated[float, Meta(gt=0)] = 1.0
    key: Name = ""
    signature: str | None = None
    results: dict[Name, Name] | None = None


class ManifestFile(Struct, forbid_unknown_fields=True):
    """manifest.json of a checkpoint.

    file, sha256: the arrays' file; arrays: dtype and shape of each; values: all that is no array;
    checksum: of all of this.
    """

    format: int
    step: Count
    spec_hash: str
    file: str
    sha256: str
    values: dict[str, Any]
    arrays: dict[str, tuple[str, list[int]]]
    checksum: str
    versions: dict[str, str] = {}


class StatusFile(Struct, omit_defaults=True):
    """status.json: the state of a run; engines add their own numbers.

    shown: what to show of it, as text by title.
    began: when the process did, as the system counts: its number may since be another's.
    """

    state: Name = "waiting"
    pid: Count = 0
    began: Count | None = None
    host: Name = ""
    updated: float = 0.0
    error: str | None = None
    step: Count | None = None
    steps: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    shown: Shown | None = None
    steps_per_second: Seconds = 0.0
    eta_seconds: Seconds | None = None
    compiling: bool = False


class ResultFile(Struct):
    """What results of all engines may have, which add their own; sha256: of the run's files."""

    kappa: Share | None = None
    k: Count | None = None
    K: Count | None = None
    env_steps: Count | None = None
    seconds: Seconds = 0.0
    warning: str | None = None
    sha256: dict[str, str] = {}


class AdvanceFile(Struct, forbid_unknown_fields=True):
    """A switch to context k after `step` steps; numbers: what the engine measured of it."""

    step: Count
    k: Count
    reason: str
    numbers: dict[str, float] = {}


class CurriculumFile(Struct, forbid_unknown_fields=True):
    """The curriculum of a run."""

    contexts: list[list[float]]
    kappas: list[Share]
    thresholds: list[float]
    positions: list[float] = []


class Outcome(Struct, forbid_unknown_fields=True):
    """How far a run has come, and what that took: in result.json and in checkpoints.

    completed: when the final context was mastered; log_min_pi: see `tabular.theory.analysis`. A
    result also has the metrics of the last row of metrics.csv.
    """

    step: Count
    seconds: Seconds
    env_steps: Count | None = None
    rollin_steps: Count | None = None
    updates: Count | None = None
    k: Count | None = None
    K: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    advances: list[AdvanceFile] = []
    completed: AdvanceFile | None = None
    curriculum: CurriculumFile | None = None
    log_min_pi: list[float | None] = []
    warning: str | None = None
    spec_hash: str = ""
    versions: dict[str, str] = {}
    sha256: dict[str, str] = {}

    def progress(self) -> Progress | None:
        """Return the place on the curriculum, if the run has one."""
        if self.k is None or self.K is None:
            return None
        kappas = self.curriculum.kappas if self.curriculum else ()
        if kappas and len(kappas) != self.K + 1:
            raise RollinError(f"its curriculum must have {self.K + 1} contexts, got {len(kappas)}")
        if not all(0 <= advance.k <= self.K for advance in self.advances):
            ks = [advance.k for advance in self.advances]
            raise RollinError(f"its switches must lead to k = {self.k} of {self.K}, got {ks}")
        done = self.completed and Advance(self.completed.step, self.completed.k, "")
        advances = [Advance(a.step, a.k, a.reason) for a in self.advances]
        return Progress(self.K, self.k, advances, kappas, done)


class PolicyFile(Struct, forbid_unknown_fields=True):
    """policy.json of an exported policy: the run it is of, how far that was, and what it earned.

    run: config.json of the run; curriculum: as in a result; evaluation: a row for each context that
    was played, `episodes` times, with the first episode's `seed`; sha256: of policy.safetensors;
    checksum: of all else here.
    """

    format: int
    run: ConfigFile
    step: Count
    k: Count
    curriculum: dict[str, list[Any]]
    evaluation: list[dict[str, Any]]
    episodes: Count
    seed: Count
    sha256: str
    checksum: str


class RowsCounted(Struct, forbid_unknown_fields=True):
    """What a checkpoint records of a CSV: its rows, and the checksum of the file up to there."""

    rows: Count
    sha256: str = ""


def read_file(path: Path, kind: type[FileType], most: int = LARGEST) -> FileType:
    """A JSON file of at most so many bytes as its type."""
    return converted(read_json(path, most), kind, path)


def converted(value: Any, kind: Any, path: Path) -> Any:
    """Plain values of a file as a type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise RollinError(
            f"{path} cannot be read: {_words(error)}. It was edited, or is from another version: "
            "restore the original."
        ) from error


def as_dataclass(kind: type[Plain], values: Any) -> Plain:
    """Plain values as a dataclass of exactly these fields, with ValueError for anything else."""
    given = dict(values)
    names = {field.name for field in fields(kind)}  # pyright: ignore[reportArgumentType]
    if given.keys() != names:
        raise ValueError(f"{', '.join(sorted(given.keys() ^ names))} missing or unknown")
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_words(error)) from error


def _words(error: msgspec.ValidationError) -> str:
    """What is wrong, as a part of a sentence: `expected `int`, got `str`, at k`."""
    text = re.sub(r" - at `(?:key in )?\$?\.?(.*)`$", r", at \1", str(error).rstrip("."))
    return text[:1].lower() + text[1:]


# ------------------------------------------------------------------ whose runs may name code
#
# The task of a run, or its agent, may be module:factory, whose code is imported and called when the
# run resumes or is evaluated. config.json of such a run is signed with a key that only its user can
# read. One that came from elsewhere is not, or not with that key.

KEY_BYTES = 32


def code_in(task: str, config: Mapping[str, Any]) -> list[str]:
    """The code that a run imports: a task module:factory, or module:id of Gymnasium's, and options.

    A file of arrays is none, though its path may hold a colon; an import of it is refused by
    `rollin.untrusted.check_code`.
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
