// ptxgen/ptx/target.hpp - the target table and the GPU table
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::ptx {

/// A `.target`. Adding an architecture is one row in src/ptx/target.cpp.
struct Target {
  std::string_view name;  ///< "sm_89", "sm_90a", "sm_100f"
  std::uint16_t sm = 0;   ///< 89, 90, 100
  Variant variant = Variant::None;
  Version version;                            ///< lowest PTX version that supports it
  std::uint32_t shared_per_block = 0;         ///< static limit, bytes
  std::uint32_t shared_per_block_opt_in = 0;  ///< largest dynamic + static, bytes
};

[[nodiscard]] std::span<const Target> targets() noexcept;
/// The row with that name, or nullptr.
[[nodiscard]] const Target* find_target(std::string_view name) noexcept;
/// The row with that name. Throws `Error` (code "unknown-target") with a list of the names.
[[nodiscard]] const Target& target(std::string_view name);

/// A parsed `.target` name, which the table need not have: `sm_52` gives 52, Variant::None.
struct TargetName {
  std::uint16_t sm = 0;
  Variant variant = Variant::None;
};
/// False if the text is not of the form `sm_NN[a|f]`.
[[nodiscard]] bool parse_target_name(std::string_view text, TargetName& out) noexcept;

/// "sm_90a" and so on.
[[nodiscard]] std::string name(TargetName target);

/// Whether a target meets a requirement, ignoring versions.
[[nodiscard]] bool offers(TargetName target, const Requirement& requirement) noexcept;

enum class Dram : std::uint8_t { HBM, GDDR };

/// What was measured on a GPU; 0 where no figure is published. The law of kernels/model.hpp says
/// what the figures mean together, and estimates those that are 0.
struct MeasuredRates {
  double read_share = 0;  ///< of the datasheet bandwidth, by a kernel that only reads
  /// Time of a block that lives for one load, at low load; what full load adds to it.
  double latency_ns = 0;
  double growth_ns = 0;
  double clocks_per_block = 0;  ///< from the start of one block to that of the next, anywhere
  double l2_gb_per_s = 0;       ///< a copy inside the L2, read and written, 1e9 bytes per second
  double l2_read_bytes_per_clock = 0;  ///< a reader of the L2, by the whole GPU
  /// From one kernel that does nearly nothing to the next: launched in a stream, in a graph.
  double stream_us = 0;
  double graph_us = 0;
};

/// Dense products of f16 with sums in f32; a fused multiply-add counts as two operations.
struct TensorCores {
  double operations_per_clock = 0;  ///< of an SM
  std::uint32_t clock_mhz = 0;      ///< at which the datasheet counts them; 0: the boost clock
};

/// A GPU as the planner, the memory report and the emulator model it.
struct Gpu {
  std::string_view name;       ///< "h200", as `--gpu` takes it
  std::string_view full_name;  ///< "NVIDIA H200 SXM"
  std::string_view target;     ///< "sm_90a"-style name of its best target
  std::uint16_t sms = 0;
  std::uint32_t clock_mhz = 0;    ///< boost clock
  double bandwidth_gb_per_s = 0;  ///< datasheet DRAM bandwidth, 1e9 bytes per second
  std::uint64_t memory_bytes = 0;
  std::uint64_t l2_bytes = 0;
  std::uint32_t shared_per_sm = 0;     ///< bytes
  std::uint32_t shared_per_block = 0;  ///< largest opt-in, bytes
  std::uint32_t registers_per_sm = 65536;
  std::uint16_t threads_per_sm = 0;
  std::uint16_t blocks_per_sm = 0;
  Dram dram = Dram::GDDR;
  TensorCores tensor = {};
  MeasuredRates measured = {};
};

/// The architecture of its target: 90 of "sm_90a".
[[nodiscard]] std::uint16_t sm_of(const Gpu& gpu) noexcept;

[[nodiscard]] std::span<const Gpu> gpus() noexcept;
[[nodiscard]] const Gpu* find_gpu(std::string_view name) noexcept;
/// The first GPU of the table whose target has that sm, or nullptr.
[[nodiscard]] const Gpu* first_gpu_of(std::string_view target) noexcept;

}  // namespace ptxgen::inline v0::ptx
