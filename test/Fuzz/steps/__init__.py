"""Parts of which random_steps.py puts training steps together."""
