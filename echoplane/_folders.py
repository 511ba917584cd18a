"""
The data folder, and the places outside it that a server needs when we are root.

PostgreSQL refuses to run as root, so root's servers run under an account without rights
(`postgres`, else `nobody`). That account must be able to enter every folder above its own. Where it
cannot, as under a home of mode 0700, the server's folder goes below `/var/lib/echoplane/servers`
and the data folder holds a link to it; programs it cannot read are copied, by digest, to
`/var/lib/echoplane/programs`. Permissions of folders that were there before are never changed.

    <data folder>/
        run/        process records, locks (0700)
        log/        output of servers and roles (0700)
        keys/       the master key and the local token (0700)
        postgres/   data/ and socket/, or a link to where they are (0700, the server's account)
        redis/      the same
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from contracts.errors import Unavailable
from echoplane._processes import User

SYSTEM_FOLDER: Final = Path("/var/lib/echoplane")
"""Where root keeps what a server's account cannot reach in the data folder."""
PRIVATE: Final = 0o700
SOCKET_PATH_BYTES_MAX: Final = 107
"""What the kernel allows for the whole path of a socket."""
SOCKET_NAME_BYTES: Final = len("/.s.PGSQL.65535")
"""The longest name that a server gives its socket inside the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFolder:
    """Everything one plane keeps on disk. `system` is used by root alone."""

    root: Path
    system: Path

    @classmethod
    def at(cls, root: Path, *, system: Path = SYSTEM_FOLDER) -> Self:
        """Make the folder with its parts, unless it is there."""
        folder = cls(root=root.expanduser().absolute(), system=system)
        if not folder.root.is_dir():
            # Root's servers have to pass through it, so others may enter, but not look around.
            _make(folder.root, mode=0o711 if os.geteuid() == 0 else PRIVATE)
        for part in (folder.run, folder.log, folder.keys):
            _make(part, mode=PRIVATE)
        return folder

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    def home(self, server: str) -> Path:
        """
        Return the server's own folder, made if it is not there, owned by the account it runs under.

        Raises:
            Unavailable: It exists and that account cannot enter it.
        """
        user = server_user()
        place = self.root / server
        if place.is_symlink() or place.is_dir():
            home = place.resolve()
            if not home.is_dir():
                raise Unavailable(part=server, reason=f"{place} points to {home}, which is gone")
            if user is not None and not can_enter(home.parent, user):
                raise Unavailable(
                    part=server,
                    reason=f"account {user.name} cannot enter {home.parent}; let it pass (chmod o+x), "
                    f"or move {home} below {self.system / 'servers'} and leave a link to it",
                )
            return home
        if user is None or can_enter(self.root, user):
            _make(place, mode=PRIVATE)
            if user is not None:
                os.chown(place, user.uid, user.gid)
            return place.resolve()
        # A name made by chance: were it made from the path, a data folder deleted and made anew would
        # find the old one's data, whose keys are gone.
        home = Path(tempfile.mkdtemp(prefix=f"{server}-", dir=_system(self.system, "servers")))
        os.chown(home, user.uid, user.gid)
        place.symlink_to(home)
        return home

    def socket_folder(self, server: str) -> Path:
        """Return a folder for the server's socket that its account alone can enter, with a short path."""
        folder = self._socket_place(self.home(server))
        _make(folder, mode=PRIVATE)
        user = server_user()
        if user is not None:
            os.chown(folder, user.uid, user.gid)
        return folder

    def outside(self) -> dict[str, Path]:
        """Return the homes of servers that are not inside the data folder: a backup must know of them."""
        links = (self.root / server for server in ("postgres", "redis"))
        return {link.name: link.resolve() for link in links if link.is_symlink()}

    def discard(self) -> None:
        """Delete the data folder and what belongs to it elsewhere. Its servers must be stopped before."""
        for server in ("postgres", "redis"):
            place = self.root / server
            if place.is_dir():
                home = place.resolve()
                shutil.rmtree(self._socket_place(home), ignore_errors=True)
                if home.parent == self.system / "servers":
                    shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def _socket_place(self, home: Path) -> Path:
        folder = home / "socket"
        short = len(os.fsencode(folder)) <= SOCKET_PATH_BYTES_MAX - SOCKET_NAME_BYTES
        # PostgreSQL and its clients read a comma as the start of another folder or host.
        if short and re.fullmatch(r"[\w./+@=~-]+", str(folder), flags=re.ASCII):
            return folder
        name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        if os.geteuid() == 0:
            return _system(self.system, "sockets") / name
        # The sticky bit keeps others from replacing it, and `_make` refuses one that a stranger made.
        return Path(f"/tmp/echoplane-{os.geteuid()}-{name}")  # noqa: S108


def server_user() -> User | None:
    """
    Return the account that servers run under; none if we are not root and it is our own.

    Raises:
        Unavailable: We are root and there is no account without rights.
    """
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise Unavailable(part="postgres", reason="it refuses root, and there is no account postgres or nobody")


def can_enter(folder: Path, user: User) -> bool:
    """Whether the account can pass through the folder and all above it, by their permission bits."""
    real = folder.resolve()
    return all(_may(entry, user, 0o1) for entry in (real, *real.parents))


def programs(module: str, inside: str, *, server: str, system: Path) -> Path:
    """
    Return the folder of a wheel's programs, or of a copy where the server's account cannot read them.

    The wheel's Python code is not imported: it would start and lock things of its own.

    Raises:
        Unavailable: There is no such wheel for this machine.
    """
    found = importlib.util.find_spec(module)
    locations = [] if found is None else found.submodule_search_locations or []
    package = next((Path(place) for place in locations if (Path(place) / inside).is_dir()), None)
    if package is None:
        raise Unavailable(
            part=server,
            reason=f"{module} has no programs for this machine; "
            f"set ECHOPLANE_DATABASE_URL and ECHOPLANE_REDIS_URL to servers of your own",
        )
    # Wheels keep the shared libraries that their programs load in a folder beside the package.
    parts = [part for part in (package / inside, package.with_name(f"{module}.libs")) if part.is_dir()]
    user = server_user()
    if user is None or all(can_enter(part, user) and _can_read_all(part, user) for part in parts):
        return package / inside
    return _copied(parts, package.parent, _system(system, "programs"), name=module) / module / inside


def _copied(parts: Sequence[Path], base: Path, shelf: Path, *, name: str) -> Path:
    """Copy folders, with their places below `base`, to a folder named after what is in them."""
    digest = _digest(parts, base)
    copy = shelf / f"{name}-{digest[:32]}"
    if copy.is_dir():
        return copy
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=shelf))
    try:
        copies = [fresh / part.relative_to(base) for part in parts]
        for part, place in zip(parts, copies, strict=True):
            shutil.copytree(part, place)
        for entry in (fresh, *fresh.rglob("*")):
            executable = entry.is_dir() or entry.stat().st_mode & stat.S_IXUSR
            entry.chmod(0o755 if executable else 0o644)
        if _digest(copies, fresh) != digest:
            raise Unavailable(part=name, reason=f"{base / name} changed while it was copied")
        fresh.rename(copy)
    except OSError:
        # Whoever copied at the same time was first; both copies are the same bytes.
        if not copy.is_dir():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return copy


def _digest(parts: Sequence[Path], base: Path) -> str:
    total = hashlib.sha256()
    for part in parts:
        for entry in sorted(part.rglob("*")):
            if entry.is_file():
                total.update(os.fsencode(entry.relative_to(base)) + b"\0")
                total.update(hashlib.sha256(entry.read_bytes()).digest())
    return total.hexdigest()


def _can_read_all(folder: Path, user: User) -> bool:
    return all(_may(entry, user, 0o5 if entry.is_dir() else 0o4) for entry in (folder, *folder.rglob("*")))


def _may(path: Path, user: User, bits: int) -> bool:
    status = path.stat()
    if status.st_uid == user.uid:
        shift = 6
    elif status.st_gid == user.gid:
        shift = 3
    else:
        shift = 0
    return (status.st_mode >> shift) & bits == bits


def _system(system: Path, part: str) -> Path:
    _make(system, mode=0o711)
    _make(system / part, mode=0o711 if part != "programs" else 0o755)
    return system / part


def _make(folder: Path, *, mode: int) -> None:
    """Make a folder with exactly this mode, whatever the umask; check the owner of one that was there."""
    try:
        folder.mkdir(parents=True)
        folder.chmod(mode)
    except FileExistsError:
        status = folder.lstat()
        user = server_user()
        ours = {os.geteuid(), *(() if user is None else (user.uid,))}
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in ours:
            raise Unavailable(part=folder.name, reason=f"{folder} is not a folder of ours") from None
        # A private folder of ours that has become readable is made private again, never the reverse.
        if mode == PRIVATE and stat.S_IMODE(status.st_mode) != mode:
            folder.chmod(mode)
    except OSError as error:
        raise Unavailable(
            part="data folder",
            reason=f"{folder} cannot be made ({error.strerror}); name another with --data-dir",
        ) from error
