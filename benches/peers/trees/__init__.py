"""Parts of trees.py: programs are built, results compared, tables printed."""
