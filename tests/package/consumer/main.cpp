// tests/package/consumer/main.cpp - a program outside the tree
#include <ptxgen/ptxgen.hpp>

#include <cstdio>
#include <cstring>

int main() {
  try {
    throw ptxgen::Error(ptxgen::Stage::Load, "not-found", "the consumer's own error");
  } catch (const std::exception& error) {
    std::printf("ptxgen %s: %s\n", ptxgen::kVersion, error.what());
    return std::strstr(error.what(), "the consumer's own error [not-found]") != nullptr ? 0 : 1;
  }
}
