// examples/run_without_gpu.cpp - a kernel run, checked and measured with no GPU
//
// Builds a block-wise sum through shared memory, runs it on the emulator, checks the result and
// reads the counters. Then the same kernel without its barrier: the emulator reports both threads
// of the race, their PTX lines and the C++ calls that built them.
#include <cstdio>
#include <string>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/emulator.hpp"

namespace {

using namespace ptxgen;

constexpr std::uint32_t kThreads = 128;

// sums[b] = sum of the kThreads elements of block b, added pairwise in shared memory.
auto block_sum(bool with_barriers) {
  return build_kernel("block_sum", "sm_89", params(param<Ptr<u32>>("sums"), param<Ptr<u32>>("in")),
                      [&](KernelBuilder& k, Ptr<u32> sums, Ptr<u32> in) {
                        k.required_threads(kThreads);
                        const SharedArray<u32> tile = k.shared<u32>(kThreads, "tile");
                        const Value<u32> thread = k.tid_x();
                        const Value<u32> element = in[k.global_thread_x()];
                        k.st_shared(tile + thread, element);
                        for (std::uint32_t half = kThreads / 2; half > 0; half /= 2) {
                          if (with_barriers) k.bar_sync();
                          k.if_(thread < half, [&] {
                            const Value<u32> own = k.ld_shared(tile + thread);
                            const Value<u32> other = k.ld_shared(tile + thread + half);
                            k.st_shared(tile + thread, own + other);
                          });
                        }
                        k.if_(thread == 0u,
                              [&] { sums[k.ctaid_x()] = k.ld_shared(tile + thread); });
                      });
}

emulator::Result launch(bool with_barriers, std::span<const std::uint32_t> in,
                        std::span<std::uint32_t> sums) {
  const auto kernel = block_sum(with_barriers);
  emulator::Device device(emulator::default_gpu(kernel.target()));
  emulator::Program program = emulator::Program::load(device, kernel.module());

  const std::uint64_t in_address = device.allocate(in.size_bytes(), "in");
  const std::uint64_t sums_address = device.allocate(sums.size_bytes(), "sums");
  device.write(in_address, std::as_bytes(in));
  const auto arguments =
      kernel.pack(DeviceAddress<u32>{sums_address}, DeviceAddress<u32>{in_address});

  emulator::Launch how;
  how.kernel = kernel.name();
  how.grid = {static_cast<std::uint32_t>(sums.size()), 1, 1};
  how.block = {kThreads, 1, 1};
  how.parameters = {arguments.data(), arguments.size()};
  const emulator::Result result = emulator::run(program, how);
  device.read(sums_address, std::as_writable_bytes(sums));
  return result;
}

}  // namespace

int main() {
  try {
    std::vector<std::uint32_t> in(16 * kThreads);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i * i);
    std::vector<std::uint32_t> sums(16);

    const emulator::Result good = launch(true, in, sums);
    for (std::size_t b = 0; b < sums.size(); ++b) {
      std::uint32_t right = 0;
      for (std::size_t t = 0; t < kThreads; ++t) right += in[b * kThreads + t];
      if (sums[b] != right) {
        std::printf("block %zu has the sum %u, not %u\n", b, sums[b], right);
        return 1;
      }
    }
    std::printf("%zu sums are right, %zu findings\n\n%s\n", sums.size(), good.findings.size(),
                to_text(good.counters).c_str());

    const emulator::Result racy = launch(false, in, sums);
    std::puts("without its barriers:");
    bool found = false;
    for (const emulator::RunFinding& finding : racy.findings) {
      std::puts(to_text(finding).c_str());
      found = found || finding.rule == emulator::Rule::SharedRace;
    }
    return good.findings.empty() && found ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
