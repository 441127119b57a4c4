"""Speed, measured side by side; nothing here is asserted in tests."""
