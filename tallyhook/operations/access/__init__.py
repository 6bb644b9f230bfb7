"""Who may do what: the least ACLs of Kafka and the least grants of PostgreSQL with which every process works."""
