// tests/ptx/target_test.cpp - the target table and the GPU table
#include "ptxgen/ptx/target.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;

TEST_CASE("the target table has every target and its lowest PTX version") {
  const std::map<std::string_view, Version> expected = {
      {"sm_75", {6, 3}},   {"sm_80", {7, 0}},   {"sm_86", {7, 1}},   {"sm_87", {7, 4}},
      {"sm_88", {9, 0}},   {"sm_89", {7, 8}},   {"sm_90", {7, 8}},   {"sm_90a", {8, 0}},
      {"sm_100", {8, 6}},  {"sm_100a", {8, 6}}, {"sm_100f", {8, 8}}, {"sm_103", {8, 8}},
      {"sm_103a", {8, 8}}, {"sm_103f", {8, 8}}, {"sm_110", {9, 0}},  {"sm_110a", {9, 0}},
      {"sm_110f", {9, 0}}, {"sm_120", {8, 7}},  {"sm_120a", {8, 7}}, {"sm_120f", {8, 8}},
      {"sm_121", {8, 8}},  {"sm_121a", {8, 8}}, {"sm_121f", {8, 8}}};
  CHECK(targets().size() == expected.size());
  for (const auto& [text, version] : expected) {
    const Target* row = find_target(text);
    INFO(text);
    REQUIRE(row != nullptr);
    CHECK(row->version == version);
    CHECK(name(TargetName{row->sm, row->variant}) == text);
    CHECK(&target(text) == row);
  }
}

TEST_CASE("the target table is in order and its figures are possible") {
  unsigned previous = 0;
  for (const Target& row : targets()) {
    INFO(row.name);
    CHECK(row.sm >= previous);
    previous = row.sm;
    CHECK(row.shared_per_block == 48 * 1024);
    CHECK(row.shared_per_block_opt_in >= row.shared_per_block);
    CHECK(row.shared_per_block_opt_in <= 228 * 1024);
    // The variants of an architecture have its memory and are no older.
    const Target& plain = target(name(TargetName{row.sm, Variant::None}));
    CHECK(row.shared_per_block_opt_in == plain.shared_per_block_opt_in);
    CHECK(row.version >= plain.version);
  }
}

TEST_CASE("an unknown target is refused with the names there are") {
  CHECK(find_target("sm_52") == nullptr);
  try {
    static_cast<void>(target("sm_52"));
    FAIL("sm_52 is not in the table");
  } catch (const Error& error) {
    CHECK(error.code == "unknown-target");
    CHECK(error.message.find("unknown target 'sm_52'; the table has sm_75 sm_80") == 0);
    CHECK(error.message.find("sm_121f") != std::string::npos);
  }
}

TEST_CASE("names of targets are taken apart") {
  TargetName out;
  REQUIRE(parse_target_name("sm_90a", out));
  CHECK(out.sm == 90);
  CHECK(out.variant == Variant::Architecture);
  REQUIRE(parse_target_name("sm_100f", out));
  CHECK(out.sm == 100);
  CHECK(out.variant == Variant::Family);
  REQUIRE(parse_target_name("sm_52", out));
  CHECK(out.sm == 52);
  CHECK(out.variant == Variant::None);
  for (const std::string_view text :
       {"", "sm_", "sm_a", "sm90", "compute_90", "sm_90b", "sm_9x", "sm_99999", "SM_90", " sm_90",
        "sm_90 ", "sm_-1", "sm_90aa"}) {
    INFO("'" << text << "'");
    CHECK_FALSE(parse_target_name(text, out));
  }
}

TEST_CASE("a and f variants offer what the ISA says") {
  const auto offered = [](std::string_view target_text, unsigned sm, Variant variant) {
    TargetName out;
    REQUIRE(parse_target_name(target_text, out));
    return offers(out, {{1, 0}, static_cast<std::uint16_t>(sm), variant});
  };
  using enum Variant;
  // Plain features are in every later target, with or without suffix.
  CHECK(offered("sm_80", 80, None));
  CHECK(offered("sm_90a", 80, None));
  CHECK(offered("sm_121f", 90, None));
  CHECK_FALSE(offered("sm_75", 80, None));
  // Architecture-specific ones are in that one only.
  CHECK(offered("sm_90a", 90, Architecture));
  CHECK_FALSE(offered("sm_90", 90, Architecture));
  CHECK_FALSE(offered("sm_100a", 90, Architecture));
  CHECK_FALSE(offered("sm_100f", 100, Architecture));
  // Family-specific ones are in the family from there on, with either suffix.
  CHECK(offered("sm_100f", 100, Family));
  CHECK(offered("sm_100a", 100, Family));
  CHECK(offered("sm_103f", 100, Family));
  CHECK(offered("sm_103a", 100, Family));
  CHECK_FALSE(offered("sm_100", 100, Family));
  CHECK_FALSE(offered("sm_110f", 100, Family));
  CHECK_FALSE(offered("sm_120f", 100, Family));
  CHECK_FALSE(offered("sm_100f", 103, Family));
  CHECK(offered("sm_121f", 120, Family));
}

TEST_CASE("the GPU table has the parts that the program names, with possible figures") {
  const std::set<std::string_view> expected = {
      "t4", "a100", "a100-40",   "rtx3090", "a40",  "rtx4090", "rtx4080", "l40s",   "l40",
      "l4", "h100", "h100-pcie", "gh200",   "h200", "b200",    "b300",    "rtx5090"};
  CHECK(gpus().size() == expected.size());
  for (const std::string_view text : expected) {
    INFO(text);
    const Gpu* gpu = find_gpu(text);
    REQUIRE(gpu != nullptr);
    CHECK(gpu->full_name.starts_with("NVIDIA "));
    const Target* row = find_target(gpu->target);
    REQUIRE(row != nullptr);
    CHECK(gpu->shared_per_block == row->shared_per_block_opt_in);
    CHECK(gpu->shared_per_sm >= gpu->shared_per_block);
    CHECK(gpu->sms >= 40);
    CHECK(gpu->sms <= 170);
    CHECK(gpu->clock_mhz >= 1000);
    CHECK(gpu->clock_mhz <= 3000);
    CHECK(gpu->bandwidth_gb_per_s >= 300);
    CHECK(gpu->bandwidth_gb_per_s <= 8000);
    CHECK(gpu->memory_bytes >= 16'000'000'000u);
    CHECK(gpu->l2_bytes >= 4u << 20);
    CHECK(gpu->registers_per_sm == 65536);
    CHECK(gpu->threads_per_sm % 32 == 0);
    CHECK(gpu->threads_per_sm >= 1024);
    CHECK(gpu->threads_per_sm <= 2048);
    CHECK(gpu->blocks_per_sm >= 16);
    // HBM is wide: GDDR parts stay below 2 TB/s.
    CHECK((gpu->dram == Dram::HBM) == (gpu->bandwidth_gb_per_s > 1500 && gpu->target != "sm_120a"));
    if (gpu->measured.read_share != 0) {
      CHECK(gpu->measured.read_share >= 0.8);
      CHECK(gpu->measured.read_share < 1);
    }
  }
  CHECK(find_gpu("H200") == nullptr);
}

TEST_CASE("newer data-centre parts are no worse") {
  const std::string_view parts[] = {"t4", "a100", "h100", "h200", "b200"};
  const Gpu* before = nullptr;
  for (const std::string_view part : parts) {
    const Gpu* gpu = find_gpu(part);
    REQUIRE(gpu != nullptr);
    if (before != nullptr) {
      CHECK(gpu->bandwidth_gb_per_s > before->bandwidth_gb_per_s);
      CHECK(gpu->memory_bytes >= before->memory_bytes);
      CHECK(gpu->l2_bytes >= before->l2_bytes);
      CHECK(gpu->sms >= before->sms);
      CHECK(gpu->shared_per_sm >= before->shared_per_sm);
    }
    before = gpu;
  }
}

TEST_CASE("a target finds the first GPU of its architecture") {
  REQUIRE(first_gpu_of("sm_89") != nullptr);
  CHECK(first_gpu_of("sm_89")->name == "rtx4090");
  CHECK(first_gpu_of("sm_90")->name == "h100");
  CHECK(first_gpu_of("sm_90a")->name == "h100");
  CHECK(first_gpu_of("sm_87") == nullptr);
  CHECK(first_gpu_of("nonsense") == nullptr);
}
