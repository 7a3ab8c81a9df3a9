// tests/kernels/golden_test.cpp - whole kernels, byte for byte
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

std::string text_of(const CatalogEntry& entry, std::string_view target) {
  std::vector<std::uint64_t> values;
  for (const ParameterInfo& parameter : entry.parameters) values.push_back(parameter.default_value);
  return ptx::print(entry.build(values, ptx::target(target)));
}

}  // namespace

// The files hold for every compiler, optimisation level and process: each build of the tests
// compares with the same bytes. PTXGEN_REWRITE_GOLDENS=1 writes them anew; read the difference
// before it goes in.
TEST_CASE("every kernel is its golden file") {
  const char* rewrite = std::getenv("PTXGEN_REWRITE_GOLDENS");
  for (const CatalogEntry& entry : catalog()) {
    for (const std::string_view target : {"sm_75", "sm_89", "sm_90", "sm_120"}) {
      const std::string path =
          PTXGEN_GOLDENS "/" + std::string(entry.name) + "." + std::string(target) + ".ptx";
      const std::string text = text_of(entry, target);
      CHECK(text == text_of(entry, target));
      // What the planner takes for a GPU is no matter of bytes.
      if (entry.name == "gemv") continue;
      if (rewrite != nullptr && *rewrite == '1') std::ofstream(path, std::ios::binary) << text;
      std::ifstream in(path, std::ios::binary);
      const std::string golden{std::istreambuf_iterator<char>(in), {}};
      INFO(path);
      CHECK(text == golden);
    }
  }
}

TEST_CASE("every kernel for every target is read back equal and printed back the same") {
  for (const CatalogEntry& entry : catalog()) {
    for (const ptx::Target& target : ptx::targets()) {
      const std::string text = text_of(entry, target.name);
      const ptx::Module module = ptx::parse(text);
      INFO(entry.name << " for " << target.name);
      CHECK(ptx::print(module) == text);
      CHECK(ptx::difference(module, ptx::parse(ptx::print(module))) == "");
    }
  }
}
