// tests/kernels/gguf_blocks_test.cpp - block formats against PyPI's gguf and libgguf
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <iostream>

#include "kernels/block_reference.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/harness.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr std::size_t kValues = 1 << 17;

template <class T>
std::vector<T> read(const TemporaryDirectory& folder, const std::string& name) {
  const std::string text = read_file(folder.file(name));
  std::vector<T> all(text.size() / sizeof(T));
  std::memcpy(all.data(), text.data(), all.size() * sizeof(T));
  return all;
}

// Whether the packages were found; the files are in the folder then.
bool write_blocks(const TemporaryDirectory& folder) {
  const SubprocessResult result = run_program({"/usr/bin/env", "PYTHONPATH=" GGUF_PACKAGES, PYTHON,
                                               GGUF_SCRIPT, folder.path(), std::to_string(seed())});
  if (result.out.starts_with("SKIP ")) {
    skip("scripts/setup installs PyPI's gguf and libgguf: " + result.out.substr(5));
    return false;
  }
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  std::cout << result.out;
  return true;
}

void check_values(const TemporaryDirectory& folder, ElementType type, const std::string& kind) {
  const std::string stem = std::string(to_string(type)) + "." + kind;
  INFO(stem);
  const auto blocks = read<std::byte>(folder, stem + ".blocks");
  const auto expected = read<std::uint32_t>(folder, stem + ".values");
  REQUIRE(expected.size() == kValues);
  std::vector<float> values(expected.size());
  dequantize(type, blocks, values);
  std::size_t same = 0;
  while (same < kValues && std::memcmp(&values[same], &expected[same], 4) == 0) ++same;
  CHECK(same == kValues);
}

}  // namespace

TEST_CASE("values of blocks are those of gguf, and blocks those of libgguf") {
  const TemporaryDirectory folder(Settings::from_environment().temp_dir);
  if (!write_blocks(folder)) return;
  for (const ElementType type : kBlockTypes) {
    check_values(folder, type, "random");
    check_values(folder, type, "quantized");
  }
  for (const ElementType type : {ElementType::q8_0, ElementType::q8_1}) {
    INFO(to_string(type));
    const std::string name(to_string(type));
    const auto floats = read<float>(folder, name + ".floats");
    const auto expected = read<std::byte>(folder, name + ".quantized.blocks");
    std::vector<std::byte> blocks(expected.size());
    quantize(type, floats, blocks);
    for (std::size_t i = 2; type == ElementType::q8_1 && i < blocks.size(); i += 36) {
      blocks[i] = blocks[i + 1] = std::byte{0};  // the sum, which they do not have
    }
    CHECK(blocks == expected);
  }
  // q4_0: theirs rounds the product before it adds 8.5. Both integers are next to a half then.
  const auto floats = read<float>(folder, "q4_0.floats");
  const auto expected = read<std::byte>(folder, "q4_0.quantized.blocks");
  std::vector<std::byte> blocks(expected.size());
  quantize(ElementType::q4_0, floats, blocks);
  std::size_t different = 0, unexplained = 0;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const std::size_t at = i / 32 * 18 + 2 + i % 16;
    const int shift = i % 32 < 16 ? 0 : 4;
    const auto quant = [&](const std::vector<std::byte>& of) {
      return std::to_integer<int>(of[at] >> shift & std::byte{15});
    };
    if (quant(blocks) == quant(expected)) continue;
    ++different;
    const auto x = std::span(floats).subspan(i / 32 * 32, 32);
    const auto magnitude = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    const double d = double{*std::max_element(x.begin(), x.end(), magnitude)} / -8;
    const double steps = double{floats[i]} / d + 0.5;
    if (std::fabs(steps - std::round(steps)) > 0x1p-20) ++unexplained;
  }
  std::cout << "q4_0: " << different << " of " << floats.size() << " integers differ\n";
  CHECK(unexplained == 0);
  CHECK(different < floats.size() / 1000);
  for (std::size_t i = 0; i < blocks.size(); i += 18) {
    if (blocks[i] != expected[i] || blocks[i + 1] != expected[i + 1]) ++unexplained;
  }
  CHECK(unexplained == 0);
}
