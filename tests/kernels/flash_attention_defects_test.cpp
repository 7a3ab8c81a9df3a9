// tests/kernels/flash_attention_defects_test.cpp - flash attention with known defects put back
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "flash_run.hpp"
#include "launcher/rig.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/kernels/attention/flash_tensor_core.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

template <class K>
constexpr ElementType kType =
    std::is_same_v<K, FlashAttentionTensorCore> ? ElementType::f16 : ElementType::f32;

// Lengths that are no multiples of a tile.
template <class K>
K short_kernel(bool causal) {
  K kernel;
  FlashProblem& p = kernel.problem;
  p.kv_heads = 1;
  p.head_size = 64;
  p.queries = p.keys = 100;
  p.causal = causal;
  p.type = ElementType::f32;
  p.cache = kType<K>;
  return kernel;
}

using Is = std::function<bool(const ptx::Function&, const ptx::Instruction&)>;

// Removes instructions; all of a kind, or every second one.
ptx::Module without(ptx::Module module, const Is& is, bool every_second = false) {
  ptx::Function& function = module.functions[0];
  std::size_t found = 0;
  std::size_t removed = 0;
  std::erase_if(function.body, [&](const ptx::Instruction& s) {
    if (s.kind != ptx::StatementKind::Instruction || !is(function, s)) return false;
    if (every_second && ++found % 2 == 1) return false;
    ++removed;
    return true;
  });
  REQUIRE(removed > 0);
  return module;
}

// The text with statements in front of the first one that begins with `at`.
ptx::Module with(const ptx::Module& module, const std::string& at, const std::string& statements) {
  std::string text = ptx::print(module);
  const std::size_t place = text.find(at);
  REQUIRE(place != std::string::npos);
  text.insert(place, statements);
  return ptx::parse(text, "defect.ptx");
}

// Threads from the sixth on end in front of the first barrier.
ptx::Module with_early_exit(const ptx::Module& module) {
  return with(module, "bar.red.or.pred",
              "{\n.reg .u32 %early;\n.reg .pred %ends;\nmov.u32 %early, %tid.x;\n"
              "setp.gt.u32 %ends, %early, 5;\n@%ends exit;\n}\n");
}

bool stores_shared(const ptx::Instruction& s) {
  return s.is(ptx::Op::st) && s.get(ptx::Field::Space) == ptx::Modifier::shared;
}
bool is_vector(const ptx::Instruction& s) {
  return s.get(ptx::Field::Vector) != ptx::Modifier::none;
}
bool is_mask(const ptx::Function&, const ptx::Instruction& s) {
  return s.is(ptx::Op::mov) && s.guard.present();
}

// Keys rounded down to a multiple of the tile, as by a number of tiles of floor(keys / tile).
template <class K>
ptx::Module without_tail(const K& kernel, const ptx::Module& module) {
  const std::string mask = std::to_string(-static_cast<int>(kernel.shape().keys));
  std::string text = ptx::print(module);
  const std::size_t load = text.find(", [keys];");
  REQUIRE(load != std::string::npos);
  const std::size_t name = text.rfind(' ', load - 1) + 1;
  const std::string reg = text.substr(name, load - name);
  text.insert(text.find('\n', load) + 1, "and.b32 " + reg + ", " + reg + ", " + mask + ";\n");
  return ptx::parse(text, "defect.ptx");
}

// What verify finds on the emulated device for the kernel with another build, with parts of its
// inputs changed.
template <class K>
std::string dependence(const K& kernel,
                       ptx::Module (*build)(const void* spec, const ptx::Target& target)) {
  const Rig rig;
  KernelDescription description = kDescription<K>;
  description.build_of = build;
  std::vector<std::uint64_t> values(description.parameters.size());
  description.values_of(&kernel, values.data());
  const Verification result =
      verify(rig.launcher, rig.context, description, values, {.dependence = true});
  CHECK(std::string(result.error_text()) == "");
  std::string text;
  for (const std::string& finding : result.findings) text += finding + "\n";
  return text;
}

/// How far a launch of the module is from exact attention, and its findings.
struct Seen {
  double nmse = 0;
  std::string findings;
};
template <class K>
Seen seen(const K& kernel, const ptx::Module& module) {
  const FlashData data = normal_data(kernel.problem, 77);
  const FlashOutcome outcome = FlashRunner(kernel, module, data).run();
  return {nmse_of(outcome.out, exact_attention(kernel.problem, as_stored(kernel.problem, data))),
          outcome.findings};
}

template <class K>
ptx::Module module_of(const K& kernel) {
  return kernel.build(ptx::target("sm_90")).module();
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

#define BOTH_KERNELS FlashAttention, FlashAttentionTensorCore

TEMPLATE_TEST_CASE("falsification 105, 114: the barriers of the loop over keys are reached by all",
                   "", BOTH_KERNELS) {
  for (const bool causal : {true, false}) {
    for (const bool variable : {true, false}) {
      auto kernel = short_kernel<TestType>(causal);
      kernel.problem.variable = variable;
      const ptx::Module module = module_of(kernel);
      CHECK(gates::barrier_safety(module).empty());
      const std::vector<Finding> found = gates::barrier_safety(with_early_exit(module));
      REQUIRE(!found.empty());
      CHECK(found[0].rule == "exited-before-barrier");
    }
  }
}

TEMPLATE_TEST_CASE("falsification 111: 17 queries and keys", "", BOTH_KERNELS) {
  for (const bool causal : {true, false}) {
    auto kernel = short_kernel<TestType>(causal);
    kernel.problem.queries = kernel.problem.keys = 17;
    const Seen of = seen(kernel, module_of(kernel));
    CHECK(of.findings == "");
    CHECK(of.nmse <= (kType<TestType> == ElementType::f16 ? 1e-5 : 1e-10));
  }
}

TEMPLATE_TEST_CASE("falsification 115: an early exit is reported by the gate and by the emulator",
                   "", BOTH_KERNELS) {
  const auto kernel = short_kernel<TestType>(true);
  const ptx::Module module = with_early_exit(module_of(kernel));
  const std::vector<Finding> gate = gates::barrier_safety(module);
  REQUIRE(!gate.empty());
  CHECK(gate[0].rule == "exited-before-barrier");
  const Seen of = seen(kernel, module);
  INFO(of.findings);
  CHECK(contains(of.findings, "[exited-before-barrier]"));
  // What the threads would have loaded is not there.
  CHECK(contains(of.findings, "[uninitialized-read]"));
}

TEMPLATE_TEST_CASE("flash attention, defect: keys of an incomplete tile are dropped", "",
                   BOTH_KERNELS) {
  const auto kernel = short_kernel<TestType>(false);
  const ptx::Module module = without_tail(kernel, module_of(kernel));
  const Seen of = seen(kernel, module);
  CHECK(of.findings == "");  // every access is legal
  CHECK(of.nmse > 1e-3);
  // The gate: whatever the number of keys, multiples of the tile are all that counts.
  const std::vector<gates::SizeDeclaration> declared = declared_sizes(kDescription<TestType>);
  CHECK(gates::sizes(module_of(kernel), declared).empty());
  const std::vector<Finding> gate = gates::sizes(module, declared);
  REQUIRE(gate.size() == 1);
  CHECK(gate[0].rule == "size-rounded-down");
  CHECK(contains(gate[0].message, "only multiples of " + std::to_string(kernel.shape().keys) +
                                      " of keys make a difference"));
  // The emulated device, where the last keys and values are changed.
  const auto tail_lost = [](const void* spec, const ptx::Target& target) {
    return without_tail(*static_cast<const TestType*>(spec),
                        kDescription<TestType>.build_of(spec, target));
  };
  const std::string found = dependence(kernel, tail_lost);
  CHECK(contains(found, "v[6399], which takes its reference from "));
  CHECK(contains(found, "[lost-dependence]"));
  CHECK(contains(found, "[size-rounded-down]"));
  CHECK(dependence(kernel, kDescription<TestType>.build_of) == "");
}

TEST_CASE("flash attention, defect: a thread scores one key of those that it should") {
  // Every second weight is not stored, so what is read was never written.
  const auto kernel = short_kernel<FlashAttention>(true);
  const ptx::Module module = without(
      module_of(kernel),
      [](const ptx::Function&, const ptx::Instruction& s) {
        return stores_shared(s) && !is_vector(s);
      },
      true);
  CHECK(contains(seen(kernel, module).findings, "[uninitialized-read]"));
}

TEMPLATE_TEST_CASE("flash attention, defect: fewer elements are loaded than a tile has", "",
                   BOTH_KERNELS) {
  const auto kernel = short_kernel<TestType>(true);
  const ptx::Module module = without(
      module_of(kernel),
      [](const ptx::Function&, const ptx::Instruction& s) {
        return s.is(ptx::Op::cp_async_src_size) || (stores_shared(s) && is_vector(s));
      },
      true);
  CHECK(contains(seen(kernel, module).findings, "[uninitialized-read]"));
}

TEMPLATE_TEST_CASE("flash attention, defect: the tile on the diagonal is not masked", "",
                   BOTH_KERNELS) {
  const auto kernel = short_kernel<TestType>(true);
  const ptx::Module module = without(module_of(kernel), is_mask);
  const Seen of = seen(kernel, module);
  CHECK(of.findings == "");  // every access is legal
  CHECK(of.nmse > 1e-3);
  // The gate: nothing replaces the scores of the zeros beyond the last key.
  CHECK(gates::analyze(module_of(kernel)).empty());
  const std::vector<Finding> gate = gates::analyze(module);
  REQUIRE(gate.size() == 1);
  CHECK(gate[0].rule == "unmasked-padding");
  // The emulated device: queries change with keys that they should not attend.
  const auto unmasked = [](const void* spec, const ptx::Target& target) {
    return without(kDescription<TestType>.build_of(spec, target), is_mask);
  };
  CHECK(contains(dependence(kernel, unmasked), "[false-dependence]"));
  CHECK(dependence(kernel, kDescription<TestType>.build_of) == "");
}

TEMPLATE_TEST_CASE("flash attention, defect: zeros beyond the last key are not masked", "",
                   BOTH_KERNELS) {
  // Each query attends all keys, so that only the zeros that fill the last tile are wrong.
  const auto kernel = short_kernel<TestType>(false);
  const ptx::Module module = without(module_of(kernel), is_mask);
  CHECK(seen(kernel, module).nmse > 1e-3);
  const std::vector<Finding> gate = gates::analyze(module);
  REQUIRE(gate.size() == 1);
  CHECK(gate[0].rule == "unmasked-padding");
}

TEST_CASE("flash attention, defect: a barrier less is a race for the gate and for the emulator") {
  const auto kernel = short_kernel<FlashAttention>(true);
  const ptx::Module module =
      without(module_of(kernel), [](const ptx::Function&, const ptx::Instruction& s) {
        return s.is(ptx::Op::bar_sync) || s.is(ptx::Op::barrier_sync);
      });
  const std::vector<Finding> gate = gates::shared_race(module);
  REQUIRE(!gate.empty());
  CHECK(gate[0].rule == "shared-race");
  CHECK(contains(seen(kernel, module).findings, "[shared-race]"));
}

TEST_CASE("flash attention, defect: copies are not waited for") {
  const auto kernel = short_kernel<FlashAttentionTensorCore>(true);
  const ptx::Module module =
      without(module_of(kernel), [](const ptx::Function&, const ptx::Instruction& s) {
        return s.is(ptx::Op::cp_async_wait_group);
      });
  CHECK(!gates::shared_race(module).empty());
  CHECK(!seen(kernel, module).findings.empty());
}
