// tests/analysis/memory_random_test.cpp - random affine kernels against the emulator's counters
#include <catch2/catch.hpp>
#include <initializer_list>
#include <random>

#include "memory_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using test::MemoryRun;

namespace {

// A kernel of a loop with accesses to global, shared and local memory, and copies between the first
// two, at addresses made of random pieces, after random guards.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  MemoryRun make() {
    MemoryRun run;
    run.block = pick<std::array<std::uint32_t, 3>>({{32, 1, 1},
                                                    {64, 1, 1},
                                                    {40, 1, 1},
                                                    {7, 1, 1},
                                                    {16, 4, 1},
                                                    {8, 8, 1},
                                                    {5, 6, 2},
                                                    {33, 2, 1}});
    run.grid = {1 + below(3), 1 + below(2), 1};
    run.values = {{"n", below(90)}, {"s", 1 + below(6)}, {"t", below(5)}};
    run.buffer_bytes = 1 << 21;
    run.ptx = head();
    line("mov.u32 %r10, 0;");
    const bool loop = below(2) == 0;
    const std::uint32_t step = 1 + below(3);
    if (loop) {
      // Rounds that all lanes, or only some, make.
      const std::uint32_t kind = below(4);
      if (kind == 0) line("mov.u32 %r11, " + number(1 + below(5)) + ";");
      if (kind == 1) line("mov.u32 %r11, %r7;");
      if (kind == 2) line("and.b32 %r11, %r0, 3;");
      if (kind == 3) line("min.u32 %r11, %r0, 4;");
      line("L:");
      // A number that is no multiple of the rounds.
      line("mad.lo.u32 %r12, %r12, 5, %r6;\n  and.b32 %r12, %r12, 31;");
      if (below(2) == 0)
        line("setp.ge.u32 %p9, %r10, %r11;\n@%p9 bra E;");
      else
        bottom_tested_ = true;
    }
    const std::uint32_t accesses = 1 + below(4);
    for (std::uint32_t i = 0; i < accesses; ++i) access(i);
    if (loop) {
      line("add.u32 %r10, %r10, " + number(step) + ";");
      line(bottom_tested_ ? "setp.lt.u32 %p9, %r10, %r11;\n@%p9 bra L;" : "bra L;");
      line("E:");
      if (below(2) == 0) access(9);
    }
    run.ptx += text_ + "  ret;\n}\n";
    return run;
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return *(of.begin() + below(static_cast<std::uint32_t>(of.size())));
  }
  static std::string number(std::uint32_t value) { return std::to_string(value); }
  void line(const std::string& text) { text_ += "  " + text + '\n'; }

  static std::string head() {
    return R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n, .param .u32 s, .param .u32 t)
{
  .reg .pred %p<20>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<20>;
  .shared .align 16 .b8 tile[65536];
  .local .align 16 .b8 own[1024];
  ld.param.u64 %rd0, [a];
  ld.param.u64 %rd1, [b];
  ld.param.u32 %r5, [n];
  ld.param.u32 %r6, [s];
  ld.param.u32 %r7, [t];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %laneid;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r8, %r2, %r4, %r0;
  mov.u32 %r12, 0;
  mov.u32 %r30, 0;
)";
  }

  // An element's number into %r20: at most some 3000.
  void element() {
    line("mul.lo.u32 %r20, %r0, " + number(pick<std::uint32_t>({0, 1, 1, 1, 2, 3, 8, 33})) + ";");
    const auto add = [&](const char* what, std::initializer_list<std::uint32_t> of) {
      const std::uint32_t factor = pick(of);
      if (factor == 0) return;
      if (below(3) == 0) {
        line(std::string("mul.lo.s32 %r21, ") + what + ", " + number(factor) + ";");
        line("add.s32 %r20, %r20, %r21;");
      } else {
        line(std::string("mad.lo.u32 %r20, ") + what + ", " + number(factor) + ", %r20;");
      }
    };
    add("%r1", {0, 0, 1, 16, 32, 33});
    add("%r2", {0, 0, 32, 64, 7});
    add("%r10", {0, 1, 8, 40});
    add("%r7", {0, 0, 3});
    switch (below(11)) {
      case 9:
        line("shr.u32 %r21, %r12, 1;\n  mad.lo.u32 %r20, %r21, 9, %r20;");
        break;
      case 8:
        line("shr.u32 %r21, %r0, 5;\n  mad.lo.u32 %r20, %r21, %r6, %r20;");
        break;
      case 0:
        line("and.b32 %r21, %r0, 7;\n  mad.lo.u32 %r20, %r21, 5, %r20;");
        break;
      case 1:
        line("shr.u32 %r21, %r0, 2;\n  mad.lo.u32 %r20, %r21, 4, %r20;");
        break;
      case 2:
        line("mad.lo.u32 %r20, %r6, %r0, %r20;");
        break;
      case 3:
        line("xor.b32 %r20, %r20, 5;");
        break;
      case 4:
        line("xor.b32 %r21, %r10, %r3;\n  add.u32 %r20, %r20, %r21;");
        break;
      case 5:
        line("rem.u32 %r21, %r0, 6;\n  add.u32 %r20, %r20, %r21;");
        break;
      case 6:
        line("setp.lt.u32 %p8, %r7, 2;\n  selp.b32 %r21, 4, 12, %p8;\n  add.u32 %r20, %r20, %r21;");
        break;
      case 7:
        line("setp.lt.u32 %p8, %r3, 9;\n  @%p8 add.u32 %r20, %r20, 16;");
        break;
      default:
        break;
    }
  }

  void access(std::uint32_t number_of) {
    const std::string skip = "S" + number(number_of);
    bool branched = false;
    std::string guard;
    switch (below(6)) {
      case 0:
        line("setp.lt.u32 %p1, %r8, %r5;");
        guard = "@%p1 ";
        break;
      case 1:
        line("setp.gt.u32 %p1, %r3, 11;");
        guard = "@!%p1 ";
        break;
      case 2:
        line("setp.ge.u32 %p1, %r8, %r5;");
        line("@%p1 bra " + skip + ";");
        branched = true;
        break;
      case 3:
        line("setp.lt.u32 %p2, %r7, 3;\n  setp.lt.u32.and %p1, %r0, 20, %p2;");
        guard = "@%p1 ";
        break;
      default:
        break;
    }
    element();
    const std::uint32_t kind = below(8);
    if (kind == 0) {
      copy(guard);
    } else if (kind == 1) {
      bulk_copy(guard);
    } else {
      load_or_store(guard);
    }
    if (branched) line(skip + ":");
  }

  // From an element to another one.
  void copy(const std::string& guard) {
    const std::uint32_t bytes = pick<std::uint32_t>({4, 8, 16});
    line("mul.wide.u32 %rd5, %r20, " + number(bytes) + ";\n  add.u64 %rd5, %rd5, %rd0;");
    if (below(2) == 0) element();
    line("mov.u32 %r25, tile;\n  mad.lo.u32 %r25, %r20, " + number(bytes) + ", %r25;");
    std::string source;
    switch (below(7)) {
      case 0:
        source = ", " + number(below(bytes + 1));
        break;
      case 1:
        source = ", %r7";
        break;
      case 2:
        line("and.b32 %r26, %r8, 15;");
        source = ", %r26";
        break;
      case 3:
        line("setp.lt.u32 %p3, %r3, %r5;");
        source = below(2) == 0 ? ", %p3" : ", !%p3";
        break;
      default:
        break;
    }
    line(guard + (bytes == 16 && below(2) == 0 ? "cp.async.cg" : "cp.async.ca") +
         ".shared.global [%r25], [%rd5+" + number(bytes * below(3)) + "], " + number(bytes) +
         source + ";");
  }

  // To an element, from where does not matter.
  void bulk_copy(const std::string& guard) {
    line("mul.wide.u32 %rd5, %r20, 16;\n  add.u64 %rd5, %rd5, %rd1;\n  mov.u32 %r25, tile;");
    std::string size = number(16 * below(9));
    if (below(3) == 0) {
      line(below(2) == 0 ? "shl.b32 %r26, %r7, 4;" : "and.b32 %r26, %r0, 48;");
      size = "%r26";
    }
    line(guard + "cp.async.bulk.global.shared::cta.bulk_group [%rd5+" + number(16 * below(3)) +
         "], [%r25], " + size + ";");
  }

  void load_or_store(const std::string& guard) {
    struct Shape {
      const char* type;
      const char* values;
      std::uint32_t bytes;
    };
    const Shape shape = pick<Shape>({{"u8", "%r30", 1},
                                     {"u16", "%h", 2},
                                     {"u32", "%r30", 4},
                                     {"u32", "%r30", 4},
                                     {"u64", "%rd9", 8},
                                     {"v2.u32", "{%r30, %r31}", 8},
                                     {"v4.u8", "{%r30, %r31, %r32, %r33}", 4},
                                     {"v4.u32", "{%r30, %r31, %r32, %r33}", 16},
                                     {"v2.u64", "{%rd9, %rd10}", 16}});
    std::string values = shape.values;
    if (values == "%h") values = "%r30";
    const std::string bytes = number(shape.bytes);
    const bool load = below(2) == 0;
    const std::string offset = number(shape.bytes * below(3));
    std::string space, address;
    switch (below(5)) {
      case 0:
      case 1:
      case 2:
        space = "global";
        address = "%rd5";
        line(std::string("mad.wide.u32 %rd5, %r20, ") + bytes +
             (below(2) == 0 ? ", %rd0;" : ", %rd1;"));
        if (below(3) == 0) line("cvta.to.global.u64 %rd5, %rd5;");
        break;
      case 3:
        space = "shared";
        address = "%r25";
        line("mov.u32 %r25, tile;\n  mad.lo.u32 %r25, %r20, " + bytes + ", %r25;");
        break;
      default:
        space = "local";
        address = "%r25";
        line("and.b32 %r20, %r20, 31;\n  mov.u32 %r25, own;\n  mad.lo.u32 %r25, %r20, " + bytes +
             ", %r25;");
    }
    const std::string place = "[" + address + "+" + offset + "]";
    line(guard + (load ? "ld." : "st.") + space + "." + shape.type + " " +
         (load ? values + ", " + place : place + ", " + values) + ";");
  }

  std::mt19937_64 random_;
  std::string text_;
  bool bottom_tested_ = false;
};

}  // namespace

TEST_CASE("memory report: random affine kernels as the emulator counts them") {
  const int cases = test::count(400, 8000);
  std::size_t exact = 0, inexact = 0, affine = 0, all = 0;
  std::size_t lanes = 0, bulk = 0;  // copies that are affine
  std::uint64_t requests = 0;
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t seed = test::seed() + static_cast<std::uint64_t>(i) * 7919;
    const MemoryRun run = Generator(seed).make();
    INFO("seed " << seed << "\n" << run.ptx);
    const test::MemoryComparison compared = test::compare(run);
    CHECK(compared.differences == "");
    CHECK(compared.affine_inexact == 0);
    exact += compared.exact;
    inexact += compared.inexact.size();
    requests += compared.requests;
    for (const auto& access : compared.report.accesses) {
      ++all;
      affine += access.affine() ? 1 : 0;
      lanes += access.affine() && access.copy == analysis::CopyKind::Lanes ? 1 : 0;
      bulk += access.affine() && access.copy == analysis::CopyKind::Bulk ? 1 : 0;
    }
  }
  WARN("memory report: " << cases << " random kernels, " << exact << " of " << all
                         << " accesses exact (" << affine << " called affine, " << lanes
                         << " of them of cp.async, " << bulk << " bulk copies), " << requests
                         << " requests equal");
  CHECK(inexact == 0);
  CHECK(affine * 10 > all * 5);
  CHECK(lanes * 20 > all);
  CHECK(bulk * 20 > all);
}
