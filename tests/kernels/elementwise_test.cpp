// tests/kernels/elementwise_test.cpp - what the benchmark kernels execute, counted by the emulator
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "ptxgen/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;

namespace {

// A kernel of the catalog on a device of its own.
class Run {
 public:
  Run(const BuiltKernel& kernel, const LaunchGeometry& geometry)
      : device_(emulator::default_gpu(kernel.target())),
        program_(emulator::Program::load(device_, kernel.module())),
        name_(kernel.name()) {
    launch_.kernel = name_;
    launch_.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
    launch_.block = {geometry.block.x, geometry.block.y, geometry.block.z};
  }
  // `offset` bytes after an address that is a multiple of 256.
  [[nodiscard]] std::uint64_t buffer(std::size_t bytes, std::uint64_t offset) {
    const std::uint64_t address = device_.allocate(bytes + offset) + offset;
    device_.write(address, std::vector<std::byte>(bytes));
    return address;
  }
  template <class Block>
  [[nodiscard]] emulator::Counters counters(const Block& block) {
    launch_.parameters = {block.data(), block.size()};
    const emulator::Result result = emulator::run(program_, launch_, {});
    REQUIRE(result.status == emulator::Status::Ok);
    REQUIRE(result.findings.empty());
    return result.counters;
  }

 private:
  emulator::Device device_;
  emulator::Program program_;
  std::string name_;
  emulator::Launch launch_;
};

// Operations on floats, two for a fused multiply-add, as lanes executed them.
std::uint64_t flops(const emulator::Counters& counters, const Module& module) {
  std::uint64_t sum = 0;
  for (const Instruction& s : module.functions[0].body) {
    if (s.kind != StatementKind::Instruction) continue;
    const std::string_view mnemonic = info(s.op).mnemonic;
    if (kind(s.type()) != TypeKind::Float && kind(s.type()) != TypeKind::Packed) continue;
    if (mnemonic != "add" && mnemonic != "fma") continue;
    const std::uint64_t lanes =
        (kind(s.type()) == TypeKind::Packed ? 2u : 1u) * (mnemonic == "fma" ? 2u : 1u);
    for (const emulator::LineCounters& line : counters.lines) {
      if (line.line == s.line) sum += lanes * line.predicated_on;
    }
  }
  return sum;
}

// The counters of one launch; every buffer `offset` bytes after a multiple of 256.
struct Counted {
  emulator::Counters counters;
  std::uint64_t flops = 0;
  KernelCost cost;
};
template <class Spec, class Arguments>
Counted count(const Spec& spec, std::uint64_t offset, const Arguments& arguments,
              std::string_view target) {
  const auto built = spec.build(ptx::target(target));
  Run run(built, spec.geometry());
  const auto block = arguments(run, offset);
  Counted counted{run.counters(block), 0, spec.cost()};
  counted.flops = flops(counted.counters, parse(print(built.module())));
  return counted;
}
template <class T>
constexpr ElementType type_of() {
  return detail::kSame<T, f16>    ? ElementType::f16
         : detail::kSame<T, bf16> ? ElementType::bf16
                                  : ElementType::f32;
}
template <class T>
Counted count_vadd(std::uint32_t n, std::uint64_t offset, std::string_view target = "sm_90") {
  return count(
      Vadd{n, type_of<T>()}, offset,
      [n](Run& run, std::uint64_t at) {
        const auto a = DeviceAddress<T>{run.buffer(n * std::size_t{T::kBytes}, at)};
        const auto b = DeviceAddress<T>{run.buffer(n * std::size_t{T::kBytes}, at)};
        const auto c = DeviceAddress<T>{run.buffer(n * std::size_t{T::kBytes}, at)};
        return Kernel<Ptr<T>, Ptr<T>, Ptr<T>, u32>::pack(a, b, c, n);
      },
      target);
}
Counted count_copy(std::uint32_t n, std::uint64_t offset) {
  return count(
      Copy{n}, offset,
      [n](Run& run, std::uint64_t at) {
        const auto in = DeviceAddress<b32>{run.buffer(n * std::size_t{4}, at)};
        const auto out = DeviceAddress<b32>{run.buffer(n * std::size_t{4}, at)};
        return Copy::KernelType::pack(in, out, n);
      },
      "sm_90");
}
Counted count_fma(std::uint32_t n, std::uint32_t k, std::uint64_t offset) {
  return count(
      FmaRpt{n, k}, offset,
      [n, k](Run& run, std::uint64_t at) {
        const auto in = DeviceAddress<f32>{run.buffer(n * std::size_t{4}, at)};
        const auto out = DeviceAddress<f32>{run.buffer(n * std::size_t{4}, at)};
        return FmaRpt::KernelType::pack(in, out, static_cast<std::int32_t>(n),
                                        static_cast<std::int32_t>(k), 0.5f, 1.0f);
      },
      "sm_90");
}

void check_model(const Counted& counted) {
  CHECK(counted.counters.global_load.bytes == counted.cost.bytes_read);
  CHECK(counted.counters.global_store.bytes == counted.cost.bytes_written);
  CHECK(counted.flops == counted.cost.flops);
}

}  // namespace

TEST_CASE("counted bytes and operations are the work models, aligned or not, tail or none") {
  for (const std::uint32_t n : {1u, 3u, 4u, 5u, 8u, 1000u, 1024u, 4096u, 5003u, 1u << 16}) {
    for (const std::uint64_t offset : {0u, 4u, 8u}) {
      INFO("n = " << n << ", " << offset << " bytes off");
      check_model(count_vadd<f32>(n, offset));
      check_model(count_copy(n, offset));
      for (const std::uint32_t k : {0u, 1u, 16u, 37u}) check_model(count_fma(n, k, offset));
    }
  }
}

TEST_CASE("16-bit sums move half the bytes; pairs count two operations") {
  for (const std::uint32_t n : {8u, 1024u, 1u << 14}) {
    INFO("n = " << n);
    check_model(count_vadd<f16>(n, 0));
    check_model(count_vadd<bf16>(n, 0));
    check_model(count_vadd<bf16>(n, 0, "sm_89"));
    check_model(count_vadd<bf16>(n, 0, "sm_75"));
  }
}

TEST_CASE("aligned bodies move 512 bytes with one request of 16 sectors") {
  constexpr std::uint32_t kN = 1u << 14;
  for (const Counted& counted : {count_vadd<f32>(kN, 0), count_vadd<f16>(2 * kN, 0),
                                 count_copy(kN, 0), count_fma(kN, 3, 0)}) {
    for (const auto* group : {&counted.counters.global_load, &counted.counters.global_store}) {
      CHECK(group->sectors == group->ideal_sectors);
      CHECK(group->sectors == 16 * group->requests);
      CHECK(group->bytes == 512 * group->requests);
    }
    CHECK(counted.counters.divergent_branches == 0);
  }
  // Elements one by one where the buffers are misaligned: still coalesced.
  const Counted apart = count_copy(kN, 4);
  CHECK(apart.counters.global_load.requests == kN / 32);
  CHECK(apart.counters.global_load.sectors == kN / 32 * 5);
}

TEST_CASE("one access of 16 bytes for each array, one of an element, and fma in fma_rpt alone") {
  for (const KernelDescription& entry : catalog()) {
    const bool vadd = entry.name.substr(0, 4) == "vadd";
    if (!vadd && entry.name != "copy" && entry.name != "fma_rpt") continue;
    for (const std::string_view target_name : {"sm_75", "sm_89", "sm_90"}) {
      INFO(entry.name << " for " << target_name);
      std::vector<std::uint64_t> values;
      for (const ParameterInfo& p : entry.parameters) values.push_back(p.default_value);
      const Module module = parse(print(entry.build(values, target(target_name))));
      std::size_t wide = 0;
      std::size_t single = 0;
      std::size_t fused = 0;
      for (const Instruction& s : module.functions[0].body) {
        if (s.kind != StatementKind::Instruction) continue;
        fused += info(s.op).mnemonic == "fma" ? 1 : 0;
        if (info(s.op).mnemonic != "ld" && info(s.op).mnemonic != "st") continue;
        if (space_of(s.get(Field::Space)) != Space::Global) continue;
        const unsigned elements = s.get(Field::Vector) == Modifier::v4 ? 4 : 1;
        (elements * bytes(s.type()) == 16 ? wide : single) += 1;
      }
      CHECK(wide == (vadd ? 3 : 2));
      CHECK(single == (vadd ? 3 : 2));
      CHECK((fused != 0) == (entry.name == "fma_rpt"));
    }
  }
}

TEST_CASE("any grid and block computes everything") {
  for (const std::uint32_t blocks : {1u, 2u, 7u}) {
    for (const std::uint32_t threads : {32u, 96u, 1024u}) {
      constexpr std::uint32_t kN = 10007;
      const Copy spec{kN, threads, blocks};
      const auto built = spec.build(ptx::target("sm_90"));
      Run run(built, spec.geometry());
      const auto in = DeviceAddress<b32>{run.buffer(kN * 4, 0)};
      const auto out = DeviceAddress<b32>{run.buffer(kN * 4, 0)};
      const auto counters = run.counters(Copy::KernelType::pack(in, out, kN));
      CHECK(counters.global_store.bytes == kN * 4);
    }
  }
}
