// tests/builder/literals_test.cpp - numbers are taken by value, wherever they are
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/cluster.hpp"

using namespace ptxgen;

namespace {

// A reference to a local constexpr would be a use that needs a capture, which none of these has.
constexpr auto kTarget = "sm_90";

template <class Body>
std::string ptx_of(const Body& body) {
  return build_kernel("f", kTarget, params(param<Ptr<u32>>("p"), param<u32>("x"), param<f32>("a")),
                      body)
      .ptx();
}
/// Of every statement with that opcode, what comes after its first operand.
std::vector<std::string> operands(const std::string& ptx, const std::string& opcode) {
  std::vector<std::string> found;
  for (std::size_t at = 0; (at = ptx.find("    " + opcode + " ", at)) != std::string::npos; ++at) {
    const std::size_t comma = ptx.find(", ", at) + 2;
    found.push_back(ptx.substr(comma, ptx.find(";\n", at) - comma));
  }
  return found;
}
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a local constexpr is an operand in a lambda without captures: arithmetic") {
  constexpr unsigned kThree = 3;
  constexpr float kHalf = 0.5f;
  const std::string ptx = ptx_of([](KernelBuilder& k, Ptr<u32> p, Value<u32> x, Value<f32> a) {
    const Value<u32> sums[] = {k.add(x, kThree),
                               k.add(kThree, x),
                               k.sub(kThree, x),
                               k.mul(x, kThree),
                               k.div(kThree, x),
                               k.rem(x, kThree),
                               k.min(x, kThree),
                               k.max(kThree, x),
                               k.mul_lo(kThree, x),
                               k.mul_hi(x, kThree),
                               k.mad_lo(x, kThree, kThree),
                               k.mad_lo(kThree, x, kThree),
                               k.mad_lo(kThree, kThree, x),
                               k.mad_hi(x, kThree, x)};
    const Value<f32> floats[] = {k.fma(a, kHalf, kHalf), k.fma(kHalf, a, kHalf),
                                 k.fma(kHalf, kHalf, a), k.copysign(kHalf, a),
                                 k.div(kHalf, a),        min(kHalf, a),
                                 max(a, kHalf),          fma(a, kHalf, a),
                                 fma(kHalf, a, kHalf),   select(x < kThree, kHalf, a)};
    const Value<u64> wide[] = {k.mul_wide(x, kThree), k.mul_wide(kThree, x),
                               k.mad_wide(x, kThree, kThree), k.mad_wide(kThree, x, kThree)};
    for (const auto& sum : sums) k.st(p, sum);
    for (const auto& one : floats) k.st(p, k.bitcast<u32>(one));
    for (const auto& one : wide) k.st(p, k.cvt<u32>(one));
    auto sum = k.var<u32>(kThree);
    k.add_inplace(sum, kThree);
    k.shl_inplace(sum, kThree);
    auto scaled = k.var<f32>(kHalf);
    k.fma_inplace(scaled, a, kHalf);
    k.fma_inplace(scaled, kHalf, kHalf);
    k.st(p, k.add(sum, k.bitcast<u32>(scaled)));
  });
  CHECK(operands(ptx, "sub.u32") == Texts{"3, %r0"});
  CHECK(operands(ptx, "max.u32") == Texts{"3, %r0"});
  CHECK(operands(ptx, "mad.lo.u32") == Texts{"%r0, 3, 3", "3, %r0, 3", "3, 3, %r0"});
  CHECK(operands(ptx, "mad.wide.u32") == Texts{"%r0, 3, 3", "3, %r0, 3"});
  CHECK(operands(ptx, "copysign.f32") == Texts{"0f3F000000, %f0"});
  CHECK(operands(ptx, "selp.f32") == Texts{"0f3F000000, %f0, %p0"});
  CHECK(operands(ptx, "fma.rn.f32").size() == 7);
  CHECK(operands(ptx, "shl.b32") == Texts{"%r29, 3"});
}

TEST_CASE("a local constexpr is an operand in a lambda without captures: bits and choices") {
  constexpr unsigned kThree = 3;
  constexpr bool kTrue = true;
  const std::string ptx = ptx_of([](KernelBuilder& k, Ptr<u32> p, Value<u32> x, Value<f32> a) {
    const Value<u32> all[] = {k.and_(x, kThree),
                              k.or_(kThree, x),
                              k.xor_(x, kThree),
                              k.shl(x, kThree),
                              k.shr(x, kThree),
                              k.bfe(x, kThree, kThree),
                              k.bfi(x, kThree, kThree, kThree),
                              k.bfi(kThree, x, kThree, kThree),
                              k.prmt(x, kThree, kThree),
                              k.prmt(kThree, x, kThree),
                              k.lop3(x, kThree, kThree, 0x80),
                              k.lop3(kThree, x, kThree, 0x80),
                              k.lop3(kThree, kThree, x, 0x80),
                              k.shf_l(x, kThree, kThree),
                              k.shf_r(kThree, x, kThree),
                              k.selp(x, kThree, k.setp(Comparison::lt, x, kThree)),
                              k.selp(kThree, x, k.setp(Comparison::lt, kThree, x))};
    for (const auto& one : all) k.st(p, one);
    const Pred both = k.and_(x < kThree, kTrue);
    k.if_(both, [&] { k.st(p, kThree); });
    const Value<f16x2> halves = k.cvt2<f16x2>(a, 0.5f);
    k.st(p, k.bitcast<u32>(halves));
    k.st(p, k.cvt<u32>(k.pack<u64>(x, kThree)));
    k.st(p, k.cvt<u32>(k.pack<u64>(kThree, x)));
  });
  CHECK(operands(ptx, "and.b32") == Texts{"%r0, 3"});
  CHECK(operands(ptx, "bfe.u32") == Texts{"%r0, 3, 3"});
  CHECK(operands(ptx, "bfi.b32") == Texts{"%r0, 3, 3, 3", "3, %r0, 3, 3"});
  CHECK(operands(ptx, "prmt.b32") == Texts{"%r0, 3, 3", "3, %r0, 3"});
  CHECK(operands(ptx, "lop3.b32") == Texts{"%r0, 3, 3, 128", "3, %r0, 3, 128", "3, 3, %r0, 128"});
  CHECK(operands(ptx, "setp.lt.u32") == Texts{"%r0, 3", "3, %r0", "%r0, 3"});
}

TEST_CASE("a local constexpr is an operand in a lambda without captures: memory, warps, loops") {
  constexpr unsigned kThree = 3;
  constexpr unsigned kMask = 0xff;
  const std::string ptx = ptx_of([](KernelBuilder& k, Ptr<u32> p, Value<u32> x, Value<f32>) {
    k.st(p, kThree);
    k.st_global(p, kThree);
    store(p, kThree);
    p[kThree] = kThree;
    p[x] += kThree;
    static_cast<void>(k.atom_add(p, kThree));
    static_cast<void>(k.atom_cas(p, kThree, kMask));
    k.red_max(p, kThree);
    k.st(p, k.ld_predicated(p, x < kThree, kThree));
    k.st(p, k.shfl_up(x, kThree, kMask));
    k.st(p, k.shfl_bfly(x, kThree));
    k.st(p, k.shfl_idx(x, kThree));
    k.st(p, k.vote_ballot(x < kThree, kMask));
    k.st(p, k.match_any(x, kMask));
    k.st(p, k.redux_add(x, kMask));
    k.bar_warp_sync(kMask);
    k.for_(0, kThree, kThree, [&](Value<u32> i) { k.st(p, i); });
    k.for_(kThree, x, kThree, [&](Value<u32> i) { k.st(p, i); });
    k.for_(x, kMask, kThree, [&](Value<u32> i) { k.st(p, i); });
    k.for_(kThree, kMask, x, [&] { k.st(p, x); });
    const Mbarrier bar = k.shared<u64>(1).base();
    mbarrier_init(k, bar, kThree);
    mbarrier_arrive_expect_tx(k, bar, kThree);
    mbarrier_wait(k, bar, kThree);
  });
  CHECK(operands(ptx, "atom.global.cas.b32") == Texts{"[%rd1], 3, 255"});
  CHECK(operands(ptx, "red.global.max.u32") == Texts{"3"});
  CHECK(operands(ptx, "shfl.sync.bfly.b32") == Texts{"%r0, 3, 31, 4294967295"});
  CHECK(operands(ptx, "redux.sync.add.u32") == Texts{"%r0, 255"});
  CHECK(operands(ptx, "mbarrier.init.shared.b64") == Texts{"3"});
  CHECK(operands(ptx, "mbarrier.arrive.expect_tx.shared.b64").size() == 1);
}
