// tests/support/harness.hpp - seed, skips and counts for tests
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxgen::test {

/// The seed of this run: `PTXGEN_TEST_SEED` (decimal), else a fixed default. Catch2 and rapidcheck
/// are started with it, and it is printed at the start of every test program.
[[nodiscard]] std::uint64_t seed();

/// Whether `PTXGEN_TEST_FULL` asks for the full counts (`scripts/test --full`).
[[nodiscard]] bool full();

/// Whether a sanitizer watches this build, which makes it ten times slower or more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

/// Numbers of random cases: `normal` in an everyday run, a quarter of it where a sanitizer watches
/// (at least 1), `in_full` in a full one.
[[nodiscard]] int count(int normal, int in_full);

/// Whether this run takes case `index` of a list: one in `everyday`, one in `sanitized` where a
/// sanitizer watches, each in a full run. The seed decides which.
[[nodiscard]] bool takes(std::uint64_t index, std::uint64_t everyday, std::uint64_t sanitized);

/// Reports that the running test case cannot run here; leave the case afterwards:
///     if (!assembler) return test::skip("no assembler found: install ptxas or set PTXGEN_...");
/// Prints `SKIP: reason`. A program in which a case was skipped, and none failed, exits with 77,
/// which ctest (one process for each case) reports as skipped. A failure always wins.
void skip(std::string_view reason);

/// The same for a part of a case whose other parts did check something: the reason is printed and
/// repeated at the end of `scripts/test`, the case itself counts as run.
void skip_part(std::string_view reason);

}  // namespace ptxgen::test
