"""What `make docs` adds to docs/: pages that are generated out of the code, links that lead out of docs/, charts.

Each module makes Markdown and does no more; `hooks` alone knows MkDocs.
"""
