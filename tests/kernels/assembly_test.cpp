// tests/kernels/assembly_test.cpp - every kernel on every target, by an assembler
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

TEST_CASE("every kernel assembles for every target, without spills") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  std::size_t assembled = 0;
  std::size_t not_served = 0;
  std::size_t first = 0;
  for (const KernelDescription& entry : catalog()) {
    std::size_t number = first++;
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : entry.parameters)
      values.push_back(parameter.default_value);
    for (const ptx::Target& target : ptx::targets()) {
      // Every day a sixth of them: each kernel, and each target, has some.
      if (!test::full() && number++ % 6 != 0) continue;
      if (!entry.serves(target)) {
        ++not_served;
        continue;
      }
      INFO(entry.name << " for " << target.name);
      AssembleOptions options;
      options.target = target.name;
      const Assembly result = assembler.assemble(ptx::print(entry.build(values, target)), options);
      REQUIRE(result.kernels.size() == 1);
      CHECK(result.kernels[0].name == (entry.name == "gemm" ? "gemm_mma" : entry.name));
      CHECK(result.spill_stores == 0);
      CHECK(result.spill_loads == 0);
      CHECK(result.kernels[0].stack == 0);
      CHECK(result.registers > 0);
      const bool tensor_cores =
          entry.name.substr(0, 4) == "gemm" || entry.name == "flash_attention_tensor_core";
      CHECK(result.registers <= (entry.name == "gemv" || tensor_cores ? 255u : 128u));
      CHECK(result.kernels[0].shared >= (entry.name == "gemv_coalesced" ? 1024u : 0u));
      ++assembled;
    }
  }
  CHECK(assembled + not_served >=
        catalog().size() * (ptx::targets().size() / (test::full() ? 1 : 6)));
}
