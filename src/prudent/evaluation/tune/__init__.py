"""Which bound, at which δ: tried on logs like the one at hand of which everything is known, confirmed on later lists.

The paper's protocol is a parametric bootstrap on the logged lists:

1. Fit a click model to the past, and shrink: every θ has a Beta posterior, whose prior follows exposure as far as the
   clicks support it, as that of the bound ``exposure`` does.
2. Draw θ of every item from its posterior. That is a truth, and its best lists A* are known. (Posterior means would
   make a world in which rare items are all alike, and pessimism about them costs nothing.)
3. Let users who behave so click on the lists that were logged; rank what they clicked by every setting; and note the
   error ``V(A*) − V(Â)``, where every context weighs as much as it has lists.
4. Repeat from 2. Errors of two settings are compared repetition by repetition.

Then the lists to which the real clicks of the past lead, by the best setting and by the default, are compared under a
model of clicks that neither has seen: position parameters of the past, θ from the later lists.
"""

from prudent.evaluation.tune.logs import BOUNDS, DELTAS, tune
from prudent.evaluation.tune.results import DEFAULT, Confirmation, Setting, Tuning

__all__ = ["BOUNDS", "DEFAULT", "DELTAS", "Confirmation", "Setting", "Tuning", "tune"]
