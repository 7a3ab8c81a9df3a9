// tests/kernels/golden_test.cpp - whole kernels, byte for byte
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"
#include "support/hash.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;

namespace {

std::string text_of(const KernelDescription& entry, std::string_view target,
                    const std::vector<std::uint64_t>& values) {
  // What a target lacks is a refusal, whose text is as fixed as code.
  try {
    return ptx::print(entry.build(values, ptx::target(target)));
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
}

/// The values that a kernel has code of its own for: the defaults, then each word of a parameter
/// that specialises. The name says which: "vadd", "vadd_f16"; with the parameter's name, too, where
/// another one has the same word: "embedding_y_f16".
std::map<std::string, std::vector<std::uint64_t>> variants(const KernelDescription& entry) {
  std::map<std::string, std::vector<std::uint64_t>> all;
  all[std::string(entry.name)] = entry.default_values();
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    const ParameterInfo& info = entry.parameters[i];
    if (!info.specializes) continue;
    for (std::size_t word = 0; word < info.words.size(); ++word) {
      if (word == info.default_value) continue;
      const std::string prefix = std::string(entry.name) + "_";
      const std::string short_name = prefix + std::string(info.words[word]);
      const bool taken = all.count(short_name) != 0;
      std::vector<std::uint64_t>& values =
          all[taken ? prefix + std::string(info.name) + "_" + std::string(info.words[word])
                    : short_name];
      values = entry.default_values();
      values[i] = word;
    }
  }
  return all;
}

// A sanitizer sees the code that writes them in one target of each.
const bool kSampled = test::kSanitized && !test::full();

bool rewrites() {
  const char* rewrite = std::getenv("PTXGEN_REWRITE_GOLDENS");
  return rewrite != nullptr && *rewrite == '1';
}

// Compares with the golden file of that name, or writes it anew.
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = PTXGEN_GOLDENS "/" + name + ".ptx";
  if (rewrites()) std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(in), {}};
  INFO(path);
  CHECK(text == golden);
}

constexpr const char* kDigests = PTXGEN_GOLDENS "/digests.txt";

/// A text's lines and hash, by its name.
using Digests = std::map<std::string, std::string>;

std::string digest_of(const std::string& text) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  return std::to_string(lines) + " " + to_hex(hash128(text));
}

Digests read_digests() {
  Digests digests;
  std::ifstream in(kDigests);
  std::string name, lines, hash;
  while (in >> name >> lines >> hash) digests[name] = lines + " " + hash;
  return digests;
}

void write_digests(const Digests& digests) {
  std::ofstream out(kDigests);
  for (const auto& [name, digest] : digests) out << name << ' ' << digest << '\n';
}

struct GoldenPlan {
  const char* name;
  const char* target;
  GemvPlan plan;
};

GemvProblem problem_of(GemvLayout layout, ElementType weights, ElementType x, ElementType y) {
  GemvProblem problem;
  problem.k = 1024;
  problem.n = 4096;
  problem.layout = layout;
  problem.weights = weights;
  problem.x = x;
  problem.y = y;
  return problem;
}

// Plans that no planner chose, so that their bytes change only where the kernel changes: each path
// with each layout, each type, a split of every kind, each epilogue.
std::vector<GoldenPlan> golden_plans() {
  using enum GemvLayout;
  using enum GemvPath;
  using enum ElementType;
  std::vector<GoldenPlan> plans;
  const auto add = [&](const char* name, const char* target, GemvPath path,
                       const GemvProblem& problem) -> GemvPlan& {
    GemvPlan plan;
    plan.problem = problem;
    plan.path = path;
    plan.unroll = 2;
    plan.stages = path == Direct ? 0 : 3;
    plans.push_back({name, target, plan});
    return plans.back().plan;
  };
  {
    GemvPlan& plan = add("direct_t_f32", "sm_75", Direct, problem_of(T, f32, f32, f32));
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
  }
  {
    GemvPlan& plan = add("direct_r_f16", "sm_80", Direct, problem_of(R, f16, f16, f16));
    plan.rows = 2;
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
  }
  {
    GemvPlan& plan = add("direct_t_bf16_split", "sm_90", Direct, problem_of(T, bf16, f32, bf16));
    plan.warps_k = 2;
    plan.blocks = static_cast<std::uint32_t>(plan.strips()) * 3;
  }
  {
    GemvProblem problem = problem_of(R, f32, f32, f32);
    problem.scaled = problem.bias = problem.residual = true;
    GemvPlan& plan = add("direct_r_f32_epilogue_chunks", "sm_89", Direct, problem);
    plan.chunk_steps = 2;
    plan.blocks = static_cast<std::uint32_t>(plan.strips()) * 2;
  }
  {
    GemvPlan& plan = add("async_t_f16", "sm_80", Async, problem_of(T, f16, f32, f32));
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
  }
  {
    GemvProblem problem = problem_of(R, bf16, bf16, f32);
    problem.bias = true;
    GemvPlan& plan = add("async_r_bf16_bias", "sm_89", Async, problem);
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
  }
  {
    GemvPlan& plan = add("bulk_t_bf16", "sm_90", Bulk, problem_of(T, bf16, bf16, bf16));
    plan.programmatic = true;
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
  }
  {
    GemvPlan& plan = add("bulk_r_f32_cluster", "sm_90", Bulk, problem_of(R, f32, f32, f32));
    plan.cluster = 2;
    plan.blocks = static_cast<std::uint32_t>(plan.strips()) * 2;
  }
  {
    GemvProblem problem = problem_of(R, f16, f16, f16);
    problem.residual = true;
    GemvPlan& plan = add("bulk_r_f16_residual", "sm_120", Bulk, problem);
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
  }
  return plans;
}

}  // namespace

// The bytes hold for every compiler, optimisation level and process. A default shape for sm_90 is
// kept whole, to be read; other variants and targets as a digest. PTXGEN_REWRITE_GOLDENS=1 writes
// them anew: read the difference, or compare `ptxgen dump` before and after, before it goes in.
TEST_CASE("every kernel is its golden file") {
  Digests digests;
  for (const KernelDescription& entry : catalog()) {
    // What a family takes for a GPU is no matter of bytes; its plans are, see below.
    if (entry.family != nullptr) continue;
    for (const auto& [name, values] : variants(entry)) {
      const std::string_view hopper = test::served_target(entry, "sm_90").name;
      for (const std::string_view target : {std::string_view("sm_75"), std::string_view("sm_89"),
                                            hopper, std::string_view("sm_120")}) {
        if (kSampled && target != hopper) continue;
        const std::string text = text_of(entry, target, values);
        if (!kSampled) CHECK(text == text_of(entry, target, values));
        const std::string file = name + "." + std::string(target);
        if (name == entry.name && target == hopper) {
          check_golden(file, text);
        } else {
          digests[file] = digest_of(text);
        }
      }
    }
  }
  if (rewrites()) write_digests(digests);
  const Digests stored = read_digests();
  if (!kSampled) CHECK(stored.size() == digests.size());
  for (const auto& [name, digest] : digests) {
    INFO(name << " of " << kDigests);
    CHECK((stored.count(name) != 0 ? stored.at(name) : "missing") == digest);
  }
}

TEST_CASE("each way to compute a GEMV is its golden file") {
  for (const GoldenPlan& golden : golden_plans()) {
    INFO(golden.name << ": " << to_text(golden.plan.problem) << ", " << to_text(golden.plan));
    const ptx::Target& target = ptx::target(golden.target);
    const ptx::Module module = Gemv{golden.plan}.build(target).module();
    const std::string text = ptx::print(module);
    CHECK(ptx::print(ptx::parse(text)) == text);
    check_golden("gemv." + std::string(golden.name) + "." + golden.target, text);
  }
}

TEST_CASE("every kernel for every target is read back equal and printed back the same") {
  std::uint64_t pairs = 0;
  for (const KernelDescription& entry : catalog()) {
    for (const ptx::Target& target : ptx::targets()) {
      if (!entry.serves(target) || !test::takes(pairs++, 1, 16)) continue;
      const std::string text = text_of(entry, target.name, entry.default_values());
      const ptx::Module module = ptx::parse(text);
      INFO(entry.name << " for " << target.name);
      CHECK(ptx::print(module) == text);
      CHECK(ptx::difference(module, ptx::parse(ptx::print(module))) == "");
    }
  }
}
