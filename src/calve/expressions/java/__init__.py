"""What SEL takes from Java: numbers, formatting, regular expressions, the order of a hash map, JSON. Pure."""
