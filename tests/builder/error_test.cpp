// tests/builder/error_test.cpp - builder errors: message, location, rollback
#include "emit.hpp"

#include "ptxgen/ptx/ir.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// Everything that a call may have changed.
std::string snapshot(const KernelBuilder& k) {
  const ptx::Module& m = k.module();
  const ptx::Function& f = m.functions[0];
  std::string text = emitted(k, 0);
  for (const std::size_t size :
       {f.body.size(), f.operands.size(), f.labels.size(), f.variables.size(), f.parameters.size(),
        f.registers.size(), f.directives.size(), m.variables.size(), m.symbols.size(),
        m.items.size(), std::size_t{f.scopes}}) {
    text += " " + std::to_string(size);
  }
  for (const ptx::RegisterDecl& decl : f.registers) text += " r" + std::to_string(decl.count);
  for (const ptx::Label& label : f.labels) text += label.defined ? " placed" : " open";
  return text;
}

// The call on a bench fails with that code and message, names the line, and leaves the kernel as it
// was; build() then fails with the same error. `before` is what the kernel was: a call of several
// statements sets it anew before the one that fails.
template <class F>
void refused(F&& call, std::string_view code, std::string_view message, unsigned line,
             std::string_view target = "sm_90") {
  Bench t(target);
  std::string before = snapshot(t.k);
  const Error error = error_of([&] { call(t, t.k, before); });
  CHECK(error.code == code);
  CHECK(error.message == message);
  CHECK(error.stage == Stage::Build);
  CHECK(error.kernel == "bench");
  CHECK(error.target == target);
  CHECK(std::string_view(error.site.file).ends_with("error_test.cpp"));
  CHECK(error.site.line == line);
  CHECK(snapshot(t.k) == before);
  const Error again = error_of([&] { (void)t.k.build(); });
  CHECK(again.message == message);
  CHECK(again.site.line == line);
}

}  // namespace

#define REFUSED_ON(target, code, message, ...)                             \
  refused([]([[maybe_unused]] Bench& t, [[maybe_unused]] KernelBuilder& k, \
             [[maybe_unused]] std::string& before) { __VA_ARGS__; },       \
          code, message, __LINE__, target)
#define REFUSED(code, message, ...) REFUSED_ON("sm_90", code, message, __VA_ARGS__)

TEST_CASE("literals out of range") {
  REFUSED("bad-operand", "the literal -1 does not fit u32", k.add(t.r, -1));
  REFUSED("bad-operand", "the literal 4294967296 does not fit u32", k.add(t.r, 1ll << 32));
  REFUSED("bad-operand", "the literal 2147483648 does not fit s32", (void)(t.s + 2147483648u));
  REFUSED("bad-operand", "the literal -2147483649 does not fit s32", (void)(t.s + -2147483649ll));
  REFUSED("bad-operand", "the literal 65536 does not fit u16", (void)(t.w + 65536));
  EMIT("add.s32 %r10, %r3, -2147483648;", k.add(t.s, std::numeric_limits<int>::min()));
  EMIT("and.b32 %r10, %r8, -1;", k.and_(t.b, -1));
  EMIT("add.u64 %rd3, %rd0, 18446744073709551615;", k.add(t.rd, ~0ull));
}

TEST_CASE("forms that PTX does not have") {
  REFUSED("bad-operand",
          "'add.rn.ftz.f64' with 3 operands is no instruction of PTX; there are "
          "'add.<rnd>?.<T:f64> d, a, b'",
          k.add(t.d, t.d1, {.ftz = true}));
}

TEST_CASE("what the target lacks is refused at the call") {
  REFUSED_ON("sm_75", "target-lacks",
             "'redux.sync.add.s32' needs sm_80 or newer, the target is sm_75", k.redux_add(t.s));
  REFUSED_ON("sm_80", "target-lacks", "'add.rn.bf16' needs sm_90 or newer, the target is sm_80",
             k.add(t.g, t.g1));
  REFUSED_ON("sm_80", "target-lacks", ".reqnctapercluster needs sm_90; the target is sm_80",
             k.cluster(2));
  REFUSED_ON("sm_75", "target-lacks",
             "'cp.async.ca.shared.global' needs sm_80 or newer, the target is sm_75",
             k.cp_async(t.sp, t.fp, 4));
}

TEST_CASE("emit checks words and operands against the row") {
  REFUSED(
      "bad-operand",
      "'fma.rn.f64' with 4 operands does not fit the row fma_f32: "
      "'fma.<rnd>.<ftz>?.<sat>?.<T:f32> d, a, b, c'",
      k.emit(ptx::Op::fma_f32, {ptx::Modifier::rn, ptx::Modifier::type_f64}, {t.d, t.d, t.d, t.d}));
  REFUSED("bad-operand",
          "'fma.rn' with 3 operands does not fit the row fma_f32: "
          "'fma.<rnd>.<ftz>?.<sat>?.<T:f32> d, a, b, c'",
          k.emit(ptx::Op::fma_f32, {ptx::Modifier::rn}, {t.f, t.f, t.f}));
  // In PTX text both are 32 bits; the builder knows better.
  REFUSED("type-mismatch", "operand 4 is u32, the instruction expects f32",
          k.emit(ptx::Op::fma_f32, {ptx::Modifier::rn}, {t.f, t.f, t.f, t.r}));
  REFUSED("type-mismatch", "operand 3 is u64, the instruction expects u32",
          k.emit(ptx::Op::add, {ptx::Modifier::type_u32}, {t.r, t.r, t.rd}));
  REFUSED("type-mismatch", "operand 2 is pred, the instruction expects u32",
          k.emit(ptx::Op::add, {ptx::Modifier::type_u32}, {t.r, t.p, t.r}));
}

TEST_CASE("emit takes pointers into the row's state space only") {
  REFUSED(
      "space-mismatch",
      "operand 2 of 'ldmatrix.sync.aligned.m8n8.x1.b16' is a pointer into shared memory, but "
      "the opcode names no state space and reads it as a generic address; rule: an address is "
      "valid in one state space, which the opcode has to name; cure: write the modifier .shared, "
      "or pass cvta(pointer), its generic address",
      const auto d = k.undefined<b32>();
      before = snapshot(k); k.emit(ptx::Op::ldmatrix_x1, {}, {Vec{d}, t.sp}));
  REFUSED("space-mismatch",
          "operand 1 of 'prefetch.global.L2' is a pointer into shared memory, but the opcode reads "
          "it as an address in .global; rule: an address is valid in one state space, which the "
          "opcode has to name; cure: pass a pointer into global memory",
          k.emit(ptx::Op::prefetch, {ptx::Modifier::global, ptx::Modifier::L2}, {t.sp}));
  REFUSED("space-mismatch",
          "operand 2 of 'ld.shared.f32' is a pointer into any memory (it is generic), but the "
          "opcode reads it as an address in .shared; rule: an address is valid in one state space, "
          "which the opcode has to name; cure: omit the modifier .shared, or pass the pointer "
          "that cvta_to<>() returns",
          k.emit(ptx::Op::ld, {ptx::Modifier::shared, ptx::Modifier::type_f32}, {t.f, t.gp}));
  REFUSED(
      "space-mismatch",
      "operand 2 of 'ld.shared.f32' is a pointer into global memory, but the opcode reads it "
      "as an address in .shared; rule: an address is valid in one state space, which the opcode "
      "has to name; cure: write the modifier .global instead of .shared, or pass a pointer into "
      "shared memory",
      k.emit(ptx::Op::ld, {ptx::Modifier::shared, ptx::Modifier::type_f32}, {t.f, t.fp}));
  // Both addresses of a copy, each against its own word.
  REFUSED(
      "space-mismatch",
      "operand 2 of 'cp.async.ca.shared.global' is a pointer into shared memory, but the opcode "
      "reads it as an address in .global; rule: an address is valid in one state space, which "
      "the opcode has to name; cure: pass a pointer into global memory",
      k.emit(ptx::Op::cp_async, {ptx::Modifier::ca, ptx::Modifier::shared}, {t.sp, t.sp, 4}));
}

TEST_CASE("values of another kernel or of a closed body") {
  {
    KernelBuilder other("other");
    Bench t;
    const Value<u32> foreign = other.tid_x();
    CHECK(error_of([&] { t.k.add(t.r, foreign); }).message ==
          "an operand belongs to another kernel");
  }
  REFUSED(
      "bad-operand",
      "an operand was computed in a body (of if_, for_, while_ or guarded) that is closed here, "
      "where it may not have been executed: keep it in a Var declared outside",
      [&] {
        std::vector<Value<u32>> leaked;
        k.if_(t.p, [&] { leaked.push_back(t.r + 1); });
        before = snapshot(k);
        k.add(leaked[0], 1);
      }());
}

TEST_CASE("variables that were moved from") {
  Bench t;
  auto a = t.k.var<u32>(0);
  auto b = static_cast<Var<u32>&&>(a);
  b += 1;
  CHECK(error_of([&] { a.set(1); }).message == "a variable is used that was moved from");
  CHECK(error_of([&] { t.k.add(t.r, a); }).message == "a variable is used that was moved from");
}

TEST_CASE("labels") {
  REFUSED("duplicate-name", "label 'top' is placed twice: names are unique in a kernel",
          k.label("top");
          before = snapshot(k); k.label("top"));
  REFUSED("bad-name", "labels beginning with '$L' are those of if_, for_ and while_",
          k.label("$L1"));
  REFUSED("bad-name",
          "'a b' cannot be the name of label: letters, digits, '_' and '$', a letter first",
          k.branch("a b"));
  Bench t;
  const unsigned line = __LINE__ + 1;
  t.k.branch_if(t.p, "nowhere");
  const Error error = error_of([&] { (void)t.k.build(); });
  CHECK(error.code == "undefined-symbol");
  CHECK(error.message == "label 'nowhere' is branched to and never placed");
  CHECK(error.site.line == line);
}

TEST_CASE("parameters") {
  KernelBuilder k("k");
  k.declare_param<u32>("n");
  k.declare_param<Ptr<f32>>("x");
  CHECK(error_of([&] { (void)k.load_param<u32>("m"); }).message ==
        "the kernel has no parameter 'm'; it has n, x");
  CHECK(error_of([&] { (void)k.load_param<f32>("n"); }).message ==
        "parameter 'n' is u32 and is read as f32");
  CHECK(error_of([&] { (void)k.load_param<Ptr<f64>>("x"); }).message ==
        "parameter 'x' is pointer to global f32 and is read as pointer to global f64");
  CHECK(error_of([&] { k.declare_param<u32>("n"); }).message ==
        "parameter 'n' has the name of a parameter: names are unique in a kernel");
  CHECK(error_of([&] { k.declare_param<u32>("k"); }).message ==
        "parameter 'k' has the name of the kernel: names are unique in a kernel");
}

TEST_CASE("kernels and targets by name") {
  CHECK(error_of([] { KernelBuilder k("9lives"); }).message ==
        "'9lives' cannot name a kernel: letters, digits, '_' and '$', a letter first");
  const Error error = error_of([] { KernelBuilder k("k", "sm_12"); });
  CHECK(error.code == "unknown-target");
  CHECK(error.message.substr(0, 57) == "'sm_12' is not in the target table; there are sm_75, sm_8");
}

TEST_CASE("barriers, copies, arrays and loops refuse nonsense") {
  REFUSED("bad-operand", "barrier 16 does not exist: a block has barriers 0 to 15", k.bar_sync(16));
  REFUSED("bad-operand", "a barrier counts full warps: 33 threads is not a multiple of 32",
          k.bar_sync(0, 33));
  REFUSED("bad-operand", "cp_async copies 4, 8 or 16 bytes, past L1 only 16; not 5",
          k.cp_async(t.sp, t.fp, 5));
  REFUSED("too-large",
          "array 'shared0' of 20000 elements of 4 bytes: a block of sm_90 has 1 to 49152 bytes of "
          "static shared memory; more is dynamic_shared()",
          k.shared<f32>(20000));
  REFUSED("bad-operand",
          "an alignment of 12 bytes: it must be a power of two and a multiple of the element's 4",
          k.shared<f32>(16, "", 12));
  REFUSED("misaligned",
          "an access of 16 bytes at offset 4 of an array aligned to 16: its address must be a "
          "multiple of 16",
          [&] {
            const auto tile = k.shared<f32>(16);
            before = snapshot(k);
            k.ld<4>(tile + 1);
          }());
  REFUSED("bad-operand", "the step of a loop is positive: count up and compute the falling value",
          k.for_(0, t.r, 0, [] {}));
  REFUSED("bad-operand", "an unroll factor is 1 to 1024, not 0",
          k.for_(
              0, t.r, 1, [] {}, Unroll{0}));
  REFUSED("bad-operand", "the step times the unroll factor does not fit the index type",
          k.for_(
              0, t.r, 0x80000000u, [] {}, Unroll{2}));
  REFUSED("bad-operand",
          "a 64-bit index into shared or local memory, whose addresses have 32 bits: convert it to "
          "u32 or s32",
          (void)(t.sp + t.rd));
  REFUSED("bad-operand", "guarded() does not nest: combine with &",
          k.guarded(t.p, [&] { k.guarded(t.p1, [] {}); }));
  REFUSED("bad-operand", "a branch is not allowed in guarded(): use if_ for control flow",
          k.guarded(t.p, [&] { k.if_(t.p1, [] {}); }));
  REFUSED("type-mismatch", "%tid is u32 and is read as u64",
          k.special_reg<u64>(ptx::SpecialRegister::tid));
  REFUSED("bad-operand", "%laneid has no components",
          k.special_reg(ptx::SpecialRegister::laneid, 1));
}

TEST_CASE("raw PTX is checked at the call") {
  REFUSED("bad-operand", "raw PTX uses $1, but the call has 1 operand, outputs and inputs together",
          k.raw<u32>("add.u32 $0, $1, 1;", {}));
  REFUSED("bad-operand", "raw PTX does not use its operand $1",
          k.raw<u32>("mov.u32 $0, 1;", {t.r}));
  REFUSED("bad-operand", "an output of raw() is a Var: a Value is computed only once",
          k.raw("mov.u32 $0, 1;", {t.r}));
  REFUSED("type-mismatch", "'add.f64' expects .f64 as operand 1, but '%r10' is .b32",
          k.raw<u32>("add.f64 $0, $1, $1;", {t.r}));
  REFUSED("undefined-symbol", "raw PTX names 'nothing', which is declared nowhere",
          k.raw<u32>("mov.u32 $0, nothing;", {}));
  REFUSED("syntax", "expected ',' or ';' after operand 1 of 'mov.u32', found '1'",
          k.raw<u32>("mov.u32 $0 1;", {}));
  REFUSED_ON("sm_75", "target-lacks",
             "'redux.sync.add.u32' needs sm_80 or newer, the target is sm_75",
             k.raw<u32>("redux.sync.add.u32 $0, $1, -1;", {t.r}));
}

TEST_CASE("raw PTX holds what the op table knows, unless it is asked for unchecked") {
  REFUSED("unknown-instruction",
          "raw PTX has an instruction that the op table lacks: 'tanhh.approx.f32 %f3, %f0'; rule: "
          "raw() takes what the table can check; cure: mend the spelling, or use raw_unchecked() "
          "for an instruction newer than the table",
          k.raw<f32>("tanhh.approx.f32 $0, $1;", {t.f}));
  EMIT("newer.f32 %f3, %f0;", (void)k.raw_unchecked<f32>("newer.f32 $0, $1;", {t.f}));
  // Beside it, everything is checked as ever.
  REFUSED("type-mismatch", "'add.f64' expects .f64 as operand 1, but '%r10' is .b32",
          k.raw_unchecked<u32>("newer.f32 $0, $1; add.f64 $0, $1, $1;", {t.r}));
}

TEST_CASE("raw PTX takes pointers into the state space of its opcodes only") {
  EMIT("ld.shared.f32 %f3, [%r0+4];", (void)k.raw<f32>("ld.shared.f32 $0, $1;", {t.sp + 1}));
  REFUSED(
      "space-mismatch",
      "operand 2 of 'ld.f32' is a pointer into shared memory, but the opcode names no state "
      "space and reads it as a generic address; rule: an address is valid in one state space, "
      "which the opcode has to name; cure: write the modifier .shared, or pass cvta(pointer), its "
      "generic address",
      k.raw<f32>("ld.f32 $0, $1;", {t.sp}));
}

TEST_CASE("a body that throws leaves none of its structure") {
  Bench t;
  auto sum = t.k.var<u32>(0);
  const std::string before = snapshot(t.k);
  CHECK_THROWS_AS(t.k.for_(0, t.r, 1,
                           [&](Value<u32> i) {
                             t.k.if_(i < 5, [&] {
                               sum += i;
                               t.k.label("inner");
                               t.k.shared<f32>(4);
                               throw std::runtime_error("the author's own");
                             });
                           }),
                  std::runtime_error);
  CHECK(snapshot(t.k) == before);
  // The exception was not a mistake of the kernel: it can be built.
  t.k.label("inner");
  t.k.st(t.up, sum);
}

TEST_CASE("nothing is added after build()") {
  KernelBuilder k("k");
  const Ptr<u32> p = k.param<Ptr<u32>>("p");
  k.st(p, 1);
  (void)k.build();
  CHECK(error_of([&] { k.st(p, 1); }).message ==
        "the kernel is built: nothing can be added after build()");
  CHECK(error_of([&] { (void)k.build(); }).kernel == "k");
}
