// tests/check/barrier_count_test.cpp - how many barriers there are, and of which kind
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "check/barrier_safety/barrier_safety.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

// Comments and names that a search of the text would take for barriers.
constexpr const char* kText = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry bar_sync(.param .u64 barrier_sync)
.reqntid 64, 1, 1
{
  .reg .u32 %bar_red, %i, %votes;
  .reg .pred %p, %all;
  .reg .b64 %state;
  .shared .align 8 .b64 bar_arrive;
  mov.u32 %i, 0;
  mov.u32 %bar_red, %tid.x;
  setp.lt.u32 %p, %bar_red, 32;  // bar.sync 0;
barrier_sync_label:
  bar.sync 0;
  barrier.sync 1;
  barrier.sync.aligned 2, 64;
  bar.red.popc.u32 %votes, 3, %p;
  barrier.red.and.pred %all, 4, %p;
  /* bar.sync 5; barrier.sync 6; */
  @%p bar.arrive 7, 64;
  @!%p bar.sync 7, 64;
  bar.warp.sync 0xffffffff;
  add.u32 %i, %i, 1;
  setp.lt.u32 %all, %i, 3;
  @%all bra barrier_sync_label;
  @%p barrier.arrive 8, 64;
  @!%p barrier.sync 8, 64;
  ret;
}
)";

}  // namespace

TEST_CASE(
    "falsification 106: barriers are counted exactly, those that wait and those that arrive") {
  const ptx::Module module = ptx::parse(kText);
  const ptx::Function& function = module.functions[0];
  std::map<std::string, int> found;
  for (const ptx::Instruction& s : function.body) {
    const gates::barriers::Use use = gates::barriers::use_of(function, s);
    if (use.kind == gates::barriers::UseKind::None) continue;
    const bool warp = use.kind == gates::barriers::UseKind::Warp;
    ++found[warp                    ? "of a warp"
            : !use.waits            ? "arrives alone"
            : use.result != nullptr ? "waits for a vote"
            : use.aligned           ? "waits, aligned"
                                    : "waits"];
  }
  const std::map<std::string, int> want{{"of a warp", 1},
                                        {"arrives alone", 2},
                                        {"waits for a vote", 2},
                                        {"waits, aligned", 3},
                                        {"waits", 2}};
  CHECK(found == want);

  emulator::Device device(emulator::default_gpu("sm_80"));
  emulator::Program program = emulator::Program::load(device, kText);
  const std::array<std::byte, 8> parameters{};
  emulator::Launch launch;
  launch.kernel = "bar_sync";
  launch.block = {64, 1, 1};
  launch.parameters = parameters;
  const emulator::Result result = emulator::run(program, launch);
  CHECK(result.findings.empty());
  // Two warps, three times around the loop: five barriers of both and two of one of them each; then
  // two of one of them.
  std::map<std::string, std::uint64_t> executed;
  for (const emulator::LineCounters& line : result.counters.lines) {
    const std::string opcode(line.opcode);
    if (opcode.starts_with("bar"))
      executed[opcode.substr(0, opcode.find('.', opcode.find('.') + 1))] += line.predicated_on / 32;
  }
  CHECK(result.counters.barriers == 2 * 3 * 5 + 3 * 2 + 2);
  CHECK(executed == std::map<std::string, std::uint64_t>{{"bar.sync", 2 * 3 + 3},
                                                         {"barrier.sync", 2 * 3 * 2 + 1},
                                                         {"bar.red", 2 * 3},
                                                         {"barrier.red", 2 * 3},
                                                         {"bar.arrive", 3},
                                                         {"barrier.arrive", 1},
                                                         {"bar.warp", 2 * 3}});
}
