// tests/optimize/loop_split_test.cpp - what splits a loop and what does not, each by its reason
#include <catch2/catch.hpp>

#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
