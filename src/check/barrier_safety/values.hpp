// src/check/barrier_safety/values.hpp - what is known of the registers of all threads
#pragma once

#include <cstdint>
#include <vector>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

/// What is known of a thread's value.
enum class Mark : std::uint8_t {
  Exact,    ///< follows from the thread's index
  Sampled,  ///< one of the values that a launch may give
  Unknown,
};

struct Value {
  std::uint64_t bits = 0;
  Mark mark = Mark::Unknown;
};

template <class Fn>
void for_each_thread(const Threads& threads, std::uint32_t count, Fn&& fn) {
  for (std::uint32_t t = 0; t < count; ++t) {
    if (threads[t]) fn(t);
  }
}

/// The registers of all threads of a block, as far as a way or a barrier hangs on them.
class ThreadValues {
 public:
  ThreadValues(const Subject& subject, const Launch& launch);
  /// False if that is too much to hold.
  [[nodiscard]] bool fits() const noexcept { return fits_; }
  /// Whether the statement computes something that is wanted.
  [[nodiscard]] bool computes(std::uint32_t statement) const { return computed_[statement]; }

  [[nodiscard]] Value of(const ptx::Operand& operand, std::uint32_t thread) const;
  /// Of a guard; true where there is none.
  [[nodiscard]] Value holds(const ptx::Guard& guard, std::uint32_t thread) const;
  void write(ptx::Register reg, std::uint32_t thread, Value value);
  /// Nothing is known of what the statement writes.
  void forget(std::uint32_t statement, const Threads& threads);
  /// What the statement does in these threads; `left` are no longer there.
  void execute(std::uint32_t statement, const Threads& threads, const Threads& left);

 private:
  void find_wanted();
  [[nodiscard]] Value register_value(ptx::Register reg, std::uint32_t thread) const;
  [[nodiscard]] bool is_parameter(const ptx::Instruction& statement) const;
  bool vote(const ptx::Instruction& statement, const Threads& threads, const Threads& left);

  const Subject& s_;
  const ptx::Function& f_;
  const Launch& launch_;
  std::uint32_t threads_;
  bool fits_ = true;
  std::vector<std::uint32_t> slots_;  // by register: its place in the values, or kNone
  std::uint32_t slot_count_ = 0;
  std::vector<bool> computed_;  // by statement
  std::vector<std::uint64_t> values_;
  std::vector<Mark> marks_;
};

}  // namespace ptxgen::inline v0::gates::barriers
