"""Visual Match: choose the ball of a colour that was shown before a stay elsewhere."""
