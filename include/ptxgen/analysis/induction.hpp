// ptxgen/analysis/induction.hpp - variables, exit tests and trip counts of loops
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/analysis/versions.hpp"

namespace ptxgen::inline v0::analysis {

/// A loop-invariant value.
struct LoopTerm {
  enum class Kind : std::uint8_t {
    Unknown,   ///< not a single value, or changed by the loop
    Constant,  ///< `value`
    Version,   ///< the value of `version`'s register at the entry of the loop and in it
  };
  Kind kind = Kind::Unknown;
  std::uint32_t version = ptx::kNone;
  std::uint64_t value = 0;  ///< as many bits as the variable has
  [[nodiscard]] bool known() const noexcept { return kind != Kind::Unknown; }
  [[nodiscard]] bool constant() const noexcept { return kind == Kind::Constant; }
  friend constexpr bool operator==(const LoopTerm&, const LoopTerm&) = default;
};

/// A basic induction variable: a register to which each iteration adds, or from which it subtracts,
/// an invariant step. Copies (`mov`) in between are looked through.
struct Induction {
  std::uint32_t phi = ptx::kNone;   ///< the version at the header, at the start of an iteration
  std::uint32_t next = ptx::kNone;  ///< the version at the end of an iteration
  std::uint32_t increment = ptx::kNone;  ///< the add or sub
  unsigned bits = 32;                    ///< 16, 32 or 64
  LoopTerm start;                        ///< Unknown if the entries of the loop differ
  LoopTerm step;                         ///< never Unknown; a constant is added (as `bits` bits)
  bool subtracts = false;                ///< step is a Version, and is subtracted
  /// Runs down: `subtracts`, or a constant with its highest bit set.
  [[nodiscard]] bool down() const noexcept {
    return subtracts || (step.constant() && (step.value >> (bits - 1) & 1) != 0);
  }
};

/// A value that is an induction variable plus a constant, modulo 2^bits.
struct InductionValue {
  std::uint32_t variable = ptx::kNone;  ///< number in `Inductions::of`
  /// Added to the value at the start of the iteration; if `is_next` and the step is a Version, to
  /// the value at the start of the next one.
  std::uint64_t offset = 0;
  bool is_next = false;  ///< one step was added; a constant step is part of `offset` too
};

enum class Relation : std::uint8_t { Lt, Le, Gt, Ge, Eq, Ne };
[[nodiscard]] std::string_view to_string(Relation relation) noexcept;
/// a R b as b R' a.
[[nodiscard]] Relation mirrored(Relation relation) noexcept;
/// Not a R b as a R' b.
[[nodiscard]] Relation opposite(Relation relation) noexcept;

/// A comparison of an induction variable with a loop invariant.
struct LoopComparison {
  std::uint32_t statement = ptx::kNone;  ///< the setp
  std::uint32_t operand = 0;             ///< which of its operands is the variable
  InductionValue value;
  LoopTerm bound;
  Relation relation = Relation::Lt;  ///< value relation bound
  bool is_signed = false;            ///< not used for Eq and Ne
};

/// A branch that may leave a loop.
struct LoopTest {
  std::uint32_t block = 0;
  std::uint32_t branch = ptx::kNone;  ///< the statement
  std::uint32_t stays = 0;            ///< successor inside the loop
  std::uint32_t leaves = 0;           ///< the one outside
  /// The loop continues while this holds. Absent if the branch depends on something else.
  std::optional<LoopComparison> goes_on;
  /// Every iteration executes it before the next one begins.
  bool every_iteration = false;
  bool top = false;  ///< in the header, before the rest of the loop
};

/// The number of iterations of a loop that is left at its test.
struct TripCount {
  enum class Kind : std::uint8_t { Unknown, Constant, Symbolic };
  Kind kind = Kind::Unknown;
  std::uint32_t test = ptx::kNone;  ///< number in `Inductions::tests`
  /// Constant: how often the code after a top test, or before a bottom test, runs.
  std::uint64_t iterations = 0;
  /// No iteration begins with a value that wrapped around. For a Symbolic count `iteration_count`
  /// then gives the number of executions of the test.
  bool wrap_excluded = false;
};

/// The number of executions of a test that continues while `value relation bound`, where the values
/// are `first`, `first + step`, ... modulo 2^bits. Nothing if the values wrap around before the
/// test fails, or if it never fails.
[[nodiscard]] std::optional<std::uint64_t> iteration_count(std::uint64_t first, std::uint64_t step,
                                                           Relation relation, std::uint64_t bound,
                                                           bool is_signed, unsigned bits) noexcept;

/// Induction variables of all loops of a function, from any producer: top-tested, bottom-tested,
/// rotated or guarded loops, with variables that are copied. Irreducible loops have none.
/// Near-linear in the function. Keeps references to its arguments.
class Inductions {
 public:
  Inductions(const ptx::Function& function, const Cfg& cfg, const RegisterIndex& index,
             const Versions& versions);

  [[nodiscard]] std::span<const Induction> of(std::uint32_t loop) const noexcept {
    return loops_[loop].variables;
  }
  [[nodiscard]] std::span<const LoopTest> tests(std::uint32_t loop) const noexcept {
    return loops_[loop].tests;
  }
  [[nodiscard]] TripCount trip_count(std::uint32_t loop) const;

  /// Whether the version is loop-invariant. Its register then holds it from the entry of the loop
  /// on, wherever the loop reads it.
  [[nodiscard]] bool invariant(std::uint32_t loop, std::uint32_t version) const noexcept;
  /// A version as a loop-invariant value; copies in the loop are looked through.
  [[nodiscard]] LoopTerm term(std::uint32_t loop, std::uint32_t version) const;
  /// A version as an induction variable plus a constant, if it is one.
  [[nodiscard]] std::optional<InductionValue> value(std::uint32_t loop,
                                                    std::uint32_t version) const;
  /// An integer setp as a comparison of an induction variable, if it is one.
  [[nodiscard]] std::optional<LoopComparison> comparison(std::uint32_t loop,
                                                         std::uint32_t statement) const;

  /// Whether the tested variable never wraps around, as a signed or unsigned number, while the loop
  /// runs. For Ne also: the values never pass the bound.
  [[nodiscard]] bool wrap_excluded(std::uint32_t loop, const LoopTest& test, bool is_signed) const;
  /// The largest bound of the test (the smallest, if the variable runs down) for which
  /// `wrap_excluded` would hold. A branch before the loop that compares the bound with this limit
  /// makes it hold. Nothing if no limit suffices, or if the loop has several entries.
  [[nodiscard]] std::optional<std::uint64_t> wrap_limit(std::uint32_t loop, const LoopTest& test,
                                                        bool is_signed) const;
  /// The range of a value at the entry of the loop, from its definition and from branches before
  /// the loop; ordered as signed (in two's complement) or unsigned.
  struct Range {
    std::uint64_t min = 0, max = 0;
  };
  [[nodiscard]] Range range(std::uint32_t loop, const LoopTerm& term, unsigned bits,
                            bool is_signed) const;
  /// The range of the variable's start value.
  [[nodiscard]] Range start_range(std::uint32_t loop, std::uint32_t variable, bool is_signed) const;
  /// Whether the relation holds between the variable's start value and `other` at every entry of
  /// the loop.
  [[nodiscard]] bool starts(std::uint32_t loop, std::uint32_t variable, Relation relation,
                            const LoopTerm& other, bool is_signed) const;

  /// The version with all copies looked through.
  [[nodiscard]] std::uint32_t root(std::uint32_t version) const;

 private:
  friend class InductionReader;
  friend class InductionProof;
  friend class WrapProof;
  /// The outcome of a branch before the loop; copies of versions are looked through.
  struct Fact {
    Relation relation;
    bool is_signed;
    LoopTerm a, b;
  };
  /// An entry edge of a loop.
  struct Entry {
    std::uint32_t input;  ///< number among the header's predecessors
    std::vector<Fact> facts;
  };
  struct LoopInfo {
    std::vector<Induction> variables;
    std::vector<LoopTest> tests;
    std::vector<Entry> entries;
  };
  /// `wrap_excluded`, assuming that the bound's ordinal is at most `assumed`.
  [[nodiscard]] bool wrap_excluded(std::uint32_t loop, const LoopTest& test, bool is_signed,
                                   std::uint64_t assumed) const;
  [[nodiscard]] const ptx::Instruction* definition(std::uint32_t version) const;
  [[nodiscard]] std::uint32_t copied(std::uint32_t version) const;
  [[nodiscard]] std::uint32_t source(std::uint32_t version, std::size_t operand) const;

  const ptx::Function* function_;
  const Cfg* cfg_;
  const RegisterIndex* index_;
  const Versions* versions_;
  std::vector<LoopInfo> loops_;
  std::vector<std::uint32_t> variable_of_;  ///< by version: of a phi or an increment, else kNone
};

/// For each loop: variables with start and step, tests, trip count.
[[nodiscard]] std::string to_text(const Inductions& inductions, const Cfg& cfg,
                                  const RegisterIndex& index, const Versions& versions,
                                  const ptx::Module& module, const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
