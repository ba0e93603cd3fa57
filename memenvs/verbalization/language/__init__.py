"""Language about a robot's life: the grammar of questions and answers, and their score."""
