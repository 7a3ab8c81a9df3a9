// examples/dump_ptx.cpp - a library kernel as PTX, checked and read back
#include <iostream>
#include <string>

#include "ptxgen/ptxgen.hpp"

// dump_ptx [TARGET] prints the coalesced GEMV for that target (sm_89 if none is given).
int main(int argc, char** argv) {
  using namespace ptxgen;
  try {
    const ptx::Target& target = ptx::target(argc > 1 ? argv[1] : "sm_89");
    const GemvCoalesced gemv{.k = 4096, .n = 4096};

    const auto kernel =
        gemv.build(target);  // typed: Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, u32>
    const std::string text = kernel.ptx();
    std::cout << text;

    // The printed text is what a driver would get: parse it and inspect the module.
    const ptx::Module module = ptx::parse(text, "gemv_coalesced.ptx");
    std::size_t fused = 0;
    for (const ptx::Instruction& statement : module.functions[0].body) {
      fused += statement.is(ptx::Op::fma_f32) ? 1u : 0u;
    }
    const LaunchGeometry geometry = gemv.geometry();
    std::cerr << gemv.kName << " for " << target.name << ": PTX " << int{module.version.major}
              << '.' << int{module.version.minor} << ", " << fused << " fma, grid "
              << geometry.grid.x << ", block " << geometry.block.x << ", " << gemv.cost().bytes()
              << " bytes to move, " << ptx::verify(module).size() << " findings\n";
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
