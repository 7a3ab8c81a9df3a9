// tests/launcher/gemv_workspace_test.cpp - memory for split sums: streams, plans, graphs, growth
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

#include "launcher/gemv_operands.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::atomic<bool> memory_is_full{false};
std::atomic<int> allocations{0};

driver::CUresult allocate(driver::CUdeviceptr* address, std::size_t bytes) {
  ++allocations;
  if (memory_is_full) return driver::CUDA_ERROR_OUT_OF_MEMORY;
  return driver::emulated::table().mem_alloc(address, bytes);
}

// The workspace that the last launch was given: the sixth of its addresses.
std::uint64_t last_workspace = 0;

driver::CUresult note_workspace(driver::CUfunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared, driver::CUstream stream,
                                void** parameters, void** extra) {
  std::memcpy(&last_workspace, static_cast<const std::byte*>(extra[1]) + 5 * 8, 8);
  return driver::emulated::table().launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                 block_z, shared, stream, parameters, extra);
}

driver::Table counting_table() {
  driver::Table table = driver::emulated::table();
  table.mem_alloc = allocate;
  return table;
}

GemvPlan splits(std::uint32_t k, std::uint32_t n, std::uint32_t parts) {
  return split_plan(gemv_problem(k, n), parts);
}

}  // namespace

TEST_CASE("launches of one stream share a workspace, which grows and stays") {
  const Rig rig(plain_options(), counting_table());
  // Tickets and parts of different sizes, in turn: none may find what another has left.
  const GemvPlan plans[] = {splits(64, 300, 4), splits(40, 2000, 7), splits(64, 300, 16),
                            splits(512, 130, 100), splits(8, 9000, 2)};
  std::vector<GemvCase> cases;
  for (const GemvPlan& plan : plans) {
    REQUIRE(plan.workspace_bytes() > 0);
    cases.emplace_back(rig.context, plan.problem, cases.size());
    rig.launcher.launch(Gemv{plan}, cases.back().operands(), rig.stream);
  }
  rig.stream.synchronize();
  const int before = allocations;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      CHECK(cases[i].right());
      cases[i].reset();
      rig.launcher.launch(Gemv{plans[i]}, cases[i].operands(), rig.stream);
    }
    rig.stream.synchronize();
  }
  CHECK(allocations == before);
}

TEST_CASE("streams, plans and captures never have a workspace in common") {
  driver::Table table = driver::emulated::table();
  table.launch_kernel = note_workspace;
  const Rig rig(plain_options(), table);
  const GemvPlan plan = splits(96, 300, 8);
  const GemvCase one(rig.context, plan.problem);
  const Stream second(rig.context);
  const Launcher other(rig.context, plain_options());
  const auto used = [&](const auto& launch) {
    last_workspace = 0;
    launch();
    return last_workspace;
  };
  const auto by = [&](const Launcher& launcher, const Stream& stream) {
    return used([&] { launcher.launch(Gemv{plan}, one.operands(), stream); });
  };
  const std::uint64_t own = by(rig.launcher, rig.stream);
  CHECK(own % 16 == 0);
  CHECK(by(rig.launcher, rig.stream) == own);
  CHECK(by(other, rig.stream) == own);  // launches of one stream come one after the other
  std::vector<std::uint64_t> all = {own, by(rig.launcher, second)};
  const LaunchPlan frozen = rig.launcher.plan(Gemv{plan}, one.operands(), rig.stream);
  const LaunchPlan again = rig.launcher.plan(Gemv{plan}, one.operands(), rig.stream);
  all.push_back(used([&] { frozen.launch(); }));
  all.push_back(used([&] { again.launch(); }));
  std::vector<Graph> graphs;
  const Event fork(rig.context), join(rig.context);
  for (int i = 0; i < 2; ++i) {
    rig.stream.begin_capture();
    all.push_back(by(rig.launcher, rig.stream));
    CHECK(by(rig.launcher, rig.stream) == all.back());
    // A branch runs beside what it left.
    rig.stream.record(fork);
    second.wait(fork);
    all.push_back(by(rig.launcher, second));
    second.record(join);
    rig.stream.wait(join);
    graphs.push_back(rig.stream.end_capture());
  }
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(all.front() != 0);
  rig.context.synchronize();
  CHECK(one.right());
}

TEST_CASE("two streams at once give the bits that one gives") {
  const Rig rig;
  const GemvPlan plan = splits(96, 300, 8);
  const GemvCase expected(rig.context, plan.problem, 5);
  constexpr int kThreads = 4;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      try {
        const Stream stream(rig.context);
        GemvCase one(rig.context, plan.problem, 5);
        for (int round = 0; round < 10; ++round) {
          rig.launcher.launch(Gemv{plan}, one.operands(), stream);
          stream.synchronize();
          wrong += !one.right();
          one.reset();
        }
      } catch (const std::exception&) {
        wrong += 1000;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a stream that goes gives its workspace back") {
  const Rig rig;
  const GemvPlan plan = splits(96, 300, 8);
  const GemvCase one(rig.context, plan.problem);
  rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream);
  rig.context.synchronize();
  const std::uint64_t before = rig.context.memory().free;
  for (int i = 0; i < 5; ++i) {
    const Stream stream(rig.context);
    rig.launcher.launch(Gemv{plan}, one.operands(), stream);
    CHECK(rig.context.memory().free < before);
  }
  rig.context.synchronize();
  CHECK(rig.context.memory().free == before);
  CHECK(one.right());
}

TEST_CASE("a frozen plan has a workspace of its own") {
  const Rig rig;
  const GemvPlan plan = splits(96, 300, 8);
  GemvCase one(rig.context, plan.problem, 1);
  GemvCase two(rig.context, plan.problem, 2);
  const LaunchPlan first = rig.launcher.plan(Gemv{plan}, one.operands(), rig.stream);
  const LaunchPlan second = rig.launcher.plan(Gemv{plan}, two.operands(), rig.stream);
  const Stream other(rig.context);
  for (int round = 0; round < 3; ++round) {
    first.launch();
    second.launch(other);
    rig.stream.synchronize();
    other.synchronize();
    CHECK(one.right());
    CHECK(two.right());
    one.reset();
    two.reset();
  }
  CHECK(first.record().kernel == "gemv");
  CHECK(first.record().reason == "requested: the caller's plan");
}

TEST_CASE("what a frozen plan says lives as long as the plan") {
  const Rig rig;
  const GemvCase one(rig.context, gemv_problem(40, 60));
  const LaunchPlan plan = [&] {
    const Launcher launcher(rig.context, plain_options());
    return launcher.plan(one.problem, one.operands(), rig.stream);
  }();
  CHECK(plan.record().reason.substr(0, 6) == "auto: ");
  plan.launch();
  rig.stream.synchronize();
  CHECK(one.right());
}

TEST_CASE("graphs are captured one after the other and replayed side by side, each with its own") {
  const Rig rig;
  const GemvPlan plan = splits(96, 300, 8);
  const GemvProblem problems[] = {plan.problem};
  GemvCase cases[] = {{rig.context, plan.problem, 1},
                      {rig.context, plan.problem, 2},
                      {rig.context, plan.problem, 3}};
  rig.launcher.launch(Gemv{plan}, cases[2].operands(), rig.stream);  // loads the kernel
  rig.launcher.prepare(problems);
  std::vector<Graph> graphs;
  for (int i = 0; i < 2; ++i) {
    rig.stream.begin_capture();
    rig.launcher.launch(Gemv{plan}, cases[i].operands(), rig.stream);
    rig.launcher.launch(Gemv{plan}, cases[i].operands(), rig.stream);
    CHECK(rig.stream.capturing());
    graphs.push_back(rig.stream.end_capture());
    CHECK(graphs.back().nodes() == 2);
  }
  const Stream other(rig.context);
  for (int round = 0; round < 3; ++round) {
    for (GemvCase& one : cases) one.reset();
    graphs[0].launch(rig.stream);
    graphs[1].launch(other);
    rig.launcher.launch(Gemv{plan}, cases[2].operands(), rig.stream);
    rig.context.synchronize();
    for (const GemvCase& one : cases) CHECK(one.right());
  }
}

TEST_CASE("graphs keep the workspace of a plan that has gone, and give back their own") {
  const Rig rig;
  const GemvPlan plan = splits(96, 300, 8);
  GemvCase one(rig.context, plan.problem);
  rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream);
  rig.context.synchronize();
  const std::uint64_t before = rig.context.memory().free;
  {
    const Graph graph = [&] {
      const LaunchPlan frozen = rig.launcher.plan(Gemv{plan}, one.operands(), rig.stream);
      rig.stream.begin_capture();
      frozen.launch();
      rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream);
      return rig.stream.end_capture();
    }();
    for (int round = 0; round < 3; ++round) {
      one.reset();
      graph.launch(rig.stream);
      rig.context.synchronize();
      CHECK(one.right());
    }
    CHECK(rig.context.memory().free < before);
  }
  rig.context.synchronize();
  CHECK(rig.context.memory().free == before);
}

TEST_CASE("a kernel that is not loaded is no launch of a capture, and leaves it as it was") {
  const Rig rig;
  const GemvCase one(rig.context, gemv_problem(70, 90, GemvLayout::R));
  rig.stream.begin_capture();
  const Error error =
      error_of([&] { rig.launcher.launch(one.problem, one.operands(), rig.stream); });
  CHECK(error.code == "capture-miss");
  CHECK(error.kernel == "gemv");
  (void)rig.stream.end_capture();
  const GemvProblem problems[] = {one.problem};
  rig.launcher.prepare(problems);
  rig.stream.begin_capture();
  CHECK(rig.launcher.launch(one.problem, one.operands(), rig.stream).cached);
  const Graph graph = rig.stream.end_capture();
  graph.launch(rig.stream);
  rig.stream.synchronize();
  CHECK(one.right());
}

TEST_CASE("streams of the host have workspaces too, and what the host captures stays") {
  const Rig rig;
  const driver::Table& table = rig.table;
  const GemvPlan plan = splits(96, 300, 8);
  GemvCase one(rig.context, plan.problem, 1);
  GemvCase two(rig.context, plan.problem, 2);
  const Stream hosts(rig.context);
  const Stream borrowed = Stream::borrowed(rig.context, hosts.handle());
  rig.launcher.launch(Gemv{plan}, one.operands(), borrowed);
  rig.launcher.launch(Gemv{plan}, two.operands(), Stream::borrowed(rig.context, nullptr));
  rig.context.synchronize();
  CHECK(one.right());
  CHECK(two.right());

  REQUIRE(table.ctx_push_current(rig.context.handle()) == driver::CUDA_SUCCESS);
  REQUIRE(table.stream_begin_capture(hosts.handle(), driver::CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          driver::CUDA_SUCCESS);
  rig.launcher.launch(Gemv{plan}, one.operands(), borrowed);
  driver::CUgraph graph = nullptr;
  driver::CUgraphExec executable = nullptr;
  REQUIRE(table.stream_end_capture(hosts.handle(), &graph) == driver::CUDA_SUCCESS);
  REQUIRE(table.graph_instantiate_with_flags(&executable, graph, 0) == driver::CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    one.reset();
    two.reset();
    CHECK(table.graph_launch(executable, rig.stream.handle()) == driver::CUDA_SUCCESS);
    rig.launcher.launch(Gemv{plan}, two.operands(), borrowed);
    rig.context.synchronize();
    CHECK(one.right());
    CHECK(two.right());
  }
  CHECK(table.graph_exec_destroy(executable) == driver::CUDA_SUCCESS);
  CHECK(table.graph_destroy(graph) == driver::CUDA_SUCCESS);
  REQUIRE(table.ctx_pop_current(nullptr) == driver::CUDA_SUCCESS);
}

TEST_CASE("no memory for a workspace is an error, and the next launch tries again") {
  const Rig rig(plain_options(), counting_table());
  const GemvPlan plan = splits(96, 300, 8);
  GemvCase one(rig.context, plan.problem);
  memory_is_full = true;
  const Error error =
      error_of([&] { rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream); });
  memory_is_full = false;
  CHECK(error.stage == Stage::Device);
  CHECK(error.code == "out-of-memory");
  CHECK(error.message.find("for partial sums of a GEMV") != std::string::npos);
  rig.launcher.launch(Gemv{plan}, one.operands(), rig.stream);
  rig.stream.synchronize();
  CHECK(one.right());
}
