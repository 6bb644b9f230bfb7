"""What an end user sees of an order, in Thai or English, and what a support agent sees of the same order."""
