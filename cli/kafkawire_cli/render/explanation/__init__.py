"""Explanations of bytes (`kafkawire explain`): what captures add, and how they are printed."""
