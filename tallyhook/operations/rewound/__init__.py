"""The way out of a rewound outbox: what was sent is found again among the rows that the sink made once more.

A database that lost its last commits gets its rows back by itself, because the sink reads the same state changes from
its older position. They are the same effects under other ids, and where events waited for a correlation, under other
numbers. Here they are held against what the effect topics have, by dedupe key and content; where all of it is there
again, the outbox gets the numbers that were sent, and the relay goes on behind them. Nothing is sent or taken back.
"""
