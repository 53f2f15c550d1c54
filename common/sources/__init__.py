"""Reading real records, one batch at a time.

Only `dpntk.embed` and `dpntk.evaluate` may import this package; an import contract keeps it out
of reach of the release and of the generator.
"""

from .base import Batch, Source
from .images.form import require_public_form
from .opening import open_source
from .options import SourceOptions

__all__ = ["Batch", "Source", "SourceOptions", "open_source", "require_public_form"]
