// tests/builder/emit.hpp - a kernel to emit single statements into
#pragma once

#include <catch2/catch.hpp>

#include <string>
#include <string_view>

#include "ptxgen/builder.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::test {

/// A kernel with one value of each type at hand.
struct Bench {
  explicit Bench(std::string_view target = "sm_90")
      : k("bench", target),
        r(k.undefined<u32>()),
        r1(k.undefined<u32>()),
        r2(k.undefined<u32>()),
        s(k.undefined<s32>()),
        s1(k.undefined<s32>()),
        rd(k.undefined<u64>()),
        rd1(k.undefined<u64>()),
        sd(k.undefined<s64>()),
        w(k.undefined<u16>()),
        w1(k.undefined<u16>()),
        byte(k.undefined<u8>()),
        f(k.undefined<f32>()),
        f1(k.undefined<f32>()),
        f2(k.undefined<f32>()),
        d(k.undefined<f64>()),
        d1(k.undefined<f64>()),
        d2(k.undefined<f64>()),
        h(k.undefined<f16>()),
        h1(k.undefined<f16>()),
        h2(k.undefined<f16>()),
        x2(k.undefined<f16x2>()),
        x21(k.undefined<f16x2>()),
        x22(k.undefined<f16x2>()),
        g(k.undefined<bf16>()),
        g1(k.undefined<bf16>()),
        g2(k.undefined<bf16>()),
        b(k.undefined<b32>()),
        b1(k.undefined<b32>()),
        p(k.undefined<pred>()),
        p1(k.undefined<pred>()),
        fp(k.pointer<f32>(rd)),
        up(k.pointer<u32>(rd)),
        hp(k.pointer<f16>(rd)),
        sp(k.pointer<f32, Shared>(r)),
        su(k.pointer<u32, Shared>(r)),
        gp(k.pointer<f32, Generic>(rd)),
        cp(k.pointer<f32, Const>(rd)) {}

  KernelBuilder k;
  Value<u32> r, r1, r2;       // %r0 %r1 %r2
  Value<s32> s, s1;           // %r3 %r4
  Value<u64> rd, rd1;         // %rd0 %rd1
  Value<s64> sd;              // %rd2
  Value<u16> w, w1;           // %rs0 %rs1
  Value<u8> byte;             // %rs2
  Value<f32> f, f1, f2;       // %f0 %f1 %f2
  Value<f64> d, d1, d2;       // %fd0 %fd1 %fd2
  Value<f16> h, h1, h2;       // %h0 %h1 %h2
  Value<f16x2> x2, x21, x22;  // %r5 %r6 %r7
  Value<bf16> g, g1, g2;      // %h3 %h4 %h5
  Value<b32> b, b1;           // %r8 %r9
  Pred p, p1;                 // %p0 %p1
  Ptr<f32> fp;
  Ptr<u32> up;
  Ptr<f16> hp;
  Ptr<f32, Shared> sp;
  Ptr<u32, Shared> su;
  Ptr<f32, Generic> gp;
  Ptr<f32, Const> cp;
};

// EMIT(expected text, calls): the calls, on the bench `t` and its builder `k`, emit exactly that.
// Destinations are the next free register of their class.
#define EMIT(expected, ...)                        \
  do {                                             \
    Bench t;                                       \
    [[maybe_unused]] KernelBuilder& k = t.k;       \
    const std::size_t first = k.statement_count(); \
    __VA_ARGS__;                                   \
    CHECK(emitted(t.k, first) == (expected));      \
  } while (false)

/// What was emitted since there were `first` statements, one line each.
[[nodiscard]] inline std::string emitted(const KernelBuilder& k, std::size_t first) {
  std::string text;
  const ptx::Function& f = k.module().functions[0];
  for (std::size_t i = first; i < f.body.size(); ++i) {
    text += (text.empty() ? "" : "\n") + ptx::print(k.module(), f, f.body[i]);
  }
  return text;
}

/// The error that `call` throws; the test fails if it throws none.
template <class F>
[[nodiscard]] Error error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error was thrown");
  return {Stage::Build, "", ""};
}

}  // namespace ptxgen::test
