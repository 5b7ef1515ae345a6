"""Names of array types that many modules share."""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float32]
