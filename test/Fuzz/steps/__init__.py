"""Parts from which random_steps.py builds training steps."""
