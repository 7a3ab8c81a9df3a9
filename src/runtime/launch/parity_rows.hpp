// src/runtime/launch/parity_rows.hpp - launches of a batched kernel and of its twin
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/check/parity.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/parity.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "ptxgen/runtime/module/module.hpp"

namespace ptxgen::inline v0 {

/// The operand of `BatchStrategy::RegisterUnroll` that counts the rows of a launch.
inline constexpr std::string_view kRowCount = "m_dim";

/// An operand of the twin, and the one of the batched kernel that has it for all rows.
struct ParityOperand {
  std::size_t single = 0;  ///< numbers of the arguments
  std::size_t batched = 0;
  bool by_row = false;  ///< the batched kernel has elements of each row
  bool written = false;
  bool scalar = false;  ///< of the twin; by row: memory of the batched kernel
  ElementType type = ElementType::f32;
  std::uint64_t elements = 0;  ///< of one row, or of the shared operand
  RepackedRows repacked = {};  ///< of the shared operand
};

/// A pair with the parameters of one number of rows.
struct ParitySpecs {
  const KernelDescription& batched;
  const KernelDescription& single;
  ErasedValue batched_spec;
  ErasedValue single_spec;
  std::uint32_t rows;

  ParitySpecs(const ParityPair& pair, std::uint32_t count);
};

/// The operands of a pair. Throws `Error` (Stage::Build, "parity") for an operand of the twin that
/// the batched kernel does not have, and for one whose elements are neither as many as the twin's
/// nor as many for each row.
[[nodiscard]] std::vector<ParityOperand> parity_operands(const ParitySpecs& specs);

/// Launches a batched kernel and its twin on the same random rows.
class ParityRows {
 public:
  /// Throws as `parity_operands`, and what building and loading the twin throws.
  ParityRows(const Device& device, const ParityPair& pair, const ParityOptions& options);

  /// Runs the twin on every row.
  [[nodiscard]] gates::ParityCheck reference();
  /// Runs the batched kernel that was built for `rows` rows, after `reference`.
  [[nodiscard]] gates::ParityCheck rows(std::uint32_t rows) const;
  /// Asks for more rows than the code serves.
  [[nodiscard]] gates::ParityCheck refusal() const;

 private:
  using Outputs = std::map<std::size_t, std::vector<std::byte>>;  // by number of the operand
  /// Device memory of a launch, by number of the operand.
  struct Memory {
    Buffer<u8> buffer;
    std::vector<std::byte> before;
  };
  using Memories = std::map<std::size_t, Memory>;
  /// What a launch needs.
  struct Job {
    const Function& function;
    const KernelDescription& kernel;
    const void* spec;
    std::vector<OperandValue> operands;
  };

  [[nodiscard]] Function load(const KernelDescription& kernel, const void* spec) const;
  [[nodiscard]] std::vector<std::byte> rows_of(std::size_t operand, std::uint32_t first,
                                               std::uint32_t count) const;
  [[nodiscard]] Memories allocate(bool batched, std::uint32_t first, std::uint32_t served,
                                  std::uint32_t rows) const;
  [[nodiscard]] std::vector<OperandValue> values(const Memories& memories, bool batched,
                                                 std::uint32_t row) const;
  [[nodiscard]] std::string launch(const Job& job, const Stream& stream,
                                   Buffer<u8>& workspace) const;
  [[nodiscard]] std::string read(const Memories& memories, Outputs& outputs) const;
  [[nodiscard]] std::string run_single(const Function& function, std::uint32_t row,
                                       Verification& result);
  void compare_with_reference(std::uint32_t row, Verification& result) const;
  [[nodiscard]] std::string run_rows(const Job& job, std::uint32_t served,
                                     std::uint32_t rows) const;
  [[nodiscard]] std::string compare(const Outputs& outputs, std::uint32_t served,
                                    std::uint32_t rows) const;

  const ParityPair& pair_;
  Context context_;
  ptx::Gpu gpu_;
  ParitySpecs specs_;  // for the most rows
  std::vector<ParityOperand> operands_;
  std::vector<std::vector<std::byte>> elements_;  // of each operand, all rows
  std::vector<double> numbers_;                   // of each scalar operand that is not by row
  std::vector<Outputs> expected_;                 // of each row
};

}  // namespace ptxgen::inline v0
