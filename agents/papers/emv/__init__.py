"""Question answering about a robot's days: a memory of key frames, and a head."""
