"""Where a robot can be and how far it is: occupancy, geodesic distances, moves."""
