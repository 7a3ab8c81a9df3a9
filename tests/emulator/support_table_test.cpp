// tests/emulator/support_table_test.cpp - every row has its part, or a reason
#include <catch2/catch.hpp>

#include <set>

#include "emulator/machine/warp_steps.hpp"
#include "emulator/state/support_table.hpp"
#include "lane_runner.hpp"
#include "ptx/op_line.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using emulator::Execution;

TEST_CASE("the functions that the table of rows promises are there, and no others") {
  std::set<ptx::Op> seen;
  for (const OpLine& line : op_lines()) {
    const ptx::Module module = ptx::parse(module_with({&line, 1}, "sm_100a", {9, 0}));
    const ptx::Instruction* found = statement_on(module.functions.back(), first_line());
    INFO(line.text);
    REQUIRE(found != nullptr);
    const ptx::Instruction& instruction = *found;
    REQUIRE(instruction.op == line.op);
    seen.insert(line.op);
    const Execution execution = emulator::execution_of(line.op);
    emulator::LaneOp op;
    CHECK((emulator::lane_function(instruction, op) != nullptr) == (execution == Execution::Lane));
    CHECK((emulator::matrix_function(instruction, op) != nullptr) ==
          (execution == Execution::Matrix));
    CHECK((emulator::matrix_layout(instruction, op) != nullptr) ==
          (execution == Execution::MatrixMemory));
    // bar.warp.sync is a barrier that the part for the warp's own rows runs.
    CHECK((emulator::find_warp_row(line.op) != nullptr) ==
          (execution == Execution::Warp || line.op == ptx::Op::bar_warp_sync));
    CHECK(emulator::refusal_reason(line.op).empty() == (execution != Execution::Refused));
  }
  CHECK(seen.size() == ptx::op_table().size());
}

TEST_CASE("what rows do and what the op table says of them agree") {
  for (const ptx::OpInfo& row : ptx::op_table()) {
    INFO(row.id);
    const bool touches_memory =
        has(row.flags, ptx::Flag::ReadsMemory) || has(row.flags, ptx::Flag::WritesMemory);
    switch (emulator::execution_of(row.op)) {
      case Execution::Lane:
        CHECK_FALSE(touches_memory);
        CHECK_FALSE(has(row.flags, ptx::Flag::Convergent));
        break;
      case Execution::Matrix:
        CHECK_FALSE(touches_memory);
        CHECK(has(row.flags, ptx::Flag::Convergent));
        break;
      case Execution::MatrixMemory:
        CHECK(touches_memory);
        CHECK(has(row.flags, ptx::Flag::Convergent));
        break;
      case Execution::Warp:
        CHECK_FALSE(touches_memory);
        CHECK(has(row.flags, ptx::Flag::Convergent));
        break;
      case Execution::Barrier:
        CHECK(has(row.flags, ptx::Flag::Fence));
        break;
      case Execution::NoEffect:
        for (const ptx::OperandSpec& operand : row.operand_specs()) {
          CHECK(operand.role != ptx::OperandRole::Destination);
        }
        CHECK((!touches_memory || row.op == ptx::Op::discard));
        break;
      default:
        break;
    }
  }
}

TEST_CASE("a refusal says what is missing") {
  CHECK(emulator::refusal_reason(ptx::Op::cp_async_bulk_tensor_load_im2col) ==
        "the im2col mode of tensor maps is not supported by the emulator; use tiled mode");
  CHECK(emulator::refusal_reason(ptx::Op::wgmma_fence).empty());
  CHECK(emulator::refusal_reason(ptx::Op::red_async) ==
        "asynchronous reductions are not supported by the emulator; use red.shared::cluster or a "
        "loop of red");
  CHECK(emulator::refusal_reason(ptx::Op::fence_proxy_async_acquire) ==
        "fences that are restricted to shared memory are not supported by the emulator; use the "
        "fence without .sync_restrict");
  CHECK(emulator::refusal_reason(ptx::Op::mapa).empty());
  CHECK(emulator::refusal_reason(ptx::Op::mma_sp_m16n8k16_bf16) ==
        "sparse matrices are not supported by the emulator; use mma without .sp");
  CHECK(emulator::refusal_reason(ptx::Op::multimem_red) ==
        "needs multicast memory of several devices; the emulator has one device");
  CHECK(emulator::refusal_reason(ptx::Op::add).empty());
}

TEST_CASE("every lane row keeps to its words and widths, whatever the bits") {
  for (const OpLine& line : op_lines()) {
    if (emulator::execution_of(line.op) != Execution::Lane) continue;
    // The line may name an address or a constant: the words are given all the same.
    const LaneRunner lane{std::string(line.text)};
    std::vector<std::uint64_t> results;
    for_sources(lane, 50,
                [&](const std::vector<std::uint64_t>& sources) { results = lane.run(sources); });
    CHECK(results.size() >= 1);
  }
}
