"""What host and device must agree on."""
