// tests/litmus/barrier_litmus_test.cpp - tokens between threads of a block, lowered to barriers
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>
#include <set>

#include "ptxgen/builder.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "support/harness.hpp"
#include "token_litmus.hpp"

using namespace ptxgen::litmus;
namespace ptx = ptxgen::ptx;

namespace {

/// An operation of the first lane of one warp, after others of any warp.
struct BlockStep {
  std::uint32_t warp = 0;
  bool is_store = false;
  std::uint32_t location = 0;  ///< 0 in global memory, 1 in shared memory
  std::uint32_t value = 0;
  std::vector<std::size_t> after;
};
struct BlockTest {
  std::uint32_t warps = 2;
  std::vector<BlockStep> steps;
};

Placement placement_of(const BlockTest& test) {
  return {"one block", std::vector<std::uint32_t>(test.warps, 0)};
}

/// With the token API: all threads make the calls, a mask says who accesses memory. Results are in
/// words 2, 3, ... in the order of the loads.
ptxgen::BuiltKernel build(const BlockTest& test, ptxgen::TokenThreads threads) {
  using namespace ptxgen;
  return build_kernel(
      "block", "sm_90", params(param<Ptr<u32>>("memory")), [&](KernelBuilder& k, Ptr<u32> memory) {
        k.required_threads(32 * test.warps);
        const ptxgen::Value<u32> thread = k.tid_x();
        const Ptr<u32, Shared> shared = k.shared<u32>(4).base();
        TokenProgram program(k, threads);
        std::vector<Token> tokens;
        std::uint32_t result = 0;
        for (const BlockStep& step : test.steps) {
          const Pred acts = thread == 32 * step.warp;
          std::vector<Token> all;
          for (const std::size_t i : step.after) all.push_back(tokens[i]);
          while (all.size() > 1) {
            const Token both = program.join_tokens({all[all.size() - 2], all.back()});
            all.resize(all.size() - 2, both);
            all.push_back(both);
          }
          const TokenUse use{.after = all.empty() ? nullptr : &all[0]};
          const auto act = [&](const auto& at) {
            if (step.is_store) {
              tokens.push_back(program.store_ptr(at, step.value, acts, use));
              return;
            }
            const Loaded<u32> loaded = program.load_ptr(at, acts, 0u, use);
            tokens.push_back(loaded.token);
            k.guarded(acts,
                      [&] { k.st(memory + static_cast<int>(result_index(result)), loaded.value); });
            ++result;
          };
          if (step.location == 0) {
            act(memory);
          } else {
            act(shared);
          }
        }
      });
}

/// The model's program of the tokens: an edge is an arrival after one operation, for which the
/// other waits. Nothing else orders operations, of one thread neither.
Program by_tokens(const BlockTest& test) {
  Program program;
  program.initial.assign(kWords + 1, 0);
  program.threads.resize(test.warps);
  for (Thread& thread : program.threads) {
    thread.paths.resize(1);
    thread.paths[0].order.emplace();
  }
  const auto add = [&](std::uint32_t warp, const Event& event) {
    program.threads[warp].paths[0].events.push_back(event);
    return static_cast<std::uint32_t>(program.threads[warp].paths[0].events.size() - 1);
  };
  std::vector<std::uint32_t> arrivals;
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < test.steps.size(); ++i) {
    const BlockStep& step = test.steps[i];
    Relation& order = *program.threads[step.warp].paths[0].order;
    std::vector<std::uint32_t> waits;
    for (const std::size_t other : step.after) {
      Event wait;
      wait.waits = true;
      wait.barrier = static_cast<std::uint32_t>(other);
      waits.push_back(add(step.warp, wait));
    }
    Event event;
    event.reads = !step.is_store;
    event.writes = step.is_store;
    event.location = step.location == 0 ? 0 : kWords;
    event.value = step.value;
    const std::uint32_t own = add(step.warp, event);
    for (const std::uint32_t wait : waits) order.add(wait, own);
    Event arrive;
    arrive.arrives = true;
    arrive.barrier = i;
    order.add(own, add(step.warp, arrive));
    if (step.is_store) continue;
    Event kept;
    kept.writes = true;
    kept.location = result_index(result++);
    kept.value = Value::of_read(own);
    order.add(own, add(step.warp, kept));
  }
  for (Thread& thread : program.threads) thread.paths[0].order = thread.paths[0].order->closure();
  return program;
}

std::size_t barriers_of(const ptx::Module& module) {
  const std::vector<ptx::Instruction>& body = module.functions[0].body;
  return static_cast<std::size_t>(std::ranges::count_if(
      body, [](const ptx::Instruction& s) { return s.is(ptx::Op::bar_sync); }));
}

/// Outcomes in the words that the kernel's caller sees.
std::set<Outcome> visible(const Allowed& outcomes) {
  std::set<Outcome> all;
  for (const auto& [outcome, executions] : outcomes) {
    all.insert(Outcome(outcome.begin(), outcome.begin() + kWords));
  }
  return all;
}
std::set<Outcome> outcomes_of(const ptx::Module& module, const BlockTest& test) {
  return visible(allowed(read_program(module, "block", launch_of(placement_of(test)))));
}
bool is_subset(const std::set<Outcome>& part, const std::set<Outcome>& all) {
  return std::ranges::includes(all, part);
}

ptx::Module without_barriers(const ptxgen::BuiltKernel& kernel) {
  ptx::Module module = kernel.module();
  (void)ptxgen::optimize::run_passes(module, {.passes = {"tokens"}});
  return module;
}

/// The module without its `number`-th barrier.
ptx::Module without_barrier(ptx::Module module, std::size_t number) {
  std::vector<ptx::Instruction>& body = module.functions[0].body;
  std::size_t seen = 0;
  std::erase_if(
      body, [&](const ptx::Instruction& s) { return s.is(ptx::Op::bar_sync) && seen++ == number; });
  return module;
}

std::string to_text(const BlockTest& test) {
  std::string text;
  for (std::size_t i = 0; i < test.steps.size(); ++i) {
    const BlockStep& step = test.steps[i];
    text += std::to_string(i) + ": warp " + std::to_string(step.warp) +
            (step.is_store ? " stores " + std::to_string(step.value) + " to " : " loads ") +
            std::to_string(step.location) + " after";
    for (const std::size_t other : step.after) text += " " + std::to_string(other);
    text += "\n";
  }
  return text;
}

const std::vector<std::pair<std::string, BlockTest>>& named() {
  const auto store = [](std::uint32_t warp, std::uint32_t at, std::uint32_t value,
                        std::vector<std::size_t> after) {
    return BlockStep{warp, true, at, value, std::move(after)};
  };
  const auto load = [](std::uint32_t warp, std::uint32_t at, std::vector<std::size_t> after) {
    return BlockStep{warp, false, at, 0, std::move(after)};
  };
  static const std::vector<std::pair<std::string, BlockTest>> tests = {
      {"MP", {2, {store(0, 0, 1, {}), store(0, 1, 1, {0}), load(1, 1, {1}), load(1, 0, {2})}}},
      {"SB", {2, {store(0, 0, 1, {}), store(1, 1, 1, {}), load(0, 1, {0, 1}), load(1, 0, {0, 1})}}},
      {"LB", {2, {load(0, 0, {}), load(1, 1, {}), store(0, 1, 1, {0, 1}), store(1, 0, 1, {0, 1})}}},
      {"IRIW",
       {4,
        {store(0, 0, 1, {}), store(1, 1, 1, {}), load(2, 0, {0, 1}), load(2, 1, {2}),
         load(3, 1, {0, 1}), load(3, 0, {4})}}},
      {"CoRR", {2, {store(0, 0, 1, {}), load(1, 0, {0}), load(1, 0, {1})}}},
      {"2+2W",
       {2, {store(0, 0, 1, {}), store(0, 1, 2, {0}), store(1, 1, 1, {1}), store(1, 0, 2, {2})}}},
  };
  return tests;
}

}  // namespace

TEST_CASE("falsification 66, 71: barriers of tokens forbid what the tokens forbid") {
  std::string text;
  for (const auto& [name, test] : named()) {
    INFO(name);
    const std::set<Outcome> by_token = visible(allowed(by_tokens(test)));
    const ptxgen::BuiltKernel kernel = build(test, ptxgen::TokenThreads::block());
    CHECK(is_subset(outcomes_of(kernel.module(), test), by_token));
    // Without barriers it is the threads' own order that the tokens have.
    const ptxgen::BuiltKernel own = build(test, ptxgen::TokenThreads::own());
    CHECK_FALSE(is_subset(outcomes_of(own.module(), test), by_token));
    const ptx::Module fewer = without_barriers(kernel);
    CHECK(is_subset(outcomes_of(fewer, test), by_token));
    // Each barrier that is left is needed.
    for (std::size_t i = 0; i < barriers_of(fewer); ++i) {
      CHECK_FALSE(is_subset(outcomes_of(without_barrier(fewer, i), test), by_token));
    }
    text += name + " " + std::to_string(barriers_of(kernel.module())) + " " +
            std::to_string(barriers_of(fewer)) + " " + std::to_string(by_token.size()) + "\n";
  }
  // Name, barriers with one for each edge and after the pass, outcomes that the tokens allow.
  CHECK(text == "MP 3 1 1\nSB 2 1 1\nLB 2 1 1\nIRIW 4 1 1\nCoRR 2 1 1\n2+2W 3 1 1\n");
}

TEST_CASE("falsification 71: the pass keeps the outcomes of random token programs") {
  std::mt19937_64 random(ptxgen::test::seed());
  const auto draw = [&](std::size_t below) { return random() % below; };
  const int count = ptxgen::test::count(40, 800);
  std::size_t before = 0;
  std::size_t after = 0;
  for (int i = 0; i < count; ++i) {
    BlockTest test;
    test.warps = 2 + static_cast<std::uint32_t>(draw(2));
    const std::size_t steps = 3 + draw(3);
    for (std::size_t s = 0; s < steps; ++s) {
      BlockStep step;
      step.warp = static_cast<std::uint32_t>(draw(test.warps));
      step.is_store = draw(2) == 0;
      step.location = static_cast<std::uint32_t>(draw(2));
      step.value = static_cast<std::uint32_t>(s) + 1;
      for (std::size_t other = 0; other < s; ++other) {
        if (draw(3) == 0) step.after.push_back(other);
      }
      test.steps.push_back(step);
    }
    INFO("program " << i << "\n" << to_text(test));
    const ptxgen::BuiltKernel kernel = build(test, ptxgen::TokenThreads::block());
    const ptx::Module fewer = without_barriers(kernel);
    const std::set<Outcome> all = outcomes_of(kernel.module(), test);
    CHECK(is_subset(all, visible(allowed(by_tokens(test)))));
    CHECK(outcomes_of(fewer, test) == all);
    EmulatedTest emulated(kernel, placement_of(test));
    for (std::uint64_t seed = 0; seed < 4; ++seed) CHECK(all.contains(emulated.run(seed)));
    before += barriers_of(kernel.module());
    after += barriers_of(fewer);
  }
  std::printf("%d token programs of a block: %zu barriers, %zu after the pass\n", count, before,
              after);
  CHECK(after < before);
}
