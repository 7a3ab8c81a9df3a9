// tests/builder/loop_test.cpp - counted loops run for exactly the right indices
#include "emit.hpp"
#include "support/harness.hpp"

#include <rapidcheck/catch.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// Runs what for_ emits (one thread, no memory): enough of PTX for loops over any index type.
// `st.global [p], i` in the body records i.
class Machine {
 public:
  explicit Machine(const ptx::Module& module) : f_(module.functions[0]) {
    for (std::size_t i = 0; i < f_.body.size(); ++i) {
      if (f_.body[i].kind == ptx::StatementKind::Label) labels_[operand(i, 0).id] = i;
    }
  }

  void set(ptx::Register r, std::uint64_t value) { registers_[{r.decl.value, r.index}] = value; }

  /// The recorded indices; nothing if it ran for more than `max` statements.
  std::optional<std::vector<std::uint64_t>> run(std::size_t max) {
    std::vector<std::uint64_t> recorded;
    std::size_t at = 0;
    for (std::size_t n = 0; at < f_.body.size(); ++n) {
      if (n == max) return std::nullopt;
      const ptx::Instruction& s = f_.body[at];
      const std::size_t here = at++;
      if (s.kind != ptx::StatementKind::Instruction) continue;
      if (s.guard.present() &&
          (read(ptx::Operand::reg(s.guard.predicate)) != 0) == s.guard.negated) {
        continue;
      }
      const std::string_view mnemonic = ptx::info(s.op).mnemonic;
      const ptx::Type type = s.type();
      if (mnemonic == "bra") {
        at = labels_.at(operand(here, 0).id);
      } else if (mnemonic == "st") {
        recorded.push_back(read(operand(here, 1)) & mask(type));
      } else if (mnemonic != "ret") {
        set(operand(here, 0).as_register(), compute(mnemonic, s, here));
      }
    }
    return recorded;
  }

 private:
  const ptx::Operand& operand(std::size_t statement, std::size_t i) const {
    return f_.operands[f_.body[statement].first_operand + i];
  }
  std::uint64_t read(const ptx::Operand& o) const {
    if (o.kind == ptx::OperandKind::Integer) return o.value;
    REQUIRE(o.kind == ptx::OperandKind::Register);
    return registers_.at({o.id, o.index});
  }
  static std::uint64_t mask(ptx::Type type) {
    return ptx::bits(type) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ptx::bits(type)) - 1;
  }
  std::uint64_t compute(std::string_view mnemonic, const ptx::Instruction& s,
                        std::size_t at) const {
    const ptx::Type type = s.type();
    const std::uint64_t m = mask(type);
    const std::uint64_t a = read(operand(at, 1)) & m;
    if (mnemonic == "mov") return a;
    const std::uint64_t b = read(operand(at, 2)) & m;
    if (mnemonic == "add") return (a + b) & m;
    if (mnemonic == "sub") return (a - b) & m;
    if (mnemonic == "mul") return (a * b) & m;
    if (mnemonic == "mad") return (a * b + read(operand(at, 3))) & m;
    if (mnemonic == "and") return a & b;
    if (mnemonic == "selp") return read(operand(at, 3)) != 0 ? a : b;
    const bool is_signed = ptx::kind(type) == ptx::TypeKind::Signed;
    if (mnemonic == "min") {
      REQUIRE_FALSE(is_signed);
      return a < b ? a : b;
    }
    if (mnemonic == "rem") {
      REQUIRE_FALSE(is_signed);
      return b == 0 ? a : a % b;
    }
    REQUIRE(mnemonic == "setp");
    const auto order = [&](std::uint64_t v) {
      return is_signed ? v ^ (std::uint64_t{1} << (ptx::bits(type) - 1)) : v;
    };
    switch (s.get(ptx::Field::Comparison)) {
      case ptx::Modifier::eq:
        return a == b;
      case ptx::Modifier::lt:
        return order(a) < order(b);
      case ptx::Modifier::le:
        return order(a) <= order(b);
      case ptx::Modifier::ge:
        return order(a) >= order(b);
      default:
        FAIL("a comparison for_ does not use");
        return 0;
    }
  }

  const ptx::Function& f_;
  std::map<std::uint32_t, std::size_t> labels_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> registers_;
};

enum class Operands { Values, ConstantStep, ConstantBeginStep, ConstantEndStep, ConstantBounds };

// The indices of a loop as C++ computes them, as bit patterns.
template <class Cpp>
std::vector<std::uint64_t> expected(Cpp begin, Cpp end, Cpp step) {
  std::vector<std::uint64_t> indices;
  const auto pattern = [](Cpp v) {
    return static_cast<std::uint64_t>(v) & (~std::uint64_t{0} >> (64 - 8 * sizeof(Cpp)));
  };
  if (begin >= end) return indices;
  // Counted in differences, which do not overflow.
  const std::uint64_t length = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin);
  for (std::uint64_t at = 0; at < length; at += static_cast<std::uint64_t>(step)) {
    indices.push_back(pattern(static_cast<Cpp>(static_cast<std::uint64_t>(begin) + at)));
  }
  return indices;
}

template <class T, class Cpp>
void check(Operands kind, Cpp begin, Cpp end, Cpp step, unsigned factor) {
  INFO("given " << static_cast<int>(kind) << " begin " << begin << " end " << end << " step "
                << step << " factor " << factor);
  KernelBuilder k("loop");
  const Ptr<T> out = k.pointer<T>(k.undefined<u64>());
  const Value<T> vb = k.undefined<T>();
  const Value<T> ve = k.undefined<T>();
  const Value<T> vs = k.undefined<T>();
  const auto body = [&](Value<T> i) { k.st(out, i); };
  switch (kind) {
    case Operands::Values:
      k.for_(vb, ve, vs, body, Unroll{factor});
      break;
    case Operands::ConstantStep:
      k.for_(vb, ve, step, body, Unroll{factor});
      break;
    case Operands::ConstantBeginStep:
      k.for_(begin, ve, step, body, Unroll{factor});
      break;
    case Operands::ConstantEndStep:
      k.for_(vb, end, step, body, Unroll{factor});
      break;
    case Operands::ConstantBounds:
      k.for_(begin, end, vs, body, Unroll{factor});
      break;
  }
  Machine machine(k.module());
  const auto pattern = [](Cpp v) {
    return static_cast<std::uint64_t>(v) & (~std::uint64_t{0} >> (64 - 8 * sizeof(Cpp)));
  };
  machine.set(vb.reg(), pattern(begin));
  machine.set(ve.reg(), pattern(end));
  machine.set(vs.reg(), pattern(step));
  const auto indices = machine.run(100000);
  REQUIRE(indices.has_value());
  CHECK(*indices == expected<Cpp>(begin, end, step));
}

template <class T, class Cpp>
void sweep() {
  constexpr Cpp kLow = std::numeric_limits<Cpp>::min();
  constexpr Cpp kHigh = std::numeric_limits<Cpp>::max();
  std::uint64_t steps = 0;
  for (const Operands kind : {Operands::Values, Operands::ConstantStep, Operands::ConstantBeginStep,
                              Operands::ConstantEndStep, Operands::ConstantBounds}) {
    for (const unsigned factor : {1u, 2u, 3u, 4u, 8u}) {
      for (const Cpp step : {Cpp{1}, Cpp{2}, Cpp{3}, Cpp{7}, Cpp{256}}) {
        if (!test::takes(steps++, 1, 7)) continue;
        for (Cpp length = 0; length < 40; length += 3) {
          check<T, Cpp>(kind, 0, length, step, factor);
          check<T, Cpp>(kind, static_cast<Cpp>(kHigh - length), kHigh, step, factor);
          check<T, Cpp>(kind, kLow, static_cast<Cpp>(kLow + length), step, factor);
          check<T, Cpp>(kind, length, 0, step, factor);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("loops over u32 run for exactly the right indices, to the ends of the type") {
  sweep<u32, std::uint32_t>();
}
TEST_CASE("loops over s32 run for exactly the right indices, to the ends of the type") {
  sweep<s32, std::int32_t>();
}
TEST_CASE("loops over u64 run for exactly the right indices, to the ends of the type") {
  sweep<u64, std::uint64_t>();
}
TEST_CASE("loops over s64 run for exactly the right indices, to the ends of the type") {
  sweep<s64, std::int64_t>();
}

TEST_CASE("loops with few turns and huge steps") {
  for (const unsigned factor : {1u, 4u}) {
    for (const std::uint32_t step : {0x3fffffffu, 0x20000000u}) {
      for (const Operands kind :
           {Operands::Values, Operands::ConstantStep, Operands::ConstantBounds}) {
        check<u32, std::uint32_t>(kind, 0u, 0xffffffffu, step, factor);
        check<u32, std::uint32_t>(kind, 5u, 0xfffffff0u, step, factor);
        check<s32, std::int32_t>(kind, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max(),
                                 static_cast<std::int32_t>(step / 4), factor);
      }
    }
  }
  // A run-time step too large to multiply by the factor.
  check<u32, std::uint32_t>(Operands::Values, 0u, 0xffffffffu, 0xc0000000u, 4);
  check<u32, std::uint32_t>(Operands::Values, 0u, 0xffffffffu, 0x40000000u, 4);
}

TEST_CASE("random loops") {
  rc::prop("random bounds, steps and factors", [](std::uint32_t begin, std::uint8_t iterations) {
    const std::uint32_t step = *rc::gen::inRange(1u, 1000u);
    const unsigned factor = *rc::gen::inRange(1u, 9u);
    const std::uint64_t last = std::uint64_t{begin} + std::uint64_t{step} * iterations;
    const auto end = static_cast<std::uint32_t>(
        last > 0xffffffffu ? 0xffffffffu
                           : last - (iterations != 0 ? *rc::gen::inRange(0u, step) : 0));
    for (const Operands kind :
         {Operands::Values, Operands::ConstantStep, Operands::ConstantBeginStep,
          Operands::ConstantEndStep, Operands::ConstantBounds}) {
      check<u32, std::uint32_t>(kind, begin, end, step, factor);
    }
  });
}

TEST_CASE("constant loops run as often as they say") {
  const auto indices = [](auto begin, auto end, auto step, unsigned factor) {
    KernelBuilder k("loop");
    const Ptr<u32> out = k.pointer<u32>(k.undefined<u64>());
    k.for_(
        begin, end, step, [&](Value<u32> i) { k.st(out, i); }, Unroll{factor});
    return Machine(k.module()).run(100000).value();
  };
  for (unsigned factor = 1; factor < 10; ++factor) {
    for (unsigned length = 0; length < 30; ++length) {
      CHECK(indices(0, length, 1, factor) == expected<std::uint32_t>(0, length, 1));
      CHECK(indices(3, length, 2, factor) == expected<std::uint32_t>(3, length, 2));
      CHECK(indices(0xffffffffu - length, 0xffffffffu, 5, factor) ==
            expected<std::uint32_t>(0xffffffffu - length, 0xffffffffu, 5));
    }
  }
}

TEST_CASE("loops are guarded and tested at the bottom") {
  KernelBuilder k("loop");
  const Value<u32> n = k.param<u32>("n");
  auto sum = k.var<u32>(0);
  const std::size_t first = k.statement_count();
  k.for_(0, n, 1, [&](Value<u32> i) { sum += i; });
  CHECK(emitted(k, first) ==
        "setp.le.u32 %p0, %r0, 0;\n@%p0 bra $L0;\nmov.u32 %r2, 0;\n$L1:\n"
        "add.u32 %r1, %r1, %r2;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r0;\n"
        "@%p1 bra $L1;\n$L0:");
  const std::size_t second = k.statement_count();
  k.while_([&] { return sum < n; }, [&] { sum += 3; });
  CHECK(emitted(k, second) ==
        "setp.lt.u32 %p2, %r1, %r0;\n@!%p2 bra $L3;\n$L2:\nadd.u32 %r1, %r1, 3;\n"
        "setp.lt.u32 %p3, %r1, %r0;\n@%p3 bra $L2;\n$L3:");
  const std::size_t third = k.statement_count();
  k.do_while([&] { sum -= 1; }, [&] { return sum > n; });
  CHECK(emitted(k, third) ==
        "$L4:\nsub.u32 %r1, %r1, 1;\nsetp.gt.u32 %p4, %r1, %r0;\n@%p4 bra $L4;");
}

TEST_CASE("bounds are read when the loop begins") {
  KernelBuilder k("loop");
  auto n = k.var<u32>(5);
  k.for_(0, n, 1, [&] { n += 1; });
  // The bound is a copy, so the loop ends.
  Machine machine(k.module());
  CHECK(machine.run(1000).has_value());
}
