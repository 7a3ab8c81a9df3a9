// tests/model/gguf_refusal_test.cpp - every refusal of the GGUF reader, by its text
#include <catch2/catch.hpp>

#include "model/gguf_writer.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// "code: message" of the error that opening these bytes throws.
std::string refusal(const std::string& bytes) {
  try {
    (void)gguf::File::view(as_bytes(bytes), "model.gguf");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    CHECK(error.file == "model.gguf");
    return error.code + ": " + error.message;
  }
  return "no error";
}
std::string refusal(const GgufWriter& writer) { return refusal(writer.bytes()); }

std::string number(std::uint64_t value, std::size_t bytes) {
  std::string text;
  append_number(text, value, bytes);
  return text;
}

GgufWriter with_alignment(const WrittenValue& value) {
  GgufWriter writer;
  writer.key("general.alignment", value);
  return writer;
}

constexpr std::uint32_t kArray = 9;
constexpr std::uint64_t kHuge = ~std::uint64_t{0};

}  // namespace

TEST_CASE("refused headers") {
  GgufWriter writer;
  writer.magic = "ggjt";
  CHECK(refusal(writer) ==
        "not-gguf: header at byte 0: this is no GGUF file: it begins with 67 67 6a 74, expects 47 "
        "47 55 46 (\"GGUF\")");
  writer.magic = "GGUF";
  writer.version = 1;
  CHECK(refusal(writer) ==
        "unsupported-version: header at byte 4: version 1, with counts of 32 bits, is not read: "
        "convert the model again, which writes version 3");
  writer.version = 4;
  CHECK(refusal(writer) ==
        "unsupported-version: header at byte 4: version 4 is unknown; versions 2 and 3 are read");
  writer.version = 0;
  CHECK(refusal(writer) ==
        "unsupported-version: header at byte 4: version 0 is unknown; versions 2 and 3 are read");
  writer.version = 0x03000000;
  CHECK(refusal(writer) ==
        "big-endian: header at byte 4: the file is big-endian; only little-endian files are read: "
        "convert it with gguf_convert_endian.py of PyPI's gguf");
}

TEST_CASE("refused counts of keys and tensors") {
  GgufWriter writer;
  writer.more_tensors = 1;
  CHECK(refusal(writer) ==
        "bad-count: header at byte 8: the 8 bytes that follow cannot hold 1 tensor of 33 bytes or "
        "more");
  writer.more_tensors = 0;
  writer.more_keys = kHuge;
  CHECK(refusal(writer) ==
        "bad-count: header at byte 16: the 0 bytes that follow cannot hold 18446744073709551615 "
        "keys of 14 bytes or more");
  writer.more_keys = 2;
  writer.key("a.long.key", written(ValueType::u64, 1));
  CHECK(refusal(writer) ==
        "bad-count: header at byte 16: the 30 bytes that follow cannot hold 3 keys of 14 bytes or "
        "more");
  writer.more_keys = 1;
  CHECK(refusal(writer) ==
        "truncated: key number 2 at byte 54: the file ends here: 8 bytes needed, 0 left");
}

TEST_CASE("refused keys") {
  GgufWriter writer;
  writer.key("", written(ValueType::u32, 1));
  CHECK(refusal(writer) == "bad-name: key number 1 at byte 24: the key is empty");
  GgufWriter twice;
  twice.key("a.b", written(ValueType::u8, 1)).key("c", written("x")).key("a.b", written("y"));
  CHECK(refusal(twice) == "duplicate-name: key 'a.b' at byte 62: an earlier key has this name");
  GgufWriter unknown;
  unknown.raw_key("a.b", 13, "12345678");
  CHECK(refusal(unknown) ==
        "unknown-type: key 'a.b' at byte 35: value type 13 is unknown; the types are 0 (u8) to 12 "
        "(f64)");
  GgufWriter escaped;
  escaped.raw_key("a\x1b[2J\n", 99, "1");
  CHECK(refusal(escaped).starts_with("unknown-type: key 'a\\x1b[2J\\n' at byte 38: "));
  GgufWriter longer;
  longer.key("a", written(ValueType::u64, 0));
  std::string bytes = longer.bytes();
  bytes.replace(24, 8, number(kHuge, 8));
  CHECK(refusal(bytes) ==
        "truncated: key number 1 at byte 32: the file ends here: 18446744073709551615 bytes "
        "needed, 13 left");
}

TEST_CASE("refused values") {
  GgufWriter text;
  text.raw_key("k", 8, number(5, 8) + "four");
  CHECK(refusal(text) ==
        "truncated: key 'k' at byte 45: the file ends here: 5 bytes needed, 4 left");
  GgufWriter boolean;
  boolean.key("k", written(ValueType::boolean, 2));
  CHECK(refusal(boolean) == "bad-bool: key 'k' at byte 37: a bool has the value 2; expects 0 or 1");
  GgufWriter booleans;
  booleans.key("k", written_array(ValueType::boolean, {written(ValueType::boolean, 1),
                                                       written(ValueType::boolean, 255)}));
  CHECK(refusal(booleans) ==
        "bad-bool: key 'k' at byte 50: a bool has the value 255; expects 0 or 1");
}

TEST_CASE("refused arrays") {
  GgufWriter type;
  type.raw_key("k", kArray, number(77, 4) + number(1, 8) + "x");
  CHECK(refusal(type) ==
        "unknown-type: key 'k' at byte 37: value type 77 is unknown; the types are 0 (u8) to 12 "
        "(f64)");
  GgufWriter count;
  count.raw_key("k", kArray, number(10, 4) + number(kHuge / 8 + 2, 8) + "12345678");
  CHECK(refusal(count) ==
        "bad-count: key 'k' at byte 41: the 8 bytes that follow cannot hold 2305843009213693953 "
        "elements of 8 bytes or more");
  GgufWriter texts;
  texts.raw_key("k", kArray, number(8, 4) + number(2, 8) + number(9, 8) + "12345678");
  CHECK(refusal(texts) ==
        "truncated: key 'k' at byte 57: the file ends here: 9 bytes needed, 8 left");
  WrittenValue nested = written_array(ValueType::u8, {});
  for (int depth = 2; depth <= 5; ++depth) nested = written_array(ValueType::array, {nested});
  GgufWriter deep;
  deep.key("k", nested);
  CHECK(refusal(deep) == "too-deep: key 'k' at byte 85: arrays are nested deeper than 4");
}

TEST_CASE("refused alignments") {
  const std::string start = "bad-alignment: key 'general.alignment' at byte 53: the alignment is ";
  const std::string rule = "; expects a power of two of 8 or more";
  for (const std::uint64_t alignment : {0U, 1U, 4U, 24U, 33U}) {
    CHECK(refusal(with_alignment(written(ValueType::u32, alignment))) ==
          start + std::to_string(alignment) + rule);
  }
  CHECK(refusal(with_alignment(written(ValueType::u64, 32))) == start + "a u64; expects a u32");
  CHECK(refusal(with_alignment(written("32"))) ==
        "bad-alignment: key 'general.alignment' at byte 61: the alignment is a string; expects a "
        "u32");
  CHECK(refusal(with_alignment(written(ValueType::u32, 8))) == "no error");
  CHECK(refusal(with_alignment(written(ValueType::u32, 0x80000000))) == "no error");
}

TEST_CASE("refused names and dims of tensors") {
  GgufWriter unnamed;
  unnamed.tensor("", {8}, "F32");
  CHECK(refusal(unnamed) ==
        "bad-name: tensor number 1 at byte 24: the name of the tensor is empty");
  GgufWriter twice;
  twice.tensor("t", {8}, "F32").tensor("t", {8}, "F16");
  CHECK(refusal(twice) == "duplicate-name: tensor 't' at byte 57: an earlier tensor has this name");
  GgufWriter none;
  none.tensor("t", {}, 0, std::string(64, 'x'));
  CHECK(refusal(none) == "bad-dims: tensor 't' at byte 33: 0 dims; a tensor has 1 to 4");
  GgufWriter five;
  five.tensor("t", {1, 1, 1, 1, 1}, 0, "1234");
  CHECK(refusal(five) == "bad-dims: tensor 't' at byte 33: 5 dims; a tensor has 1 to 4");
  GgufWriter zero;
  zero.tensor("t", {8, 0, 2}, 0, "");
  CHECK(refusal(zero) == "bad-dims: tensor 't' at byte 45: dims[1] is 0; expects 1 or more");
  GgufWriter partial;
  partial.tensor("t", {272, 2}, "Q4_K");
  CHECK(refusal(partial) ==
        "bad-dims: tensor 't' at byte 24: dims[0] is 272; Q4_K stores blocks of 256 values");
}

TEST_CASE("refused types of tensors") {
  const std::string supported =
      "; supported are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1, Q2_K, Q3_K, Q4_K, Q5_K, "
      "Q6_K, Q8_K, I8, I16, I32, I64, F64, BF16";
  GgufWriter known;
  known.tensor("t", {32}, 20, std::string(18, 'x'));
  CHECK(refusal(known) ==
        "unknown-type: tensor 't' at byte 45: tensor type 20 (IQ4_NL) is not supported" +
            supported);
  GgufWriter unknown;
  unknown.tensor("t", {32}, 0xffffffff, std::string(18, 'x'));
  CHECK(refusal(unknown) ==
        "unknown-type: tensor 't' at byte 45: tensor type 4294967295 is unknown" + supported);
}

TEST_CASE("refused places of tensors") {
  GgufWriter odd;
  odd.tensor("t", {8}, "F32");
  odd.tensors[0].offset = 16;
  CHECK(refusal(odd) ==
        "misaligned: tensor 't' at byte 24: its data is at offset 16, not a multiple of the "
        "alignment 32");
  GgufWriter out;
  out.tensor("t", {8}, "F32");
  out.tensors[0].offset = 32;
  CHECK(refusal(out) ==
        "out-of-file: tensor 't' at byte 24: its 32 bytes at offset 32 end after the 32 bytes of "
        "the data section");
  out.tensors[0].offset = kHuge - 31;
  CHECK(refusal(out) ==
        "out-of-file: tensor 't' at byte 24: its 32 bytes at offset 18446744073709551584 end after "
        "the 32 bytes of the data section");
  GgufWriter overlap;
  overlap.tensor("a", {40}, "F32").tensor("b", {8}, "F32");
  overlap.tensors[1].offset = 128;
  CHECK(refusal(overlap) ==
        "overlap: tensor 'b' at byte 57: its data at offset 128 begins within 'a', which has 160 "
        "bytes at offset 0");
  overlap.tensors[1].offset = 0;
  CHECK(refusal(overlap).starts_with("overlap: tensor 'b' at byte 57: its data at offset 0 "));
}

TEST_CASE("refused products of dims") {
  const auto refused = [](std::vector<std::uint64_t> dims, std::uint32_t type) {
    GgufWriter writer;
    writer.tensor("t", std::move(dims), type, std::string(64, 'x'));
    return refusal(writer);
  };
  const auto text = [](std::uint64_t bytes) {
    return "out-of-file: tensor 't' at byte 24: its dims need more than the " +
           std::to_string(bytes) + " bytes of the file";
  };
  CHECK(refused({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0) == text(160));
  CHECK(refused({kHuge, kHuge, kHuge, kHuge}, 24) == text(160));
  CHECK(refused({std::uint64_t{1} << 62}, 0) == text(128));  // 2^64 bytes
  CHECK(refused({kHuge - 255}, 14) == text(128));
  CHECK(refused({8, 16}, 28) == text(160));
  CHECK(refused({129}, 24) == text(128));  // one byte too many
  CHECK(refused({128}, 24) ==
        "out-of-file: tensor 't' at byte 24: its 128 bytes at offset 0 end after the 64 bytes of "
        "the data section");
}

TEST_CASE("a data section that would begin after the end of the file") {
  GgufWriter writer = with_alignment(written(ValueType::u32, 0x80000000));
  writer.tensor("t", {8}, "F32");
  CHECK(refusal(writer) ==
        "out-of-file: tensor 't' at byte 57: its 32 bytes at offset 0 end after the 0 bytes of the "
        "data section");
}
