// tests/litmus/memory_model_test.cpp - published litmus tests of PTX against the axioms
#include "memory_model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "lowered.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"

using namespace ptxgen;
using namespace ptxgen::litmus;

namespace {

constexpr std::uint32_t kRegisters = 4;  ///< the word of r0; x, y, z and u come first
constexpr std::uint32_t kWords = 12;

struct TestThread {
  std::uint32_t block = 0;
  std::string code;  ///< "st.weak x, 1; ld.acquire.gpu r0, y"
  std::uint32_t device = 0;
};

/// A published test: whether an execution may end with these values.
struct Published {
  std::string name;
  std::string source;
  std::vector<TestThread> threads;
  std::string outcome;  ///< "r0=1 x=2"
  bool is_allowed = false;
};

/// One instruction in full: types, state space, names of registers.
std::string instruction(std::istringstream line) {
  std::string opcode;
  line >> opcode;
  const bool atomic = opcode.starts_with("atom") || opcode.starts_with("red");
  if (atomic) opcode.insert(opcode.rfind('.'), ".global");
  if (opcode.starts_with("ld") || opcode.starts_with("st")) opcode += ".global";
  if (opcode.ends_with(".cas") || opcode.ends_with(".exch")) {
    opcode += ".b32";
  } else if (atomic || opcode.ends_with(".global") || opcode.starts_with("add")) {
    opcode += ".u32";
  }
  std::string text = opcode;
  for (std::string operand; line >> operand;) {
    const bool is_location = std::string("xyzu").find(operand[0]) != std::string::npos;
    const std::string comma = operand.ends_with(',') ? "," : "";
    if (!comma.empty()) operand.pop_back();
    text += is_location         ? " [%" + operand + "]"
            : operand[0] == 'r' ? " %" + operand
                                : " " + operand;
    text += comma;
  }
  return text + ";\n";
}

/// Thread t is the first lane of a warp. The other lanes take part in barriers only.
std::string kernel_of(const Published& test, std::uint32_t warps) {
  std::ostringstream text;
  text
      << ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 memory)\n"
         "{\n.reg .b32 %r<8>;\n.reg .b32 %a<4>;\n.reg .b64 %x, %y, %z, %u;\n"
         ".reg .pred %me, %skip;\nld.param.u64 %x, [memory];\nadd.u64 %y, %x, 4;\n"
         "add.u64 %z, %x, 8;\nadd.u64 %u, %x, 12;\nmov.u32 %a0, %tid.x;\nmov.u32 %a1, %ctaid.x;\n"
         "shr.u32 %a2, %a0, 5;\nmad.lo.u32 %a2, %a1, "
      << warps << ", %a2;\nand.b32 %a3, %a0, 31;\nsetp.eq.u32 %me, %a3, 0;\n";
  std::vector<std::uint32_t> used(kMaxEvents);
  for (std::size_t t = 0; t < test.threads.size(); ++t) {
    const TestThread& thread = test.threads[t];
    text << "setp.ne.u32 %skip, %a2, " << thread.block * warps + used[thread.block]++
         << ";\n@%skip bra next" << t << ";\n";
    std::istringstream code(thread.code);
    for (std::string line; std::getline(code, line, ';');) {
      std::string full = instruction(std::istringstream(line));
      text << (full.starts_with("bar") ? "" : "@%me ") << full;
    }
    for (std::uint32_t r = 0; r < kWords - kRegisters; ++r) {
      const std::string name = "r" + std::to_string(r);
      if (thread.code.find(name) == std::string::npos) continue;
      text << "@%me st.global.u32 [%x+" << 4 * (kRegisters + r) << "], %" << name << ";\n";
    }
    text << "next" << t << ":\n";
  }
  text << "ret;\n}\n";
  return text.str();
}

Program program_of(const Published& test) {
  Launch launch;
  launch.words = kWords;
  launch.blocks = 0;
  std::uint32_t warps = 1;
  for (const TestThread& thread : test.threads) {
    launch.blocks = std::max(launch.blocks, thread.block + 1);
    launch.device.resize(launch.blocks);
    launch.device[thread.block] = thread.device;
    warps = std::max(warps, static_cast<std::uint32_t>(std::ranges::count(
                                test.threads, thread.block, &TestThread::block)));
  }
  launch.threads = 32 * warps;
  const ptx::Module module = ptx::parse(kernel_of(test, warps), test.name);
  for (const Finding& finding : ptx::verify(module)) FAIL(finding.message);
  return read_program(module, "test", launch);
}

bool happens(const Published& test, const Allowed& outcomes) {
  return std::ranges::any_of(outcomes, [&](const auto& each) {
    std::istringstream wanted(test.outcome);
    for (std::string term; wanted >> term;) {
      const std::size_t equals = term.find('=');
      const std::string name = term.substr(0, equals);
      const std::size_t word = name[0] == 'r' ? kRegisters + std::stoul(name.substr(1))
                                              : std::string("xyzu").find(name[0]);
      if (each.first[word] != std::stoull(term.substr(equals + 1))) return false;
    }
    return true;
  });
}

constexpr const char* kIsa = "PTX ISA 9.1, section 8.10 and 8.11";
constexpr const char* kMixed = "NVlabs/mixedproxy, tests";
constexpr const char* kDat = "hernanponcedeleon/Dat3M 3064012, litmus/PTX/Manual, PTXv6_0-expected";
constexpr const char* kMemalloy = "Wickerson et al., POPL 2017 (memalloy), by Dat3M 3064012";

const std::vector<Published>& published() {
  static const std::vector<Published> tests = {
      // The manual's own examples.
      {"Atomicity 1",
       kIsa,
       {{0, "atom.relaxed.sys.inc r0, x, 9"}, {0, "atom.relaxed.sys.inc r1, x, 9"}},
       "x=1",
       false},
      {"Atomicity 2",
       kIsa,
       {{0, "atom.relaxed.cta.inc r0, x, 9"}, {1, "atom.relaxed.gpu.inc r1, x, 9"}},
       "x=1",
       true},
      {"LB+deps",
       kIsa,
       {{0, "ld.weak r0, x; st.weak y, r0"}, {1, "ld.weak r1, y; st.weak x, r1"}},
       "x=1",
       false},
      {"LB",
       kIsa,
       {{0, "ld.weak r0, x; st.weak y, 1"}, {1, "ld.weak r1, y; st.weak x, 1"}},
       "r0=1 r1=1",
       true},
      {"CoRR",
       kIsa,
       {{0, "st.relaxed.sys x, 1"}, {1, "ld.relaxed.sys r0, x; ld.relaxed.sys r1, x"}},
       "r0=1 r1=0",
       false},
      {"MP",
       kIsa,
       {{0, "st.weak x, 1; fence.acq_rel.sys; st.relaxed.sys y, 1"},
        {1, "ld.relaxed.sys r0, y; fence.acq_rel.sys; ld.weak r1, x"}},
       "r0=1 r1=0",
       false},
      {"SB",
       kIsa,
       {{0, "st.weak x, 1; fence.sc.sys; ld.weak r0, y"},
        {1, "st.weak y, 1; fence.sc.sys; ld.weak r1, x"}},
       "r0=0 r1=0",
       false},
      {"SB acq_rel",
       kIsa,
       {{0, "st.weak x, 1; fence.acq_rel.sys; ld.weak r0, y"},
        {1, "st.weak y, 1; fence.acq_rel.sys; ld.weak r1, x"}},
       "r0=0 r1=0",
       true},
      {"MP red",
       kIsa,
       {{0, "st.weak x, 42; st.release.gpu y, 1"},
        {1, "red.relaxed.sys.add y, 1; fence.acq_rel.gpu; ld.weak r1, x"}},
       "r1=0 y=2",
       true},
      {"MP atom",
       kIsa,
       {{0, "st.weak x, 42; st.release.gpu y, 1"},
        {1, "atom.relaxed.sys.add r0, y, 1; fence.acq_rel.gpu; ld.weak r1, x"}},
       "r0=1 r1=0 y=2",
       false},
      // Store buffering.
      {"SB_cta",
       kMixed,
       {{0, "st.weak x, 1; fence.sc.cta; ld.weak r0, y"},
        {0, "st.weak y, 2; fence.sc.cta; ld.weak r1, x"}},
       "r0=0 r1=0",
       false},
      {"SB_rmw",
       kMixed,
       {{0, "atom.acq_rel.gpu.add r0, x, 1; atom.acq_rel.gpu.add r1, y, 1"},
        {1, "atom.acq_rel.gpu.add r2, y, 1; atom.acq_rel.gpu.add r3, x, 1"}},
       "r1=0 r3=0",
       false},
      {"SB_rmw_2",
       kMixed,
       {{0, "atom.acq_rel.gpu.add r0, x, 1; atom.acq_rel.gpu.add r1, y, 1"},
        {1, "st.relaxed.gpu y, 1; ld.relaxed.gpu r2, x"}},
       "r1=0 r2=0",
       true},
      {"SB-weak",
       kDat,
       {{0, "st.weak x, 1; ld.weak r0, y"}, {1, "st.weak y, 1; ld.weak r1, x"}},
       "r0=0 r1=0",
       true},
      {"SB+sc-cta-outScope",
       kDat,
       {{0, "st.weak x, 1; fence.sc.cta; ld.weak r0, y"},
        {1, "st.weak y, 1; fence.sc.cta; ld.weak r1, x"}},
       "r0=0 r1=0",
       true},
      {"SB+sc-sys-gpu",
       kDat,
       {{0, "st.weak x, 1; fence.sc.sys; ld.weak r0, y"},
        {1, "st.weak y, 1; fence.sc.gpu; ld.weak r1, x"}},
       "r0=0 r1=0",
       false},
      {"SB+acq_rel-cta",
       kDat,
       {{0, "st.release.cta x, 1; fence.acq_rel.cta; ld.acquire.cta r0, y"},
        {0, "st.release.cta y, 1; fence.acq_rel.cta; ld.acquire.cta r1, x"}},
       "r0=0 r1=0",
       true},
      {"SB+bar-const-equal",
       kDat,
       {{0, "st.weak x, 1; bar.sync 1, 64; ld.weak r0, y"},
        {0, "st.weak y, 1; bar.sync 1, 64; ld.weak r1, x"}},
       "r0=0 r1=1",
       false},
      {"SB+bar-const-diff",
       kDat,
       {{0, "st.weak x, 1; bar.sync 0, 32; ld.weak r0, y"},
        {0, "st.weak y, 1; bar.sync 1, 32; ld.weak r1, x"}},
       "r0=0 r1=0",
       true},
      {"SB+bar-diff-cta",
       kDat,
       {{0, "st.weak x, 1; bar.sync 1, 32; ld.weak r0, y"},
        {1, "st.weak y, 1; bar.sync 1, 32; ld.weak r1, x"}},
       "r0=0 r1=0",
       true},
      {"SB+twice-bars",
       kDat,
       {{0,
         "st.weak x, 1; bar.sync 1, 64; ld.weak r0, y; st.weak z, 1; bar.sync 2, 64; ld.weak r1, "
         "u"},
        {0,
         "st.weak y, 1; bar.sync 1, 64; ld.weak r2, x; st.weak u, 1; bar.sync 2, 64; ld.weak r3, "
         "z"}},
       "r1=0",
       false},
      {"PC-bar-sync-sync-1",
       kDat,
       {{0, "ld.weak r0, x; bar.sync 0, 64; bar.sync 1, 64"},
        {0, "bar.sync 0, 64; st.weak x, 1; bar.sync 1, 64"}},
       "r0=1",
       false},
      {"PC-bar-sync-arrive",
       kDat,
       {{0, "ld.weak r0, x; bar.arrive 0, 64"}, {0, "bar.sync 0, 64; st.weak x, 1"}},
       "r0=1",
       false},
      // Message passing.
      {"MP-cta",
       kDat,
       {{0, "st.weak x, 1; st.release.cta y, 1"}, {1, "ld.acquire.cta r0, y; ld.weak r1, x"}},
       "r0=1 r1=0",
       true},
      {"MP-cta-gpu",
       kDat,
       {{0, "st.weak x, 1; st.release.cta y, 1"}, {0, "ld.acquire.gpu r0, y; ld.weak r1, x"}},
       "r0=1 r1=0",
       false},
      {"MP-relaxed",
       kDat,
       {{0, "st.release.sys x, 1; st.release.sys y, 1"},
        {0, "ld.relaxed.sys r0, y; ld.acquire.gpu r1, x"}},
       "r0=1 r1=0",
       true},
      {"MP-3-transitive",
       "Hower et al., ASPLOS 2014, figure 6, by Dat3M 3064012",
       {{0, "st.weak x, 1; st.release.cta y, 1"},
        {0, "ld.acquire.cta r0, y; st.release.gpu z, 1"},
        {1, "ld.acquire.gpu r1, z; ld.weak r2, x"}},
       "r0=1 r1=1 r2=0",
       false},
      {"Release_acquire_pattern",
       kMixed,
       {{0, "st.weak y, 1; st.release.sys x, 1; st.relaxed.sys x, 2"},
        {1, "ld.relaxed.sys r0, x; fence.acq_rel.sys; ld.weak r1, y"}},
       "r0=2 r1=0",
       false},
      {"MP+RMW",
       kDat,
       {{0, "st.relaxed.gpu x, 1; st.release.gpu y, 1"},
        {0, "atom.relaxed.gpu.add r0, y, 1"},
        {0, "ld.acquire.gpu r1, y; ld.relaxed.gpu r2, x"}},
       "r0=1 r1=2 r2=0",
       false},
      // Load buffering.
      {"LB+RMW-a",
       kDat,
       {{0, "ld.acquire.gpu r0, y; st.weak x, 1"},
        {0, "atom.relaxed.gpu.add r1, x, 1"},
        {0, "ld.relaxed.gpu r2, x; st.release.gpu y, 1"}},
       "r0=1 r1=1 r2=2",
       true},
      {"LB+RMW-b",
       kDat,
       {{0, "ld.acquire.gpu r0, y; st.weak x, 1"},
        {0, "ld.relaxed.gpu r2, x; st.release.gpu y, 1"}},
       "r0=1 r2=1",
       false},
      {"LB+RMW-c",
       kDat,
       {{0, "ld.acquire.gpu r0, y; st.relaxed.gpu x, 1"},
        {0, "atom.relaxed.gpu.add r1, x, 1"},
        {0, "ld.relaxed.gpu r2, x; st.release.gpu y, 1"}},
       "r0=1 r1=1 r2=2",
       false},
      {"LB-dlb",
       "Alglave et al., ASPLOS 2015, figure 8, by Dat3M 3064012",
       {{0, "atom.relaxed.gpu.cas r0, x, 0, 1; fence.sc.gpu; st.weak y, 1"},
        {1, "ld.weak r1, y; fence.sc.gpu; atom.relaxed.gpu.cas r2, x, 0, 1"}},
       "r0=1 r1=1",
       false},
      {"LB-dlb-no-fence-1",
       "Alglave et al., ASPLOS 2015, figure 8, by Dat3M 3064012",
       {{0, "atom.relaxed.gpu.cas r0, x, 0, 1; st.weak y, 1"},
        {1, "ld.weak r1, y; fence.sc.gpu; atom.relaxed.gpu.cas r2, x, 0, 1"}},
       "r0=1 r1=1",
       true},
      // One location.
      {"CoRR-weak-weak",
       kDat,
       {{0, "st.release.gpu x, 1"}, {1, "ld.weak r0, x; ld.weak r1, x", 1}},
       "r0=1 r1=0",
       true},
      {"CoRR-acquire-weak",
       kDat,
       {{0, "st.release.gpu x, 1"}, {1, "ld.acquire.gpu r0, x; ld.weak r1, x"}},
       "r0=1 r1=0",
       false},
      {"CoRR-relaxed-acquire-weak",
       kDat,
       {{0, "st.release.gpu x, 1; st.relaxed.gpu x, 2"},
        {1, "ld.relaxed.gpu r0, x; ld.acquire.gpu r1, x; ld.weak r2, x", 1}},
       "r0=2 r2=1",
       true},
      {"CoRW-R",
       kDat,
       {{0, "st.release.sys x, 1"}, {1, "ld.acquire.sys r0, x; st.weak x, 2; ld.weak r1, x"}},
       "r0=1 r1=1",
       false},
      {"CoRW",
       kDat,
       {{0, "st.release.gpu x, 1"}, {1, "ld.acquire.gpu r0, x; st.weak x, 2"}},
       "r0=1 x=1",
       false},
      {"CoRW-WW",
       kDat,
       {{0, "ld.acquire.sys r0, x; st.release.sys y, 3"},
        {1, "st.release.sys y, 4; st.relaxed.sys x, 5"}},
       "r0=5 y=4",
       true},
      {"CoWR",
       kDat,
       {{0, "st.release.gpu x, 1"}, {1, "st.release.gpu x, 2; ld.weak r0, x"}},
       "x=2 r0=1",
       false},
      {"CoWR-R",
       kDat,
       {{0, "st.release.gpu x, 1"}, {1, "st.release.sys x, 2; ld.weak r0, x; ld.weak r1, x", 1}},
       "r0=1 r1=2",
       true},
      {"CoWW", kDat, {{0, "st.weak x, 1; st.weak x, 2"}}, "x=1", false},
      {"CoWW-R", kDat, {{0, "st.weak x, 1; st.weak x, 2; ld.acquire.sys r0, x"}}, "r0=1", false},
      {"CoWW-RR",
       kDat,
       {{0, "st.weak x, 1; st.weak x, 2"}, {0, "ld.weak r0, x; ld.weak r1, x"}},
       "r0=2 r1=1",
       true},
      {"Coherence",
       kDat,
       {{0, "st.relaxed.sys x, 1"},
        {0, "st.relaxed.sys x, 2"},
        {0, "ld.acquire.sys r0, x; ld.acquire.sys r1, x"},
        {0, "ld.acquire.sys r2, x; ld.acquire.sys r3, x"}},
       "r0=1 r1=2 r2=2 r3=1",
       false},
      {"Coherence-weak",
       kDat,
       {{0, "st.weak x, 1"},
        {0, "st.weak x, 2"},
        {0, "ld.acquire.sys r0, x; ld.acquire.sys r1, x"},
        {0, "ld.acquire.sys r2, x; ld.acquire.sys r3, x"}},
       "r0=1 r1=2 r2=2 r3=1",
       true},
      {"Co-Total-3-threads",
       kDat,
       {{0, "st.weak x, 1; st.release.sys y, 1"},
        {0, "st.weak x, 2; st.release.sys z, 1"},
        {0, "ld.acquire.sys r0, y; ld.acquire.sys r1, z; ld.weak r2, x; ld.weak r3, x"}},
       "r0=1 r1=1 r2=1 r3=2",
       true},
      {"Cause-base-strong",
       kMixed,
       {{0, "st.release.gpu x, 1; st.release.sys y, 1"},
        {1, "ld.acquire.gpu r0, x; st.weak x, 2; st.release.sys z, 1"},
        {2, "ld.acquire.sys r1, z; ld.acquire.sys r2, z; ld.weak r3, x"}},
       "r0=1 r1=1 r2=1 r3=1",
       false},
      // Read-modify-writes.
      {"Atom-plus-location-weak",
       kDat,
       {{0, "atom.acq_rel.cta.add r0, x, 1"}, {1, "atom.acq_rel.cta.add r1, x, 1"}},
       "x=1",
       true},
      {"Atom-plus-location",
       kDat,
       {{0, "atom.acq_rel.sys.add r0, x, 1"}, {1, "atom.acq_rel.sys.add r1, x, 1"}},
       "x=1",
       false},
      // Independent reads, and writes to two locations.
      {"IRIW1",
       kMemalloy,
       {{0, "st.weak x, 1"},
        {1, "ld.weak r0, x; fence.sc.cta; ld.weak r1, y"},
        {1, "st.weak y, 1"},
        {1, "ld.weak r2, y; fence.sc.gpu; ld.weak r3, x"}},
       "r0=1 r1=0 r2=1 r3=0",
       true},
      {"WRC1",
       kMemalloy,
       {{0, "st.weak x, 1"},
        {1, "ld.weak r0, x; fence.sc.cta; st.weak y, 1"},
        {1, "ld.weak r1, y; fence.sc.gpu; ld.weak r2, x"}},
       "r0=1 r1=1 r2=0",
       true},
      {"RWC1",
       kMemalloy,
       {{0, "st.weak x, 1"},
        {1, "ld.weak r0, x; fence.sc.cta; ld.weak r1, y"},
        {1, "st.weak y, 1; fence.sc.gpu; ld.weak r2, x"}},
       "r0=1 r1=0 r2=0",
       true},
      {"WRR+2W1",
       kMemalloy,
       {{0, "st.weak x, 2"},
        {1, "ld.weak r0, x; fence.sc.cta; ld.weak r1, y"},
        {1, "st.weak x, 1; fence.sc.gpu; st.weak y, 1"}},
       "x=2 r0=2 r1=0",
       true},
  };
  return tests;
}

}  // namespace

TEST_CASE("published litmus tests have their published verdicts") {
  for (const Published& test : published()) {
    INFO(test.name << ", " << test.source);
    const Allowed outcomes = allowed(program_of(test));
    CHECK_FALSE(outcomes.empty());
    CHECK(happens(test, outcomes) == test.is_allowed);
  }
}

TEST_CASE("each axiom forbids a published outcome that the others allow") {
  const auto needed = [](Axiom axiom) {
    std::vector<std::string> names;
    for (const Published& test : published()) {
      if (!test.is_allowed && happens(test, allowed(program_of(test), axiom))) {
        names.push_back(test.name);
      }
    }
    return names;
  };
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::ranges::find(names, name) != names.end();
  };
  CHECK(has(needed(Axiom::Coherence), "CoRW"));
  CHECK(has(needed(Axiom::ScPerLocation), "Atomicity 1"));
  CHECK(has(needed(Axiom::Causality), "MP"));
  CHECK(needed(Axiom::None).empty());
}
