"""Stage one: the only room that reads sensitive records."""

from .artifact import Embedding, load_embedding, save_embedding
from .merge import merge
from .own_network import tangent_features_of
from .pipeline import embed

__all__ = [
    "Embedding",
    "embed",
    "load_embedding",
    "merge",
    "save_embedding",
    "tangent_features_of",
]
