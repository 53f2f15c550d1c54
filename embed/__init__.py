"""Stage one: the only room that reads sensitive records."""

from ..common.ledger import PrivacyBudget
from ..common.schema.columns.column import Column
from ..common.schema.draft import Draft
from ..common.schema.privacy_unit import PrivacyUnit
from ..common.schema.table import TableSchema
from ..common.schema.toml import read_schema, save_schema
from ..common.sources import SourceOptions
from .feature_options.base import FeatureOptions
from .feature_options.drawn import HermiteOptions
from .feature_options.fourier import FourierOptions
from .feature_options.perceptual import PerceptualOptions
from .feature_options.pixels import PixelOptions
from .feature_options.tangent import TangentOptions
from .from_torch import tangent_features_of
from .inference.schema import draft_schema
from .merge import merge, merge_files
from .pipeline import embed
from .sums.file import Embedding, load_embedding
from .sums.saving import save_embedding

__all__ = [
    "Column",
    "Draft",
    "Embedding",
    "FeatureOptions",
    "FourierOptions",
    "HermiteOptions",
    "PerceptualOptions",
    "PixelOptions",
    "PrivacyBudget",
    "PrivacyUnit",
    "SourceOptions",
    "TableSchema",
    "TangentOptions",
    "draft_schema",
    "embed",
    "load_embedding",
    "merge",
    "merge_files",
    "read_schema",
    "save_embedding",
    "save_schema",
    "tangent_features_of",
]
