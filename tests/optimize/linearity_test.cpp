// tests/optimize/linearity_test.cpp - the work of passes grows with the text
#include <catch2/catch.hpp>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/harness.hpp"

namespace {

using namespace ptxgen;

constexpr double kMinVisits = 0.9;  // of a pass, for each statement of the large text

std::string number(unsigned n) { return std::to_string(n); }

std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n"
         "  .reg .b32 %r<200000>;\n  .reg .f32 %f<200000>;\n  .reg .pred %p<200000>;\n"
         "  .reg .b64 %out;\n  ld.param.u64 %out, [out];\n  ld.param.u32 %r0, [n];\n  ld.param.u32 "
         "%r199999, [n];\n"
         "  mov.f32 %f0, 0f3F800000;\n  mov.u32 %r1, %tid.x;\n  cvt.rn.f32.u32 %f1, %r1;\n" +
         body + "  st.global.u32 [%out], %r0;\n  st.global.f32 [%out+4], %f0;\n  ret;\n}\n";
}

/// Ordinary code, some of it for every pass: 24 statements a unit.
std::string units(unsigned instructions) {
  std::string body;
  for (unsigned i = 0; i < instructions / 24; ++i) {
    const unsigned r = 2 + 8 * i, f = 2 + 4 * i, p = 4 * i;
    const std::string l = number(i), r0 = "%r" + number(r), r1 = "%r" + number(r + 1);
    const std::string r2 = "%r" + number(r + 2), r3 = "%r" + number(r + 3);
    const std::string p0 = "%p" + number(p), p1 = "%p" + number(p + 1);
    const std::string f0 = "%f" + number(f), f1 = "%f" + number(f + 1);
    body += "  mul.f32 " + f0 + ", %f0, %f1;\n  add.f32 %f0, " + f0 + ", %f1;\n";
    body += "  mul.lo.u32 " + r0 + ", %r0, %r1;\n  add.u32 %r0, " + r0 + ", 3;\n";
    body += "  mov.u32 " + r1 + ", 5;\n  add.u32 " + r2 + ", " + r1 + ", 6;\n";
    body += "  add.u32 %r0, %r0, " + r2 + ";\n  mov.u32 " + r3 + ", %r0;\n";
    body += "  xor.b32 %r0, " + r3 + ", 77;\n  mov.f32 " + f1 + ", %f0;\n";
    const std::string iv = "%r" + number(r + 4), dead = "%r" + number(r + 5);
    body += "  mul.lo.u32 " + dead + ", " + r3 + ", 9;\n  mov.u32 " + iv + ", 0;\n";
    body += "TOP" + l + ":\n  setp.lt.u32 " + p1 + ", " + iv + ", %r199999;\n";
    body += "  @" + p1 + " add.u32 %r0, %r0, " + iv + ";\n";
    body += "  @" + p1 + " xor.b32 %r0, %r0, 5;\n";
    body += "  add.u32 " + iv + ", " + iv + ", 1;\n";
    body += "  setp.lt.u32 " + p0 + ", " + iv + ", 64;\n  @" + p0 + " bra TOP" + l + ";\n";
    body += "  setp.gt.u32 %p" + number(p + 2) + ", %r0, 100;\n";
    body += "  @%p" + number(p + 2) + " bra OVER" + l + ";\n  sub.f32 %f0, %f0, %f1;\n";
    body += "  bra OVER" + l + ";\nOVER" + l + ":\n";
  }
  return kernel(body);
}

/// Each statement needs what the one before it leaves: copies, sums of constants, dead values.
std::string chains(unsigned instructions) {
  std::string body = "  mov.u32 %r2, %r1;\n";
  unsigned next = 3;
  const unsigned third = instructions / 3;
  for (unsigned i = 0; i < third; ++i, ++next) {
    body += "  mov.u32 %r" + number(next) + ", %r" + number(next - 1) + ";\n";
  }
  body += "  add.u32 %r0, %r0, %r" + number(next - 1) + ";\n";
  body += "  mov.u32 %r" + number(next) + ", 1;\n";
  ++next;
  for (unsigned i = 0; i < third; ++i, ++next) {
    body += "  add.u32 %r" + number(next) + ", %r" + number(next - 1) + ", 3;\n";
  }
  body += "  add.u32 %r0, %r0, %r" + number(next - 1) + ";\n";
  body += "  mov.u32 %r" + number(next) + ", %r1;\n";
  ++next;
  for (unsigned i = 0; i < third; ++i, ++next) {
    body += "  xor.b32 %r" + number(next) + ", %r" + number(next - 1) + ", %r1;\n";
  }
  return kernel(body);
}

/// Branches to branches to branches, each from far away, over `work`.
std::string hops_over(std::string_view work, unsigned count) {
  std::string body;
  for (unsigned i = 0; i < count; ++i) {
    body += "  setp.eq.u32 %p" + number(i) + ", %r1, " + number(i) + ";\n";
    body += "  @%p" + number(i) + " bra HOP" + number(i) + ";\n";
    body += work;
  }
  body += "  bra END;\n";
  for (unsigned i = 0; i < count; ++i) {
    body += "HOP" + number(i) + ":\n  bra " +
            (i + 1 < count ? "HOP" + number(i + 1) : std::string("END")) + ";\n";
  }
  return kernel(body + "END:\n");
}
std::string hops(unsigned instructions) {
  return hops_over("  add.u32 %r0, %r0, 1;\n", instructions / 5);
}
/// Nothing of this stays: each branch skips only the next one.
std::string empty_hops(unsigned instructions) { return hops_over("", instructions / 3); }

/// One register written everywhere, one value read everywhere, loops within loops.
std::string nests(unsigned instructions) {
  constexpr unsigned kDepth = 20, kEach = 8;
  std::string body;
  unsigned label = 0;
  for (unsigned i = 0; i < instructions / (kDepth * kEach); ++i) {
    std::string closing;
    for (unsigned depth = 0; depth < kDepth; ++depth, ++label) {
      const std::string iv = "%r" + number(2 + depth), p = "%p" + number(2 * depth);
      const std::string q = "%p" + number(2 * depth + 1);
      body += "  mov.u32 " + iv + ", 0;\nNEST" + number(label) + ":\n";
      body += "  mul.f32 %f2, %f1, %f1;\n  @" + q + " add.f32 %f0, %f2, %f0;\n";
      closing = "  setp.lt.u32 " + q + ", " + iv + ", %r1;\n  @" + q + " add.u32 %r0, %r0, 1;\n" +
                "  add.u32 " + iv + ", " + iv + ", 1;\n  setp.lt.u32 " + p + ", " + iv +
                ", 8;\n  @" + p + " bra NEST" + number(label) + ";\n" + closing;
    }
    body += closing;
  }
  std::string first;
  for (unsigned depth = 0; depth < kDepth; ++depth) {
    first += "  setp.eq.u32 %p" + number(2 * depth + 1) + ", %r1, 7;\n";
  }
  return kernel(first + body);
}

struct Work {
  std::size_t statements = 0, rounds = 0;
  std::uint64_t visits = 0, fired = 0;
  double milliseconds = 0;
};

Work work(const std::string& text, const std::string& pass, bool again) {
  ptx::Module module = ptx::parse(text);
  optimize::PassOptions options;
  options.passes = {pass};
  const optimize::PipelineReport report = optimize::run_passes(module, options);
  Work result;
  result.rounds = report.passes.size();
  result.statements = report.passes.front().statements_before;
  for (const optimize::PassReport& entry : report.passes) {
    result.visits += entry.visits;
    result.fired += entry.fired();
    result.milliseconds += (entry.microseconds + entry.verify_microseconds) / 1000;
  }
  if (again) {
    INFO(pass << " changes something in its second run");
    const std::string first = ptx::print(module);
    CHECK_FALSE(optimize::run_passes(module, options).changed());
    CHECK(ptx::print(module) == first);
  }
  return result;
}

void check_linear(const char* shape, const std::function<std::string(unsigned)>& text,
                  unsigned min = 1000) {
  const std::string small = text(min), middle = text(10 * min), large = text(100 * min);
  std::vector<std::string> passes{"default"};
  for (const optimize::PassInfo& pass : optimize::all_passes()) passes.emplace_back(pass.name);
  for (const std::string& pass : passes) {
    INFO(shape << ", " << pass);
    const Work first = work(small, pass, true), second = work(middle, pass, false),
               third = work(large, pass, false);
    std::printf("%-7s %-17s %7zu statements: %9llu visits, %8.1f ms, %zu runs, %llu fired\n", shape,
                pass.c_str(), third.statements, static_cast<unsigned long long>(third.visits),
                third.milliseconds, third.rounds, static_cast<unsigned long long>(third.fired));
    const auto per_statement = [](const Work& w) {
      return static_cast<double>(w.visits) / static_cast<double>(w.statements);
    };
    // Every pass looks at something, and at ten times as much in ten times as much.
    CHECK(per_statement(third) > kMinVisits);
    CHECK(per_statement(second) < 1.5 * per_statement(first) + 1);
    CHECK(per_statement(third) < 1.2 * per_statement(second) + 1);
    CHECK(third.rounds <= first.rounds + 4);
  }
}

/// Statements of the smallest text.
unsigned odd_shapes() { return static_cast<unsigned>(test::count(200, 1000)); }

}  // namespace

TEST_CASE("passes look at ordinary code in linear time") { check_linear("units", units); }
TEST_CASE("passes look at chains in linear time") { check_linear("chains", chains, odd_shapes()); }
TEST_CASE("passes look at branches to branches in linear time") {
  check_linear("hops", hops, odd_shapes());
  check_linear("empty hops", empty_hops, odd_shapes());
}
TEST_CASE("passes look at nested loops in linear time") {
  check_linear("nests", nests, odd_shapes());
}
