"""What ours is measured beside: processes with an environment of their own, never of the product."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PYTHON: Final = Path(__file__).resolve().parents[2] / ".venv-bench" / "bin" / "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A process that answers one line with one line."""

    process: asyncio.subprocess.Process

    async def ask(self, name: str, given: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({name: given}).encode() + b"\n")
        await self.process.stdin.drain()
        return json.loads(await self.process.stdout.readline())


@contextlib.asynccontextmanager
async def arm(
    script: str, *files: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Arm | None]:
    """Start one, with the paths of files in a folder of its own; None where it is not installed."""
    if not PYTHON.exists():
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="echoplane-bench-arm-"))
    process = await asyncio.create_subprocess_exec(
        PYTHON, Path(__file__).with_name(script), *(folder / file for file in files),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
        env={"PATH": os.defpath, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
    )  # fmt: skip
    try:
        yield Arm(process=process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        shutil.rmtree(folder, ignore_errors=True)
