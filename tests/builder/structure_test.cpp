// tests/builder/structure_test.cpp - if_, guarded, variables, arrays and reductions
#include "emit.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("if_ branches around its body") {
  EMIT("@!%p0 bra $L0;\nst.global.f32 [%rd0], %f0;\n$L0:", k.if_(t.p, [&] { k.st(t.fp, t.f); }));
  EMIT("@%p0 bra $L0;\nst.global.f32 [%rd0], %f0;\n$L0:", k.if_(!t.p, [&] { k.st(t.fp, t.f); }));
  EMIT(
      "@!%p0 bra $L0;\nst.global.f32 [%rd0], %f0;\nbra $L1;\n$L0:\n"
      "st.global.f32 [%rd0], %f1;\n$L1:",
      k.if_(
          t.p, [&] { k.st(t.fp, t.f); }, [&] { k.st(t.fp, t.f1); }));
  // No branch after what never comes back.
  EMIT("@!%p0 bra $L0;\nret;\n$L0:\nst.global.f32 [%rd0], %f1;\n$L1:",
       k.if_(
           t.p, [&] { k.ret(); }, [&] { k.st(t.fp, t.f1); }));
}

TEST_CASE("guarded puts the predicate before every instruction") {
  EMIT("@!%p0 ld.global.f32 %f3, [%rd0];\n@!%p0 st.global.f32 [%rd0+4], %f3;",
       k.guarded(!t.p, [&] { k.st(t.fp + 1, k.ld(t.fp)); }));
}

TEST_CASE("a value copied from a variable keeps what the variable held") {
  EMIT(
      "mov.f32 %f3, 0fFF800000;\nmov.f32 %f4, %f3;\nmax.f32 %f3, %f3, %f0;\n"
      "sub.rn.f32 %f5, %f4, %f3;",
      auto max = k.var<f32>(-std::numeric_limits<float>::infinity());
      Value<f32> old = max; k.max_inplace(max, t.f); Value<f32> correction = old - max;
      static_cast<void>(correction));
}

TEST_CASE("variables are read where they are used") {
  EMIT("mov.u32 %r10, 0;\nadd.u32 %r11, %r10, 1;\nmov.u32 %r10, 5;\nadd.u32 %r12, %r10, 1;",
       auto i = k.var<u32>(0);
       (void)(i + 1); i = 5; (void)(i + 1));
  EMIT("mov.pred %p2, %p0;\n@!%p2 bra $L0;\nmov.pred %p2, 0;\n$L0:", auto again = k.var(t.p);
       k.if_(again, [&] { again = false; }));
  EMIT("mov.pred %p2, %p0;\nmov.pred %p3, %p2;\nmov.pred %p2, 0;\n@%p3 bra $L0;\nexit;\n$L0:",
       auto again = k.var(t.p);
       const Pred no = !again; again = false; k.if_(no, [&] { k.exit(); }));
}

TEST_CASE("a warp reduction gives every lane the result") {
  EMIT(
      "shfl.sync.bfly.b32 %r10, %r0, 16, 31, 4294967295;\nmax.u32 %r11, %r0, %r10;\n"
      "shfl.sync.bfly.b32 %r12, %r11, 8, 31, 4294967295;\nmax.u32 %r13, %r11, %r12;\n"
      "shfl.sync.bfly.b32 %r14, %r13, 4, 31, 4294967295;\nmax.u32 %r15, %r13, %r14;\n"
      "shfl.sync.bfly.b32 %r16, %r15, 2, 31, 4294967295;\nmax.u32 %r17, %r15, %r16;\n"
      "shfl.sync.bfly.b32 %r18, %r17, 1, 31, 4294967295;\nmax.u32 %r19, %r17, %r18;",
      k.warp_reduce(t.r, Reduce::Max));
  Bench t;
  const std::size_t first = t.k.statement_count();
  t.k.warp_reduce(t.f, [&](const Value<f32>& a, const Value<f32>& b) { return a * b; });
  CHECK(t.k.statement_count() - first == 10);
  CHECK(t.k.last_statement() == "mul.rn.f32 %f12, %f10, %f11;");
  // An element is loaded, once.
  const std::size_t before_load = t.k.statement_count();
  t.k.warp_reduce(t.fp[2]);
  const std::string reduced = emitted(t.k, before_load);
  CHECK(reduced.starts_with("ld.global.f32 "));
  CHECK(reduced.find("ld.", 3) == std::string::npos);
}

TEST_CASE("dynamic shared memory has the largest alignment that was asked for") {
  KernelBuilder k("aligned");
  k.dynamic_shared<u32>(16)[0] = 1;
  k.dynamic_shared<u32>(1024)[1] = 3;
  k.dynamic_shared<u32>()[2] = 2;
  const std::string text = k.build().ptx();
  CHECK(text.find(".extern .shared .align 1024 .b8 dynamic_shared[];\n") != std::string::npos);
  KernelBuilder refused("refused");
  for (const std::uint32_t alignment : {0u, 2u, 24u}) {
    CHECK_THROWS_WITH(refused.dynamic_shared<u32>(alignment),
                      Catch::Matchers::Contains("it must be a power of two and a multiple of the "
                                                "element's 4"));
  }
}

TEST_CASE("arrays") {
  KernelBuilder k("arrays");
  const SharedArray<f32> tile = k.shared<f32>(256, "tile");
  const SharedArray<f16> halves = k.shared<f16>(8);
  const auto scratch = k.local<u32>(4);
  const SharedArray<u32> dynamic = k.dynamic_shared<u32>();
  tile[3] = 1.0f;
  halves[0] = halves[1];
  scratch[1] = 7;
  dynamic[0] = scratch[1];
  const BuiltKernel built = k.build();
  CHECK(built.ptx() ==
        ".version 7.8\n.target sm_89\n.address_size 64\n\n"
        ".extern .shared .align 128 .b8 dynamic_shared[];\n"
        ".visible .entry arrays()\n{\n"
        "    .reg .b32 %r<5>;\n    .reg .b16 %h<1>;\n"
        "    .shared .align 16 .f32 tile[256];\n    .shared .align 16 .b16 shared1[8];\n"
        "    .local .align 16 .u32 local2[4];\n"
        "    mov.u32 %r0, tile;\n    mov.u32 %r1, shared1;\n    mov.u32 %r2, local2;\n"
        "    mov.u32 %r3, dynamic_shared;\n    st.shared.f32 [%r0+12], 0f3F800000;\n"
        "    ld.shared.b16 %h0, [%r1+2];\n    st.shared.b16 [%r1], %h0;\n"
        "    st.local.u32 [%r2+4], 7;\n    ld.local.u32 %r4, [%r2+4];\n"
        "    st.shared.u32 [%r3], %r4;\n    ret;\n}\n\n");
}

TEST_CASE("directives") {
  KernelBuilder k("directives", "sm_90");
  k.max_threads(256);
  k.min_blocks_per_sm(2);
  k.max_registers(64);
  k.cluster(2, 1, 1);
  k.pragma("nounroll");
  const std::string text = k.build().ptx();
  INFO(text);
  for (const char* line : {".maxntid 256, 1, 1\n", ".minnctapersm 2\n", ".maxnreg 64\n",
                           ".reqnctapercluster 2, 1, 1\n", ".pragma \"nounroll\";\n"}) {
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("line information names the C++ lines") {
  KernelBuilder k("lines");
  const Ptr<u32> out = k.param<Ptr<u32>>("out");
  k.line_info();
  const unsigned line = __LINE__ + 1;
  const Value<u32> a = k.tid_x() + 1;
  k.st(out, a);
  const std::string text = k.build().ptx();
  INFO(text);
  CHECK(text.find(".file 1 \"") != std::string::npos);
  CHECK(text.find(".loc 1 " + std::to_string(line) + " ") != std::string::npos);
  CHECK(text.find(".loc 1 " + std::to_string(line + 1) + " ") != std::string::npos);
}

TEST_CASE("every statement knows its C++ line") {
  Bench t;
  const unsigned line = __LINE__ + 1;
  const Value<f32> a = t.f + t.f1;
  const Value<f32> b = t.k.fma(a, a, a);
  t.fp[0] = b;
  const ptx::Function& f = t.k.module().functions[0];
  REQUIRE(f.body.size() == 3);
  for (unsigned i = 0; i < 3; ++i) {
    const SourceLocation site = t.k.module().site_of(f.body[i]);
    CHECK(site.line == line + i);
    CHECK(std::string_view(site.file).ends_with("structure_test.cpp"));
  }
}
