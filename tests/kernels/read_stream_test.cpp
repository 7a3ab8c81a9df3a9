// tests/kernels/read_stream_test.cpp - every byte is read once, nothing else is
#include "ptxgen/kernels/elementwise/read_stream.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "ptxgen/emulator.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/support/error.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

struct Outcome {
  std::uint32_t sum = 0;
  emulator::Counters counters;
};

Outcome run(const ReadStream& spec, const std::string& target,
            const std::vector<std::uint32_t>& words) {
  const auto kernel = spec.build(ptx::target(target));
  emulator::Device device(emulator::default_gpu(target));
  auto program = emulator::Program::load(device, kernel.module());
  const std::uint64_t in = device.allocate(words.size() * 4);
  device.write(in, std::as_bytes(std::span(words)));
  const std::uint64_t out = device.allocate(std::uint64_t{spec.warps()} * 4);
  emulator::Launch launch;
  launch.kernel = std::string(ReadStream::kName);
  const LaunchGeometry geometry = spec.geometry();
  launch.grid = {geometry.grid.x, 1, 1};
  launch.block = {geometry.block.x, 1, 1};
  const auto block = ReadStream::KernelType::pack(DeviceAddress<b8>{in}, DeviceAddress<u32>{out},
                                                  std::uint64_t{words.size() / 4});
  launch.parameters = {block.data(), block.size()};
  const emulator::Result result = emulator::run(program, launch, {});
  REQUIRE(result.status == emulator::Status::Ok);
  REQUIRE(result.findings.empty());
  std::vector<std::uint32_t> sums(spec.warps());
  device.read(out, std::as_writable_bytes(std::span(sums)));
  return {std::accumulate(sums.begin(), sums.end(), 0u), result.counters};
}

std::vector<std::uint32_t> random_words(std::size_t count) {
  std::vector<std::uint32_t> words(count);
  const std::vector<float> values = random_values(count, 7);
  for (std::size_t i = 0; i < count; ++i) words[i] = std::bit_cast<std::uint32_t>(values[i]);
  return words;
}

}  // namespace

TEST_CASE("read_stream adds up every word, for sizes around whole strides of the grid") {
  for (const std::string target : {"sm_75", "sm_90"}) {
    const ReadStream shape{.threads = 64, .blocks = 3};
    const std::uint64_t stride = std::uint64_t{64} * 3 * ReadStream::kUnroll;
    for (const std::uint64_t groups : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{191},
                                       stride - 1, stride, stride + 1, 3 * stride + 77}) {
      INFO(target << " " << groups);
      const std::vector<std::uint32_t> words = random_words(groups * 4);
      const Outcome outcome = run(shape, target, words);
      CHECK(outcome.sum == ReadStream::reference(words));
      // Each byte once, in whole sectors; the one warp that runs out inside a turn shares some.
      CHECK(outcome.counters.global_load.bytes == groups * 16);
      const std::uint64_t ideal = (groups * 16 + 31) / 32;
      CHECK(outcome.counters.global_load.sectors >= ideal);
      CHECK(outcome.counters.global_load.sectors <=
            ideal + (groups % stride == 0 ? 0 : ReadStream::kUnroll));
      CHECK(outcome.counters.global_store.bytes == shape.warps() * 4);
    }
  }
}

TEST_CASE("read_stream's loads are wide and past L1 where the target can") {
  const std::string text = ptx::print(ReadStream{}.build(ptx::target("sm_90")).module());
  CHECK(text.find("ld.global.nc.L1::no_allocate.L2::256B.v4.u32") != std::string::npos);
  const std::string old = ptx::print(ReadStream{}.build(ptx::target("sm_75")).module());
  CHECK(old.find("ld.global.nc.v4.u32") != std::string::npos);
}

TEST_CASE("read_stream refuses launches that it cannot serve") {
  const auto message = [](const ReadStream& spec) -> std::string {
    try {
      (void)spec.geometry();
    } catch (const Error& error) {
      return error.message;
    }
    return "none";
  };
  CHECK(message({.threads = 48}) ==
        "a block of 48 threads; the size must be a multiple of 32 up to 1024");
  CHECK(message({.threads = 2048}) ==
        "a block of 2048 threads; the size must be a multiple of 32 up to 1024");
  CHECK(message({.blocks = 0}) == "the grid has no blocks; use two per SM");
  CHECK(message({}) == "none");
}
