"""mem0 with its local store and vectors that it is given: what the arms that run it begin with."""

from __future__ import annotations

from pathlib import Path

from mem0 import Memory


class Given:
    """An embedding model that is told its vectors."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed(self, text: str, *_: object, **__: object) -> list[float]:
        return self.vectors[text]

    def embed_batch(self, texts: list[str], *_: object, **__: object) -> list[list[float]]:
        return [self.vectors[text] for text in texts]


def local_memory(folder: Path) -> tuple[Memory, Given]:
    """Return a memory that keeps everything in a folder, and what gives it its vectors."""
    memory = Memory.from_config({
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": 384,
                "collection_name": "units",
            },
        },
        "history_db_path": str(folder / "history.db"),
    })  # fmt: skip
    memory.embedding_model = given = Given()
    return memory, given
