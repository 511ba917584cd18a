"""Which embedder the settings ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from contracts.errors import Unavailable
from discovery import MODEL_DIGEST, Embedder, folder_digest, holds_graph, load_folder, load_minilm
from echoplane._folders import DataFolder
from echoplane._settings import Settings


def embedder_factory(settings: Settings, folder: DataFolder) -> Callable[[], Embedder]:
    """Return what makes the embedder; it blocks, and raises `Unavailable` or `ModelMismatch`."""
    if settings.embeddings_url is not None:
        return partial(_endpoint, settings)
    if settings.model_dir is not None and holds_graph(settings.model_dir):
        return partial(load_folder, settings.model_dir)
    return partial(load_minilm, folder.root / "models", model_dir=settings.model_dir)


def configured_model(settings: Settings) -> str:
    """
    Return the name of the model that the settings ask for: a part of the configuration of each answer.

    Raises:
        Unavailable: A file of the model's folder is missing.
    """
    if settings.embeddings_url is not None:
        from echoplane._embeddings_endpoint import configured_digest  # noqa: PLC0415 - loads an HTTP library

        return configured_digest(settings.embeddings_model)
    if settings.model_dir is not None and holds_graph(settings.model_dir):
        return folder_digest(settings.model_dir)
    return MODEL_DIGEST


def _endpoint(settings: Settings) -> Embedder:
    from echoplane._embeddings_endpoint import EndpointEmbedder  # noqa: PLC0415 - loads an HTTP library

    key = None if settings.embeddings_key is None else settings.embeddings_key.get_secret_value()
    if settings.embeddings_key_file is not None:
        try:
            key = settings.embeddings_key_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(
                part="embedder", reason="the file of ECHOPLANE_EMBEDDINGS_KEY_FILE cannot be read"
            ) from error
    assert settings.embeddings_url is not None
    return EndpointEmbedder(settings.embeddings_url, model=settings.embeddings_model, key=key)
