"""`tallyhook reconcile`: what is recorded here against what the gateway's API tells."""
