// src/qa/fixture.hpp - what the functions of lines work with
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/emulator/observer.hpp"
#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "qa/facts.hpp"
#include "qa/line.hpp"
#include "qa/record.hpp"

namespace ptxgen::qa {

/// What all lines of a run share.
struct Surroundings {
  Settings settings;
  Device device;
  Facts facts;
  Record record;
  bool full = false;  ///< more cases, as `scripts/test --full`
};

/// `A[k x n]` row-major and x[k], f32.
struct Problem {
  std::uint32_t k = 1;
  std::uint32_t n = 1;
  std::vector<float> a;
  std::vector<float> x;
};
/// Values in [low, high), the same on every machine for a seed.
[[nodiscard]] Problem random_problem(std::uint32_t k, std::uint32_t n, std::uint64_t seed,
                                     float low = -1.0f, float high = 1.0f);

/// A GEMV that was run: y, NaN before, and what the emulator says (nothing on a GPU).
struct GemvRun {
  std::vector<float> y;
  bool guards_kept = true;  ///< 256 bytes before and after y
  std::optional<emulator::Result> result;
};

/// The fixture of one line: code that is built through it has the mutant's edit.
class Fixture {
 public:
  explicit Fixture(const Surroundings& shared, const Mutant* mutant = nullptr);

  Facts facts;
  Record record;
  std::vector<KernelDescription> catalog;

  [[nodiscard]] const Settings& settings() const noexcept { return shared_->settings; }
  [[nodiscard]] const Device& device() const noexcept { return shared_->device; }
  [[nodiscard]] const ptx::Target& target() const { return device().target(); }
  [[nodiscard]] bool full() const noexcept { return shared_->full; }
  [[nodiscard]] const Context& context();
  [[nodiscard]] Launcher launcher(GemvChoice gemv = GemvChoice::Auto);

  /// Whether the line's own input is to be the mutant's.
  [[nodiscard]] bool changed() const noexcept {
    return mutant_ != nullptr && mutant_->edit == nullptr && mutant_->arm == nullptr;
  }
  /// The module with the mutant's edit.
  [[nodiscard]] ptx::Module edited(ptx::Module module) const;
  template <Described K>
  [[nodiscard]] ptx::Module build(const K& spec) const {
    return build(spec, target());
  }
  template <Described K>
  [[nodiscard]] ptx::Module build(const K& spec, const ptx::Target& target) const {
    return edited(kDescription<K>.build_of(&spec, target));
  }

  /// Runs a module with the parameters (y, a, x, k, n) on the device.
  [[nodiscard]] GemvRun gemv(const ptx::Module& module, const LaunchGeometry& geometry,
                             const Problem& problem);
  /// `build` and `gemv` of a kernel.
  template <Described K>
  [[nodiscard]] GemvRun gemv(const Problem& problem) {
    const K spec{problem.k, problem.n};
    return gemv(build(spec), spec.geometry(), problem);
  }

 private:
  const Surroundings* shared_;
  const Mutant* mutant_;
  std::optional<Context> context_;
};

/// Memory and launches of one emulated device.
class Emulation {
 public:
  explicit Emulation(const ptx::Gpu& gpu) : device_(gpu) {}

  [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes) { return device_.allocate(bytes); }
  template <class T>
  [[nodiscard]] std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = device_.allocate(values.empty() ? 1 : values.size() * sizeof(T));
    device_.write(address, std::as_bytes(std::span(values)));
    return address;
  }
  template <class T>
  [[nodiscard]] std::vector<T> download(std::uint64_t address, std::size_t count) const {
    std::vector<T> values(count);
    device_.read(address, std::as_writable_bytes(std::span(values)));
    return values;
  }
  /// Launches the module's only kernel; arguments are bit patterns in the order of its parameters.
  [[nodiscard]] emulator::Result launch(const ptx::Module& module, const LaunchGeometry& geometry,
                                        const std::vector<std::uint64_t>& arguments,
                                        const emulator::Options& options = {});
  /// The same with an observer.
  emulator::Result observe(const ptx::Module& module, const LaunchGeometry& geometry,
                           const std::vector<std::uint64_t>& arguments,
                           emulator::Observer& observer, const emulator::Options& options = {});
  [[nodiscard]] emulator::Device& device() noexcept { return device_; }

 private:
  emulator::Device device_;
};

/// Findings of that rule.
[[nodiscard]] std::uint64_t count_rule(const emulator::Result& result, emulator::Rule rule);
/// The first finding of severity error in words, or "no error".
[[nodiscard]] std::string first_error(const emulator::Result& result);
[[nodiscard]] std::string first_error(const std::vector<Finding>& findings);
[[nodiscard]] std::size_t count_errors(const std::vector<Finding>& findings);

}  // namespace ptxgen::qa
