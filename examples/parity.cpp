// examples/parity.cpp - batched kernels against their single-row twins, for a model's sizes
#include <cstdio>

#include "ptxgen/ptxgen.hpp"

// parity [MODEL.gguf] compares every batched kernel of the library with its twin, for the sizes of
// the model's layers (without a file those of Qwen2.5-Coder-1.5B). It runs without a GPU.
int main(int argc, char** argv) {
  using namespace ptxgen;
  try {
    ParityOptions options;
    if (argc > 1) options.sizes = gguf::layer_sizes(gguf::File(argv[1]));
    options.rows = {1, 2, 3, 4, 7, 8, 16};
    const LayerSizes& sizes = options.sizes;
    std::printf("hidden %u, feed-forward %u, %u heads of %u on %u for k and v, %u tokens\n\n",
                sizes.hidden, sizes.intermediate, sizes.heads, sizes.head_size, sizes.kv_heads,
                sizes.vocabulary);

    const Device device = Device::open();
    const ParityReport report = check_parity(device, options);
    for (const ParityResult& pair : report.pairs) {
      std::printf("%-22s  %-22s  %-15s  %s\n", pair.batched.c_str(), pair.single.c_str(),
                  std::string(to_string(pair.strategy)).c_str(), pair.ok() ? "PASS" : "FAIL");
      for (const gates::ParityCheck& check : pair.checks) {
        if (!check.ok) std::printf("    %s: %s\n", check.name.c_str(), check.detail.c_str());
      }
    }
    std::printf("%s\n", report.summary().c_str());
    return report.ok() ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
