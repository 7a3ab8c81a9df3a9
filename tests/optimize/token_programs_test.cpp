// tests/optimize/token_programs_test.cpp - random token programs before and after the pass tokens
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <span>

#include "ptxgen/builder/tile.hpp"
#include "ptxgen/emulator.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"
#include "support/harness.hpp"
#include "token_program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// What the pass made of a program.
struct Lowered {
  ptx::Module naive, module;
  std::uint32_t kept = 0;  ///< a bit for each naive barrier
  unsigned left = 0;
  std::string why;
};

Lowered lower(const BuiltKernel& kernel) {
  Lowered out;
  out.naive = out.module = kernel.module();
  optimize::PassOptions options{.passes = {"tokens"}};
  options.explain = true;
  const optimize::PipelineReport report = optimize::run_passes(out.module, options);
  unsigned number = 0;
  for (const optimize::Decision& decision : report.passes[0].decisions) {
    if (!decision.fired) out.kept |= 1u << number;
    if (!decision.fired) ++out.left;
    out.why += decision.message + "\n";
    ++number;
  }
  CHECK_FALSE(optimize::run_passes(out.module, options).changed());
  return out;
}

struct Run {
  std::string findings;
  std::vector<std::uint32_t> memory;
};

/// A loaded kernel and its memory.
class Runner {
 public:
  Runner(const ptx::Module& module, unsigned threads)
      : device_(emulator::gpu_named("sm_90")),
        program_(emulator::Program::load(device_, module)),
        threads_(threads),
        address_(device_.allocate(std::size_t{8} * threads)) {}

  Run run(std::uint64_t schedule) {
    Run out;
    out.memory.assign(std::size_t{2} * threads_, 0);
    for (std::uint32_t i = 0; i < threads_; ++i) out.memory[i] = 1000 + i;
    device_.write(address_, std::as_bytes(std::span(out.memory)));
    emulator::Launch launch;
    launch.kernel = "k";
    launch.block = {threads_};
    launch.parameters = std::as_bytes(std::span(&address_, 1));
    emulator::Options options;
    options.seed = schedule;
    options.threads = 1;
    options.counters = false;
    const emulator::Result result = emulator::run(program_, launch, options);
    for (const emulator::RunFinding& finding : result.findings)
      out.findings += to_text(finding) + "\n";
    device_.read(address_, std::as_writable_bytes(std::span(out.memory)));
    return out;
  }

 private:
  emulator::Device device_;
  emulator::Program program_;
  std::uint32_t threads_;
  std::uint64_t address_;
};

struct Totals {
  unsigned programs = 0, naive = 0, left = 0, searched = 0, warps[9] = {};
};

/// One program: legal, as few barriers as possible, the same results in each schedule.
void check_program(const BlockProgram& program, unsigned schedules, Totals& totals) {
  INFO(to_text(program));
  const BuiltKernel kernel = build(program);
  const Lowered lowered = lower(kernel);
  INFO(lowered.why);
  REQUIRE(program.barriers() <= 32);
  CHECK(suffices(program, lowered.kept));
  if (program.barriers() <= 8) {
    CHECK(lowered.left == fewest(program));
    ++totals.searched;
  }
  Runner before(lowered.naive, program.threads()), after(lowered.module, program.threads());
  const Run expected = before.run(0);
  CHECK(expected.findings == "");
  for (std::uint64_t schedule = 0; schedule < schedules; ++schedule) {
    const Run naive = before.run(schedule + 1), fewer = after.run(schedule + 1);
    CHECK(naive.findings == "");
    CHECK(fewer.findings == "");
    CHECK(naive.memory == expected.memory);
    CHECK(fewer.memory == expected.memory);
  }
  ++totals.programs;
  ++totals.warps[program.warps];
  totals.naive += program.barriers();
  totals.left += lowered.left;
}

}  // namespace

TEST_CASE(
    "falsification 67, 74: random token programs of 2 to 8 warps have no race and one result in "
    "every schedule, and as few barriers as possible") {
  std::mt19937_64 random(test::seed());
  Totals totals;
  const int programs = test::count(40, 500);
  const auto schedules = static_cast<unsigned>(test::count(8, 50));
  for (int i = 0; i < programs; ++i) {
    // One in three has a loop.
    check_program(random_block_program(random, i % 3 == 2, i % 2 == 0 ? 6 : 14), schedules, totals);
  }
  for (unsigned warps = 2; warps <= 8; ++warps) CHECK(totals.warps[warps] > 0);
  CHECK(totals.searched * 3 >= totals.programs);
  CHECK(totals.left < totals.naive);
  std::printf(
      "%u token programs under %u schedules each: %u naive barriers, %u left, %.1f %% "
      "removed; %u programs with at most 8 barriers compared with all subsets\n",
      totals.programs, schedules, totals.naive, totals.left,
      100.0 * (totals.naive - totals.left) / totals.naive, totals.searched);
}

namespace {

/// The final memory of all executions in which each warp runs its steps in order, and waits at the
/// barriers in `kept`.
class Interleavings {
 public:
  Interleavings(const BlockProgram& program, std::uint32_t kept)
      : program_(program), threads_(program.threads()) {
    for (const int step : steps_of(program)) {
      if (step >= 0 || (kept >> (-1 - step) & 1u) != 0) steps_.push_back(step);
    }
  }

  std::set<std::vector<std::uint32_t>> run() {
    State state;
    state.memory.assign(std::size_t{3} * threads_, 0);
    state.sum.assign(threads_, 1);
    state.at.assign(program_.warps, 0);
    visit(state);
    return std::move(results_);
  }

 private:
  struct State {
    std::vector<std::uint32_t> memory, sum;
    std::vector<std::size_t> at;
  };

  void visit(const State& state) {
    bool moved = false;
    for (unsigned warp = 0; warp < program_.warps; ++warp) {
      const std::size_t at = state.at[warp];
      if (at == steps_.size() || steps_[at] < 0) continue;
      State next = state;
      step(next, warp, static_cast<unsigned>(steps_[at]));
      ++next.at[warp];
      visit(next);
      moved = true;
    }
    if (moved) return;
    State next = state;
    // All warps are at the same barrier, or at the end.
    for (std::size_t& at : next.at) {
      if (at == steps_.size()) {
        std::vector<std::uint32_t> result = state.memory;
        result.insert(result.end(), state.sum.begin(), state.sum.end());
        results_.insert(std::move(result));
        return;
      }
      ++at;
    }
    visit(next);
  }

  void step(State& state, unsigned warp, unsigned number) {
    const BlockOperation& operation = program_.operations[number];
    for (unsigned t = 32 * warp; t < 32 * warp + 32; ++t) {
      const int element = element_of(program_, operation, t);
      std::uint32_t& sum = state.sum[t];
      if (element < 0) {
        if (operation.kind == BlockOperation::Kind::Load) sum = sum * 5 + 7;
        continue;
      }
      std::uint32_t& memory =
          state.memory[operation.array * threads_ + static_cast<unsigned>(element)];
      switch (operation.kind) {
        case BlockOperation::Kind::Load:
          sum = sum * 5 + memory;
          break;
        case BlockOperation::Kind::Store:
          memory = sum + t * 3 + 100 * number;
          break;
        case BlockOperation::Kind::Add:
          memory += t + number;
          break;
      }
    }
  }

  const BlockProgram& program_;
  unsigned threads_;
  std::vector<int> steps_;
  std::set<std::vector<std::uint32_t>> results_;
};

}  // namespace

TEST_CASE(
    "falsification 71: all interleavings of small programs have one result, before and after") {
  std::mt19937_64 random(test::seed() + 71);
  const int programs = test::count(8, 120);
  unsigned removed = 0, weaker = 0, differ = 0;
  for (int i = 0; i < programs; ++i) {
    BlockProgram program = random_block_program(random, false, 5);
    while (program.warps != 2) program = random_block_program(random, false, 5);
    INFO(to_text(program));
    const Lowered lowered = lower(build(program));
    const auto naive = Interleavings(program, ~0u).run();
    CHECK(naive.size() == 1);
    CHECK(Interleavings(program, lowered.kept).run() == naive);
    removed += program.barriers() - lowered.left;
    // Without one more barrier some have several results: the comparison can fail.
    for (unsigned barrier = 0; barrier < program.barriers(); ++barrier) {
      if ((lowered.kept >> barrier & 1u) == 0) continue;
      ++weaker;
      if (Interleavings(program, lowered.kept & ~(1u << barrier)).run().size() > 1) ++differ;
    }
  }
  CHECK(removed > 0);
  CHECK(differ > 0);
  std::printf(
      "%d programs of 2 warps in all interleavings: %u barriers removed; without one more, "
      "%u of %u have several results\n",
      programs, removed, differ, weaker);
}

namespace {

ptx::Module optimized(const BuiltKernel& kernel) {
  ptx::Module module = kernel.module();
  optimize::run_passes(module, {.passes = {"tokens"}});
  return module;
}

/// Four warps: each thread's value to its neighbour's place in shared memory, and back to memory.
template <class Body>
BuiltKernel exchange(Body&& body) {
  return build_kernel("k", "sm_90", params(param<Ptr<u32>>("p")),
                      [&](KernelBuilder& k, Ptr<u32> p) {
                        k.required_threads(128);
                        const auto s = k.shared<u32>(128).base();
                        body(k, p, s, k.tid_x());
                      });
}

void check_exchange(const ptx::Module& module, std::uint64_t schedules = 20) {
  Runner runner(module, 128);
  for (std::uint64_t schedule = 0; schedule < schedules; ++schedule) {
    const Run run = runner.run(schedule);
    CHECK(run.findings == "");
    for (std::uint32_t t = 0; t < 128; ++t) REQUIRE(run.memory[128 + t] == 1000 + (t ^ 64));
  }
}

}  // namespace

TEST_CASE("falsification 72: loads of shared memory after the stores of other warps") {
  const BuiltKernel kernel = exchange(
      [](KernelBuilder& k, const Ptr<u32>& p, const Ptr<u32, Shared>& s, const Value<u32>& t) {
        TokenProgram program(k, TokenThreads::block());
        const auto in = program.load_ptr(p + t);
        const Token stored = program.store_ptr(s + t, in.value, {.after = &in.token});
        const auto out = program.load_ptr(s + (t ^ 64u), {.after = &stored});
        program.store_ptr(p + (t + 128u), out.value, {.after = &out.token});
      });
  CHECK(syncs(kernel.module()) == 3);
  CHECK(syncs(optimized(kernel)) == 1);
  check_exchange(kernel.module());
  check_exchange(optimized(kernel));
}

TEST_CASE("falsification 78: barriers of tokens that order nothing go, stores stay") {
  const auto built = [](bool tokens) {
    return exchange(
        [&](KernelBuilder& k, const Ptr<u32>& p, const Ptr<u32, Shared>& s, const Value<u32>& t) {
          TokenProgram program(k, TokenThreads::block());
          const Token start = program.make_token();
          const Token first = program.store_ptr(s + t, t, {.after = tokens ? &start : nullptr});
          const Token both = program.join_tokens({start, first});
          program.store_ptr(p + t, t, {.after = tokens ? &both : nullptr});
        });
  };
  // make_token alone orders nothing: one barrier, which the pass removes.
  CHECK(syncs(built(true).module()) == 1);
  CHECK(ptx::print(optimized(built(true))) == built(false).ptx());
}

TEST_CASE("tokens through views: a tile stored and loaded by the same threads, or by others") {
  const auto built = [](unsigned each) {
    return exchange(
        [&](KernelBuilder& k, const Ptr<u32>& p, const Ptr<u32, Shared>&, const Value<u32>& t) {
          TileGroup block = TileGroup::block(k, 128);
          const auto tiles = TensorView<u32>(p, {16, 8}).tiles({16, 8});
          TilePart<u32> to(block, tiles, {0, 0}, {.each = Dims{1, 1}});
          TilePart<u32> from(block, tiles, {0, 0}, {.each = Dims{1, each}});
          TokenProgram program(k, TokenThreads::block());
          const Token stored = program.store_view(to, std::vector<Value<u32>>{t + 1000u});
          const auto loaded = program.load_view(from, {.after = &stored});
          program.store_ptr(p + (t + 128u), loaded.values[0], t < 128u / each);
        });
  };
  CHECK(syncs(built(4).module()) == 1);
  CHECK(syncs(optimized(built(4))) == 1);
  CHECK(syncs(built(1).module()) == 1);
  CHECK(syncs(optimized(built(1))) == 0);
  for (const unsigned each : {1u, 4u}) {
    Runner runner(optimized(built(each)), 128);
    for (std::uint64_t schedule = 0; schedule < 10; ++schedule) {
      const Run run = runner.run(schedule);
      CHECK(run.findings == "");
      for (std::uint32_t t = 0; t < 128 / each; ++t)
        REQUIRE(run.memory[128 + t] == 1000 + each * t);
    }
  }
}

TEST_CASE("tokens of some warps, by a named barrier") {
  const BuiltKernel kernel = exchange(
      [](KernelBuilder& k, const Ptr<u32>& p, const Ptr<u32, Shared>& s, const Value<u32>& t) {
        // Warps 0 and 2 exchange, and 1 and 3, each pair with a barrier of its own.
        const auto pair = [&](unsigned number) {
          TokenProgram program(k, TokenThreads::warps(2, number));
          const Value<u32> in = k.ld(p + t);
          const Token stored = program.store_ptr(s + t, in);
          const auto out = program.load_ptr(s + (t ^ 64u), {.after = &stored});
          program.store_ptr(p + (t + 128u), out.value);
        };
        k.if_(((t >> 5u) & 1u) == 0u, [&] { pair(1); }, [&] { pair(2); });
      });
  CHECK(kernel.ptx().find("bar.sync 1, 64;") != std::string::npos);
  CHECK(kernel.ptx().find("bar.sync 2, 64;") != std::string::npos);
  CHECK(ptx::print(optimized(kernel)) == kernel.ptx());
  check_exchange(kernel.module());
}

TEST_CASE("tokens of the block, by an mbarrier, in a loop too") {
  const BuiltKernel kernel = exchange(
      [](KernelBuilder& k, const Ptr<u32>& p, const Ptr<u32, Shared>& s, const Value<u32>& t) {
        TokenProgram program(k, TokenThreads::mbarrier(128));
        const Value<u32> in = k.ld(p + t);
        Var<u32> value = k.var<u32>(in);
        // Three exchanges are one.
        k.for_(0u, 3u, 1u, [&](const auto&) {
          const Token stored = program.store_ptr(s + t, value.read());
          const auto out = program.load_ptr(s + (t ^ 64u), {.after = &stored});
          value = out.value;
          (void)program.load_ptr(s + t, {.after = &out.token});
        });
        program.store_ptr(p + (t + 128u), value.read());
      });
  // Only the one that makes the mbarrier known.
  CHECK(syncs(kernel.module()) == 1);
  CHECK(syncs(optimized(kernel)) == 1);
  check_exchange(kernel.module(), 2);  // polls take long on the emulator
}

TEST_CASE("mistakes in what tokens order are refused, by text") {
  const auto refused = [](const auto& body) -> std::string {
    try {
      exchange([&](KernelBuilder& k, const Ptr<u32>& p, const Ptr<u32, Shared>&,
                   const Value<u32>&) { body(k, p); });
    } catch (const Error& error) {
      return error.message;
    }
    return "accepted";
  };
  const std::string rule =
      "; rule: whole warps, at most 1024 threads; some of the block have a barrier of their own, 1 "
      "to 15; cure: use TokenThreads::block, warps or mbarrier";
  const auto threads = [&](TokenThreads how) {
    return refused([&](KernelBuilder& k, const Ptr<u32>&) { TokenProgram program(k, how); });
  };
  CHECK(threads(TokenThreads::warps(2, 0)) == "tokens of 64 threads at barrier 0" + rule);
  CHECK(threads(TokenThreads::warps(2, 16)) == "tokens of 64 threads at barrier 16" + rule);
  CHECK(threads(TokenThreads::warps(33, 1)) == "tokens of 1056 threads at barrier 1" + rule);
  CHECK(threads(TokenThreads::mbarrier(0)) == "tokens of 0 threads at barrier 0" + rule);
  CHECK(threads(TokenThreads::mbarrier(40)) == "tokens of 40 threads at barrier 0" + rule);
  CHECK(threads(TokenThreads::warps(2, 15)) == "accepted");
  CHECK(refused([](KernelBuilder& k, const Ptr<u32>& p) {
          TileGroup block = TileGroup::block(k, 128);
          TilePart<u32> part(block, TensorView<u32>(p, {16, 8}).tiles({16, 8}), {0, 0});
          (void)TokenProgram(k).load_view(part, {TokenOrder::Acquire, TokenScope::Device});
        }) ==
        "a load that is acquire, through a view; rule: a tile is accessed by vectors of several "
        "elements, "
        "which are weak; cure: use a pointer, or a release or acquire of a flag that takes or "
        "gives the token");
}

TEST_CASE("falsification 77: a scope that is too narrow for two blocks is reported") {
  // Block 0 writes data and a flag, block 1 reads the flag and then the data.
  const auto findings = [](TokenScope scope) {
    const BuiltKernel kernel =
        build_kernel("k", "sm_90", params(param<Ptr<u32>>("p")), [&](KernelBuilder& k, Ptr<u32> p) {
          k.required_threads(64);
          const Value<u32> t = k.tid_x();
          TokenProgram program(k, TokenThreads::block());
          k.if_(
              k.ctaid_x() == 0u,
              [&] {
                const Token data = program.store_ptr(p + t, t);
                program.store_ptr(p + 64, 1u, t == 0u, {TokenOrder::Release, scope, &data});
              },
              [&] {
                k.while_(
                    [&] {
                      return program.load_ptr(p + 64, {TokenOrder::Acquire, scope}).value == 0u;
                    },
                    [] {});
                const auto flag = program.load_ptr(p + 64, {TokenOrder::Acquire, scope});
                const auto data = program.load_ptr(p + (t ^ 32u), {.after = &flag.token});
                program.store_ptr(p + (t + 65u), data.value);
              });
        });
    ptx::Module module = kernel.module();
    optimize::run_passes(module, {.passes = {"tokens"}});
    emulator::Device device(emulator::gpu_named("sm_90"));
    emulator::Program program = emulator::Program::load(device, module);
    const std::uint64_t p = device.allocate(4 * 256);
    device.fill(p, std::byte{0}, 4 * 256);
    emulator::Launch launch;
    launch.kernel = "k";
    launch.grid = {2};
    launch.block = {64};
    launch.parameters = std::as_bytes(std::span(&p, 1));
    std::set<std::string> rules;
    for (const emulator::RunFinding& finding : emulator::run(program, launch).findings)
      rules.insert(finding.finding.rule);
    std::string text;
    for (const std::string& rule : rules) text += rule + " ";
    return text;
  };
  CHECK(findings(TokenScope::Device) == "");
  CHECK(findings(TokenScope::System) == "");
  CHECK(findings(TokenScope::Block).find("scope-too-narrow") != std::string::npos);
}
