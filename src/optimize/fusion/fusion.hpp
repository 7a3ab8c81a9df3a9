// src/optimize/fusion/fusion.hpp - common part of both fusion passes
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "optimize/edits.hpp"
#include "optimize/function_facts.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0::optimize {

class Fusion;

/// Why a candidate stays as it is.
struct Refusal {
  std::string_view reason;  ///< a literal; empty: no reason against it
  std::string message;      ///< kept if the caller asks for messages
  bool liftable = false;    ///< another fusion may do away with it
  [[nodiscard]] explicit operator bool() const noexcept { return !reason.empty(); }
};

/// A multiplication that a sum reads, perhaps through copies and negations.
struct Product {
  /// The statements between the two, the one next to the sum first, then the multiplication.
  static constexpr std::size_t kMaxStatements = 5;
  std::array<std::uint32_t, kMaxStatements> statements{};
  std::array<std::uint32_t, kMaxStatements> versions{};  ///< what each writes and the next reads
  std::uint32_t count = 0;
  std::uint32_t operand = 0;  ///< of the sum: 1 or 2
  bool negated = false;       ///< an odd number of negations
  [[nodiscard]] std::uint32_t statement() const noexcept { return statements[count - 1]; }
};

/// A fused operation that may replace a sum and its product.
struct FusionPlan {
  Refusal refusal;
  Product product;
  ptx::Op op{};
  std::array<ptx::Modifier, 5> modifiers{};
  std::array<ptx::Operand, 3> operands{};  ///< a, b, c of a * b + c
  /// Which of these must be negated by an instruction first (the negated value, else
  /// ptx::kNone), and the row of the negation.
  std::array<std::uint32_t, 3> negate{ptx::kNone, ptx::kNone, ptx::kNone};
  ptx::Op negation{};
  std::size_t readers = 0;  ///< of the negated value: other sums may reuse the negation
  /// Negations whose only reader is fused away.
  std::array<std::uint32_t, 2> spare{ptx::kNone, ptx::kNone};
  [[nodiscard]] unsigned cost() const noexcept {
    return unsigned{negate[0] != ptx::kNone} + unsigned{negate[1] != ptx::kNone} +
           unsigned{negate[2] != ptx::kNone};
  }
  /// Fewer instructions, else negations with more readers, else the earlier plan.
  [[nodiscard]] bool better_than(const FusionPlan& other) const noexcept {
    if (refusal || other.refusal) return !refusal;
    return cost() != other.cost() ? cost() < other.cost() : readers > other.readers;
  }
};

/// What a pass fuses.
struct FusionRules {
  /// Whether the statement is a sum of the pass, or one that it refuses with a reason.
  bool (*sum)(const ptx::Instruction&) = nullptr;
  /// Whether it is a multiplication of the pass.
  bool (*product)(const ptx::Instruction&) = nullptr;
  /// Whether the result of `product` is what `sum` adds, by their rows.
  bool (*pair)(const ptx::Instruction& product, const ptx::Instruction& sum) = nullptr;
  /// Whether `link` negates what `sum` adds; nullptr for never.
  bool (*negation)(const ptx::Instruction& link, const ptx::Instruction& sum) = nullptr;
  /// The fused form, or a refusal.
  FusionPlan (*plan)(Fusion&, std::uint32_t sum, const Product&) = nullptr;
};

/// Fuses all legal pairs of a function, repeatedly until no fusion enables another one. One
/// decision per sum that reads a product. Linear in the function, per iteration.
void fuse(ptx::Function& function, PassContext& context, const FusionRules& rules);

/// The facts about one function that the rules ask for.
class Fusion {
 public:
  Fusion(ptx::Function& function, PassContext& context, const FusionRules& rules);

  [[nodiscard]] const ptx::Function& function() const noexcept { return function_; }
  [[nodiscard]] const PassOptions& options() const noexcept { return context_.options(); }
  [[nodiscard]] const ptx::Instruction& at(std::uint32_t statement) const noexcept {
    return function_.body[statement];
  }
  [[nodiscard]] const ptx::Operand& operand(std::uint32_t statement, std::size_t i) const noexcept {
    return function_.operands[at(statement).first_operand + i];
  }

  /// The message is only created if decisions are explained.
  template <class Text>
  [[nodiscard]] Refusal refuse(std::string_view reason, Text&& text, bool liftable = false) const {
    return {reason, context_.explains() ? text() : std::string(), liftable};
  }
  /// `'mul.f32 %f3, %f1, %f2' in line 7`.
  [[nodiscard]] std::string quote(std::uint32_t statement) const;
  /// ` in line 7`, ` at gemv.cpp:31`, or nothing.
  [[nodiscard]] std::string place(std::uint32_t statement) const;
  [[nodiscard]] std::string name(const ptx::Operand& reg) const;

  /// Whether the product's operands can be read at the sum and the multiplication removed: checks
  /// readers, guards, loops, redefinitions, scopes.
  [[nodiscard]] Refusal check(const Product& product, std::uint32_t sum) const;
  /// Whether the target supports a form; modifiers as in Edits::make.
  [[nodiscard]] Refusal check_target(ptx::Op op, std::span<const ptx::Modifier> modifiers) const;

  /// If `reader` reads the operand from a negation without a guard whose own operand `sum` can read
  /// instead: that negation. Else ptx::kNone. `sum` is `reader` or is dominated by it.
  [[nodiscard]] std::uint32_t negation(std::uint32_t reader, const ptx::Operand& operand,
                                       std::uint32_t sum) const;
  /// A number for the value that a statement reads from a register, and its number of readers.
  [[nodiscard]] std::uint32_t value(std::uint32_t reader, const ptx::Operand& reg) const;
  [[nodiscard]] std::size_t readers(std::uint32_t value) const noexcept {
    return versions_.uses(value).size();
  }
  /// The register with the negated value, if it was computed for a sum that dominates this one;
  /// else a None.
  [[nodiscard]] ptx::Operand negative(std::uint32_t value, const ptx::Operand& reg,
                                      std::uint32_t sum) const;
  /// Whether `reader` is the only reader of the statement's result.
  [[nodiscard]] bool read_only_by(std::uint32_t statement, std::uint32_t reader) const;

 private:
  friend class FusionIteration;
  enum class Change : std::uint8_t { None, Written, TooFar };

  [[nodiscard]] Product find(std::uint32_t sum, std::uint32_t operand) const;
  void find_unknown_names();
  void find_flows();
  [[nodiscard]] bool reads_own_lanes(std::uint32_t reader, std::uint32_t version) const;
  [[nodiscard]] Refusal check_readers(const Product& product, std::uint32_t sum) const;
  [[nodiscard]] Refusal check_guards(const Product& product, std::uint32_t sum) const;
  [[nodiscard]] Refusal check_operand(const ptx::Operand& operand, std::uint32_t from,
                                      std::uint32_t sum) const;
  [[nodiscard]] Change change(std::uint32_t reg, std::uint32_t from, std::uint32_t to,
                              std::uint32_t& writer) const;
  [[nodiscard]] std::uint32_t writer_in(std::uint32_t reg, std::uint32_t block, std::uint32_t begin,
                                        std::uint32_t end) const;
  [[nodiscard]] bool unknown(const ptx::Operand& reg) const;

  ptx::Function& function_;
  PassContext& context_;
  const FusionRules& rules_;
  ptx::TargetName target_;
  const analysis::Cfg& cfg_;
  const analysis::RegisterIndex& index_;
  const analysis::Versions& versions_;
  const Scopes& scopes_;
  struct Negative {
    std::uint32_t sum;  // before which it is made
    ptx::Operand reg;
  };
  // By value, component of a vector register, and type.
  using NegativeKey = std::tuple<std::uint32_t, std::uint8_t, ptx::Type>;
  std::map<NegativeKey, Negative> negatives_;
  std::vector<bool> flows_;            // of each version: see find_flows
  std::vector<std::uint32_t> writes_;  // of each register: how many
  std::vector<bool> unknown_;          // of each register: named by an Unknown statement
};

}  // namespace ptxgen::inline v0::optimize
