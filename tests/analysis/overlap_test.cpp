// tests/analysis/overlap_test.cpp - overlaps of threads' accesses against trying all of them
#include "ptxgen/analysis/overlap.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "analysis/affine_values.hpp"
#include "analysis/facts.hpp"
#include "snippets.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;

namespace {

struct Case {
  ptx::Module module;
  std::unique_ptr<Facts> facts;
  std::vector<std::uint32_t> accesses;  // statements that store to shared memory
  explicit Case(const std::string& body, const std::string& head)
      : module(test::kernel(body, head)) {
    facts = std::make_unique<Facts>(module, module.functions[0]);
    for (std::uint32_t i = 0; i < module.functions[0].body.size(); ++i)
      if (module.functions[0].body[i].is(ptx::Op::st)) accesses.push_back(i);
  }
  [[nodiscard]] ThreadAccess access(std::size_t n) {
    const ptx::Function& function = module.functions[0];
    const ptx::Instruction& s = function.body[accesses[n]];
    ThreadAccess result;
    result.address = facts->affine().of(accesses[n], function.operands_of(s)[0]);
    const unsigned elements = s.get(ptx::Field::Vector) == ptx::Modifier::v2   ? 2
                              : s.get(ptx::Field::Vector) == ptx::Modifier::v4 ? 4
                                                                               : 1;
    result.bytes = ptx::bytes(s.type()) * elements;
    if (s.guard.present()) result.conditions.push_back(facts->affine().guard(accesses[n]));
    return result;
  }
  [[nodiscard]] OverlapAnswer ask(std::size_t a, std::size_t b, const OverlapQuestion& question) {
    return may_overlap(facts->affine(), access(a), access(b), question);
  }
};

std::string name(const OverlapAnswer& answer) {
  const auto thread = [](const std::array<std::uint32_t, 3>& t) {
    return std::to_string(t[0]) + ',' + std::to_string(t[1]) + ',' + std::to_string(t[2]);
  };
  switch (answer.kind) {
    case Overlap::Never:
      return "never";
    case Overlap::Unknown:
      return "unknown";
    case Overlap::Possible:
      break;
  }
  return "possible " + thread(answer.first) + " " + thread(answer.second);
}

std::string asked(const std::string& body, const std::string& head = ".reqntid 64, 1, 1",
                  bool no_wrap = false) {
  Case one("mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; ld.param.u32 %r3, [n]; mov.u32 %r9, tile;\n" +
               body + "\nret;\n",
           head);
  REQUIRE_FALSE(one.accesses.empty());
  OverlapQuestion question;
  question.block = one.facts->affine().block();
  question.no_wrap = no_wrap;
  return name(one.ask(0, one.accesses.size() - 1, question));
}

}  // namespace

TEST_CASE("overlap: what is known by the thread's index alone") {
  const std::string own = "mad.lo.u32 %r10, %r1, 4, %r9; st.shared.u32 [%r10], 0;";
  CHECK(asked(own) == "never");
  CHECK(asked("add.u32 %r10, %r1, %r9; st.shared.u32 [%r10], 0;") == "possible 0,0,0 1,0,0");
  CHECK(asked(own + "st.shared.u32 [%r10+4], 0;") == "possible 1,0,0 0,0,0");
  CHECK(asked("mad.lo.u32 %r10, %r1, 4, %r9; st.shared.u32 [%r10], 0;"
              "st.shared.v2.u32 [%r10], {0, 0};") == "possible 1,0,0 0,0,0");
  CHECK(asked("mad.lo.u32 %r10, %r1, 8, %r9; st.shared.u32 [%r10], 0;"
              "st.shared.v2.u32 [%r10], {0, 0};") == "never");
  // Threads of a second row have the same %tid.x.
  CHECK(asked(own, ".reqntid 64, 2, 1") == "possible 0,0,0 0,1,0");
  CHECK(
      asked("mad.lo.u32 %r4, %r2, 64, %r1; mad.lo.u32 %r10, %r4, 4, %r9; st.shared.u32 [%r10], 0;",
            ".reqntid 64, 2, 1") == "never");
  // Where the shape is only bounded nothing is shown to happen.
  CHECK(asked(own, ".maxntid 64, 1, 1") == "never");
  CHECK(asked(own + "st.shared.u32 [%r10+4], 0;", ".maxntid 64, 1, 1") == "unknown");
  CHECK(asked(own, "") == "unknown");
  // One thread alone.
  CHECK(asked("st.shared.u32 [%r9], 0;") == "possible 0,0,0 1,0,0");
  CHECK(asked("setp.eq.u32 %p1, %r1, 3; @%p1 st.shared.u32 [%r9], 0;") == "never");
  CHECK(asked("setp.gt.u32 %p1, %r1, 61; @%p1 st.shared.u32 [%r9], 0;") ==
        "possible 62,0,0 63,0,0");
  CHECK(asked("setp.gt.u32 %p1, %r1, %r3; @%p1 st.shared.u32 [%r9], 0;") == "unknown");
  CHECK(asked("setp.gt.u32 %p1, %r1, 80; @%p1 st.shared.u32 [%r9], 0;") == "never");
  // Swizzled columns.
  CHECK(asked("xor.b32 %r4, %r1, 21; mad.lo.u32 %r10, %r4, 4, %r9; st.shared.u32 [%r10], 0;") ==
        "never");
  CHECK(asked("and.b32 %r4, %r1, 31; mad.lo.u32 %r10, %r4, 4, %r9; st.shared.u32 [%r10], 0;") ==
        "possible 0,0,0 32,0,0");
}

TEST_CASE("overlap: what is not known but the same for all threads cancels") {
  CHECK(
      asked(
          "mad.lo.u32 %r4, %r3, 4, %r9; mad.lo.u32 %r10, %r1, 4, %r4; st.shared.u32 [%r10], 0;") ==
      "never");
  CHECK(asked("mad.lo.u32 %r4, %r3, 4, %r9; mad.lo.u32 %r10, %r1, 4, %r4; st.shared.u32 [%r10], 0;"
              "mad.lo.u32 %r11, %r1, 4, %r9; st.shared.u32 [%r11], 0;") == "unknown");
  CHECK(asked("mad.lo.u32 %r4, %r3, 256, %r9; mad.lo.u32 %r10, %r1, 4, %r4;"
              "st.shared.u32 [%r10], 0; mad.lo.u32 %r11, %r1, 4, %r9; st.shared.u32 [%r11], 0;") ==
        "never");
  // Rows of n elements.
  CHECK(asked("mul.lo.u32 %r4, %r1, %r3; mad.lo.u32 %r10, %r4, 4, %r9; st.shared.u32 [%r10], 0;") ==
        "unknown");
  CHECK(asked("mul.lo.u32 %r4, %r2, %r3; add.u32 %r5, %r4, %r1; mad.lo.u32 %r10, %r5, 4, %r9;"
              "st.shared.u32 [%r10], 0; st.shared.u32 [%r10+4], 0;",
              ".reqntid 8, 8, 1") == "possible 1,0,0 0,0,0");
  // What is loaded may differ.
  CHECK(
      asked(
          "ld.global.u32 %r4, [counter]; mad.lo.u32 %r10, %r4, 4, %r9; st.shared.u32 [%r10], 0;") ==
      "unknown");
  CHECK(asked("ld.global.u32 %r4, [counter]; and.b32 %r4, %r4, 3; mad.lo.u32 %r5, %r1, 16, %r9;"
              "mad.lo.u32 %r10, %r4, 4, %r5; st.shared.u32 [%r10], 0;") == "never");
  CHECK(asked("ld.global.u32 %r4, [counter]; and.b32 %r4, %r4, 7; mad.lo.u32 %r5, %r1, 16, %r9;"
              "mad.lo.u32 %r10, %r4, 4, %r5; st.shared.u32 [%r10], 0;") == "unknown");
  // Rows of an unknown length that is a multiple of 64 bytes, begun 32 bytes apart.
  CHECK(asked("mul.lo.u32 %r4, %r2, %r3; mul.lo.u32 %r4, %r4, 64; mad.lo.u32 %r4, %r2, 32, %r4;"
              "mad.lo.u32 %r4, %r1, 4, %r4; add.u32 %r10, %r4, %r9; st.shared.u32 [%r10], 0;",
              ".reqntid 8, 2, 1") == "never");
  // Below the first element: far from the second access, unless it wrapped around.
  CHECK(asked("add.u32 %r4, %r1, -1; cvt.u64.u32 %rd1, %r9; mad.wide.u32 %rd2, %r4, 4, %rd1;"
              "st.shared.u32 [%rd2], 0; mad.wide.u32 %rd3, %r1, 4, %rd1;"
              "st.shared.u32 [%rd3+512], 0;") == "unknown");
  // A 64-bit address that may have wrapped before it was widened.
  CHECK(asked("cvt.u64.u32 %rd1, %r9; mad.wide.u32 %rd2, %r1, 4, %rd1; st.shared.u32 [%rd2], 0;") ==
        "never");
  CHECK(asked("add.u32 %r4, %r1, %r3; cvt.u64.u32 %rd1, %r9; mad.wide.u32 %rd2, %r4, 4, %rd1;"
              "st.shared.u32 [%rd2], 0;") == "unknown");
}

TEST_CASE("overlap: rounds of loops") {
  const std::string loop =
      "mov.u32 %r5, 0; mad.lo.u32 %r10, %r1, 4, %r9;\nL: st.shared.u32 [%r10], 0;\n"
      "add.u32 %r10, %r10, 256; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r3; @%p1 bra L;";
  CHECK(asked(loop) == "never");
  std::string shorter = loop;
  shorter.replace(shorter.find("256"), 3, "128");
  CHECK(asked(shorter) == "unknown");
  std::string padded = loop;
  padded.replace(padded.find("256"), 3, "260");
  CHECK(asked(padded) == "unknown");
  CHECK(asked(padded, ".reqntid 64, 1, 1", true) == "never");
  // In the same round.
  Case one(
      "mov.u32 %r1, %tid.x; mov.u32 %r9, tile; ld.param.u32 %r3, [n];\n" + shorter + "\nret;\n",
      ".reqntid 64, 1, 1");
  OverlapQuestion question;
  question.block = one.facts->affine().block();
  question.common_loop = 0;
  CHECK(name(one.ask(0, 0, question)) == "never");
}

// Two stores in a loop, at addresses made of random pieces; what the threads of a small block
// address is tried out for several n and rounds.
TEST_CASE("overlap: never and possible are as trying it says") {
  std::mt19937_64 random(test::seed());
  const auto pick = [&](std::initializer_list<int> of) {
    return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
  };
  struct Pieces {
    int x, y, n, nx, i, constant, mask, shift, bytes, guard;
  };
  int never = 0, possible = 0, unknown = 0;
  const int cases = test::count(1500, 20000);
  for (int round = 0; round < cases; ++round) {
    const int bx = pick({1, 3, 8, 16}), by = pick({1, 2, 4});
    const auto pieces = [&] {
      return Pieces{pick({0, 1, 2, 4, 4, 8, 12}), pick({0, 0, 4, 16, 32, 64, 68}),
                    pick({0, 0, 4, 64}),          pick({0, 0, 0, 4}),
                    pick({0, 0, 4, 64, 256}),     pick({0, 0, 4, 32, 64, 2}),
                    pick({0, 0, 3, 7}),           pick({0, 0, 1, 2}),
                    pick({1, 2, 4, 4, 8}),        pick({0, 0, 1, 5})};
    };
    const Pieces a = pieces();
    Pieces b = random() % 3 == 0 ? pieces() : a;
    if (random() % 2 == 0) b.constant = pick({0, 4, 16, 64, 128});
    const auto store = [&](const Pieces& p) {
      std::string text = "mul.lo.u32 %r10, %r1, " + std::to_string(p.x) + ";\n";
      const auto add = [&](const char* from, int factor) {
        if (factor != 0)
          text +=
              std::string("mad.lo.u32 %r10, ") + from + ", " + std::to_string(factor) + ", %r10;\n";
      };
      add("%r2", p.y);
      add("%r3", p.n);
      if (p.nx != 0) {
        text += "mul.lo.u32 %r11, %r3, %r1;\n";
        add("%r11", p.nx);
      }
      add("%r5", p.i);
      if (p.mask != 0) {
        text += "and.b32 %r11, %r1, " + std::to_string(p.mask) + ";\n";
        add("%r11", 4);
      }
      if (p.shift != 0) {
        text += "shr.u32 %r11, %r1, " + std::to_string(p.shift) + ";\n";
        add("%r11", 32);
      }
      if (p.guard != 0) text += "setp.lt.u32 %p2, %r1, " + std::to_string(p.guard) + ";\n@%p2 ";
      const char* type = p.bytes == 1 ? "u8" : p.bytes == 2 ? "u16" : p.bytes == 4 ? "u32" : "u64";
      text += std::string("st.shared.") + type + " [%r10+" + std::to_string(p.constant) + "], " +
              (p.bytes == 8   ? "%rd1"
               : p.bytes == 4 ? "%r1"
                              : "%h1") +
              ";\n";
      return text;
    };
    const std::string body =
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; ld.param.u32 %r3, [n]; mov.u32 %r5, 0;\nL:\n" +
        store(a) + store(b) + "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r3; @%p1 bra L;\nret;\n";
    Case one(body, ".reqntid " + std::to_string(bx) + ", " + std::to_string(by) + ", 1");
    OverlapQuestion question;
    question.block = one.facts->affine().block();
    const bool same_round = random() % 2 == 0;
    question.common_loop = same_round ? 0 : kNoNode;
    question.no_wrap = random() % 2 == 0;
    const OverlapAnswer answer = one.ask(0, 1, question);

    const auto address = [&](const Pieces& p, int x, int y, int n, int i) {
      return p.x * x + p.y * y + p.n * n + p.nx * n * x + p.i * i + 4 * (x & p.mask) +
             (p.shift == 0 ? 0 : 32 * (x >> p.shift)) + p.constant;
    };
    const auto makes = [&](const Pieces& p, int x) { return p.guard == 0 || x < p.guard; };
    const auto overlap = [&](int x, int y, int u, int v, int n, int i, int j) {
      if ((x == u && y == v) || !makes(a, x) || !makes(b, u)) return false;
      const int from = address(a, x, y, n, i), to = address(b, u, v, n, j);
      return from < to + b.bytes && to < from + a.bytes;
    };
    INFO("seed " << test::seed() << ", case " << round << ", answer " << name(answer) << "\n"
                 << body);
    bool met = false;
    for (const int n : {0, 1, 2, 7}) {
      for (int i = 0; i < 4; ++i) {
        for (int j = same_round ? i : 0; j < (same_round ? i + 1 : 4); ++j) {
          for (int t = 0; t < bx * by; ++t) {
            for (int u = 0; u < bx * by && !met; ++u)
              met = overlap(t % bx, t / bx, u % bx, u / bx, n, i, j);
          }
          if (answer.kind != Overlap::Possible) continue;
          CHECK(overlap(static_cast<int>(answer.first[0]), static_cast<int>(answer.first[1]),
                        static_cast<int>(answer.second[0]), static_cast<int>(answer.second[1]), n,
                        i, j));
        }
      }
    }
    if (answer.kind == Overlap::Never) CHECK_FALSE(met);
    never += answer.kind == Overlap::Never ? 1 : 0;
    possible += answer.kind == Overlap::Possible ? 1 : 0;
    // Where nothing but the indices counts there is no excuse.
    const bool plain = a.n == b.n && a.nx == b.nx && a.nx == 0 && a.i == 0 && b.i == 0;
    if (plain) CHECK((answer.kind == Overlap::Possible) == met);
    unknown += answer.kind == Overlap::Unknown ? 1 : 0;
  }
  WARN("overlap: " << never << " never, " << possible << " possible, " << unknown << " unknown");
  CHECK(never > cases / 10);
  CHECK(possible > cases / 10);
}

TEST_CASE("overlap: operations on numbers") {
  const auto result = [](AffineOperation operation, std::uint64_t a, std::uint64_t b,
                         bool is_signed, ptx::Modifier comparison = ptx::Modifier::none) {
    AffineSymbol s;
    s.operation = operation;
    s.is_signed = is_signed;
    s.comparison = comparison;
    const std::uint64_t values[] = {a, b, 7};
    const unsigned bits[] = {32, 32, 32};
    return apply(s, values, bits).value();
  };
  const std::uint64_t minus = 0xfffffffe;
  CHECK(result(AffineOperation::Quotient, 17, 5, false) == 3);
  CHECK(result(AffineOperation::Remainder, 17, 5, false) == 2);
  CHECK(result(AffineOperation::Minimum, minus, 3, true) == minus);
  CHECK(result(AffineOperation::Minimum, minus, 3, false) == 3);
  CHECK(result(AffineOperation::Maximum, minus, 3, true) == 3);
  CHECK(result(AffineOperation::Maximum, minus, 3, false) == minus);
  CHECK(result(AffineOperation::And, 12, 10, false) == 8);
  CHECK(result(AffineOperation::Or, 12, 10, false) == 14);
  CHECK(result(AffineOperation::Xor, 12, 10, false) == 6);
  CHECK(result(AffineOperation::ShiftLeft, 3, 4, false) == 48);
  CHECK(result(AffineOperation::ShiftLeft, 3, 32, false) == 0);
  CHECK(result(AffineOperation::ShiftRight, minus, 1, false) == 0x7fffffff);
  CHECK((result(AffineOperation::ShiftRight, minus, 40, true) & 0xffffffff) == 0xffffffff);
  CHECK(result(AffineOperation::Select, 1, 5, false) == 5);
  CHECK(result(AffineOperation::Select, 0, 5, false) == 7);
  CHECK(result(AffineOperation::Compare, minus, 3, true, ptx::Modifier::lt) == 1);
  CHECK(result(AffineOperation::Compare, minus, 3, false, ptx::Modifier::lt) == 0);
  CHECK(result(AffineOperation::Compare, 3, 3, false, ptx::Modifier::le) == 1);
  CHECK(result(AffineOperation::Compare, 3, 4, false, ptx::Modifier::eq) == 0);
  CHECK(result(AffineOperation::Compare, 3, 4, false, ptx::Modifier::ne) == 1);
}
