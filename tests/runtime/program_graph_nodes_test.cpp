// tests/runtime/program_graph_nodes_test.cpp - nodes of any type in recorded programs
#include "recorded_program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using namespace ptxgen::driver;

namespace {

CUgraphNodeParams fill_node(CUdeviceptr to, unsigned value) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = to;
  params.memset.value = value;
  params.memset.elementSize = 4;
  params.memset.width = 16;
  params.memset.height = 1;
  return params;
}

bool has_graph_note(const Recording& recording) {
  return std::ranges::any_of(recording.notes, [](const std::string& note) {
    return note.find("a graph with a node that is not recorded") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("nodes that one call adds and sets by their type are recorded") {
  RecordedProgram program;
  const Table& driver = program.driver;
  const CUdeviceptr data = program.allocate(64);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  REQUIRE_OK(driver.graph_create(&graph, 0));
  CUgraphNodeParams params = fill_node(data, 1);
  REQUIRE_OK(driver.graph_add_node_v2(&node, graph, nullptr, nullptr, 0, &params));
  CUgraphExec executable = nullptr;
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  REQUIRE_OK(driver.graph_launch(executable, nullptr));
  CHECK(program.read(data, 16) == std::vector<std::uint32_t>(16, 1));
  params = fill_node(data, 2);
  REQUIRE_OK(driver.graph_exec_node_set_params(executable, node, &params));
  REQUIRE_OK(driver.graph_launch(executable, nullptr));
  CHECK(program.read(data, 16) == std::vector<std::uint32_t>(16, 2));
  params = fill_node(data, 3);
  REQUIRE_OK(driver.graph_node_set_params(node, &params));
  REQUIRE_OK(driver.graph_exec_destroy(executable));
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  REQUIRE_OK(driver.graph_launch(executable, nullptr));
  CHECK(program.read(data, 16) == std::vector<std::uint32_t>(16, 3));
  const Recording recording = program.finish();
  CHECK(recording.notes.empty());
  CHECK(count_of<FillStep>(recording) == 3);
  CHECK(replayed_program(recording).same);
}

TEST_CASE("a graph with a conditional node is noted and recorded by its effect") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  program.write(data, counted(16));
  CUcontext context = nullptr;
  REQUIRE_OK(driver.ctx_get_current(&context));
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphConditionalHandle handle = 0;
  REQUIRE_OK(driver.graph_create(&graph, 0));
  REQUIRE_OK(
      driver.graph_conditional_handle_create(&handle, graph, context, 1, kGraphAssignDefault));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional = {handle, CU_GRAPH_COND_TYPE_IF, 1, nullptr, context};
  REQUIRE_OK(driver.graph_add_node(&node, graph, nullptr, 0, &params));
  CUgraph body = params.conditional.phGraph_out[0];
  params = fill_node(data, 7);
  REQUIRE_OK(driver.graph_add_node(&node, body, nullptr, 0, &params));
  CUgraphExec executable = nullptr;
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  REQUIRE_OK(driver.graph_launch(executable, nullptr));
  program.scale(data, 1);
  CHECK(program.read(data, 16)[3] == 7 * 3 + 1);
  const Recording recording = program.finish();
  CHECK(has_graph_note(recording));
  CHECK(replayed_program(recording).same);
}

TEST_CASE("a graph with a disabled node is noted and recorded by its effect") {
  RecordedProgram program;
  const Table& driver = program.driver;
  program.load();
  const CUdeviceptr data = program.allocate(64);
  program.write(data, counted(16));
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  REQUIRE_OK(driver.graph_create(&graph, 0));
  CUgraphNodeParams params = fill_node(data, 5);
  REQUIRE_OK(driver.graph_add_node(&node, graph, nullptr, 0, &params));
  CUgraphExec executable = nullptr;
  REQUIRE_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  REQUIRE_OK(driver.graph_node_set_enabled(executable, node, 0));
  REQUIRE_OK(driver.graph_launch(executable, nullptr));
  program.scale(data, 1);
  CHECK(program.read(data, 16)[3] == 3 * 3 + 1);
  const Recording recording = program.finish();
  CHECK(has_graph_note(recording));
  CHECK(replayed_program(recording).same);
}
