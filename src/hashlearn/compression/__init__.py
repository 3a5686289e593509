"""Which code keeps which recall: the frontier, the promise, its certificate and its page."""
