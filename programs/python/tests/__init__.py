"""The tests; the examples that they drive are at the root of the tree."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))
