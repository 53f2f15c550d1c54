"""Stage one: the only room that reads sensitive records."""

from ..common.ledger import PrivacyBudget
from ..common.sources import SourceOptions
from .feature_options import FeatureOptions
from .from_torch import tangent_features_of
from .merge import merge
from .pipeline import embed
from .sums.file import Embedding, load_embedding
from .sums.saving import save_embedding

__all__ = [
    "Embedding",
    "FeatureOptions",
    "PrivacyBudget",
    "SourceOptions",
    "embed",
    "load_embedding",
    "merge",
    "save_embedding",
    "tangent_features_of",
]
