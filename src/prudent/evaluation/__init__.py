"""What a policy would earn on lists it was not trained on, and whether it may be deployed."""
