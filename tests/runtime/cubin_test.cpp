// tests/runtime/cubin_test.cpp - comparing machine code
#include "support/cubin.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "ptxgen/support/error.hpp"
#include "runtime/samples.hpp"
#include "support/elf.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// The cubin of two_kernels, or nothing after having said why.
std::vector<std::byte> cubin_of(const std::string& ptx) {
  const Assembler assembler(Settings::from_environment());
  AssembleOptions options = for_target("sm_89");
  for (const AssemblerFinding& tool : assembler.tools()) {
    if (!tool.found || tool.tool == AssemblerTool::Driver) continue;
    options.tool = tool.tool;
    return assembler.assemble(ptx, options).cubin;
  }
  skip("neither nvJitLink nor ptxas found");
  return {};
}

}  // namespace

TEST_CASE("the same PTX has the same code, a changed constant another", "[cubin]") {
  const std::vector<std::byte> first = cubin_of(two_kernels());
  if (first.empty()) return;
  const CodeComparison equal = same_code(first, cubin_of(two_kernels()));
  CHECK(equal.same);
  CHECK(equal.text.empty());

  const CodeComparison changed = same_code(first, cubin_of(two_kernels("sm_75", "7.0", "9")));
  CHECK_FALSE(changed);
  CHECK(changed.section == ".text.plain");
  const auto code = text_sections(first);
  REQUIRE(changed.offset < code.at(".text.plain").size());
  CHECK(changed.text.rfind(
            ".text.plain differs at byte " + std::to_string(changed.offset) + ": 0x07 against 0x09",
            0) == 0);
}

TEST_CASE("a kernel more or less is a difference", "[cubin]") {
  const std::vector<std::byte> both = cubin_of(two_kernels());
  if (both.empty()) return;
  std::string ptx = two_kernels();
  ptx.resize(ptx.find(".visible .entry plain"));
  const std::vector<std::byte> one = cubin_of(ptx);
  CHECK(same_code(both, one).text == ".text.plain is in the first cubin only");
  CHECK(same_code(one, both).text == ".text.plain is in the second cubin only");
}

TEST_CASE("two cubins without code are not the same", "[cubin]") {
  std::vector<std::byte> empty(64);
  const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
  std::copy_n(reinterpret_cast<const std::byte*>(magic), sizeof magic, empty.begin());
  CHECK_FALSE(same_code(empty, empty));
  CHECK(same_code(empty, empty).text == "neither cubin holds any code");
}

TEST_CASE("cut or damaged cubins are refused, never read past their end", "[cubin]") {
  CHECK_THROWS_AS(text_sections({}), Error);
  const std::vector<std::byte> text(4096, std::byte{'x'});
  CHECK_THROWS_AS(text_sections(text), Error);
  const std::vector<std::byte> full = cubin_of(two_kernels());
  if (full.empty()) return;
  int refused = 0;
  for (std::size_t size = 0; size < full.size(); size += 7) {
    // A copy of exactly that size, so that a sanitizer sees the first byte past it.
    const std::vector<std::byte> cut(full.begin(),
                                     full.begin() + static_cast<std::ptrdiff_t>(size));
    try {
      (void)text_sections(cut);
    } catch (const Error& error) {
      CHECK(error.code == "bad-elf");
      ++refused;
    }
  }
  CHECK(refused > 0);
  std::mt19937 random(static_cast<unsigned>(seed()));
  std::uniform_int_distribution<std::size_t> place(0, full.size() - 1);
  std::uniform_int_distribution<int> value(0, 255);
  for (int i = 0; i < count(2000, 50000); ++i) {
    std::vector<std::byte> damaged = full;
    for (int n = 0; n < 8; ++n) damaged[place(random)] = static_cast<std::byte>(value(random));
    try {
      (void)text_sections(damaged);
    } catch (const Error&) {
      // Either answer is fine; the sanitizers watch.
    }
  }
}
