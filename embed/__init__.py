"""Stage one: the only room that reads sensitive records."""

from ..common.ledger import Ceiling
from .artifact import Embedding, load_embedding
from .merge import merge
from .own_network import tangent_features_of
from .pipeline import embed
from .saving import save_embedding

__all__ = [
    "Ceiling",
    "Embedding",
    "embed",
    "load_embedding",
    "merge",
    "save_embedding",
    "tangent_features_of",
]
