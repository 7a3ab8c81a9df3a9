// tests/emulator/lane_runner.hpp - one instruction's semantics on given source bits
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/lane/lane.hpp"

namespace ptxgen::test {

/// What result words hold before an instruction runs.
inline constexpr std::uint64_t kUnwritten = 0x5a5a'1234'a5a5'4321u;

/// Statements in a kernel that declares %p (pred), %b (b8), %h (b16), %r (b32), %rd (b64), %q
/// (b128), %f (f32), %fd (f64), 32 of each, and shared, global arrays s and g.
[[nodiscard]] ptx::Module kernel_with(std::string_view statements);

/// The prefix of its registers of so many bits.
[[nodiscard]] std::string registers_of(unsigned width);

/// The instructions of the last function of a module.
[[nodiscard]] std::vector<const ptx::Instruction*> instructions_of(const ptx::Module& module);

/// One instruction without memory, parsed from its text, so that the row is the one a program gets.
class LaneRunner {
 public:
  /// Fails the test case if the text is not one instruction with lane semantics.
  explicit LaneRunner(std::string text);

  /// The result words (after them the carry flag, if it is written). Fails the test case if words
  /// beyond them are written or a word has bits that its operand's type has not.
  [[nodiscard]] std::vector<std::uint64_t> run(const std::vector<std::uint64_t>& sources) const;
  [[nodiscard]] std::uint64_t operator()(const std::vector<std::uint64_t>& sources) const {
    return run(sources)[0];
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// How wide the source words are, in bits.
  [[nodiscard]] const std::vector<unsigned>& source_widths() const noexcept {
    return source_widths_;
  }
  [[nodiscard]] const emulator::LaneOp& op() const noexcept { return op_; }

 private:
  std::string text_;
  emulator::LaneOp op_;
  emulator::LaneFunction function_ = nullptr;
  std::vector<unsigned> source_widths_;
  std::vector<unsigned> result_widths_;
};

/// Bits worth trying in a register of that width: ends of ranges, signs, patterns.
[[nodiscard]] const std::vector<std::uint64_t>& corner_bits(unsigned width);

/// Calls `check(sources)` for corner values in all combinations (as far as there are not too many)
/// and for `count` random ones of the seed.
template <class Check>
void for_sources(const LaneRunner& lane, int count, Check check);

/// The next set of sources; false at the end. `state` starts at 0.
[[nodiscard]] bool next_sources(const std::vector<unsigned>& widths, std::uint64_t random_count,
                                std::uint64_t& state, std::vector<std::uint64_t>& out);

template <class Check>
void for_sources(const LaneRunner& lane, int count, Check check) {
  std::vector<std::uint64_t> sources;
  std::uint64_t state = 0;
  while (next_sources(lane.source_widths(), static_cast<std::uint64_t>(count), state, sources)) {
    check(sources);
  }
}

}  // namespace ptxgen::test
