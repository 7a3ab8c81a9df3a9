// tests/emulator/race_oracle_test.cpp - x
