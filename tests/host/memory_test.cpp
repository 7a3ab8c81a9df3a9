// tests/host/memory_test.cpp - kernels on memory without a device, by several threads
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>

#include "backends.hpp"
#include "ptxgen/kernels.hpp"
#include "runtime/launch/random_operands.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

/// Operands of one call, each in an allocation of exactly its size, which sanitizers watch.
class Call {
 public:
  Call(const KernelDescription& kernel, std::span<const std::uint64_t> values)
      : kernel_(kernel), spec_(kernel.make_spec(values)) {
    std::vector<OperandValue> operands;
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      const ArgumentInfo& info = kernel.arguments[i];
      if (!kernel.is_present_of(spec_.get(), i)) continue;
      if (info.role == ArgumentRole::Scalar) {
        operands.push_back({info.name, {}, random_scalar(info, i)});
      } else if (is_memory(info.role)) {
        const ElementType type = kernel.type_of(spec_.get(), i);
        const std::vector<std::byte> elements = elements_of(i, type);
        Memory& memory = memory_.emplace_back();
        memory.before = elements;
        memory.now.reset(new std::byte[elements.size()]);
        memory.written = is_written(info.role);
        operands.push_back(
            {info.name, {reinterpret_cast<std::uintptr_t>(memory.now.get()), elements.size()}, 0});
      }
    }
    operands_ = kernel.make_operands(operands);
  }

  /// What a run leaves in the outputs. Inputs must stay.
  std::vector<std::byte> run(const HostRun& how) {
    for (Memory& memory : memory_) {
      std::copy(memory.before.begin(), memory.before.end(), memory.now.get());
    }
    run_on_host(kernel_, spec_.get(), operands_.get(), how);
    std::vector<std::byte> results;
    for (const Memory& memory : memory_) {
      const std::span<const std::byte> now(memory.now.get(), memory.before.size());
      if (memory.written) {
        results.insert(results.end(), now.begin(), now.end());
      } else {
        CHECK(std::equal(now.begin(), now.end(), memory.before.begin()));
      }
    }
    return results;
  }

  [[nodiscard]] std::string shape() const { return shape_text(kernel_, spec_.get()); }

 private:
  // Random in the range of what a kernel reads.
  [[nodiscard]] std::vector<std::byte> elements_of(std::size_t i, ElementType type) const {
    const std::uint64_t count = kernel_.elements_of(spec_.get(), i);
    const ArgumentInfo& info = kernel_.arguments[i];
    if (!kernel_.is_read_of(spec_.get(), i)) {
      return std::vector(static_cast<std::size_t>(bytes(type, count)), std::byte{0xff});
    }
    const RepackedRows rows = kernel_.repacked_of(spec_.get(), i);
    if (rows.columns != 0) return random_elements(rows, count, info, i + 1);
    return random_elements(type, count, info, i + 1);
  }

  struct Memory {
    std::vector<std::byte> before;
    std::unique_ptr<std::byte[]> now;
    bool written = false;
  };
  const KernelDescription& kernel_;
  ErasedValue spec_, operands_;
  std::vector<Memory> memory_;
};

}  // namespace

TEST_CASE("no kernel of the host leaves its operands, nor depends on the number of threads") {
  const std::vector<HostTarget> targets = test::supported_targets();
  std::size_t cases = 0;
  for (const KernelDescription& kernel : catalog()) {
    for (const std::vector<std::uint64_t>& values : kernel.cases()) {
      ++cases;
      if (!test::takes(cases, 1, 4)) continue;
      Call call(kernel, values);
      for (std::size_t i = 0; i <= targets.size(); ++i) {
        const bool scalar = i == targets.size();
        if (test::kSanitized && cases % (targets.size() + 1) != i) continue;
        const HostVectors* const vectors = scalar ? nullptr : targets[i].vectors;
        INFO(kernel.name << ", " << call.shape() << " with "
                         << (scalar ? "the reference" : targets[i].name));
        const std::vector<std::byte> one = call.run(HostRun(0, vectors, 1));
        CHECK(one == call.run(HostRun(0, vectors, 3)));
      }
    }
  }
  CHECK(cases >= 100);
}

TEST_CASE("a large product is divided among threads without another result") {
  if (host_targets().empty()) return test::skip("this build has no Highway: install libhwy-dev");
  for (const HostTarget& target : test::supported_targets()) {
    for (const std::uint64_t layout : {0u, 1u}) {
      const KernelDescription& kernel = kDescription<GemvProblem>;
      std::vector<std::uint64_t> values = kernel.default_values();
      values[parameter_index(kernel, "k")] = 1500;
      values[parameter_index(kernel, "n")] = 700;
      values[parameter_index(kernel, "layout")] = layout;
      Call call(kernel, values);
      INFO(target.name << ", " << call.shape());
      const std::vector<std::byte> one = call.run(HostRun(0, target.vectors, 1));
      for (const unsigned threads : {2u, 5u}) {
        CHECK(one == call.run(HostRun(0, target.vectors, threads)));
      }
    }
  }
}
