// src/qa/lines/snippet_kernel.hpp - a few statements of PTX as a kernel
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qa/fixture.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

/// The text of a kernel `k(y, a, b, c)`: thread i stores %f9 to y[i] after `statements`, which find
/// a[i], b[i] and c[i] in %f1, %f2 and %f3. Registers %f0 to %f15, %r0 to %r7, %p0 to %p3.
[[nodiscard]] std::string snippet_kernel(std::string_view statements);

/// y of a launch with a thread for each element; findings of the emulator are failures.
[[nodiscard]] std::vector<float> run_snippet(Tally& tally, Fixture& fixture,
                                             const ptx::Module& module,
                                             const std::array<std::vector<float>, 3>& inputs);

/// Every triple of these values, at most 10 of them: a block has 1024 threads.
[[nodiscard]] std::array<std::vector<float>, 3> triples(std::span<const float> values);

/// The same bits, or both NaN.
[[nodiscard]] bool same_float(float a, float b);

}  // namespace ptxgen::qa
