"""What a broker in memory executes for one record that is delivered."""
