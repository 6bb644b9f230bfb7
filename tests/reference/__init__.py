"""The gateway's own example handlers in Python, one transaction an event: what the bulk sink is judged by.

Nothing here may import the stages. The handler shares the tables with the sink, and no code.
"""
