"""A toolbox: what it does is in its methods, what it takes and returns in their types."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal, Optional

from ovos_tools_program import Context, Toolbox, tool

Language = Annotated[Literal["en", "de"], "The greeting's language."]
Pause = Annotated[Optional[float], "Seconds between two numbers."]


@dataclass
class Greeting:
    text: str
    language: str


class Greeter(Toolbox):
    """Greets people."""

    id = "greeter"
    licence = "Apache-2.0"

    @tool("read")
    def greet(self, name: Annotated[str, "Whom to greet."], language: Language = "en") -> Greeting:
        """Greets a person by name: the example in Python."""
        return Greeting({"en": "Hello", "de": "Hallo"}[language] + f", {name}!", language)

    @tool("read")
    async def count(self, context: Context, to: Annotated[int, "The last number."], pause: Pause = 0.1) -> int:
        """Counts slowly, and says how far it is."""
        for number in range(1, to + 1):
            await asyncio.sleep(pause or 0)
            context.progress(number / to, f"{number} of {to}")
        return to


if __name__ == "__main__":
    Greeter.run()
