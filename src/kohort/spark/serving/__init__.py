"""How an instance shows what it does and knows: queries over HTTP, metrics, the live line, a journal."""
