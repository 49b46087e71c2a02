"""The registry of formats for judgments.

They are `prudent.policies.export.base.Format`s. Their queries read the view `judgments`, which has the columns of
`Judgments` and `number`: that of the context, from 1, in the order of contexts.
"""

from prudent.base.spec import Registry
from prudent.policies.export.base import Format

judgment_formats: Registry[Format] = Registry(
    "judgment format", "prudent.judgment_formats", "parts", "prudent.policies.judgments.formats"
)
