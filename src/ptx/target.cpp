// src/ptx/target.cpp - the target table and the GPU table
#include "ptxgen/ptx/target.hpp"

#include <iterator>

#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

using enum Variant;

constexpr std::uint32_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kGB = 1'000'000'000;
constexpr std::uint32_t kStatic = 48 * kKiB;

// Lowest PTX version: PTX ISA 9.0, "Supported targets" by release, each checked with ptxas 13.0
// (sm_88 is 9.0 by the ISA, whatever an assembler accepts). Shared memory: CUDA C++ Programming
// Guide, technical specifications per compute capability; 8.8 is not in that table and takes the
// smaller figure of its neighbours.
constexpr Target kTargets[] = {
    {"sm_75", 75, None, {6, 3}, kStatic, 64 * kKiB},
    {"sm_80", 80, None, {7, 0}, kStatic, 163 * kKiB},
    {"sm_86", 86, None, {7, 1}, kStatic, 99 * kKiB},
    {"sm_87", 87, None, {7, 4}, kStatic, 163 * kKiB},
    {"sm_88", 88, None, {9, 0}, kStatic, 99 * kKiB},
    {"sm_89", 89, None, {7, 8}, kStatic, 99 * kKiB},
    {"sm_90", 90, None, {7, 8}, kStatic, 227 * kKiB},
    {"sm_90a", 90, Architecture, {8, 0}, kStatic, 227 * kKiB},
    {"sm_100", 100, None, {8, 6}, kStatic, 227 * kKiB},
    {"sm_100a", 100, Architecture, {8, 6}, kStatic, 227 * kKiB},
    {"sm_100f", 100, Family, {8, 8}, kStatic, 227 * kKiB},
    {"sm_103", 103, None, {8, 8}, kStatic, 227 * kKiB},
    {"sm_103a", 103, Architecture, {8, 8}, kStatic, 227 * kKiB},
    {"sm_103f", 103, Family, {8, 8}, kStatic, 227 * kKiB},
    {"sm_110", 110, None, {9, 0}, kStatic, 227 * kKiB},
    {"sm_110a", 110, Architecture, {9, 0}, kStatic, 227 * kKiB},
    {"sm_110f", 110, Family, {9, 0}, kStatic, 227 * kKiB},
    {"sm_120", 120, None, {8, 7}, kStatic, 99 * kKiB},
    {"sm_120a", 120, Architecture, {8, 7}, kStatic, 99 * kKiB},
    {"sm_120f", 120, Family, {8, 8}, kStatic, 99 * kKiB},
    {"sm_121", 121, None, {8, 8}, kStatic, 99 * kKiB},
    {"sm_121a", 121, Architecture, {8, 8}, kStatic, 99 * kKiB},
    {"sm_121f", 121, Family, {8, 8}, kStatic, 99 * kKiB},
};

// By architecture: CUDA C++ Programming Guide, technical specifications per compute capability; 8.8
// again takes the smaller figures of its neighbours.
constexpr Limits kLimits[] = {
    {75, 1024, 16, 64 * kKiB, 64},    {80, 2048, 32, 164 * kKiB, 64},
    {86, 1536, 16, 100 * kKiB, 128},  {87, 1536, 16, 164 * kKiB, 128},
    {88, 1536, 16, 100 * kKiB, 128},  {89, 1536, 24, 100 * kKiB, 128},
    {90, 2048, 32, 228 * kKiB, 128},  {100, 2048, 32, 228 * kKiB, 128},
    {103, 2048, 32, 228 * kKiB, 128}, {110, 1536, 24, 228 * kKiB, 128},
    {120, 1536, 24, 100 * kKiB, 128}, {121, 1536, 24, 100 * kKiB, 128},
};

// Checked with ptxas 13.0, which refuses one byte more.
constexpr std::uint32_t kParameterBytes = 4352;
constexpr std::uint32_t kManyParameterBytes = 32764;
constexpr Version kManyParameters{8, 1};

// Sweeps of github.com/te42kyfo/gpu-benches at 1c36d50 (gpu-stream: share, latency and growth
// fitted to its reads; gpu-small-kernels: the rest); its "h200" is a GH200. RTX 3090 and RTX 5090:
// published readers reach 93 % of the datasheet. Readers of the L2: 7219 GB/s of an A100 at 1410
// MHz and 8986 GB/s of an H100 at 1755 MHz (PMC10448217, table 3), both 5120 bytes a clock.
constexpr MeasuredRates kA100{.read_share = 0.868,
                              .latency_ns = 677,
                              .growth_ns = 332,
                              .clocks_per_block = 1.06,
                              .l2_gb_per_s = 3930,
                              .l2_read_bytes_per_clock = 5120,
                              .stream_us = 2.68,
                              .graph_us = 1.39};
constexpr MeasuredRates kA100Of40{
    .read_share = 0.958, .latency_ns = 710, .growth_ns = 355, .l2_read_bytes_per_clock = 5120};
constexpr MeasuredRates kRtx3090{.read_share = 0.93};
constexpr MeasuredRates kA40{.read_share = 0.976,
                             .latency_ns = 529,
                             .growth_ns = 158,
                             .clocks_per_block = 1.13,
                             .l2_gb_per_s = 2800,
                             .stream_us = 2.01,
                             .graph_us = 1.13};
constexpr MeasuredRates kL40{.read_share = 0.977,
                             .latency_ns = 445,
                             .growth_ns = 60,
                             .clocks_per_block = 1.33,
                             .l2_gb_per_s = 4840,
                             .stream_us = 1.64,
                             .graph_us = 1.04};
constexpr MeasuredRates kHopper{.l2_read_bytes_per_clock = 5120};
constexpr MeasuredRates kH100Pcie{
    .read_share = 0.975, .latency_ns = 628, .growth_ns = 312, .l2_read_bytes_per_clock = 5120};
constexpr MeasuredRates kGh200{.read_share = 0.9665,
                               .latency_ns = 562,
                               .growth_ns = 448,
                               .clocks_per_block = 1.18,
                               .l2_gb_per_s = 6190,
                               .l2_read_bytes_per_clock = 5120,
                               .stream_us = 2.46,
                               .graph_us = 1.27};
constexpr MeasuredRates kRtx5090{.read_share = 0.93};

constexpr TensorCores tensor(double operations_per_clock, std::uint32_t clock_mhz = 0) noexcept {
  return {operations_per_clock, clock_mhz};
}

// NVIDIA datasheets and architecture white papers of each part; clocks are boost clocks. B300: SMs
// and clock of the B200, with the datasheet's memory. Tensor cores, TFLOP/s: T4 65, A100 312, A40
// 149.7, RTX 3090 71, RTX 4090 165.2, RTX 4080 97.5, L40S 362, L40 181, L4 121, H100 SXM 989, H100
// PCIe 756, B200 2250, RTX 5090 209.5.
constexpr Gpu kGpus[] = {
    {"t4", "NVIDIA T4", "sm_75", 40, 1590, 320, 16 * kGB, 4 * kMiB, 64 * kKiB, 64 * kKiB, 65536,
     1024, 16, Dram::GDDR, tensor(1024)},
    {"a100", "NVIDIA A100 80GB SXM", "sm_80", 108, 1410, 2039, 80 * kGB, 40 * kMiB, 164 * kKiB,
     163 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(2048), kA100},
    {"a100-40", "NVIDIA A100 40GB SXM", "sm_80", 108, 1410, 1555, 40 * kGB, 40 * kMiB, 164 * kKiB,
     163 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(2048), kA100Of40},
    {"rtx3090", "NVIDIA GeForce RTX 3090", "sm_86", 82, 1695, 936, 24 * kGB, 6 * kMiB, 100 * kKiB,
     99 * kKiB, 65536, 1536, 16, Dram::GDDR, tensor(512), kRtx3090},
    {"a40", "NVIDIA A40", "sm_86", 84, 1740, 696, 48 * kGB, 6 * kMiB, 100 * kKiB, 99 * kKiB, 65536,
     1536, 16, Dram::GDDR, tensor(1024), kA40},
    {"rtx4090", "NVIDIA GeForce RTX 4090", "sm_89", 128, 2520, 1008, 24 * kGB, 72 * kMiB,
     100 * kKiB, 99 * kKiB, 65536, 1536, 24, Dram::GDDR, tensor(512)},
    {"rtx4080", "NVIDIA GeForce RTX 4080", "sm_89", 76, 2505, 716.8, 16 * kGB, 64 * kMiB,
     100 * kKiB, 99 * kKiB, 65536, 1536, 24, Dram::GDDR, tensor(512)},
    {"l40s", "NVIDIA L40S", "sm_89", 142, 2520, 864, 48 * kGB, 96 * kMiB, 100 * kKiB, 99 * kKiB,
     65536, 1536, 24, Dram::GDDR, tensor(1024)},
    {"l40", "NVIDIA L40", "sm_89", 142, 2490, 864, 48 * kGB, 96 * kMiB, 100 * kKiB, 99 * kKiB,
     65536, 1536, 24, Dram::GDDR, tensor(512), kL40},
    {"l4", "NVIDIA L4", "sm_89", 58, 2040, 300, 24 * kGB, 48 * kMiB, 100 * kKiB, 99 * kKiB, 65536,
     1536, 24, Dram::GDDR, tensor(1024)},
    {"h100", "NVIDIA H100 SXM", "sm_90a", 132, 1980, 3350, 80 * kGB, 50 * kMiB, 228 * kKiB,
     227 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(4096, 1830), kHopper},
    {"h100-pcie", "NVIDIA H100 PCIe", "sm_90a", 114, 1755, 2039, 80 * kGB, 50 * kMiB, 228 * kKiB,
     227 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(4096, 1620), kH100Pcie},
    {"gh200", "NVIDIA GH200 96GB", "sm_90a", 132, 1980, 4023, 96 * kGB, 60 * kMiB, 228 * kKiB,
     227 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(4096, 1830), kGh200},
    {"h200", "NVIDIA H200 SXM", "sm_90a", 132, 1980, 4800, 141 * kGB, 60 * kMiB, 228 * kKiB,
     227 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(4096, 1830), kHopper},
    {"b200", "NVIDIA B200 SXM", "sm_100a", 148, 1965, 8000, 180 * kGB, 126 * kMiB, 228 * kKiB,
     227 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(8192, 1856)},
    {"b300", "NVIDIA B300 SXM", "sm_103a", 148, 1965, 8000, 288 * kGB, 126 * kMiB, 228 * kKiB,
     227 * kKiB, 65536, 2048, 32, Dram::HBM, tensor(8192, 1856)},
    {"rtx5090", "NVIDIA GeForce RTX 5090", "sm_120a", 170, 2407, 1792, 32 * kGB, 96 * kMiB,
     100 * kKiB, 99 * kKiB, 65536, 1536, 24, Dram::GDDR, tensor(512), kRtx5090},
};

}  // namespace

std::span<const Target> targets() noexcept { return kTargets; }

const Target* find_target(std::string_view wanted) noexcept {
  for (const Target& row : kTargets) {
    if (row.name == wanted) return &row;
  }
  return nullptr;
}

const Target& target(std::string_view wanted) {
  if (const Target* row = find_target(wanted)) return *row;
  std::string message = "unknown target '" + std::string(wanted) + "'; the table has";
  for (const Target& row : kTargets) message += " " + std::string(row.name);
  throw Error(Stage::Build, "unknown-target", std::move(message));
}

const Limits& limits(std::string_view wanted) noexcept {
  TargetName name;
  if (parse_target_name(wanted, name)) {
    for (const Limits& row : kLimits) {
      if (row.sm >= name.sm) return row;
    }
  }
  return *std::prev(std::end(kLimits));
}

std::uint32_t parameter_bytes(Version version) noexcept {
  return version < kManyParameters ? kParameterBytes : kManyParameterBytes;
}

bool parse_target_name(std::string_view text, TargetName& out) noexcept {
  if (!text.starts_with("sm_")) return false;
  text.remove_prefix(3);
  Variant variant = None;
  if (text.ends_with('a')) variant = Architecture;
  if (text.ends_with('f')) variant = Family;
  if (variant != None) text.remove_suffix(1);
  if (text.empty() || text.size() > 4) return false;
  unsigned sm = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    sm = sm * 10 + static_cast<unsigned>(digit - '0');
  }
  out = {static_cast<std::uint16_t>(sm), variant};
  return true;
}

std::string name(TargetName target) {
  constexpr std::string_view kSuffix[] = {"", "a", "f"};
  return "sm_" + std::to_string(target.sm) +
         std::string(kSuffix[static_cast<std::size_t>(target.variant)]);
}

bool offers(TargetName target, const Requirement& requirement) noexcept {
  switch (requirement.variant) {
    case None:
      return target.sm >= requirement.sm;
    case Architecture:
      return target.variant == Architecture && target.sm == requirement.sm;
    // Architecture-specific targets include the features of their family.
    case Family:
      return target.variant != None && target.sm / 10 == requirement.sm / 10 &&
             target.sm >= requirement.sm;
  }
  return false;
}

std::uint16_t sm_of(const Gpu& gpu) noexcept {
  TargetName name;
  return parse_target_name(gpu.target, name) ? name.sm : std::uint16_t{0};
}

std::span<const Gpu> gpus() noexcept { return kGpus; }

const Gpu* find_gpu(std::string_view wanted) noexcept {
  for (const Gpu& row : kGpus) {
    if (row.name == wanted) return &row;
  }
  return nullptr;
}

const Gpu* first_gpu_of(std::string_view target) noexcept {
  TargetName wanted;
  if (!parse_target_name(target, wanted)) return nullptr;
  for (const Gpu& row : kGpus) {
    TargetName own;
    if (parse_target_name(row.target, own) && own.sm == wanted.sm) return &row;
  }
  return nullptr;
}

}  // namespace ptxgen::inline v0::ptx
