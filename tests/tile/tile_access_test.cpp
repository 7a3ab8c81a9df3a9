// tests/tile/tile_access_test.cpp - halves in 16 bytes, bytes, reductions, reshaped views
#include <bit>
#include <cstring>

#include "ptxgen/builder/tile.hpp"
#include "ptxgen/builder/token.hpp"
#include "refusal.hpp"
#include "tile_rig.hpp"

using namespace ptxgen;
using test::refusal;
using test::TileArgument;

namespace {

/// The memory of an argument as elements of another type.
template <class E>
std::vector<E> elements(const std::vector<float>& memory) {
  std::vector<E> all(memory.size() * 4 / sizeof(E));
  std::memcpy(all.data(), memory.data(), all.size() * sizeof(E));
  return all;
}
template <class E>
std::vector<float> memory(const std::vector<E>& elements) {
  std::vector<float> all((elements.size() * sizeof(E) + 3) / 4);
  std::memcpy(all.data(), elements.data(), elements.size() * sizeof(E));
  return all;
}

constexpr std::uint32_t kRows = 5;
constexpr std::uint32_t kColumns = 24;  // a tile and a half

/// out[8 x 32] = the tiles of in[kRows x kColumns], by one block for each.
template <class T>
BuiltKernel copier(Padding padding, std::uint64_t alignment, bool shared = false) {
  return build_kernel(
      "copy", "sm_80", params(param<Ptr<T>>("out"), param<Ptr<T>>("in")),
      [=](KernelBuilder& k, Ptr<T> out, Ptr<T> in) {
        TileGroup warp = TileGroup::block(k, 32);
        const Value<u32> p = k.ctaid_x();
        TilePart<T> from(
            warp, TensorView<T>(in, {kRows, kColumns}).aligned(alignment).tiles({8, 16}, padding),
            {0, p});
        TilePart<T> to(warp, TensorView<T>(out, {8, 32}).aligned(alignment).tiles({8, 16}), {0, p});
        if (!shared) return to.store(from.load());
        const SharedTile<T> tile(k, {8, 16}, {from.use(), to.use()});
        from.bind(tile).stage(padding == Padding::Zero ? Staging::Async : Staging::Registers);
        warp.sync();
        to.bind(tile).unstage();
      });
}

template <class E>
void check_copy(const BuiltKernel& kernel, E padding) {
  std::vector<E> in(kRows * kColumns);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<E>(i + 1);
  std::vector<TileArgument> arguments{memory(std::vector<E>(8 * 32, E{77})), memory(in)};
  const emulator::Result result = test::run_tiles(kernel, {2}, 32, arguments);
  CHECK(test::findings_of(result) == "");
  std::vector<E> wanted(8 * 32, padding);
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      wanted[row * 32 + column] = in[row * kColumns + column];
    }
  }
  CHECK(elements<E>(arguments[0].memory) == wanted);
}

bool has(const BuiltKernel& kernel, const char* text) {
  return kernel.ptx().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("eight elements of 16 bits are one access of 16 bytes") {
  for (const bool shared : {false, true}) {
    const BuiltKernel halves = copier<f16>(Padding::NaN, 16, shared);
    CHECK(has(halves, "ld.global.v4.b32"));
    CHECK(has(halves, "st.global.v4.b32"));
    check_copy<std::uint16_t>(halves, 0x7fff);
    check_copy<std::uint16_t>(copier<bf16>(Padding::NegativeInfinity, 16, shared), 0xff80);
    check_copy<std::uint16_t>(copier<f16>(Padding::Zero, 16, shared), 0);
  }
  // Aligned to less: four elements, and one.
  CHECK(has(copier<f16>(Padding::Zero, 8), "ld.global.v4.b16"));
  CHECK_FALSE(has(copier<f16>(Padding::Zero, 8), "v4.b32"));
  check_copy<std::uint16_t>(copier<f16>(Padding::Zero, 8), 0);
  CHECK(has(copier<f16>(Padding::Zero, 2), "ld.global.b16"));
}

TEST_CASE("tiles of bytes have zeros as padding") {
  check_copy<std::uint8_t>(copier<u8>(Padding::Zero, 4), 0);
  check_copy<std::uint8_t>(copier<s8>(Padding::Zero, 1, true), 0);
  CHECK(has(copier<u8>(Padding::Zero, 4), "ld.global.v4.u8"));
}

namespace {

/// out[20] += the tiles of in, one for each block; by elements of `T`.
template <class T, TileReduction kHow>
BuiltKernel reducer(std::string* text = nullptr) {
  return build_kernel(
      "reduce", "sm_80", params(param<Ptr<T>>("out"), param<Ptr<T>>("in")),
      [text](KernelBuilder& k, Ptr<T> out, Ptr<T> in) {
        TileGroup warp = TileGroup::block(k, 32);
        TilePart<T> from(warp, TensorView<T>(in, {3, 20}).tiles({1, 32}), {k.ctaid_x(), 0});
        TilePart<T> to(warp, TensorView<T>(out, {1, 20}).tiles({1, 32}), {0, 0});
        if (text == nullptr) {
          to.template reduce<kHow>(from.load(), Scope::gpu);
          return;
        }
        TokenProgram program(k);
        const auto loaded = program.load_view(from);
        (void)program.template reduce_view<kHow>(
            to, loaded.values, {TokenOrder::Relaxed, TokenScope::Device, &loaded.token});
        *text = program.text();
      });
}

}  // namespace

TEST_CASE("a tile is reduced into a view by relaxed atomics of its elements") {
  std::vector<float> in(60);
  for (std::size_t i = 0; i < 60; ++i) in[i] = static_cast<float>(i);
  std::vector<TileArgument> arguments{std::vector<float>(20, 0.5f), in};
  const BuiltKernel sum = reducer<f32, TileReduction::Add>();
  CHECK(has(sum, "red.relaxed.gpu.global.add.f32"));
  CHECK(test::findings_of(test::run_tiles(sum, {3}, 32, arguments)) == "");
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(arguments[0].memory[i] == 0.5f + static_cast<float>(60 + 3 * i));
  }
  std::vector<TileArgument> integers{memory(std::vector<std::uint32_t>(20, 17)),
                                     memory(std::vector<std::uint32_t>(60, 30))};
  (void)test::run_tiles(reducer<u32, TileReduction::Min>(), {3}, 32, integers);
  CHECK(elements<std::uint32_t>(integers[0].memory) == std::vector<std::uint32_t>(20, 17));
  (void)test::run_tiles(reducer<u32, TileReduction::Xor>(), {3}, 32, integers);
  CHECK(elements<std::uint32_t>(integers[0].memory) == std::vector<std::uint32_t>(20, 17 ^ 30));

  std::string text;
  CHECK(reducer<f32, TileReduction::Add>(&text).ptx() == sum.ptx());
  CHECK(tile::verify_tokens(text).empty());
  CHECK(text.find("%t1 = reduce add %p1, %a1_0 relaxed device after %t0") != std::string::npos);
}

TEST_CASE("a reduction through a broadcast, and one with an order, are refused") {
  const auto refused = [](const auto& body) {
    return refusal([&] {
      (void)build_kernel("refused", "sm_80", params(param<Ptr<f32>>("p")),
                         [&](KernelBuilder& k, Ptr<f32> p) { body(k, p); });
    });
  };
  CHECK(refused([](KernelBuilder& k, Ptr<f32> p) {
          TileGroup warp = TileGroup::warp(k);
          const auto view = TensorView<f32>(p, {1, 32}).broadcast({4, 32});
          TilePart<f32> part(warp, view.tiles({4, 32}), {0, 0});
          part.reduce<TileReduction::Add>(part.load(), Scope::gpu);
        }).find("reduce_tile") != std::string::npos);
  CHECK(refused([](KernelBuilder& k, Ptr<f32> p) {
          TileGroup warp = TileGroup::warp(k);
          TilePart<f32> part(warp, TensorView<f32>(p, {32}).tiles({32}), {0});
          TokenProgram program(k);
          (void)program.reduce_view<TileReduction::Add>(part, part.load(),
                                                        {TokenOrder::AcqRel, TokenScope::Device});
        }).find("tokens: a reduce that is acq_rel") == 0);
}

TEST_CASE("a contiguous view has other shapes") {
  // The rows of [n x 4 x 6] are rows of [n x 24].
  const BuiltKernel kernel = build_kernel(
      "reshape", "sm_80", params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in"), param<u32>("rows")),
      [](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> rows) {
        TileGroup warp = TileGroup::block(k, 32);
        const TensorView<f32> from = TensorView<f32>(in, {rows, 4, 6}).aligned(16);
        const TensorView<f32> to = TensorView<f32>(out, {12, 2}).aligned(16).reshape({1, 24});
        store_tile(warp, to.tiles({1, 32}), {0, 0},
                   load_tile(warp, from.reshape({rows, 24}).tiles({1, 32}), {1, 0}));
      });
  CHECK(has(kernel, "ld.global.v4.f32"));
  const std::vector<float> in = test::values(48, 9);
  std::vector<TileArgument> arguments{std::vector<float>(24), in, 2u};
  CHECK(test::findings_of(test::run_tiles(kernel, {1}, 32, arguments)) == "");
  CHECK(arguments[0].memory == std::vector<float>(in.begin() + 24, in.end()));

  const auto refused = [](const auto& body) {
    return refusal([&] {
      (void)build_kernel("refused", "sm_80", params(param<Ptr<f32>>("p"), param<u32>("n")),
                         [&](KernelBuilder&, Ptr<f32> p, Value<u32> n) { body(p, n); });
    });
  };
  CHECK(refused([](Ptr<f32> p, Value<u32>) {
          (void)TensorView<f32>(p, {4, 6}).transpose().reshape({24});
        }) ==
        "view: view [6, 4]:[1, 6]+0: reshape to [24]; rule: only a view that is known to be "
        "contiguous "
        "has other shapes; cure: copy it into contiguous memory first");
  CHECK(refused([](Ptr<f32> p, Value<u32>) {
          (void)TensorView<f32>(p, {4, 6}).reshape({23});
        }) ==
        "view: view [4, 6]:[6, 1]+0: reshape to [23]; rule: both shapes have the same number of "
        "elements; cure: it has 24 elements, the new shape 23");
  CHECK(refused([](Ptr<f32> p, Value<u32> n) {
          (void)TensorView<f32>(p, {n, 6}).reshape({6, n});
        }) ==
        "view: reshape to [6, dynamic]; rule: of the sizes only the first may be a value of the "
        "kernel, "
        "and stays the first; cure: give C++ integers, or a view of the new shape");
  CHECK(refused([](Ptr<f32> p, Value<u32> n) {
          (void)TensorView<f32>(p, {n, 4, 6}, {32, 6, 1}).reshape({n, 24});
        }) ==
        "view: view [?, 4, 6]:[32, 6, 1]+0: reshape to [dynamic, 24]; rule: only a view that is "
        "known to "
        "be contiguous has other shapes; cure: copy it into contiguous memory first");
  CHECK(refused([](Ptr<f32> p, Value<u32>) {
          (void)TensorView<f32>(p, {4, 6}).broadcast({2, 4, 6}).reshape({48});
        }) ==
        "view: reshape to [48]; rule: a broadcast has the shape that it was repeated to; cure: "
        "reshape "
        "before the broadcast");
}
