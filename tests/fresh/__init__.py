"""The README's commands on fresh machines: `python -m tests.fresh`, in empty roots of Debian made by debootstrap."""
