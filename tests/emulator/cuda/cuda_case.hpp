// tests/emulator/cuda/cuda_case.hpp - runs CUDA C++ kernels as nvcc compiles them
#pragma once

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// Numbers for inputs: the same in every build and under every schedule of a case.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) noexcept : state_(seed) {}
  [[nodiscard]] std::uint64_t bits() noexcept;
  /// Below `end`, which is at least 1.
  [[nodiscard]] std::uint32_t below(std::uint32_t end) noexcept;
  /// Of [first, last].
  [[nodiscard]] std::int32_t between(std::int32_t first, std::int32_t last) noexcept;
  /// Of [low, high).
  [[nodiscard]] float uniform(float low, float high) noexcept;
  /// `count` numbers of [first, last]: as floats their sums and products stay exact in any order.
  template <class T>
  [[nodiscard]] std::vector<T> integers(std::size_t count, std::int32_t first, std::int32_t last) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(between(first, last));
    return values;
  }
  [[nodiscard]] std::vector<float> floats(std::size_t count, float low, float high);

 private:
  std::uint64_t state_;
};

/// Device memory for `count` elements.
template <class T>
struct Buffer {
  std::uint64_t address = 0;
  std::size_t count = 0;
};

/// What an argument is to the kernel: a buffer is its address.
template <class T>
[[nodiscard]] std::vector<std::byte> argument_bytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
template <class T>
[[nodiscard]] std::vector<std::byte> argument_bytes(const Buffer<T>& buffer) {
  return argument_bytes(buffer.address);
}

/// One build of a kernel file, loaded on a fresh device; handed to the case's host part.
class CudaRun {
 public:
  CudaRun(std::string name, std::string_view target, std::string_view ptx, std::uint64_t schedule);

  Dice dice;                                                  ///< for the inputs
  bool cooperative = false;                                   ///< of the launches to come
  emulator::RuleSet watched = emulator::RuleSet::defaults();  ///< in the launches to come

  /// A new buffer with these elements.
  template <class T>
  [[nodiscard]] Buffer<T> input(const std::vector<T>& values) {
    const Buffer<T> buffer = output<T>(values.size());
    write(buffer, values);
    return buffer;
  }
  /// A new buffer that was never written.
  template <class T>
  [[nodiscard]] Buffer<T> output(std::size_t count) {
    return {device_.allocate(count * sizeof(T)), count};
  }
  template <class T>
  void write(Buffer<T> buffer, const std::vector<T>& values) {
    device_.write(buffer.address, std::as_bytes(std::span(values)));
  }
  template <class T>
  [[nodiscard]] std::vector<T> read(Buffer<T> buffer) const {
    std::vector<T> values(buffer.count);
    device_.read(buffer.address, std::as_writable_bytes(std::span(values)));
    return values;
  }
  /// A `__device__` or `__constant__` variable that is declared extern "C".
  template <class T>
  [[nodiscard]] Buffer<T> variable(std::string_view name) const {
    const emulator::Device::Extent extent = program_.variable(name);
    INFO(name_ << ": variable " << name);
    REQUIRE(extent.bytes >= sizeof(T));
    return {extent.start, extent.bytes / sizeof(T)};
  }

  /// Launches and requires that the run ends well: status Ok, no finding of severity error.
  template <class... Args>
  void launch(std::string_view kernel, emulator::Dim3 grid, emulator::Dim3 block,
              const Args&... args) {
    launch_shared(kernel, grid, block, 0, args...);
  }
  /// The same with dynamic shared memory.
  template <class... Args>
  void launch_shared(std::string_view kernel, emulator::Dim3 grid, emulator::Dim3 block,
                     std::uint32_t shared_bytes, const Args&... args) {
    launch_bytes(kernel, grid, block, shared_bytes, {argument_bytes(args)...});
  }

  /// What device printf printed in the last launch.
  [[nodiscard]] const std::string& printed() const noexcept { return printed_; }
  [[nodiscard]] const emulator::Counters& counters() const noexcept { return counters_; }
  /// "reduce_tree.cu sm_80 default, schedule 0"
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Exact, element for element; reports the first difference and how many there are.
  template <class T>
  void check_values(const std::vector<T>& actual, const std::vector<T>& expected) {
    std::size_t first = 0, wrong = 0;
    for (std::size_t i = expected.size(); i-- > 0;) {
      if (i < actual.size() && actual[i] == expected[i]) continue;
      first = i;
      ++wrong;
    }
    ++checks_;
    INFO(name_);
    REQUIRE(actual.size() == expected.size());
    REQUIRE(!expected.empty());
    if (wrong == 0) return;
    INFO(wrong << " of " << expected.size() << " elements differ, the first at " << first);
    REQUIRE(+actual[first] == +expected[first]);
  }
  template <class T>
  void check_equal(Buffer<T> actual, const std::vector<T>& expected) {
    check_values(read(actual), expected);
  }
  /// |actual - expected| <= absolute + relative * |expected|, NaN only where NaN is expected.
  template <class T, class U>
  void check_close(const std::vector<T>& actual, const std::vector<U>& expected, double absolute,
                   double relative) {
    ++checks_;
    INFO(name_);
    REQUIRE(actual.size() == expected.size());
    REQUIRE(!expected.empty());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto got = static_cast<double>(actual[i]);
      const auto want = static_cast<double>(expected[i]);
      if (got == want || (std::isnan(got) && std::isnan(want))) continue;
      if (std::abs(got - want) <= absolute + relative * std::abs(want)) continue;
      INFO("element " << i << ": " << got << " instead of " << want << " within " << absolute
                      << " + " << relative << " * |expected|");
      REQUIRE(got == want);
    }
  }
  template <class T, class U>
  void check_close(Buffer<T> actual, const std::vector<U>& expected, double absolute,
                   double relative) {
    check_close(read(actual), expected, absolute, relative);
  }
  void check_true(bool holds, std::string_view what);

  [[nodiscard]] int launches() const noexcept { return launches_; }
  [[nodiscard]] int checks() const noexcept { return checks_; }

 private:
  void launch_bytes(std::string_view kernel, emulator::Dim3 grid, emulator::Dim3 block,
                    std::uint32_t shared_bytes,
                    const std::vector<std::vector<std::byte>>& arguments);

  std::string name_;
  std::uint64_t schedule_;
  emulator::Device device_;
  emulator::Program program_;
  std::string printed_;
  emulator::Counters counters_;
  int launches_ = 0;
  int checks_ = 0;
};

/// A kernel file of the folder kernels/ and the first architecture that has what it needs.
struct CudaCase {
  std::string_view file;
  unsigned min_sm = 75;
  bool specific = false;  ///< needs features of min_sm alone (sm_90a); one build
};

/// Compiles the file and runs `host` for each build of this run (sm_75, sm_80, sm_90, each with
/// default optimisation, -Xcicc -O0 and -G), each under two schedules. A full run has all of them,
/// of the file alone; else sm_80 by default and one more by the seed, of the file together with
/// others (kernels/together_*.cu). Skips loudly without nvcc.
void run_case(const CudaCase& which, const std::function<void(CudaRun&)>& host);

}  // namespace ptxgen::test
