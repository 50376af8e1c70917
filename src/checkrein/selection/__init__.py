"""Learning that aims at a certificate."""
