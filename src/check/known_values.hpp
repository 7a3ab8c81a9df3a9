// src/check/known_values.hpp - executes threads as far as a launch determines their values
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analysis/evaluate.hpp"
#include "analysis/facts.hpp"
#include "check/threads.hpp"

namespace ptxgen::inline v0::gates {

/// Possible arguments of a kernel.
struct Launch {
  std::array<std::uint32_t, 3> block{0, 0, 0};
  bool exact = false;           ///< every launch has this shape
  std::uint64_t parameter = 0;  ///< the value of every parameter
  std::uint32_t ctaid = 0;      ///< %ctaid.x; the other components are 0
  [[nodiscard]] std::uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

/// How a thread's value is known.
enum class Mark : std::uint8_t {
  Exact,    ///< follows from the thread's index
  Sampled,  ///< one of the values that a launch may give
  Unknown,
};

struct Value {
  std::uint64_t bits = 0;
  Mark mark = Mark::Unknown;
};

/// A special register of one thread; nullopt if it does not follow from the index and the shape.
[[nodiscard]] std::optional<std::uint64_t> index_value(ptx::SpecialRegister reg, unsigned component,
                                                       std::uint32_t thread,
                                                       const std::array<std::uint32_t, 3>& block,
                                                       bool shape_known);

/// A statement whose sources and results are taken from and written to whole registers.
class RegisterRow {
 public:
  RegisterRow(const ptx::Function& function, const ptx::Instruction& instruction);

  /// Whether known sources give known results.
  [[nodiscard]] explicit operator bool() const noexcept { return bool{evaluator_.row()}; }
  [[nodiscard]] std::size_t sources() const noexcept { return evaluator_.row().sources(); }
  /// Destinations are the first operands.
  [[nodiscard]] std::size_t destinations() const noexcept {
    return evaluator_.row().destinations();
  }
  /// Bits of a constant operand; nullopt for other operands.
  [[nodiscard]] std::optional<std::uint64_t> constant(const ptx::Operand& operand,
                                                      std::size_t source) const {
    return analysis::constant_bits(operand, source_types_[source]);
  }

  /// What the destinations' registers hold afterwards; nothing if it is not known. `sources`:
  /// values of the registers, `!` applied. If some are unknown the result may still be known.
  [[nodiscard]] std::optional<ptx::ScalarRow::Results> operator()(
      std::span<const Value> sources) const;

 private:
  RegisterRow(const ptx::Function& function, const ptx::Instruction& instruction,
              const ptx::OperandSpecs& specs);

  [[nodiscard]] std::optional<ptx::ScalarRow::Results> partly_known(
      std::span<const Value> sources, std::span<const std::uint64_t> bits) const;

  analysis::Evaluator evaluator_;
  std::size_t operands_;
  std::array<ptx::Type, ptx::ScalarRow::kMaxSources> source_types_{};
  std::array<std::uint64_t, ptx::ScalarRow::kMaxSources> source_masks_{};
  struct Destination {
    unsigned bits = 0;
    bool is_signed = false;
    unsigned register_bits = 0;
  };
  std::array<Destination, 2> results_{};
};

/// Registers and statements that some registers depend on, without the addresses of loads.
struct NeededRegisters {
  NeededRegisters(const ptx::Function& function, const analysis::RegisterIndex& index,
                  const std::vector<std::uint32_t>& roots);

  std::vector<std::uint32_t> slots;  ///< by register: its place among the needed, or kNone
  std::uint32_t count = 0;
  std::vector<bool> statements;  ///< that write one of them
};

/// What is known of a launch besides `Launch`, by the purpose of the execution.
struct KnownLaunch {
  Launch launch = {};
  bool parameters = true;                     ///< whether parameters are known at all
  std::optional<std::uint64_t> pointer = {};  ///< the value of 64-bit parameters, if another
  bool grid = true;                           ///< whether %nctaid is known
  /// By symbol: window addresses of shared variables. Without them no address is known.
  const std::map<std::uint32_t, std::uint64_t>* shared = nullptr;
};

/// Needed registers of one thread or of all threads of a block. Refers to its arguments, but for
/// the launch.
class KnownValues {
 public:
  KnownValues(const ptx::Module& module, const ptx::Function& function,
              const analysis::RegisterIndex& index, const NeededRegisters& needed,
              const KnownLaunch& launch, std::optional<std::uint32_t> only_thread = {});
  /// False if the values are too many to hold.
  [[nodiscard]] bool fits() const noexcept { return fits_; }

  [[nodiscard]] Value of(const ptx::Operand& operand, std::uint32_t thread) const;
  /// Of a guard; true where there is none.
  [[nodiscard]] Value holds(const ptx::Guard& guard, std::uint32_t thread) const;
  void write(ptx::Register reg, std::uint32_t thread, Value value);
  /// Nothing is known of what the statement writes.
  void forget(std::uint32_t statement, const Threads& threads);
  /// What the statement does in these threads; `left` have left the kernel.
  void execute(std::uint32_t statement, const Threads& threads, const Threads& left);

 private:
  template <class Fn>
  void for_each(const Threads& threads, Fn&& fn) const {
    threads.for_each(first_ + count_, [&](std::uint32_t t) {
      if (t >= first_) fn(t);
    });
  }
  /// A source of the statement in execution, looked up for all threads.
  struct Source {
    const ptx::Operand* operand = nullptr;  ///< null: `constant`
    Value constant = {};
    std::size_t first = ~std::size_t{0};  ///< a register: its first cell
    bool negated = false;
  };
  struct Write {
    std::size_t first;   ///< the register's first cell
    std::size_t result;  ///< number of the destination, or more: unknown
  };
  /// The cell of a needed register in the first thread.
  [[nodiscard]] std::size_t first_cell(ptx::Register reg) const;
  [[nodiscard]] Value get(std::size_t first, std::uint32_t thread) const {
    const std::size_t cell = first + (thread - first_);
    return {values_[cell], marks_[cell]};
  }
  void set(std::size_t first, std::uint32_t thread, Value value) {
    const std::size_t cell = first + (thread - first_);
    values_[cell] = value.bits;
    marks_[cell] = value.mark;
  }
  void look_up(const ptx::Instruction& statement, const RegisterRow& row);
  [[nodiscard]] Value source(const Source& source, std::uint32_t thread) const;
  [[nodiscard]] Value register_value(ptx::Register reg, std::uint32_t thread) const;
  [[nodiscard]] Value special(const ptx::Operand& operand, std::uint32_t thread) const;
  [[nodiscard]] std::optional<Value> parameter(const ptx::Instruction& statement) const;
  [[nodiscard]] Value computed(const RegisterRow& row, std::uint32_t thread, Mark guard,
                               Value& second) const;
  bool vote(const ptx::Instruction& statement, const Threads& threads, const Threads& left);

  const ptx::Module& module_;
  const ptx::Function& function_;
  const analysis::RegisterIndex& index_;
  const NeededRegisters& needed_;
  KnownLaunch launch_;
  std::uint32_t first_, count_;  // threads that have values here
  bool fits_;
  std::vector<std::uint64_t> values_;
  std::vector<Mark> marks_;
  std::array<Source, ptx::ScalarRow::kMaxSources> sources_;
  std::vector<Write> writes_;
};

}  // namespace ptxgen::inline v0::gates
