// tests/optimize/program_writer.hpp - statements of random programs, without control flow
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ptx/dice.hpp"
#include "random_program.hpp"

namespace ptxgen::test {

/// Kinds of registers: what they hold, and so which instructions take them.
enum class Kind : std::uint8_t { R, W, S, F, D, H, HH, E, EE };
inline constexpr std::size_t kKinds = 9;

struct KindInfo {
  const char* pool;     ///< registers that hold a value from the start, stored at the end
  unsigned count;       ///< of them
  const char* temp;     ///< registers for one purpose each
  const char* declare;  ///< their type in `.reg`
  unsigned bits;
};
[[nodiscard]] const KindInfo& info(Kind kind);

/// Writes straight-line statements. Everything that it reads has been written before on every path.
class ProgramWriter {
 public:
  ProgramWriter(std::uint64_t seed, Flavour flavour);

 protected:
  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  void place(const std::string& label) { body_ += label + ":\n"; }
  std::string new_label() { return "L" + std::to_string(labels_++); }

  // Registers and operands.
  std::string pool(Kind kind);  ///< a pool register
  std::string temp(Kind kind);  ///< a new register
  std::string new_predicate() { return "%pt" + std::to_string(predicate_temps_++); }
  std::string predicate() { return "%p" + std::to_string(dice_.below(kPredicates)); }
  std::string source(Kind kind);  ///< a register that holds something, or a constant
  std::string held(Kind kind);    ///< a register that holds something
  std::string constant(Kind kind);
  std::string guard(unsigned percent);
  /// A value that all threads agree about and that may be read anywhere: constant, parameter,
  /// loaded from the input. `kind` is R, W or S. The text to get it is written before.
  std::string invariant(Kind kind, std::uint64_t value);
  std::string parameter(Kind kind, std::uint64_t value);
  std::uint32_t input_word(std::uint64_t value);

  // Statements.
  void simple();
  void integer_sum();  ///< mul and add, apart or together
  void float_sum();
  void integer();
  void floating();
  void constants();
  void copies();
  void dead();
  void compare();
  void convert();
  void memory();
  void ordered();
  std::string float_words(Kind kind, bool is_product);
  std::string float_operation(Kind kind, const char* operation, bool is_product = false);
  std::string compare_words();

  static constexpr unsigned kPredicates = 5;
  static constexpr std::uint32_t kOwnWords = 8;  ///< of `out`, written and read on the way

  Dice dice_;
  Flavour flavour_;
  RandomProgram result_;
  std::string body_;
  /// Temporaries that hold a value at this place, by kind.
  std::array<std::vector<std::string>, kKinds> live_;
  std::array<unsigned, kKinds> temps_{};
  unsigned predicate_temps_ = 0, labels_ = 0;
  bool keep_predicates_ = false;  ///< nothing may write a predicate of the pool now
  bool modern_ = true;            ///< bf16 arithmetic

 private:
  std::vector<Kind> float_kinds_;
  const char* favourite_rounding_ = "";
  bool favourite_ftz_ = false, favourite_sat_ = false;
};

}  // namespace ptxgen::test
