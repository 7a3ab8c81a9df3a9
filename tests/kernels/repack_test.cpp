// tests/kernels/repack_test.cpp - rows of blocks as arrays of their fields
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "kernels/block_device.hpp"
#include "kernels/block_reference.hpp"
#include "ptxgen/kernels/quantization/repack.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// The repacked form of a type, as docs/formats.md has it.
struct Form {
  ElementType type;
  std::vector<BlockField> fields;
};
const Form kForms[] = {{ElementType::q4_0, {{2, 16}, {0, 2}}},
                       {ElementType::q4_1, {{4, 16}, {0, 4}}},
                       {ElementType::q5_0, {{6, 16}, {2, 4}, {0, 2}}},
                       {ElementType::q5_1, {{8, 16}, {4, 4}, {0, 4}}},
                       {ElementType::q8_0, {{2, 32}, {0, 2}}},
                       {ElementType::q6_k, {{0, 128}, {128, 64}, {192, 16}, {208, 2}}}};

// The row byte by byte: each array padded with zeros to a multiple of 32 bytes.
std::vector<std::byte> expected_row(const Form& form, std::span<const std::byte> blocks) {
  std::vector<std::byte> row;
  for (const BlockField& field : form.fields) {
    for (std::size_t block = 0; block < blocks.size(); block += bytes(form.type)) {
      for (std::size_t i = 0; i < field.bytes; ++i) row.push_back(blocks[block + field.at + i]);
    }
    while (row.size() % 32 != 0) row.push_back(std::byte{0});
  }
  return row;
}

std::vector<std::byte> random_bytes(std::size_t size, Random& random) {
  std::vector<std::byte> all(size);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random() >> 56);
  return all;
}

std::vector<std::byte> by_kernel(const Rig& rig, const Repack& spec,
                                 std::span<const std::byte> blocks, std::size_t distance) {
  const DeviceBytes w(rig, blocks, distance);
  const DeviceBytes y(rig, spec.rows * repacked_bytes(spec.type, spec.columns), 16);
  rig.launcher.launch(spec, {.y = y.range(), .w = w.range()}, rig.stream);
  rig.stream.synchronize();
  check_findings(rig);
  return y.content();
}

std::string refused(ElementType type, std::uint64_t values, std::size_t block_bytes,
                    std::size_t row_bytes, bool back = false) {
  std::vector<std::byte> blocks(block_bytes), row(row_bytes);
  try {
    if (back) {
      unpack_row(type, values, row, blocks);
    } else {
      repack_row(type, values, blocks, row);
    }
    return "no error";
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
}

}  // namespace

TEST_CASE("rows of 1 to 300 blocks are repacked as documented, and back") {
  Random random(seed());
  for (const Form& form : kForms) {
    std::size_t wrong = 0;
    for (std::uint64_t count = 1; count <= 300; ++count) {
      const std::uint64_t values = count * info(form.type).block_values;
      const auto blocks = random_bytes(bytes(form.type, values), random);
      const auto expected = expected_row(form, blocks);
      std::vector<std::byte> row = random_bytes(repacked_bytes(form.type, values), random);
      repack_row(form.type, values, blocks, row);
      std::vector<std::byte> back(blocks.size());
      unpack_row(form.type, values, row, back);
      if (row != expected || back != blocks) ++wrong;
    }
    INFO(to_string(form.type));
    CHECK(wrong == 0);
  }
}

TEST_CASE("the arrays of a repacked row, by hand") {
  // Three blocks of 22 bytes: 48 B of integers and 16 of padding, 12 B of fifth bits and 20, 6 B of
  // scales and 26.
  std::vector<std::byte> blocks(66), row(128);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i + 1);
  repack_row(ElementType::q5_0, 96, blocks, row);
  const auto at = [&](std::size_t i) { return std::to_integer<int>(row[i]); };
  CHECK(at(0) == 7);    // integers of block 0: byte 6
  CHECK(at(16) == 29);  // of block 1: byte 22 + 6
  CHECK(at(47) == 66);  // the last of block 2
  CHECK(at(48) == 0);
  CHECK(at(64) == 3);   // fifth bits of block 0: byte 2
  CHECK(at(75) == 50);  // the last of block 2: byte 44 + 5
  CHECK(at(76) == 0);
  CHECK(at(96) == 1);    // d of block 0
  CHECK(at(100) == 45);  // of block 2: byte 44
  CHECK(at(102) == 0);
  CHECK(repacked_bytes(ElementType::q5_0, 96) == 128);
  CHECK(repacked_offset(ElementType::q5_0, 96, 1) == 64);
  CHECK(repacked_offset(ElementType::q5_0, 96, 2) == 96);
}

TEST_CASE("sizes of repacked rows") {
  // 4096 values: multiples of 32 without padding, so as many bytes as stored.
  for (const Form& form : kForms) {
    INFO(to_string(form.type));
    CHECK(repacked_bytes(form.type, 4096) == bytes(form.type, 4096));
    for (std::size_t f = 0; f <= form.fields.size(); ++f) {
      CHECK(repacked_offset(form.type, 1000, f) % 32 == 0);
    }
    CHECK(repacked_bytes(form.type, 1000) >= bytes(form.type, 1000));
  }
  CHECK(repacked_bytes(ElementType::q6_k, 1) == 128 + 64 + 32 + 32);
  CHECK(repacked_bytes(ElementType::q4_0, 33) == 32 + 32);
  CHECK(repacked_bytes(ElementType::q8_0, 0) == 0);
  CHECK(repacked_bytes(ElementType::q8_0, std::uint64_t{1} << 40) == (std::uint64_t{34} << 35));
}

TEST_CASE("the kernel repacks as the host does") {
  const Rig rig;
  Random random(seed() + 1);
  for (const Form& form : kForms) {
    for (const std::uint32_t columns : {32u, 96u, 256u, 2304u, 5024u}) {
      constexpr std::uint32_t kRows = 3;
      const std::size_t stored = bytes(form.type, columns);
      const auto blocks = random_bytes(kRows * stored, random);
      std::vector<std::byte> expected;
      for (std::size_t row = 0; row < kRows; ++row) {
        const auto one = expected_row(form, std::span(blocks).subspan(row * stored, stored));
        expected.insert(expected.end(), one.begin(), one.end());
      }
      for (const std::size_t distance : {0u, 2u, 14u}) {
        INFO(to_string(form.type) << ", rows of " << columns << ", " << distance << " B off");
        const Repack spec{kRows, columns, form.type};
        CHECK((by_kernel(rig, spec, blocks, distance) == expected));
      }
    }
  }
}

TEST_CASE("repacking refuses other types, and sizes that do not fit") {
  CHECK(refused(ElementType::q4_k, 256, 144, 144) ==
        "bad-parameter: repack_row: q4_k has no repacked form; q4_0, q4_1, q5_0, q5_1, q8_0 and "
        "q6_k do");
  CHECK(refused(ElementType::f16, 8, 16, 16, true) ==
        "bad-parameter: unpack_row: f16 has no repacked form; q4_0, q4_1, q5_0, q5_1, q8_0 and "
        "q6_k do");
  CHECK(
      refused(ElementType::q8_0, 64, 67, 96) ==
      "bad-size: repack_row: a row of 64 values of q8_0 has 68 B as stored and 96 B repacked, not "
      "67 B and 96 B");
  CHECK(
      refused(ElementType::q8_0, 64, 68, 68, true) ==
      "bad-size: unpack_row: a row of 64 values of q8_0 has 68 B as stored and 96 B repacked, not "
      "68 B and 68 B");
  CHECK(refused(ElementType::q8_0, 64, 68, 96) == "no error");
  try {
    (void)Repack{1, 32, ElementType::q4_k}.build(ptx::target("sm_90"));
    FAIL("a type without a repacked form was accepted");
  } catch (const Error& error) {
    CHECK(error.message == "type may be q4_0|q4_1|q5_0|q5_1|q8_0|q6_k");
  }
  try {
    (void)Repack{1, 33, ElementType::q4_0}.build(ptx::target("sm_90"));
    FAIL("a row that is no multiple of 32 was accepted");
  } catch (const Error& error) {
    CHECK(error.message == "columns is 33, not a multiple of 32");
  }
}

TEST_CASE("every type that is not aligned to 16 bytes has a repacked form, but for q8_1") {
  for (const ElementType type : kBlockTypes) {
    INFO(to_string(type));
    const bool aligned = bytes(type) % 16 == 0 || type == ElementType::q8_1;
    CHECK(repacked_fields(type).empty() == aligned);
    // The fields are the block, each byte once.
    std::vector<int> used(bytes(type), aligned ? 1 : 0);
    for (const BlockField& field : repacked_fields(type)) {
      for (std::size_t i = 0; i < field.bytes; ++i) ++used[field.at + i];
    }
    CHECK(used == std::vector<int>(bytes(type), 1));
  }
  CHECK(repacked_fields(ElementType::f32).empty());
}
