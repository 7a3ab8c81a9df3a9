// tests/functional/gemv_correctness_test.cpp - GEMV on chosen inputs: D1 to D9, NaN and Inf
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "functional/gemv_cases.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"

using namespace ptxgen;
using namespace ptxgen::functional;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The result of each choice of the device, for checks that know the exact bits.
template <class Check>
void with_every_choice(const Place& place, const Problem& problem, const Check& check) {
  for (const GemvChoice choice : choices(place)) {
    INFO("gemv " << to_string(choice));
    check(choice, run_guarded(place, place.with_gemv(choice), problem));
  }
}

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace

TEST_CASE("D1: the identity gives x, bit for bit") {
  on_every_place([](Place& place) {
    for (const std::uint32_t size : {1u, 32u, 255u, 257u, 600u}) {
      Problem problem = random_problem({size, size}, size);
      for (std::size_t i = 0; i < problem.a.size(); ++i) problem.a[i] = i % (size + 1) == 0;
      with_every_choice(place, problem, [&](GemvChoice, const std::vector<float>& y) {
        INFO("size " << size);
        CHECK(y == problem.x);
      });
    }
  });
}

TEST_CASE("D2: a matrix of zeros gives +0 everywhere") {
  on_every_place([](Place& place) {
    Problem problem = random_problem({300, 70}, 2);
    std::fill(problem.a.begin(), problem.a.end(), 0.0f);
    with_every_choice(place, problem, [&](GemvChoice, const std::vector<float>& y) {
      std::size_t wrong = 0;
      for (const float value : y) wrong += bits_of(value) != 0;
      CHECK(wrong == 0);
    });
  });
}

TEST_CASE("D3: a matrix of ones gives every column the same bits") {
  on_every_place([](Place& place) {
    Problem problem = random_problem({1000, 300}, 3);
    std::fill(problem.a.begin(), problem.a.end(), 1.0f);
    with_every_choice(place, problem, [&](GemvChoice choice, const std::vector<float>& y) {
      std::size_t other = 0;
      for (const float value : y) other += bits_of(value) != bits_of(y[0]);
      CHECK(other == 0);
      check_gemv(problem, y, roundings(choice, problem.shape));
    });
  });
}

TEST_CASE("D4: small whole numbers give exact results") {
  on_every_place([](Place& place) {
    // Row i of the matrix, times x[i]; sums worked out by hand.
    const Problem problem{{4, 8},
                          {1, 2, 3,  4, 5, 6,  7, 8,  //
                           8, 7, 6,  5, 4, 3,  2, 1,  //
                           0, 1, 0,  1, 0, 1,  0, 1,  //
                           9, 0, -9, 0, 9, -9, 0, 9},
                          {1, 10, 100, 1000}};
    with_every_choice(place, problem, [&](GemvChoice, const std::vector<float>& y) {
      CHECK(y == std::vector<float>{9081, 172, -8937, 154, 9045, -8864, 27, 9118});
    });
  });
}

TEST_CASE("D5: 64 x 64 is within the error bound") {
  on_every_place([](Place& place) { check_everywhere(place, random_problem({64, 64}, 5)); });
}

TEST_CASE("D7: mixed signs with cancellation keep the sign where it is certain") {
  on_every_place([](Place& place) {
    Problem problem = random_problem({512, 130}, 7, -100.0f, 100.0f);
    // Pairs of rows that nearly cancel: what is left is small against what was summed.
    for (std::size_t i = 0; i + 1 < 512; i += 2) {
      problem.x[i + 1] = -problem.x[i];
      for (std::size_t j = 0; j < 130; ++j) {
        problem.a[(i + 1) * 130 + j] = problem.a[i * 130 + j] * (1 + 0x1p-10f);
      }
    }
    const GemvReference reference = gemv_reference(problem.a, problem.x, 512, 130);
    with_every_choice(place, problem, [&](GemvChoice choice, const std::vector<float>& y) {
      std::size_t wrong = 0;
      std::size_t certain = 0;
      for (std::size_t j = 0; j < y.size(); ++j) {
        const double bound =
            gemv_error_bound(reference.magnitude[j], roundings(choice, problem.shape));
        wrong += !(std::abs(y[j] - reference.y[j]) <= bound);
        if (std::abs(reference.y[j]) <= bound) continue;
        ++certain;
        wrong += std::signbit(y[j]) != std::signbit(reference.y[j]);
      }
      CHECK(wrong == 0);
      CHECK(certain > 0);
    });
  });
}

TEST_CASE("D8: numbers from 1e6 to 1e7 stay finite and within the bound") {
  on_every_place([](Place& place) {
    check_everywhere(place, random_problem({700, 90}, 8, 1e6f, 1e7f));
    check_everywhere(place, random_problem({700, 90}, 9, -1e7f, -1e6f));
  });
}

TEST_CASE("D8: sums beyond the largest number are infinite, with their sign") {
  on_every_place([](Place& place) {
    constexpr float kMax = std::numeric_limits<float>::max();
    // Columns: over the top, just not, over the bottom.
    const Problem problem{{2, 3}, {kMax, kMax, -kMax, kMax, 0, -kMax}, {1, 1}};
    with_every_choice(place, problem, [&](GemvChoice, const std::vector<float>& y) {
      CHECK(y == std::vector<float>{kInf, kMax, -kInf});
    });
  });
}

TEST_CASE("D9: numbers from 1e-6 to 1e-5 are within the bound") {
  on_every_place([](Place& place) {
    check_everywhere(place, random_problem({700, 90}, 10, 1e-6f, 1e-5f));
  });
}

TEST_CASE("D9: subnormal numbers are neither flushed on the way in nor on the way out") {
  on_every_place([](Place& place) {
    constexpr float kMin = std::numeric_limits<float>::denorm_min();
    const Problem problem{{3, 4},
                          {kMin, 0x1p-130f, -0x1p-140f, 0x1p-100f,  //
                           kMin, 0x1p-131f, 0x1p-141f, 0x1p-100f,   //
                           0, 0, kMin, 0},
                          {1, 1, 1}};
    for (const GemvChoice choice : {GemvChoice::Coalesced, GemvChoice::Strided}) {
      INFO("gemv " << to_string(choice));
      const std::vector<float> y = run_guarded(place, place.with_gemv(choice), problem);
      CHECK(y == std::vector<float>{2 * kMin, 0x1p-130f + 0x1p-131f, -0x1p-140f + 0x1p-141f + kMin,
                                    0x1p-99f});
    }
    // Products below the smallest number are rounded to it or to zero, sums of them exactly.
    check_everywhere(place, random_problem({100, 33}, 11, -0x1p-70f, 0x1p-70f));
  });
}

TEST_CASE("D9: a kernel that asks for .ftz gets it") {
  on_every_place([](Place& place) {
    const auto kernel = build_kernel(
        "twice_flushed", place.device.target().name,
        params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
        [](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
          const Value<u32> i = k.tid_x();
          const Value<f32> value = in[i];
          auto sum = k.var<f32>(0.0f);
          k.emit(ptx::Op::add_f32, {ptx::Modifier::rn, ptx::Modifier::ftz}, {sum, value, value});
          out[i] = sum;
        });
    const std::vector<float> in = {1.5f, 0x1p-127f, -0x1p-149f, 0x1p-126f, -0x1p-126f, 0};
    const Buffer<f32> from(place.context, in);
    const Buffer<f32> to(place.context, in.size());
    const auto block = kernel.pack(to.address(), from.address());
    place.launcher.launch(kernel, {.grid = {1, 1, 1}, .block = {6, 1, 1}},
                          {block.data(), block.size()}, place.stream);
    place.stream.synchronize();
    std::vector<float> out(in.size());
    to.read(out);
    CHECK(out == std::vector<float>{3, 0, 0, 0x1p-125f, -0x1p-125f, 0});
    CHECK(bits_of(out[2]) == 0x80000000u);
  });
}

TEST_CASE("NaN and infinities reach exactly the columns that they are in") {
  on_every_place([](Place& place) {
    Problem problem = random_problem({300, 270}, 12);
    constexpr std::size_t kRow = 257;
    problem.a[kRow * 270 + 3] = kNan;
    problem.a[kRow * 270 + 256] = kInf;
    problem.a[kRow * 270 + 269] = -kInf;
    problem.x[kRow] = 0.5f;
    check_everywhere(place, problem);  // the reference has them in these columns and no other
    // Infinities of both signs in one column make a NaN.
    problem.a[5 * 270 + 256] = -kInf;
    problem.x[5] = 1;
    check_everywhere(place, problem);
    // Zero times infinity is NaN, not zero.
    problem.x[kRow] = 0;
    check_everywhere(place, problem);
  });
}

TEST_CASE("a NaN or an infinity in x reaches every column") {
  on_every_place([](Place& place) {
    Problem problem = random_problem({64, 100}, 13, 0.5f, 1.0f);
    problem.x[63] = kInf;
    with_every_choice(place, problem, [&](GemvChoice, const std::vector<float>& y) {
      CHECK(std::ranges::count(y, kInf) == 100);
    });
    problem.x[0] = kNan;
    with_every_choice(place, problem, [&](GemvChoice, const std::vector<float>& y) {
      CHECK(std::ranges::count_if(y, [](float v) { return std::isnan(v); }) == 100);
    });
  });
}
