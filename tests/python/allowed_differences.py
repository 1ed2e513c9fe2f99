"""placeholder"""
from dataclasses import dataclass
from typing import Any
@dataclass
class Difference:
    row: str
    path: str
    reference: Any
    ours: Any
RULES = []
