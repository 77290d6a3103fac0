"""What threads of a block, or of a wave, compute together: the building blocks of `hip.block`, `hip.wave` and
`hip.algorithms`."""
