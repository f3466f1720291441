"""From records to text: pure functions that know no screen."""
