// tests/builder/matrix_test.cpp - fragments, ldmatrix, stmatrix, mma: text, refusals, products
#include "ptxgen/builder/matrix.hpp"

#include <cstring>
#include <random>
#include <type_traits>

#include "builder/emit.hpp"
#include "ptxgen/emulator.hpp"

using namespace ptxgen;
using test::Bench;
using test::emitted;
using test::error_of;

namespace {

template <class F>
std::string text_of(std::string_view target, F&& calls) {
  KernelBuilder k("bench", target);
  const std::size_t first = k.statement_count();
  calls(k);
  return emitted(k, first);
}

template <class F>
F any_fragment(KernelBuilder& k) {
  return detail::fragment_of<F>([&](unsigned) { return k.undefined<typename F::Register>(); });
}

// ---- numbers as a fragment's memory holds them

template <class T>
struct Stored {
  using type = std::conditional_t<std::is_same_v<T, s32>, std::int32_t, float>;
};
template <>
struct Stored<f16> {
  using type = std::uint16_t;
};
template <>
struct Stored<bf16> {
  using type = std::uint16_t;
};
template <>
struct Stored<s8> {
  using type = std::int8_t;
};
template <>
struct Stored<u8> {
  using type = std::uint8_t;
};

// Small integers, which every type holds exactly.
std::uint16_t half_bits(int value) {
  if (value == 0) return 0;
  const unsigned magnitude = static_cast<unsigned>(value < 0 ? -value : value);
  unsigned exponent = 0;
  while (magnitude >> (exponent + 1) != 0) ++exponent;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000u : 0u) | (exponent + 15) << 10 |
                                    ((magnitude << (10 - exponent)) & 0x3ffu));
}
int half_value(std::uint16_t bits) {
  if ((bits & 0x7fff) == 0) return 0;
  const int exponent = (bits >> 10 & 31) - 15;
  const int magnitude = ((bits & 0x3ff) | 0x400) >> (10 - exponent);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}
template <class T>
typename Stored<T>::type stored(int value) {
  if constexpr (std::is_same_v<T, f16>) {
    return half_bits(value);
  } else if constexpr (std::is_same_v<T, bf16>) {
    const float number = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, 4);
    return static_cast<std::uint16_t>(bits >> 16);
  } else {
    return static_cast<typename Stored<T>::type>(value);
  }
}
template <class T>
int read_back(typename Stored<T>::type value) {
  if constexpr (std::is_same_v<T, f16>) {
    return half_value(value);
  } else {
    return static_cast<int>(value);
  }
}

// What a pointer to the elements is: tf32 is in memory as f32.
template <class T>
using InMemory = std::conditional_t<std::is_same_v<T, tf32>, f32, T>;

// How a and b come into registers.
enum class Path { Global, Ldmatrix, Transposed };

struct Lanes {
  static constexpr unsigned kWarp = 32;
};

template <class Shape, class A, class B, class C>
ptx::Module product(Path path, bool loop, std::string_view target) {
  using FA = FragmentA<Shape, A>;
  using FB = FragmentB<Shape, B>;
  KernelBuilder k("product", target);
  const auto a = k.param<Ptr<InMemory<A>>>("a");  // row-major
  const auto b = k.param<Ptr<InMemory<B>>>("b");  // column-major
  const auto d = k.param<Ptr<C>>("d");            // row-major
  const auto load = [&]() -> std::pair<FA, FB> {
    if (path == Path::Global) {
      return {load_fragment<FA>(k, a, Shape::kK), load_fragment<FB>(k, b, Shape::kK)};
    }
    // The tiles as they are in global memory, or transposed.
    const bool transposed = path == Path::Transposed;
    const unsigned a_stride = transposed ? Shape::kM : Shape::kK;
    const unsigned b_stride = transposed ? Shape::kN : Shape::kK;
    const auto ta = k.shared<InMemory<A>>(Shape::kM * Shape::kK, "ta", 128);
    const auto tb = k.shared<InMemory<B>>(Shape::kK * Shape::kN, "tb", 128);
    const auto tid = k.tid_x();
    k.for_(tid, Shape::kM * Shape::kK, Lanes::kWarp, [&](const Value<u32>& i) {
      const auto row = i / Shape::kK;
      const auto column = i % Shape::kK;
      ta[transposed ? column * a_stride + row : i] = a[i];
    });
    k.for_(tid, Shape::kN * Shape::kK, Lanes::kWarp, [&](const Value<u32>& i) {
      const auto column = i / Shape::kK;
      const auto row = i % Shape::kK;
      tb[transposed ? row * b_stride + column : i] = b[i];
    });
    k.bar_sync();
    return {ldmatrix<FA>(k, ta.base(), a_stride,
                         transposed ? MatrixOrder::ColumnMajor : MatrixOrder::RowMajor),
            ldmatrix<FB>(k, tb.base(), b_stride,
                         transposed ? MatrixOrder::RowMajor : MatrixOrder::ColumnMajor)};
  };
  const std::pair<FA, FB> ab = load();
  const FA& fa = ab.first;
  const FB& fb = ab.second;
  if (loop) {
    Accumulator<Shape, C> sum(k);
    k.for_(0u, 3u, 1u, [&] { mma_inplace(k, sum, fa, fb); });
    store_fragment(k, d, sum.read(), Shape::kN);
  } else {
    const auto once = mma(k, fa, fb, zero_fragment<FragmentC<Shape, C>>(k));
    store_fragment(k, d, mma(k, fa, fb, once), Shape::kN);
  }
  return k.build().module();
}

template <class T>
std::uint64_t upload(emulator::Device& device, const std::vector<T>& values, const char* name) {
  const std::uint64_t address = device.allocate(values.size() * sizeof(T), name);
  device.write(address, std::as_bytes(std::span(values)));
  return address;
}

void run(emulator::Device& device, const ptx::Module& module, const char* kernel,
         const std::vector<std::uint64_t>& arguments) {
  emulator::Program program = emulator::Program::load(device, module);
  emulator::Launch launch;
  launch.kernel = kernel;
  launch.block = {Lanes::kWarp, 1, 1};
  launch.parameters = std::as_bytes(std::span(arguments));
  const emulator::Result result = emulator::run(program, launch, {});
  REQUIRE(result.status == emulator::Status::Ok);
  REQUIRE(result.findings.empty());
}

template <class T>
std::vector<T> download(emulator::Device& device, std::uint64_t address, std::size_t count) {
  std::vector<T> values(count);
  device.read(address, std::as_writable_bytes(std::span(values)));
  return values;
}

// Runs the product of random matrices and compares every element with integers.
template <class Shape, class A, class B, class C>
void check_product(Path path, bool loop = false) {
  constexpr unsigned kM = Shape::kM, kN = Shape::kN, kK = Shape::kK;
  CAPTURE(kK, static_cast<int>(path), loop, A::kBits, C::kBits);
  std::mt19937 random(7 + kK);
  const int low = std::is_same_v<A, u8> ? 0 : -3;
  std::vector<int> a(kM * kK), b(kK * kN);
  for (int& x : a) x = low + static_cast<int>(random() % 7);
  for (int& x : b) x = (std::is_same_v<B, u8> ? 0 : -3) + static_cast<int>(random() % 7);
  std::vector<typename Stored<A>::type> a_bytes;
  std::vector<typename Stored<B>::type> b_bytes(kK * kN);
  for (const int x : a) a_bytes.push_back(stored<A>(x));
  for (unsigned i = 0; i < kK; ++i) {
    for (unsigned j = 0; j < kN; ++j) b_bytes[j * kK + i] = stored<B>(b[i * kN + j]);
  }
  emulator::Device device(emulator::default_gpu("sm_80"));
  using Out = typename Stored<C>::type;
  const std::uint64_t at_a = upload(device, a_bytes, "a");
  const std::uint64_t at_b = upload(device, b_bytes, "b");
  const std::uint64_t at_d = upload(device, std::vector<Out>(kM * kN), "d");
  run(device, product<Shape, A, B, C>(path, loop, "sm_80"), "product", {at_a, at_b, at_d});
  const std::vector<Out> d = download<Out>(device, at_d, kM * kN);
  for (unsigned i = 0; i < kM; ++i) {
    for (unsigned j = 0; j < kN; ++j) {
      int sum = 0;
      for (unsigned t = 0; t < kK; ++t) sum += a[i * kK + t] * b[t * kN + j];
      CAPTURE(i, j);
      REQUIRE(read_back<C>(d[i * kN + j]) == sum * (loop ? 3 : 2));
    }
  }
}

// Every path that ldmatrix has for the element type.
template <class Shape, class A, class B, class C>
void check_all() {
  for (const bool loop : {false, true}) {
    check_product<Shape, A, B, C>(Path::Global, loop);
    // Two stored rows of m16n8k4 tf32 are 16 bytes: no ldmatrix row is shorter.
    if constexpr (Shape::kK * A::kBytes >= 16) check_product<Shape, A, B, C>(Path::Ldmatrix, loop);
    if constexpr (A::kBits == 16) check_product<Shape, A, B, C>(Path::Transposed, loop);
  }
}

}  // namespace

TEST_CASE("a 16x8x16 product through ldmatrix and mma") {
  check_all<m16n8k16, f16, f16, f32>();
  check_all<m16n8k16, f16, f16, f16>();
  check_all<m16n8k16, bf16, bf16, f32>();
}

TEST_CASE("products of the other shapes and types") {
  check_all<m16n8k8, f16, f16, f32>();
  check_all<m16n8k8, f16, f16, f16>();
  check_all<m16n8k8, bf16, bf16, f32>();
  check_all<m16n8k4, tf32, tf32, f32>();
  check_all<m16n8k8, tf32, tf32, f32>();
  check_all<m16n8k16, s8, s8, s32>();
  check_all<m16n8k32, s8, s8, s32>();
  check_all<m16n8k32, u8, u8, s32>();
  check_all<m16n8k32, u8, s8, s32>();
  check_all<m16n8k16, s8, u8, s32>();
}

TEST_CASE("stmatrix stores what ldmatrix loads, straight and transposed") {
  for (const MatrixOrder order : {MatrixOrder::RowMajor, MatrixOrder::ColumnMajor}) {
    const bool rows = order == MatrixOrder::RowMajor;
    KernelBuilder k("product", "sm_90");
    const auto in = k.param<Ptr<f32>>("in");
    const auto out = k.param<Ptr<f16>>("out");
    const auto tile = k.shared<f16>(16 * 8, "tile", 128);
    const auto full = load_fragment<FragmentC<m16n8k16, f32>>(k, in, 8);
    const FragmentD<m16n8k16, f32> d(full.registers());
    stmatrix(k, tile.base(), narrow<f16>(k, d), rows ? 8 : 16, order);
    k.bar_sync();
    k.for_(k.tid_x(), 16 * 8, Lanes::kWarp, [&](const Value<u32>& i) { out[i] = tile[i]; });
    emulator::Device device(emulator::default_gpu("sm_90"));
    std::vector<float> values;
    for (int i = 0; i < 16 * 8; ++i) values.push_back(static_cast<float>(i));
    const std::uint64_t from = upload(device, values, "in");
    const std::uint64_t to = upload(device, std::vector<std::uint16_t>(16 * 8), "out");
    run(device, k.build().module(), "product", {from, to});
    const auto stored_tile = download<std::uint16_t>(device, to, 16 * 8);
    for (unsigned i = 0; i < 16; ++i) {
      for (unsigned j = 0; j < 8; ++j) {
        const std::uint16_t element = stored_tile[rows ? i * 8 + j : j * 16 + i];
        CHECK(half_value(element) == static_cast<int>(i * 8 + j));
      }
    }
  }
}

TEST_CASE("fragments have the registers and elements of the manual's tables") {
  CHECK(FragmentA<m16n8k16, f16>::kRegisters == 4);
  CHECK(FragmentB<m16n8k16, f16>::kRegisters == 2);
  CHECK(FragmentD<m16n8k16, f32>::kRegisters == 4);
  CHECK(FragmentD<m16n8k16, f16>::kRegisters == 2);
  CHECK(FragmentA<m16n8k8, tf32>::kRegisters == 4);
  CHECK(FragmentB<m16n8k8, tf32>::kRegisters == 2);
  CHECK(FragmentA<m16n8k32, s8>::kRegisters == 4);
  CHECK(FragmentC<m16n8k32, s32>::kRegisters == 4);
  // Rows as the manual gives them: a[4], a[5] of f16 m16n8k16 in row l / 4, columns 8 further on.
  using A = FragmentA<m16n8k16, f16>;
  CHECK(A::place(5, 0).row == 1);
  CHECK(A::place(5, 1).column == 3);
  CHECK(A::place(5, 2).row == 9);
  CHECK(A::place(5, 4).row == 1);
  CHECK(A::place(5, 4).column == 10);
  using B = FragmentB<m16n8k16, f16>;
  CHECK(B::place(6, 3).row == 13);
  CHECK(B::place(6, 3).column == 1);
  // Every element belongs to one lane.
  std::vector<int> owners(16 * 32);
  using Bytes = FragmentA<m16n8k32, s8>;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < Bytes::kElements; ++i) {
      const auto place = Bytes::place(lane, i);
      ++owners.at(place.row * 32 + place.column);
    }
  }
  CHECK(std::count(owners.begin(), owners.end(), 1) == 16 * 32);
}

TEST_CASE("mma, ldmatrix and stmatrix are one instruction each") {
  CHECK(text_of("sm_90",
                [](KernelBuilder& k) {
                  const auto a = any_fragment<FragmentA<m16n8k16, bf16>>(k);
                  const auto b = any_fragment<FragmentB<m16n8k16, bf16>>(k);
                  const auto c = any_fragment<FragmentC<m16n8k16, f32>>(k);
                  mma(k, a, b, c);
                }) ==
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f4, %f5, %f6, %f7}, "
        "{%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3};");
  CHECK(text_of("sm_90",
                [](KernelBuilder& k) {
                  const auto a = any_fragment<FragmentA<m16n8k32, u8>>(k);
                  const auto b = any_fragment<FragmentB<m16n8k32, s8>>(k);
                  const auto c = any_fragment<FragmentC<m16n8k32, s32>>(k);
                  mma(k, a, b, c, true);
                }) ==
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32 {%r10, %r11, %r12, %r13}, "
        "{%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r6, %r7, %r8, %r9};");
  CHECK(text_of("sm_90",
                [](KernelBuilder& k) {
                  const auto row = k.pointer<f16, Shared>(k.undefined<u32>());
                  ldmatrix<4>(k, row);
                  stmatrix(k, row, ldmatrix<2>(k, row, true), true);
                }) ==
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r0];\n"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r5, %r6}, [%r0];\n"
        "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r0], {%r5, %r6};");
}

TEST_CASE("matrix functions refuse what the hardware cannot do, and leave the kernel as it was") {
  const auto refused = [](std::string_view target, const auto& call) {
    KernelBuilder k("bench", target);
    const auto tile = k.shared<f16>(512, "tile", 128);
    const auto bytes = k.shared<s8>(512, "bytes", 128);
    const std::size_t before = k.statement_count();
    const Error error = error_of([&] { call(k, tile, bytes); });
    CHECK(k.statement_count() == before);
    CHECK(error_of([&] { static_cast<void>(k.build()); }).message == error.message);
    return error.code + ": " + error.message;
  };
  CHECK(refused("sm_80",
                [](KernelBuilder& k, const auto& tile, const auto&) {
                  (void)ldmatrix<FragmentA<m16n8k16, f16>>(k, tile.base(), 20);
                }) ==
        "misaligned: ldmatrix: rows 40 bytes apart (stride 20); rule: each row that a lane "
        "addresses is aligned to 16 bytes; cure: pad the stride to a multiple of 8");
  CHECK(refused("sm_80",
                [](KernelBuilder& k, const auto&, const auto& bytes) {
                  (void)ldmatrix<FragmentA<m16n8k32, s8>>(k, bytes.base(), 32,
                                                          MatrixOrder::ColumnMajor);
                }) ==
        "bad-operand: ldmatrix: this order needs .trans, and that moves elements of 16 bits only; "
        "cure: store the tile of a row-major");
  CHECK(refused("sm_80", [](KernelBuilder& k, const auto& tile, const auto&) {
          const std::array<Value<b32>, 1> one{k.undefined<b32>()};
          stmatrix(k, tile.base(), one);
        }).starts_with("target-lacks: 'stmatrix.sync.aligned.m8n8.x1.shared.b16' needs sm_90"));
  CHECK(refused("sm_75", [](KernelBuilder& k, const auto&, const auto&) {
          (void)mma(k, any_fragment<FragmentA<m16n8k16, f16>>(k),
                    any_fragment<FragmentB<m16n8k16, f16>>(k),
                    any_fragment<FragmentC<m16n8k16, f32>>(k));
        }).starts_with("target-lacks: 'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32' needs "));
}
