// tests/emulator/observer_test.cpp - launches observed instruction by instruction
#include <catch2/catch.hpp>

#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>

#include "kernel_generator.hpp"
#include "ptxgen/emulator/observer.hpp"
#include "ptxgen/emulator/report/profile.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using emulator::LaneGroup;
using emulator::Moment;
using emulator::RegisterLanes;

/// Calls a function for every moment.
template <class Fn>
class Watch : public emulator::Observer {
 public:
  explicit Watch(Fn fn) : fn_(fn) {}
  bool before(const Moment& moment) override {
    ++count;
    if constexpr (std::is_same_v<decltype(fn_(moment)), bool>) {
      return fn_(moment);
    } else {
      fn_(moment);
      return true;
    }
  }
  std::uint64_t count = 0;

 private:
  Fn fn_;
};

/// A kernel `k(.param .u64 p)` on a device of its own; %p is the address of 256 zeros.
struct Observed {
  explicit Observed(std::string_view body, std::string_view before = {})
      : device(emulator::gpu_named("sm_80")),
        program(emulator::Program::load(
            device,
            ".version 8.0\n.target sm_80\n.address_size 64\n" + std::string(before) +
                ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %p;\nld.param.u64 %p, [p];\n" +
                std::string(body) + "\n}\n",
            "k.ptx")),
        buffer(device.allocate(1024, "p")) {
    device.fill(buffer, std::byte{0}, 1024);
    launch.kernel = "k";
    launch.grid = {1, 1, 1};
    launch.block = {32, 1, 1};
    launch.parameters = std::as_bytes(std::span(&buffer, 1));
  }
  template <class Fn>
  std::uint64_t watch(Fn fn, const emulator::Options& options = {}) {
    Watch observer(fn);
    result = emulator::observe(program, launch, observer, options);
    return observer.count;
  }
  std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> all(256);
    device.read(buffer, std::as_writable_bytes(std::span(all)));
    return all;
  }
  /// The PTX line of the first statement whose text begins so.
  std::uint32_t line_of(std::string_view opcode, std::size_t number = 0) const {
    for (const ptx::Instruction& statement : program.module().functions.back().body) {
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      if (ptx::info(statement.op).mnemonic == opcode && number-- == 0) return statement.line;
    }
    return 0;
  }

  emulator::Device device;
  emulator::Program program;
  std::uint64_t buffer;
  emulator::Launch launch;
  emulator::Result result;
};

/// Odd threads take a branch; all meet at a barrier; thread i stores 10 + i, twice if it is odd.
constexpr std::string_view kDiverging = R"(
.reg .pred %q; .reg .b32 %r<6>; .reg .b64 %rd<3>;
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 1;
setp.ne.u32 %q, %r2, 0;
add.u32 %r3, %r1, 10;
@%q bra ODD;
mov.u32 %r4, 1;
bra BOTH;
ODD: mov.u32 %r4, 2;
BOTH: bar.sync 0;
mul.lo.u32 %r3, %r3, %r4;
mul.wide.u32 %rd1, %r1, 4;
add.u64 %rd2, %p, %rd1;
@%q st.global.u32 [%rd2], %r3;
ret;)";

/// Every line, block, warp and mask of a launch.
std::string trace_of(const emulator::Options& options) {
  Observed k(kDiverging);
  k.launch.grid = {3, 1, 1};
  k.launch.block = {96, 1, 1};
  std::string text;
  k.watch(
      [&](const Moment& m) {
        text += std::to_string(m.block_number()) + '/' + std::to_string(m.warp()) + ' ' +
                std::to_string(m.line()) + ' ' + std::to_string(m.active()) + ' ' +
                std::to_string(m.executing()) + '\n';
      },
      options);
  return text;
}

struct LineCount {
  std::uint64_t executions = 0, threads = 0, on = 0;
  friend bool operator==(const LineCount&, const LineCount&) = default;
};

}  // namespace

TEST_CASE("an observer sees lines, masks and registers before each instruction") {
  Observed k(kDiverging);
  const std::uint32_t branch = k.line_of("bra");
  const std::uint32_t store = k.line_of("st");
  const std::uint32_t barrier = k.line_of("bar");
  std::vector<std::uint32_t> lines;
  RegisterLanes odd, sum, factor, before_write, address;
  std::uint32_t store_executing = 0;
  std::vector<std::uint32_t> barrier_masks;
  const std::uint64_t count = k.watch([&](const Moment& m) {
    CHECK(m.number() == lines.size());
    lines.push_back(m.line());
    CHECK(m.block() == emulator::Dim3{0, 0, 0});
    CHECK(m.module().text(m.function().name) == "k");
    if (m.line() == branch) {
      odd = m.register_lanes("%q");
      sum = m.register_lanes("%r3");
      CHECK(m.active() == 0xffffffffu);
      CHECK(m.executing() == 0xaaaaaaaau);
    }
    if (m.line() == branch - 1) before_write = m.register_lanes("%r3");
    if (m.line() == barrier) barrier_masks.push_back(m.active());
    if (m.line() == store) {
      store_executing = m.executing();
      factor = m.register_lanes("%r3");
      address = m.register_lanes("%rd2");
    }
  });
  REQUIRE(k.result.status == emulator::Status::Ok);
  CHECK(count == k.result.counters.warp_instructions);
  CHECK(count == lines.size());
  CHECK(store_executing == 0xaaaaaaaau);
  CHECK(before_write.known == 0);
  CHECK(odd.type == ptx::Type::pred);
  CHECK(address.type == ptx::Type::b64);
  REQUIRE(sum.known == 0xffffffffu);
  REQUIRE(factor.known == 0xffffffffu);
  for (unsigned lane = 0; lane < 32; ++lane) {
    CHECK(odd.low[lane] == lane % 2);
    CHECK(sum.low[lane] == lane + 10);
    CHECK(factor.low[lane] == (lane + 10) * (lane % 2 + 1));
    CHECK(address.low[lane] == k.buffer + 4 * std::uint64_t{lane});
  }
  // One half comes first and waits for the other: the last attempt has all lanes.
  REQUIRE(!barrier_masks.empty());
  CHECK(barrier_masks.back() == 0xffffffffu);
  CHECK(k.words()[3] == 26);
  CHECK(k.words()[2] == 0);
}

TEST_CASE("an observer sees 64-bit, float and vector registers, and what was never written") {
  Observed k(R"(
.reg .b32 %r<9>; .reg .f32 %f1; .reg .f64 %d1; .reg .v4 .b32 %v; .reg .pred %s;
mov.u32 %r1, %tid.x;
setp.lt.u32 %s, %r1, 8;
cvt.rn.f32.u32 %f1, %r1;
cvt.rn.f64.u32 %d1, %r1;
@%s add.u32 %r2, %r1, 100;
mov.u32 %v.x, 1; mov.u32 %v.y, 2; mov.u32 %v.z, 3; mov.u32 %v.w, %r1;
st.global.u32 [%p], %r1;
@%s st.global.u32 [%p+4], %r2;
st.global.f32 [%p+8], %f1;
st.global.f64 [%p+16], %d1;
st.global.v4.u32 [%p+32], %v;
ret;)");
  const std::uint32_t store = k.line_of("st");
  bool seen = false;
  k.watch([&](const Moment& m) {
    if (m.line() != store) return;
    seen = true;
    const RegisterLanes f = m.register_lanes("%f1");
    const RegisterLanes d = m.register_lanes("%d1");
    const RegisterLanes guarded = m.register_lanes("%r2");
    const RegisterLanes w = m.register_lanes("%v.w");
    CHECK(f.type == ptx::Type::f32);
    CHECK(std::bit_cast<float>(static_cast<std::uint32_t>(f.low[5])) == 5.0f);
    CHECK(std::bit_cast<double>(d.low[31]) == 31.0);
    CHECK(guarded.known == 0xffu);
    CHECK(guarded.low[7] == 107);
    CHECK(w.known == 0xffffffffu);
    CHECK(w.low[9] == 9);
    CHECK(m.register_lanes("%v.z").low[0] == 3);
    CHECK(m.register_lanes("%v").type == ptx::Type::none);
    CHECK(m.register_lanes("%r8").type == ptx::Type::none);
    CHECK(m.register_lanes("r1").known == 0);
    CHECK(m.register_lanes("").known == 0);
  });
  CHECK(seen);
}

TEST_CASE("an observer sees the shared memory of the block, and which bytes were written") {
  Observed k(R"(
.shared .align 4 .b32 pad[4];
.shared .align 4 .b32 tile[32];
.reg .b32 %r<4>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mad.lo.u32 %r2, %r1, 4, %r2;
st.shared.u32 [%r2], %r1;
bar.sync 0;
ld.shared.u32 %r3, [tile+124];
st.global.u32 [%p], %r3;
ret;)");
  const std::uint32_t store = k.line_of("st");
  bool seen_before = false;
  bool seen_after = false;
  k.watch([&](const Moment& m) {
    const emulator::Device::Extent tile = m.shared_variable("tile");
    REQUIRE(tile.bytes == 128);
    REQUIRE(m.shared().size() >= tile.start + tile.bytes);
    CHECK(m.shared_variable("none").bytes == 0);
    if (m.line() == store) {
      seen_before = true;
      CHECK_FALSE(m.shared_written(tile.start, 4));
    }
    if (m.line() == k.line_of("ld", 1)) {
      seen_after = true;
      CHECK(m.shared_written(tile.start, tile.bytes));
      CHECK_FALSE(m.shared_written(m.shared_variable("pad").start, 4));
      CHECK_FALSE(m.shared_written(m.shared().size(), 1));
      CHECK_FALSE(m.shared_written(~std::uint64_t{0}, 8));
      std::uint32_t word = 0;
      std::memcpy(&word, m.shared().data() + tile.start + 40, sizeof word);
      CHECK(word == 10);
    }
  });
  CHECK(seen_before);
  CHECK(seen_after);
}

TEST_CASE("an observer sees where the other warps of the block are") {
  Observed k(R"(
.reg .pred %q; .reg .b32 %r1;
mov.u32 %r1, %tid.x;
setp.lt.u32 %q, %r1, 40;
@%q exit;
bar.sync 0, 64;
ret;)");
  k.launch.block = {96, 1, 1};
  std::vector<emulator::WarpState> last;
  emulator::Options options;
  options.checks = emulator::RuleSet();
  k.watch([&](const Moment& m) { last = m.warps(); }, options);
  REQUIRE(last.size() == 3);
  CHECK(last[0].exited == 0xffffffffu);
  CHECK(last[0].groups.empty());
  CHECK(last[1].exited == 0xffu);
  const std::uint32_t barrier = k.line_of("bar");
  Observed same(R"(
.reg .b32 %r1;
mov.u32 %r1, %tid.x;
bar.sync 3;
ret;)");
  same.launch.block = {96, 1, 1};
  bool seen = false;
  same.watch([&](const Moment& m) {
    if (m.warp() != 2 || m.line() != same.line_of("bar")) return;
    seen = true;
    const std::vector<emulator::WarpState> warps = m.warps();
    CHECK(warps[0].groups ==
          std::vector<LaneGroup>{{LaneGroup::State::Barrier, 0xffffffffu, m.line(), 3, 0}});
    CHECK(warps[2].groups ==
          std::vector<LaneGroup>{{LaneGroup::State::Running, 0xffffffffu, m.line(), 0, 0}});
    CHECK(warps[0].instructions == 3);
  });
  CHECK(seen);
  CHECK(barrier != 0);
}

TEST_CASE("an observer sees calls, and registers of the function that runs") {
  Observed k(R"(
.reg .b32 %a; .reg .b32 %x;
mov.u32 %a, %tid.x;
{ .param .b32 in; .param .b32 out;
st.param.b32 [in], %a;
call (out), twice, (in);
ld.param.b32 %x, [out]; }
st.global.u32 [%p], %x;
ret;)",
             R"(.func (.param .b32 result) twice(.param .b32 value)
{ .reg .b32 %x;
ld.param.b32 %x, [value];
add.u32 %x, %x, %x;
st.param.b32 [result], %x;
ret; }
)");
  std::map<std::string, std::uint64_t> calls;
  RegisterLanes inner;
  k.watch([&](const Moment& m) {
    const std::string name(m.module().text(m.function().name));
    ++calls[name];
    CHECK(m.call_depth() == (name == "twice" ? 1u : 0u));
    if (ptx::info(m.instruction().op).mnemonic == "ret" && name == "twice") return;
    if (ptx::info(m.instruction().op).mnemonic == "st" && name == "twice") {
      inner = m.register_lanes("%x");
      CHECK(m.register_lanes("%a").type == ptx::Type::none);
    }
  });
  CHECK(calls["twice"] == 4);
  CHECK(inner.low[6] == 12);
  CHECK(k.words()[0] == 62);
}

TEST_CASE("an observer stops a launch before an instruction") {
  for (const std::uint32_t blocks : {1u, 4u}) {
    Observed k(kDiverging);
    k.launch.grid = {blocks, 1, 1};
    const std::uint32_t store = k.line_of("st");
    const std::uint64_t count = k.watch([&](const Moment& m) { return m.line() != store; });
    CHECK(k.result.status == emulator::Status::Ok);
    CHECK(k.words()[3] == 0);
    CHECK(count > 10);
    CHECK(count < 25);
  }
  Observed k(kDiverging);
  CHECK(k.watch([](const Moment&) { return false; }) == 1);
}

TEST_CASE("an exception of an observer leaves the launch") {
  Observed k(kDiverging);
  CHECK_THROWS_WITH(k.watch([](const Moment& m) {
    if (m.number() == 5) throw std::runtime_error("enough");
  }),
                    "enough");
  // Device and program can be used again.
  CHECK(k.watch([](const Moment&) {}) > 5);
  CHECK(k.words()[3] == 26);
}

TEST_CASE("an observer sees findings as they are made") {
  Observed k(R"(
.reg .b32 %r<3>;
mov.u32 %r1, 1;
st.global.u32 [%p+2000], %r1;
mov.u32 %r2, 2;
st.global.u32 [%p+4000], %r2;
ret;)");
  std::vector<std::size_t> counts;
  std::vector<std::uint32_t> lines;
  k.watch([&](const Moment& m) {
    counts.push_back(m.finding_count());
    if (m.finding_count() != 0) lines.push_back(m.last_finding().finding.line);
  });
  CHECK(counts == std::vector<std::size_t>{0, 0, 0, 1, 1, 2});
  CHECK(lines == std::vector<std::uint32_t>{k.line_of("st"), k.line_of("st"), k.line_of("st", 1)});
  CHECK(k.result.findings.size() == 2);

  emulator::Options options;
  options.suppressions.push_back(
      emulator::parse_suppression(std::string(emulator::info(k.result.findings[0].rule).name) +
                                  ":k:" + std::to_string(k.line_of("st"))));
  std::size_t last = 9;
  k.watch([&](const Moment& m) { last = m.finding_count(); }, options);
  CHECK(last == 1);
}

TEST_CASE("equal launches give equal moments, another seed another order of the same") {
  const std::string first = trace_of({});
  CHECK(first == trace_of({}));
  emulator::Options many;
  many.threads = 8;
  many.parallel = true;
  CHECK(first == trace_of(many));
  emulator::Options other;
  other.seed = 3;
  CHECK(first != trace_of(other));
  CHECK(trace_of(other) == trace_of(other));
}

TEST_CASE("an observer changes no result: random kernels") {
  const int kernels = count(60, 600);
  std::uint64_t moments = 0;
  for (int i = 0; i < kernels; ++i) {
    const RandomKernel kernel = random_kernel(seed() + static_cast<std::uint64_t>(i),
                                              i % 3 == 0 ? RaceKind::Shared : RaceKind::None);
    emulator::Device device(emulator::gpu_named("sm_80"));
    emulator::Program program = emulator::Program::load(device, kernel.ptx, "random.ptx");
    const std::uint64_t threads = kernel.grid.count() * kernel.block.count();
    const std::uint64_t bytes[] = {4 * kInputWords, 4 * kOutputWords * threads, 4 * kSumWords};
    std::uint64_t parameters[3];
    for (std::size_t p = 0; p < 3; ++p) parameters[p] = device.allocate(bytes[p]);
    emulator::Launch launch;
    launch.kernel = program.kernels()[0].name;
    launch.grid = kernel.grid;
    launch.block = kernel.block;
    launch.parameters = std::as_bytes(std::span(parameters));
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(i) % 4;
    options.threads = 1;
    const auto reset = [&] {
      std::vector<std::uint32_t> words(kInputWords);
      for (std::uint32_t w = 0; w < kInputWords; ++w) words[w] = w * 2654435761u;
      device.write(parameters[0], std::as_bytes(std::span(words)));
      for (std::size_t p = 1; p < 3; ++p) device.fill(parameters[p], std::byte{0}, bytes[p]);
    };
    const auto outputs = [&] {
      std::vector<std::byte> all(bytes[1] + bytes[2]);
      device.read(parameters[1], std::span(all).first(bytes[1]));
      device.read(parameters[2], std::span(all).subspan(bytes[1]));
      return all;
    };
    const auto findings = [](const emulator::Result& result) {
      std::string text;
      for (const emulator::RunFinding& finding : result.findings) text += to_text(finding) + '\n';
      return text;
    };
    reset();
    const emulator::Result plain = emulator::run(program, launch, options);
    const std::vector<std::byte> expected = outputs();
    reset();
    std::map<std::uint32_t, LineCount> lines;
    Watch observer([&](const Moment& m) {
      LineCount& line = lines[m.line()];
      ++line.executions;
      line.threads += static_cast<std::uint64_t>(std::popcount(m.active()));
      line.on += static_cast<std::uint64_t>(std::popcount(m.executing()));
    });
    const emulator::Result observed = emulator::observe(program, launch, observer, options);
    INFO("kernel " << i);
    CHECK(outputs() == expected);
    CHECK(findings(observed) == findings(plain));
    CHECK(to_text(observed.counters) == to_text(plain.counters));
    CHECK(observer.count == plain.counters.warp_instructions);
    std::map<std::uint32_t, LineCount> counted;
    for (const emulator::LineCounters& line : plain.counters.lines) {
      if (line.executions == 0) continue;
      LineCount& sum = counted[line.line];
      sum.executions += line.executions;
      sum.threads += line.thread_executions;
      sum.on += line.predicated_on;
    }
    CHECK(lines == counted);
    moments += observer.count;
  }
  CHECK(moments > 1000);
}

TEST_CASE("a launch that a driver would refuse is refused with an observer too") {
  Observed k(kDiverging);
  k.launch.block = {2048, 1, 1};
  CHECK_THROWS_AS(k.watch([](const Moment&) {}), Error);
}

}  // namespace ptxgen::test
