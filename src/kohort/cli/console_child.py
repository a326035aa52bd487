"""What a broker and the console beside it agree on; it is loaded by both, and loads nothing."""

from typing import Final

TOKEN_VARIABLE: Final = "KOHORT_CONSOLE_TOKEN"
"""Its token, which a console asks for that isn't a secured broker's."""

WRONG_CALL: Final = 2
PORT_TAKEN: Final = 3
"""How it ends if its options make no sense, and if it can't listen; then the broker doesn't start, either."""
