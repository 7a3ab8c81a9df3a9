// tests/driver/occupancy_rules_test.cpp - blocks on a multiprocessor, computed by hand
//
// Every figure follows from the CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability", for the limits of a multiprocessor, and the toolkit's cuda_occupancy.h (13.0) for
// the units in which registers (256 a warp, from a quarter of the file) and shared memory (256
// bytes for 7.x, 128 after) are given. The comments show the sum.
#include <catch2/catch.hpp>

#include "ptx/occupancy.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;

namespace {

std::uint32_t blocks(std::string_view gpu, std::uint32_t threads, std::uint32_t registers,
                     std::uint64_t static_shared = 0, std::uint64_t dynamic_shared = 0) {
  BlockNeeds needs;
  needs.threads = threads;
  needs.registers = registers;
  needs.static_shared = static_shared;
  needs.dynamic_shared = dynamic_shared;
  needs.max_dynamic_shared = 232448;
  return blocks_per_sm(*ptx::find_gpu(gpu), needs);
}

std::uint64_t available(std::string_view gpu, std::uint32_t count, std::uint64_t static_shared) {
  BlockNeeds needs;
  needs.threads = 32;
  needs.static_shared = static_shared;
  needs.max_dynamic_shared = 232448;
  return available_dynamic_shared(*ptx::find_gpu(gpu), needs, count);
}

}  // namespace

TEST_CASE("occupancy: sm_90 holds 64 warps, 32 blocks, 228 KiB") {
  CHECK(blocks("h200", 256, 32) == 8);   // 64 / 8 warps
  CHECK(blocks("h200", 256, 64) == 4);   // 16384 / 2048 = 8 warps a quarter, 32 / 8
  CHECK(blocks("h200", 256, 40) == 6);   // 16384 / 1280 = 12, 48 / 8
  CHECK(blocks("h200", 256, 33) == 6);   // 1056 is rounded to 1280
  CHECK(blocks("h200", 96, 72) == 9);    // 16384 / 2304 = 7, 28 / 3
  CHECK(blocks("h200", 32, 16) == 32);   // the limit of blocks
  CHECK(blocks("h200", 1, 16) == 32);    // a part of a warp is a warp
  CHECK(blocks("h200", 1024, 64) == 1);  // 32 / 32
  CHECK(blocks("h200", 1024, 32) == 2);
  CHECK(blocks("h200", 33, 16) == 32);  // 64 / 2
  CHECK(blocks("h200", 65, 16) == 21);  // 64 / 3
  // 1 KiB of each block is the system's.
  CHECK(blocks("h200", 128, 16, 49152) == 4);      // 233472 / 50176
  CHECK(blocks("h200", 128, 16, 0, 232448) == 1);  // 227 KiB
  CHECK(blocks("h200", 128, 16, 0, 115712) == 2);  // 113 KiB: 2 * 116736 = 233472
  CHECK(blocks("h200", 128, 16, 0, 115713) == 1);
  CHECK(blocks("h200", 128, 16, 1, 232448) == 0);  // more than a block can have
}

TEST_CASE("occupancy: sm_89 holds 48 warps, 24 blocks, 100 KiB") {
  CHECK(blocks("rtx4090", 256, 32) == 6);
  CHECK(blocks("rtx4090", 1024, 32) == 1);
  CHECK(blocks("rtx4090", 512, 32) == 3);
  CHECK(blocks("rtx4090", 32, 16) == 24);
  CHECK(blocks("rtx4090", 256, 32, 16384) == 5);      // 102400 / 17408
  CHECK(blocks("rtx4090", 256, 32, 0, 101376) == 1);  // 99 KiB
  CHECK(blocks("rtx4090", 256, 32, 0, 101377) == 0);
}

TEST_CASE("occupancy: sm_80 and sm_86") {
  CHECK(blocks("a100", 256, 32) == 8);
  CHECK(blocks("a100", 128, 32, 40960) == 4);  // 167936 / 41984, just so
  CHECK(blocks("a100", 128, 32, 40961) == 3);  // 42112
  CHECK(blocks("rtx3090", 32, 16) == 16);
  CHECK(blocks("rtx3090", 128, 80) == 6);  // 16384 / 2560 = 6, 24 / 4
}

TEST_CASE("occupancy: sm_75 holds 32 warps, 16 blocks, 64 KiB, and keeps nothing back") {
  CHECK(blocks("t4", 256, 32) == 4);
  CHECK(blocks("t4", 256, 128) == 2);  // 16384 / 4096 = 4, 16 / 8
  CHECK(blocks("t4", 64, 16, 49152) == 1);
  CHECK(blocks("t4", 64, 16, 16384) == 4);
  CHECK(blocks("t4", 64, 16, 8000) == 8);  // 8192
  CHECK(blocks("t4", 64, 16, 0, 65536) == 1);
}

TEST_CASE("occupancy: registers alone never keep a block away") {
  // 255 registers in 1024 threads are 4 times what there is; a compiler would have used fewer.
  CHECK(blocks("h200", 1024, 255) == 1);
  CHECK(blocks("h200", 1024, 100000) == 1);
  CHECK(blocks("h200", 0, 16) == 0);
  CHECK(blocks("h200", 1025, 16) == 0);
}

TEST_CASE("occupancy: shared memory left for a number of blocks") {
  CHECK(available("h200", 1, 0) == 232448);
  CHECK(available("h200", 2, 0) == 115712);
  CHECK(available("h200", 3, 100) == 76700);  // 77824 - 1024 - 100
  CHECK(available("rtx4090", 1, 0) == 101376);
  CHECK(available("t4", 2, 0) == 32768);
  CHECK(available("t4", 1, 49152) == 16384);
  CHECK(available("h200", 0, 0) == 0);
  CHECK(available("h200", 32, 49152) == 0);
  for (std::uint32_t count = 1; count <= 32; ++count) {
    const std::uint64_t bytes = available("h200", count, 100);
    INFO(count << " blocks of " << bytes << " bytes");
    CHECK(blocks("h200", 32, 16, 100, bytes) >= count);
  }
}
