// src/analysis/versions.cpp - which write of a register a read sees
#include "ptxgen/analysis/versions.hpp"
