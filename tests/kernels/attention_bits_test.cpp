// tests/kernels/attention_bits_test.cpp - decode attention: determinism, traffic, code
#include <catch2/catch.hpp>
#include <cstdio>

#include "attention_run.hpp"
#include "gemv_operands.hpp"
#include "kernels/attention/decode_layout.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

AttentionDecode spec_of(std::uint32_t group, std::uint32_t head_size, ElementType cache,
                        std::uint32_t max_seq) {
  AttentionDecode spec;
  spec.kv_heads = 2;
  spec.group = group;
  spec.head_size = head_size;
  spec.cache = cache;
  spec.max_seq = max_seq;
  return spec;
}

std::string refusal(const AttentionDecode& spec) {
  try {
    static_cast<void>(spec.build(ptx::target("sm_90")));
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("attention: the same bits in every order of the blocks, with tickets left at 0") {
  for (const ElementType cache : {ElementType::f16, ElementType::q8_0}) {
    AttentionDecode spec = spec_of(4, 64, cache, 600);
    spec.rows = 2;
    spec.chunk = 40;
    AttentionData data = normal_data(spec, 5);
    data.lengths = {600, 333};
    AttentionRunner runner(spec, data);
    const AttentionOutcome first = runner.run();
    REQUIRE(first.findings == "");
    for (int i = 1; i < count(12, 200); ++i) {
      INFO("run " << i);
      emulator::Options options;
      options.seed = static_cast<std::uint64_t>(i);
      options.threads = static_cast<unsigned>(i % 3 + 1);
      options.parallel = i % 2 == 1;
      options.counters = false;
      const AttentionOutcome again = runner.run(options);
      REQUIRE(again.findings == "");
      REQUIRE((again.bits == first.bits));
    }
  }
}

TEST_CASE("attention: new lengths in the same memory, and lengths beyond the cache") {
  AttentionDecode spec = spec_of(2, 64, ElementType::f16, 512);
  spec.rows = 2;
  spec.chunk = 64;
  AttentionData data = normal_data(spec, 6);
  AttentionRunner runner(spec, data);
  const std::vector<std::uint32_t> all[] = {
      {512, 512}, {1, 65}, {64, 0}, {511, 128}, {0, 0}, {513, 4000000000u}, {512, 512}, {300, 300}};
  std::vector<std::byte> longest;
  for (const std::vector<std::uint32_t>& lengths : all) {
    INFO(lengths[0] << ", " << lengths[1]);
    runner.set_lengths(lengths);
    const AttentionOutcome outcome = runner.run();
    CHECK(outcome.findings == "");
    data.lengths = lengths;
    const AttentionExact exact = exact_attention(spec, as_stored(spec, data));
    for (std::size_t i = 0; i < exact.out.size(); ++i) {
      CHECK(std::abs(outcome.out[i] - exact.out[i]) < 1e-5);
    }
    if (lengths[0] >= 512) {
      if (longest.empty()) longest = outcome.bits;
      CHECK((outcome.bits == longest));
    }
  }
}

TEST_CASE("attention: bits depend on the chunk, not on max_seq") {
  AttentionDecode small = spec_of(4, 64, ElementType::f32, 300);
  small.kv_heads = 1;
  small.chunk = 64;
  AttentionDecode large = small;
  large.max_seq = 5000;
  const AttentionData data = normal_data(small, 11);
  AttentionData padded = data;
  padded.k.resize(large.cache_values());
  padded.v.resize(large.cache_values());
  const AttentionOutcome first = AttentionRunner(small, data).run();
  CHECK((AttentionRunner(large, padded).run().bits == first.bits));
  AttentionDecode other = small;
  other.chunk = 96;
  CHECK((AttentionRunner(other, data).run().bits != first.bits));
}

TEST_CASE("attention: each byte of the cache is read once, in full sectors, without conflicts") {
  for (const ElementType cache : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const std::uint32_t group : {1u, 4u, 6u, 8u}) {
      for (const std::uint32_t size : {64u, 128u}) {
        AttentionDecode spec = spec_of(group, size, cache, 512);
        spec.chunk = 128;
        INFO(to_string(cache) << ", group " << group << ", head size " << size);
        AttentionRunner runner(spec, normal_data(spec, 13));
        const AttentionOutcome outcome = runner.run();
        CHECK(outcome.findings == "");
        const emulator::Counters& counters = outcome.counters;
        CHECK(counters.shared_load.bank_conflicts + counters.shared_store.bank_conflicts == 0);
        CHECK(counters.local_load.requests + counters.local_store.requests == 0);
        const auto lines = operands_of_lines(ptx::parse(runner.ptx()));
        emulator::MemoryCounters read;
        for (const emulator::LineCounters& line : counters.lines) {
          const auto found = lines.find(line.line);
          if (found == lines.end() || (found->second != "k" && found->second != "v")) continue;
          read.bytes += line.memory.bytes;
          read.sectors += line.memory.sectors;
        }
        const std::uint64_t stored = 2 * spec.cache_values() * bytes(cache);
        CHECK(read.bytes == stored);
        CHECK(read.sectors * 32 == stored);
      }
    }
  }
}

TEST_CASE("attention: q8_0 is read without conflicts, and no byte outside its blocks") {
  for (const std::uint32_t size : {32u, 64u, 96u, 128u, 160u, 256u}) {
    for (const std::uint32_t group : {1u, 4u, 8u}) {
      AttentionDecode spec = spec_of(group, size, ElementType::q8_0, 77);
      spec.chunk = 33;
      INFO("group " << group << ", head size " << size);
      AttentionData data = normal_data(spec, 19);
      data.lengths = {76};
      const AttentionOutcome outcome = AttentionRunner(spec, data).run();
      CHECK(outcome.findings == "");
      CHECK(outcome.counters.shared_load.bank_conflicts +
                outcome.counters.shared_store.bank_conflicts ==
            0);
      CHECK(nmse(outcome.out, exact_attention(spec, as_stored(spec, data)).out) <= 1e-9);
    }
  }
}

TEST_CASE("attention: every group and head size has a layout, or is refused with what to do") {
  std::size_t layouts = 0;
  for (const ElementType cache :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q8_0}) {
    for (std::uint32_t group = 1; group <= 16; ++group) {
      for (std::uint32_t size = 16; size <= 256; size += 16) {
        const AttentionDecode spec = spec_of(group, size, cache, 1000);
        if (!attention::fits(spec)) continue;
        INFO(to_string(cache) << ", group " << group << ", head size " << size);
        const attention::DecodeLayout layout = attention::decode_layout(spec);
        REQUIRE(layout.lanes != 0);
        CHECK(layout.lanes * layout.values() >= size);
        CHECK(layout.lanes * (layout.values() - layout.unit) < size);
        CHECK(spec.chunk_positions() * spec.chunks() >= spec.positions());
        ++layouts;
      }
    }
  }
  CHECK(layouts > 500);
  CHECK(refusal(spec_of(9, 64, ElementType::f32, 10)) ==
        "bad-parameter: group is 9 with head_size 64; a block has registers for 8 query heads (6 "
        "of more than 128 values), and larger groups are halved: take an even group");
  CHECK(refusal(spec_of(7, 256, ElementType::f16, 10)).find("group is 7") != std::string::npos);
  CHECK(refusal(spec_of(1, 80, ElementType::q8_0, 10)) ==
        "bad-parameter: head_size is 80; with a cache of q8_0, whose blocks have 32 values, it is "
        "a multiple of 32");
  CHECK(refusal(spec_of(1, 72, ElementType::f32, 10)) ==
        "bad-parameter: head_size is 72, not a multiple of 16");
}

TEST_CASE("attention: long caches fill the GPU, short ones are one block and need no workspace") {
  AttentionDecode spec;
  spec.cache = ElementType::f16;
  spec.max_seq = 64;
  CHECK(spec.chunks() == 1);
  CHECK(Describe<AttentionDecode>::workspace(spec).none());
  spec.max_seq = 32768;
  CHECK(spec.chunks() == 64);
  CHECK(spec.geometry().grid.x * spec.geometry().grid.y >= 132 * 3);
  CHECK(attention_chunk(spec, 16) > attention_chunk(spec, 132));
  CHECK_FALSE(Describe<AttentionDecode>::workspace(spec).none());
  spec.rows = 64;
  CHECK(spec.chunks() <= 2);  // rows fill the GPU
  spec.rows = 1;
  spec.window = 64;
  CHECK(spec.chunks() == 1);
}

TEST_CASE("attention: gates have nothing to report on any code of it") {
  std::size_t checked = 0;
  for (const ElementType cache : {ElementType::f32, ElementType::f16, ElementType::q8_0}) {
    for (const std::uint32_t group : {1u, 3u, 4u, 8u, 16u}) {
      for (const std::uint32_t size : {32u, 96u, 128u, 256u}) {
        if (!full() && (size / 32 + group + checked) % 3 != 0) continue;
        AttentionDecode spec = spec_of(group, size, cache, 1000);
        if (!attention::fits(spec)) continue;
        INFO(to_string(cache) << ", group " << group << ", head size " << size);
        const ptx::Module module = spec.build(ptx::target("sm_90")).module();
        CHECK(gates::barrier_safety(module).empty());
        CHECK(gates::shared_race(module).empty());
        CHECK(gates::analyze(module).empty());
        ++checked;
      }
    }
  }
  CHECK(checked > 0);
}

TEST_CASE("attention: heads of models assemble within 128 registers, without spills") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  std::uint32_t largest = 0;
  const std::pair<std::uint32_t, std::uint32_t> models[] = {{1, 128}, {4, 128}, {4, 64},
                                                            {6, 128}, {4, 256}, {8, 128}};
  std::size_t number = 0;
  for (const auto& [group, size] : models) {
    for (const ElementType cache : {ElementType::f16, ElementType::bf16, ElementType::q8_0}) {
      for (const std::string_view target : {"sm_75", "sm_80", "sm_90", "sm_120"}) {
        if (!full() && number++ % 7 != 0) continue;
        INFO(to_string(cache) << ", group " << group << ", head size " << size << ", " << target);
        AssembleOptions options;
        options.target = target;
        // Before sm_90 nvJitLink keeps a helper for shuffles, whose calling convention takes
        // registers from the kernel.
        options.tool = AssemblerTool::FewestRegisters;
        const AttentionDecode spec = spec_of(group, size, cache, 1000);
        const Assembly result = assembler.assemble(spec.build(ptx::target(target)).ptx(), options);
        CHECK(result.spill_stores + result.spill_loads == 0);
        CHECK(result.kernels[0].stack == 0);
        CHECK(result.registers <= 128);
        largest = std::max(largest, result.registers);
      }
    }
  }
  std::printf("attention assembly: no spills, at most %u registers\n", largest);
}
