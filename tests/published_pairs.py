"""The nine neighbouring pairs of the top ten models of MMLU-Pro, as published: items that only one of the two has right."""

import numpy as np

B = np.array([253, 284, 32, 1871, 1680, 1449, 352, 787, 1227])
C = np.array([111, 76, 20, 1076, 1454, 1439, 242, 684, 1200])
