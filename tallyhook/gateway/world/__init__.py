"""The simulated gateway's world: whole lives of orders, the events they make, and what must come of them."""
