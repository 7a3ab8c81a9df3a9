// src/runtime/launch/checked_call.hpp - a call on random operands, compared with its reference
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ptxgen/runtime/launch/verify.hpp"

namespace ptxgen::inline v0 {

/// Bytes before and after each operand, which no kernel may change.
inline constexpr std::size_t kGuardBytes = 256;

/// One operand in device memory: guard bytes, the elements, guard bytes.
struct OperandMemory {
  std::size_t argument = 0;
  std::size_t output = 0;  ///< the argument that is written; another one in place
  ElementType type = ElementType::f32;
  std::size_t begin = 0;  ///< of the elements in `before`
  std::vector<std::byte> before;
  std::vector<std::byte> after;
  Buffer<u8> buffer;
  bool written = false;

  [[nodiscard]] std::span<const std::byte> elements(const std::vector<std::byte>& of) const {
    return std::span(of).subspan(begin, of.size() - begin - kGuardBytes);
  }
};

/// A call with its operands on host and device.
struct RandomCall {
  KernelCall call;
  HostOperands host;
  std::vector<OperandMemory> memory;
  StageTimes stages;  ///< "inputs", "upload"
};

/// A call of a kernel on random operands, as `verify` describes it.
///
/// Threads: one at a time.
class CheckedCall {
 public:
  /// Throws `Error` (Stage::Build, "bad-parameter"), and what allocating device memory throws.
  CheckedCall(const Context& context, const KernelDescription& kernel,
              std::span<const std::uint64_t> values, const VerifyOptions& options);

  [[nodiscard]] const KernelCall& call() const noexcept { return call_.call; }
  [[nodiscard]] const void* spec() const noexcept { return spec_.get(); }
  /// Of making the operands.
  [[nodiscard]] const StageTimes& stages() const noexcept { return call_.stages; }
  /// The operands in device memory; `after` as the last `compare` read it.
  [[nodiscard]] std::span<const OperandMemory> memory() const noexcept { return call_.memory; }
  [[nodiscard]] std::span<OperandMemory> memory() noexcept { return call_.memory; }
  /// The operands in fp64; outputs are the reference's after the first `compare`.
  [[nodiscard]] const HostOperands& host() const noexcept { return call_.host; }
  /// Whether a launch reads what the launch before it wrote.
  [[nodiscard]] bool reads_outputs() const;
  /// Device memory as it was before the first launch.
  void restore();
  /// Reads the operands back, compares the outputs with the reference, and adds what it finds to
  /// `result`. The launches before it must have ended.
  void compare(const Launcher& launcher, Verification& result);
  /// Of the kernel that the launcher chooses.
  [[nodiscard]] ErrorBound bound(const Launcher& launcher) const;

 private:
  const Trace& trace_;
  const KernelDescription& kernel_;
  ErasedValue spec_;
  RandomCall call_;
  bool has_reference_ = false;
};

/// Adds the errors and warnings of launches of that kernel from `first` on.
void collect_findings(const Context& context, std::uint64_t first, Verification& result);

}  // namespace ptxgen::inline v0
