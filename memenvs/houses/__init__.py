"""What a home is and how it is seen and walked: plan, furniture, objects, renderer, navigation map, robot. No rewards in here."""
