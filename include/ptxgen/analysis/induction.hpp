// ptxgen/analysis/induction.hpp - variables, exit tests and trip counts of loops
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/analysis/versions.hpp"

namespace ptxgen::inline v0::analysis {

/// A number that a loop does not change.
struct LoopTerm {
  enum class Kind : std::uint8_t {
    Unknown,   ///< not one number, or changed by the loop
    Constant,  ///< `value`
    Version,   ///< what the register of `version` holds when the loop is entered, and in it
  };
  Kind kind = Kind::Unknown;
  std::uint32_t version = ptx::kNone;
  std::uint64_t value = 0;  ///< as many bits as the variable has
  [[nodiscard]] bool known() const noexcept { return kind != Kind::Unknown; }
  [[nodiscard]] bool constant() const noexcept { return kind == Kind::Constant; }
  friend constexpr bool operator==(const LoopTerm&, const LoopTerm&) = default;
};

/// A basic induction variable: a register that each turn of the loop adds the same number to, or
/// takes it away from. Copies (`mov`) on the way are looked through.
struct Induction {
  std::uint32_t phi = ptx::kNone;        ///< the version that a turn begins with, at the header
  std::uint32_t next = ptx::kNone;       ///< the version that it ends with
  std::uint32_t increment = ptx::kNone;  ///< the add or sub
  unsigned bits = 32;                    ///< 16, 32 or 64
  LoopTerm start;                        ///< Unknown where the ways into the loop differ
  LoopTerm step;                         ///< never Unknown; a constant is added (as `bits` bits)
  bool subtracts = false;                ///< step is a Version, and taken away
  /// Runs down: `subtracts`, or a constant with its highest bit set.
  [[nodiscard]] bool down() const noexcept {
    return subtracts || (step.constant() && (step.value >> (bits - 1) & 1) != 0);
  }
};

/// A value that is an induction variable plus a constant, modulo 2^bits.
struct InductionValue {
  std::uint32_t variable = ptx::kNone;  ///< number in `Inductions::of`
  /// To be added to what the turn began with, or, if `is_next` and the step is a Version, to what
  /// the next turn begins with.
  std::uint64_t offset = 0;
  bool is_next = false;  ///< one step was added; a constant step is part of `offset` too
};

enum class Relation : std::uint8_t { Lt, Le, Gt, Ge, Eq, Ne };
[[nodiscard]] std::string_view to_string(Relation relation) noexcept;
/// a R b as b R' a.
[[nodiscard]] Relation mirrored(Relation relation) noexcept;
/// Not a R b as a R' b.
[[nodiscard]] Relation opposite(Relation relation) noexcept;

/// A comparison of an induction variable with a number that the loop does not change.
struct LoopComparison {
  std::uint32_t statement = ptx::kNone;  ///< the setp
  std::uint32_t operand = 0;             ///< which of its operands is the variable
  InductionValue value;
  LoopTerm bound;
  Relation relation = Relation::Lt;  ///< value relation bound
  bool is_signed = false;            ///< means nothing for Eq and Ne
};

/// A branch at which a loop may be left.
struct LoopTest {
  std::uint32_t block = 0;
  std::uint32_t branch = ptx::kNone;  ///< the statement
  std::uint32_t stays = 0;            ///< the successor inside the loop
  std::uint32_t leaves = 0;           ///< the one outside
  /// The loop goes on while this holds. Absent if the branch depends on something else.
  std::optional<LoopComparison> goes_on;
  /// Every turn comes to it before the next one begins.
  bool every_turn = false;
  bool top = false;  ///< stands in the header, before the rest of the loop
};

/// How many turns a loop takes if it is left at its test.
struct TripCount {
  enum class Kind : std::uint8_t { Unknown, Constant, Symbolic };
  Kind kind = Kind::Unknown;
  std::uint32_t test = ptx::kNone;  ///< number in `Inductions::tests`
  /// Constant: how often what stands behind a test at the top, or before one at the bottom, runs.
  std::uint64_t turns = 0;
  /// No turn begins with a number that wrapped around. Of a Symbolic count: then `turns_of` tells
  /// how often the test is made.
  bool wrap_excluded = false;
};

/// How often a test is made that goes on while `value relation bound`, the first value being
/// `first`, each next one `step` more (all modulo 2^bits). Nothing if the values wrap around
/// before that is decided, or if it never ends.
[[nodiscard]] std::optional<std::uint64_t> turns_of(std::uint64_t first, std::uint64_t step,
                                                    Relation relation, std::uint64_t bound,
                                                    bool is_signed, unsigned bits) noexcept;

/// Induction variables of all loops of a function, whoever wrote them: guarded and bottom-tested,
/// rotated, top-tested, with variables that go through copies. Irreducible loops have none.
/// Near-linear in the function. Refers to its arguments, which must outlive it.
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

  /// Whether the loop leaves the version alone: it has one value while the loop runs. The register
  /// then holds it from the loop's entry on, as far as the loop reads it.
  [[nodiscard]] bool invariant(std::uint32_t loop, std::uint32_t version) const noexcept;
  /// A version as a number that the loop does not change; copies in the loop are looked through.
  [[nodiscard]] LoopTerm term(std::uint32_t loop, std::uint32_t version) const;
  /// A version as an induction variable plus a constant; nothing if it is none.
  [[nodiscard]] std::optional<InductionValue> value(std::uint32_t loop,
                                                    std::uint32_t version) const;
  /// An integer setp as a comparison of an induction variable, nothing if it is none.
  [[nodiscard]] std::optional<LoopComparison> comparison(std::uint32_t loop,
                                                         std::uint32_t statement) const;

  /// Whether the variable that the test compares never passes the end of its type, taken as signed
  /// or unsigned, while the loop runs: the value of every turn is the one before plus the step. For
  /// Ne also: values never go beyond the bound.
  [[nodiscard]] bool wrap_excluded(std::uint32_t loop, const LoopTest& test, bool is_signed) const;
  /// The greatest bound of the test (the least, if the variable runs down) with which
  /// `wrap_excluded` would hold: a branch before the loop that compares the bound with it makes it
  /// hold. Nothing if a limit of the bound would not suffice, or if the loop is entered from
  /// several places.
  [[nodiscard]] std::optional<std::uint64_t> wrap_limit(std::uint32_t loop, const LoopTest& test,
                                                        bool is_signed) const;
  /// Least and greatest number that a value can have where the loop is entered, as far as simple
  /// means and branches before the loop tell; ordered as signed (then in two's complement) or
  /// unsigned.
  struct Range {
    std::uint64_t least = 0, greatest = 0;
  };
  [[nodiscard]] Range range(std::uint32_t loop, const LoopTerm& term, unsigned bits,
                            bool is_signed) const;
  /// The same for what the variable begins with.
  [[nodiscard]] Range start_range(std::uint32_t loop, std::uint32_t variable, bool is_signed) const;
  /// Whether on every way into the loop the variable begins with a number that stands in that
  /// relation to the other.
  [[nodiscard]] bool starts(std::uint32_t loop, std::uint32_t variable, Relation relation,
                            const LoopTerm& other, bool is_signed) const;

  /// The version behind all copies.
  [[nodiscard]] std::uint32_t root(std::uint32_t version) const;

 private:
  friend class InductionReader;
  friend class InductionProof;
  /// What a branch before the loop has decided; versions are those behind all copies.
  struct Fact {
    Relation relation;
    bool is_signed;
    LoopTerm a, b;
  };
  /// A way into a loop.
  struct Entry {
    std::uint32_t input;  ///< number among the header's predecessors
    std::vector<Fact> facts;
  };
  struct LoopInfo {
    std::vector<Induction> variables;
    std::vector<LoopTest> tests;
    std::vector<Entry> entries;
  };
  /// `wrap_excluded`, if the bound's ordinal were known to be at most `assumed`.
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
