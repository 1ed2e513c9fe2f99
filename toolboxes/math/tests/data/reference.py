"""Writes reference.json: what OVOS's own math toolbox answers to the calls below.

    python3 -m venv venv
    venv/bin/pip install --pre ovos-agentic-loop==0.2.5a1 sympy==1.14.0
    venv/bin/python reference.py > reference.json

Run with Python 3.11. Rows of solve_equation carry the method that answered: those of "numeric" were made with sympy
hidden. Calls whose result is NaN are written as null: on the bus they are an error.
"""
import json
import math
import sys

from ovos_agentic_loop.tools.math import (EvaluateExpressionArgs, MathToolBox, SolveEquationArgs,
                                          StatisticsSummaryArgs, UnitConvertArgs)

box = MathToolBox()
rows = []


def row(tool, call, model, args):
    output = call(model(**args)).model_dump(mode="python")
    if any(isinstance(value, float) and not math.isfinite(value) for value in output.values()):
        output = None
    rows.append({"tool": tool, "args": args, "output": output})


for expression in """
1+2 | 2*3+4 | 2+3*4 | (2+3)*4 | 10/4 | 7//2 | -7//2 | 7//-2 | 7%3 | -7%3 | 7%-3 | -7%-3 | 5.5%2 | 1e308%0.3 | 2**10
2**3**2 | -2**2 | (-2)**2 | 2**-1 | -2**-2 | --3 | -+-3 | 2*-3 | 2--3 | 1/3 | 0.1+0.2 | 1e3 | .5+5. | 1_000*2 | 0x1F | 0b101
0o17 | 1E-3 | True+1 | pi | e | tau | 2*pi*6371 | sqrt(2) | abs(-3.5) | round(2.5) | round(3.5) | round(-2.5) | ceil(1.2)
floor(-1.2) | log(10) | log(8,2) | log10(1000) | log2(8) | exp(1) | sin(pi/6) | cos(0) | tan(1) | asin(1) | acos(0.5)
atan(1) | atan2(1,-1) | degrees(pi) | radians(180) | factorial(10) | factorial(170) | gcd(12,18) | gcd(12,18,27) | gcd()
lcm(4,6) | lcm(21,6,14) | sqrt(16)+abs(-3)*2 | 15*0.2 | (1+0.05)**10*1000 | 100//7%5 | 6/2*(1+2) | 2 ** 0.5 | 0**0
1/0 | 1//0 | 1%0 | 0**-1 | (-8)**(1/3) | 10**400 | 1e400 | inf | inf-inf | sqrt(-1) | log(0) | log(-1) | asin(2) | exp(1000)
factorial(171) | factorial(-1) | foo | foo(1) | sin | pi(1) | 2+ | (1 | 1) | 2 3 | | "a" | [1] | x.y | 1j | 1<2 | not 1
__import__('os') | sin(1,2) | atan2(1) | abs() | 5! | 2^3 | lambda: 1 | 1 if 1 else 2 | 9**9**9 | ~5 | 1,2
""".replace("\n", "|").split("|"):
    row("evaluate_expression", box._evaluate_expression, EvaluateExpressionArgs, {"expression": expression.strip()})

for value, source, target in [
    (1, "km", "mi"), (1, "mile", "km"), (26.2, "miles", "km"), (6, "ft", "cm"), (12, "in", "cm"), (1, "inch", "mm"),
    (3, "yd", "m"), (1, "nmi", "km"), (1, "ly", "km"), (5, "foot", "feet"), (1, "lb", "kg"), (10, "pounds", "kg"),
    (1, "stone", "lb"), (1, "ton", "kg"), (1, "tonne", "kg"), (500, "mg", "g"), (8, "oz", "g"), (1, "gal", "l"),
    (1, "cup", "ml"), (1, "tsp", "ml"), (1, "tbsp", "tsp"), (2, "pint", "litre"), (1, "quart", "cup"), (1, "floz", "ml"),
    (1, "m3", "gallon"), (1, "cm3", "mm3"), (90, "min", "h"), (1, "week", "days"), (1, "year", "days"), (2, "hours", "s"),
    (5, "ms", "us"), (100, "km/h", "mph"), (10, "m/s", "kph"), (20, "knots", "mps"), (30, "ft/s", "m/s"), (1, "acre", "m2"),
    (1, "ha", "acre"), (1, "mi2", "km2"), (100, "sqft", "m2"), (1, "yd2", "ft2"), (1, "GB", "MB"), (1, "GiB", "MB"),
    (8, "bit", "byte"), (1, "TB", "GiB"), (1, "pb", "tib"), (100, "c", "f"), (32, "fahrenheit", "celsius"), (0, "K", "C"),
    (-40, "°F", "°C"), (25, "celsius", "kelvin"), (98.6, "F", "kelvin"), (300, "k", "k"), (1, " KM ", "M"),
    (1, "km", "kg"), (1, "parsec", "km"), (1, "km", "parsec"), (1, "c", "km"), (1, "km", "f"), (1, "", "m"), (0, "h", "s"),
    (-5, "m", "cm"),
]:
    row("unit_convert", box._unit_convert, UnitConvertArgs, {"value": value, "from_unit": source, "to_unit": target})

for numbers in [[], [5], [1, 2], [1, 2, 3, 4], [3, 1, 2], [2.5, 2.5, 2.5], [-1, 0, 1], [1e10, 1e-10, 3], [0.1] * 10,
                [1e16, 1, -1e16], [10, 20, 30, 40, 50, 60], [1.5, 2.25, -7.125, 9.75, 3.0], list(range(1, 101))]:
    row("statistics_summary", box._statistics_summary, StatisticsSummaryArgs, {"numbers": numbers})

SYMBOLIC = ["x**2 - 4", "2*x + 6", "x**2 + 1", "x**2 - 2*x + 1", "x**3 - 6*x**2 + 11*x - 6", "x", "x**4 - 5*x**2 + 4",
            "(x-1)*(x+2)", "x**2 - 2", "5000 - x", "x**3 - 8", "3*x/4 - 1.5", "x**2 - x - 1", "(x-3)**2*(x+1)", "7", "-x**2+9",
            "x**6 - 64", "1e-3*x - 5"]
NUMERIC = ["cos(x) - x", "exp(x) - 3", "log(x) - 1", "sqrt(x) - 3", "exp(-x) - 0.5", "2**x - 1000", "x**2 -", ""]
for equation in SYMBOLIC:
    row("solve_equation", box._solve_equation, SolveEquationArgs, {"equation": equation})
sys.modules["sympy"] = None
for equation in NUMERIC:
    row("solve_equation", box._solve_equation, SolveEquationArgs, {"equation": equation})

print("[")
print(",\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
print("]")
