"""Parts of random_functions.py: random functions, their values, and their reduction."""
