// tests/emulator/address_space_test.cpp - device memory: bounds, quarantine, written bits
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <vector>

#include "emulator/state/address_space.hpp"
#include "emulator/state/written_bits.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;

namespace {

ptx::Gpu small_gpu(std::uint64_t bytes) {
  ptx::Gpu gpu;
  gpu.name = "small";
  gpu.memory_bytes = bytes;
  return gpu;
}

std::vector<std::byte> pattern(std::size_t bytes, unsigned first = 1) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(first + i * 7);
  return result;
}

template <class F>
std::string message_of(F&& call, const char* code) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code == code);
    CHECK(error.stage == Stage::Emulate);
    return error.message;
  }
  FAIL("no error was thrown");
  return {};
}

bool written(const AddressSpace& space, std::uint64_t address) {
  const std::uint64_t bit = address - kGlobalBase;
  return (space.written()[bit / 64] >> bit % 64 & 1u) != 0;
}

}  // namespace

TEST_CASE("allocations are aligned, apart and of the size asked for") {
  Device device(small_gpu(1u << 28));
  std::uint64_t end = kGlobalBase;
  for (const std::uint64_t bytes : {1u, 4u, 255u, 256u, 257u, 4096u, 100'000u, 1u << 22}) {
    const std::uint64_t address = device.allocate(bytes, "a");
    CHECK(address % 256 == 0);
    CHECK(address >= end + 256);
    const Device::Extent extent = device.allocation_of(address + bytes - 1);
    CHECK(extent.start == address);
    CHECK(extent.bytes == bytes);
    CHECK(device.allocation_of(address + bytes).bytes == 0);
    CHECK(device.allocation_of(address - 1).bytes == 0);
    end = address + bytes;
  }
  CHECK(device.allocation_of(0).bytes == 0);
  CHECK(device.allocation_of(~std::uint64_t{0}).bytes == 0);
}

TEST_CASE("what is written is read back, across several pages") {
  Device device(small_gpu(1u << 28));
  const std::uint64_t address = device.allocate(100'000);
  const auto data = pattern(50'001);
  device.write(address + 3, data);
  std::vector<std::byte> back(data.size());
  device.read(address + 3, back);
  CHECK(back == data);
  device.fill(address + 10, std::byte{0xab}, 4000);
  device.read(address + 3, back);
  CHECK(back[6] == data[6]);
  CHECK(back[7] == std::byte{0xab});
  CHECK(back[4006] == std::byte{0xab});
  CHECK(back[4007] == data[4007]);
}

TEST_CASE("host copies outside of an allocation are refused with its name") {
  Device device(small_gpu(1u << 28));
  const std::uint64_t address = device.allocate(100, "argument 2 'y'");
  const auto data = pattern(101);
  CHECK_THAT(message_of([&] { device.write(address, data); }, "out-of-bounds"),
             Catch::Contains("write of 101 bytes at 0x") &&
                 Catch::Contains("goes 1 byte past the end of argument 2 'y' (100 bytes)"));
  std::vector<std::byte> back(8);
  CHECK_THAT(message_of([&] { device.read(address + 100, back); }, "out-of-bounds"),
             Catch::Contains("is outside of all allocations"));
  CHECK_THAT(message_of([&] { device.fill(16, std::byte{0}, 4); }, "out-of-bounds"),
             Catch::Contains("fill of 4 bytes at 0x10 is outside of all allocations"));
  // A size that wraps around must not look small.
  CHECK_THAT(message_of([&] { device.copy(address, address, ~std::uint64_t{0}); }, "out-of-bounds"),
             Catch::Contains("copy from of"));
  device.free(address);
  CHECK_THAT(message_of([&] { device.write(address, back); }, "out-of-bounds"),
             Catch::Contains("is in argument 2 'y', which was freed"));
}

TEST_CASE("free takes the start of a living allocation and nothing else") {
  Device device(small_gpu(1u << 28));
  const std::uint64_t address = device.allocate(512, "buffer 'w'");
  CHECK_THAT(message_of([&] { device.free(address + 4); }, "invalid-address"),
             Catch::Contains("it is byte 4 of buffer 'w'; pass the start"));
  CHECK_THAT(message_of([&] { device.free(0); }, "invalid-address"),
             Catch::Contains("free of 0x0: no allocation starts there"));
  device.free(address);
  CHECK_THAT(message_of([&] { device.free(address); }, "invalid-address"),
             Catch::Contains("buffer 'w' was freed already"));
  CHECK_THAT(message_of([&] { device.protect(address); }, "invalid-address"),
             Catch::Contains("protect of"));
}

TEST_CASE("freed memory stays unused for a while and is found by name") {
  Device device(small_gpu(1u << 30));
  const std::uint64_t first = device.allocate(4096, "old");
  device.fill(first, std::byte{1}, 4096);
  device.free(first);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t next = device.allocate(4096);
    REQUIRE(next != first);
    device.free(next);
  }
  const Allocation* const found = device.space().find(first + 8);
  REQUIRE(found != nullptr);
  CHECK(found->name == "old");
  CHECK(found->freed);
  CHECK_FALSE(written(device.space(), first));
}

TEST_CASE("addresses are used again when none are left, as if never written") {
  Device device(small_gpu(1u << 30));
  const std::uint64_t reserved = device.space().reserved_bytes();
  const std::uint64_t bytes = 1u << 29;
  std::uint64_t lowest = ~std::uint64_t{0};
  std::uint64_t allocated = 0;
  bool again = false;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t address = device.allocate(bytes, "block " + std::to_string(i));
    REQUIRE(address + bytes <= kGlobalBase + reserved);
    again = again || address == lowest;
    lowest = std::min(lowest, address);
    CHECK_FALSE(written(device.space(), address));
    device.fill(address, std::byte{0xff}, 64);
    allocated += bytes;
    const Allocation* const found = device.space().find(address);
    REQUIRE(found != nullptr);
    CHECK(found->name == "block " + std::to_string(i));
    device.free(address);
  }
  CHECK(allocated > reserved);
  CHECK(again);
  std::vector<std::byte> back(64);
  const std::uint64_t last = device.allocate(bytes);
  device.read(last, back);
  CHECK(std::ranges::all_of(back, [](std::byte one) { return one == std::byte{0}; }));
}

TEST_CASE("no more is given out than the GPU has") {
  Device device(small_gpu(1u << 20));
  const std::uint64_t half = device.allocate(1u << 19, "half");
  CHECK_THAT(
      message_of([&] { static_cast<void>(device.allocate((1u << 19) + 1, "buffer 'b'")); },
                 "out-of-memory"),
      Catch::Contains("buffer 'b' of 524289 bytes does not fit: 524288 of 1048576 bytes of the GPU "
                      "'small' are free"));
  CHECK_THAT(
      message_of([&] { static_cast<void>(device.allocate(~std::uint64_t{0})); }, "out-of-memory"),
      Catch::Contains("an allocation of 18446744073709551615 bytes"));
  device.free(half);
  CHECK(device.allocate((1u << 19) + 1) != 0);
}

TEST_CASE("written bits follow writes, copies and frees") {
  Device device(small_gpu(1u << 28));
  AddressSpace& space = device.space();
  const std::uint64_t from = device.allocate(1024);
  const std::uint64_t to = device.allocate(1024);
  for (std::uint64_t i = 0; i < 1024; ++i) REQUIRE_FALSE(written(space, from + i));
  device.write(from + 5, pattern(200));
  for (std::uint64_t i = 0; i < 1024; ++i) {
    REQUIRE(written(space, from + i) == (i >= 5 && i < 205));
  }
  // Bytes that were never written stay so when they are copied over written ones.
  device.fill(to, std::byte{1}, 1024);
  device.copy(to + 100, from, 300);
  for (std::uint64_t i = 0; i < 1024; ++i) {
    const bool copied = i >= 100 && i < 400;
    REQUIRE(written(space, to + i) == (!copied || (i >= 105 && i < 305)));
  }
}

TEST_CASE("overlapping copies move bytes and their bits in both directions") {
  for (const int distance : {1, 7, 8, 63, 64, 65, 130, -1, -8, -63, -64, -130}) {
    CAPTURE(distance);
    Device device(small_gpu(1u << 28));
    const std::uint64_t start = device.allocate(2048);
    std::vector<bool> bits(2048, false);
    std::vector<std::byte> bytes(2048);
    const auto put = [&](std::size_t at, std::size_t count) {
      const auto data = pattern(count, static_cast<unsigned>(at));
      device.write(start + at, data);
      for (std::size_t i = 0; i < count; ++i) {
        bits[at + i] = true;
        bytes[at + i] = data[i];
      }
    };
    put(201, 33);
    put(300, 1);
    put(350, 200);
    const std::size_t from = 190;
    const std::size_t count = 501;
    const auto to = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(from) + distance);
    device.copy(start + to, start + from, count);
    const auto bits_before = bits;
    const auto bytes_before = bytes;
    for (std::size_t i = 0; i < count; ++i) {
      bits[to + i] = bits_before[from + i];
      bytes[to + i] = bytes_before[from + i];
    }
    std::vector<std::byte> back(2048);
    device.read(start, back);
    CHECK(back == bytes);
    for (std::size_t i = 0; i < 2048; ++i) {
      REQUIRE(written(device.space(), start + i) == bits[i]);
    }
  }
}

TEST_CASE("ranges of written bits, against one bit at a time") {
  for (std::uint64_t first = 0; first < 130; ++first) {
    for (const std::uint64_t count : {1u, 2u, 31u, 32u, 63u, 64u, 65u, 127u, 128u, 129u, 200u}) {
      std::uint64_t words[8] = {};
      mark_written<true>(words, first, count);
      std::uint64_t plain[8] = {};
      mark_written<false>(plain, first, count);
      REQUIRE(std::equal(words, words + 8, plain));
      for (std::uint64_t i = 0; i < 512; ++i) {
        REQUIRE((words[i / 64] >> i % 64 & 1u) == (i >= first && i < first + count ? 1u : 0u));
      }
      REQUIRE(all_written(words, first, count));
      REQUIRE_FALSE(all_written(words, first, count + 1));
      if (first > 0) REQUIRE_FALSE(all_written(words, first - 1, count));
      // A single hole anywhere is seen.
      for (const std::uint64_t hole : {first, first + count / 2, first + count - 1}) {
        words[hole / 64] ^= std::uint64_t{1} << hole % 64;
        REQUIRE_FALSE(all_written(words, first, count));
        words[hole / 64] ^= std::uint64_t{1} << hole % 64;
      }
    }
  }
}

TEST_CASE("the nearest allocation, living or freed") {
  Device device(small_gpu(1u << 28));
  AddressSpace& space = device.space();
  const std::uint64_t a = device.allocate(1000, "a");
  const std::uint64_t b = device.allocate(1000, "b");
  const auto name_near = [&](std::uint64_t address) {
    const Allocation* const found = space.nearest(address, 1u << 20);
    return found == nullptr ? std::string("none") : found->name;
  };
  CHECK(name_near(a + 1000) == "a");
  CHECK(name_near(a - 1) == "a");
  CHECK(name_near(b - 1) == "b");
  CHECK(name_near(b + 1000) == "b");
  CHECK(name_near(b + 1000 + (1u << 20) - 1) == "b");
  CHECK(name_near(b + 1000 + (1u << 20)) == "none");
  CHECK(name_near(0) == "none");
  CHECK(name_near(~std::uint64_t{0}) == "none");
  device.free(b);
  CHECK(name_near(b + 8) == "b");
}

TEST_CASE("an allocation is as dear as what is touched of it") {
  ptx::Gpu gpu = small_gpu(std::uint64_t{64} << 30);
  Device device(gpu);
  const std::uint64_t bytes = std::uint64_t{4} << 30;
  const std::uint64_t address = device.allocate(bytes, "large");
  const std::uint64_t before = device.overhead_bytes();
  // A thousand places, far apart: a page of bits each, two where one straddles an edge.
  for (std::uint64_t i = 0; i < 1000; ++i) {
    device.fill(address + i * (bytes / 1000), std::byte{1}, 4);
  }
  CHECK(device.overhead_bytes() - before <= 1010 * VirtualMemory::page_bytes());
  // Dense use: an eighth of a byte for each byte, and the claim of 0.6 holds.
  const std::uint64_t dense = device.allocate(16u << 20, "dense");
  const std::uint64_t sparse = device.overhead_bytes();
  device.fill(dense, std::byte{2}, 16u << 20);
  const double each = static_cast<double>(device.overhead_bytes() - sparse) / (16 << 20);
  CHECK(each <= 0.6);
  CHECK(each >= 0.1);
}

TEST_CASE("heap allocations of several threads at a time") {
  Device device(small_gpu(1u << 28));
  AddressSpace& space = device.space();
  std::vector<std::thread> threads;
  std::vector<std::vector<std::uint64_t>> result(4);
  for (std::size_t t = 0; t < result.size(); ++t) {
    threads.emplace_back([&space, &own = result[t], t] {
      for (std::uint64_t i = 0; i < 300; ++i) {
        const std::uint64_t address = space.allocate(64 + i, "heap", AllocationKind::Heap);
        const Allocation* const found = space.find(address + 63);
        if (found == nullptr || found->start != address || found->bytes != 64 + i) return;
        if ((i + t) % 3 == 0) {
          space.free(address);
        } else {
          own.push_back(address);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (const auto& own : result) {
    CHECK(own.size() == 200);
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
  for (const std::uint64_t address : all) CHECK_FALSE(space.find(address)->freed);
}

TEST_CASE("neighbouring written bits set by several threads at a time are all there") {
  std::vector<std::uint64_t> words(512, 0);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&words, t] {
      for (std::uint64_t bit = t; bit < 64 * 512; bit += 4) {
        mark_written<true>(words.data(), bit, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::ranges::all_of(words, [](std::uint64_t one) { return one == ~std::uint64_t{0}; }));
}

TEST_CASE("a virtual range is zero, stays zero after reset and refuses nonsense") {
  VirtualMemory memory = VirtualMemory::reserve(1u << 20, false);
  REQUIRE(memory);
  const std::uint64_t page = VirtualMemory::page_bytes();
  CHECK(memory.size() >= 1u << 20);
  REQUIRE(memory.commit(0, memory.size()));
  std::memset(memory.data(), 0xff, memory.size());
  CHECK(memory.resident_bytes(0, memory.size()) == memory.size());
  memory.reset(10, page * 3);
  CHECK(memory.data()[9] == std::byte{0xff});
  CHECK(memory.data()[10] == std::byte{0});
  CHECK(memory.data()[page * 3 + 9] == std::byte{0});
  CHECK(memory.data()[page * 3 + 10] == std::byte{0xff});
  memory.reset(page * 8 + 1, 5);
  CHECK(memory.data()[page * 8] == std::byte{0xff});
  CHECK(memory.data()[page * 8 + 5] == std::byte{0});
  CHECK(memory.data()[page * 8 + 6] == std::byte{0xff});
  VirtualMemory other = std::move(memory);
  CHECK(other);
  CHECK_FALSE(VirtualMemory::reserve(0, false));
  CHECK_FALSE(VirtualMemory::reserve(~std::uint64_t{0}, false));
}

TEST_CASE("host copies need no record of what they initialise") {
  AddressSpace space(small_gpu(std::uint64_t{1} << 28));
  const auto is_written = [&](std::uint64_t address, std::uint64_t bytes) {
    return all_written(space.written(), address - kGlobalBase, bytes);
  };
  space.track_initialised(false);
  const std::uint64_t untracked = space.allocate(1 << 20, "untracked");
  const std::uint64_t before = space.overhead_bytes();
  space.write(untracked, pattern(1 << 20));
  space.fill(untracked, std::byte{1}, 1 << 19);
  CHECK(space.overhead_bytes() == before);
  CHECK_FALSE(is_written(untracked, 4));
  space.track_initialised(true);
  CHECK(is_written(untracked, 1 << 20));
  const std::uint64_t later = space.allocate(64, "later");
  CHECK_FALSE(is_written(later, 64));
  space.write(later, pattern(32));
  CHECK(is_written(later, 32));
  CHECK_FALSE(is_written(later, 33));
}

TEST_CASE("a reservation has parts, whose memory comes, goes and has several addresses") {
  AddressSpace space(small_gpu(std::uint64_t{1} << 28));
  constexpr std::uint64_t kPart = kPageBytes;
  const Part gap{kPart, false, false, "where nothing is mapped", "map it"};
  const Part live{kPart, true, false, {}, {}};
  const Part readable{kPart, true, true, {}, {}};
  const Part nothing{3 * kPart, false, false, "where nothing is mapped", "map it"};
  const std::uint64_t start = space.reserve(3 * kPart, "reservation", nothing, kPart);
  CHECK(start % kPart == 0);
  CHECK(space.used_bytes() == 0);
  CHECK(space.find(start)->freed);
  const Pages pages = AddressSpace::make_pages(kPart);
  if (!pages.data) {
    WARN("SKIPPED: this system has no memory with several addresses");
    return;
  }
  space.claim(kPart, "memory");
  CHECK(space.used_bytes() == kPart);
  REQUIRE(space.show(start + kPart, kPart, pages));
  space.divide(start, std::vector{gap, live, gap});
  space.fill(start + kPart, std::byte{7}, kPart);
  CHECK_THAT(message_of([&] { space.fill(start + 8, std::byte{1}, 1); }, "out-of-bounds"),
             Catch::EndsWith(" is in reservation, where nothing is mapped"));

  REQUIRE(space.show(start + 2 * kPart, kPart, pages));
  space.divide(start, std::vector{gap, live, readable});
  CHECK(space.host(start + 2 * kPart)[9] == std::byte{7});
  CHECK(written(space, start + 2 * kPart + 9));
  CHECK(space.find(start + 2 * kPart)->read_only);
  REQUIRE(space.hide(start + kPart, 2 * kPart));
  space.divide(start, std::vector{nothing});
  CHECK(space.host(start + kPart)[0] == std::byte{0});
  CHECK_FALSE(written(space, start + kPart));
  // The pages keep their bytes.
  REQUIRE(space.show(start, kPart, pages));
  space.divide(start, std::vector{live, gap, gap});
  CHECK(space.host(start)[1] == std::byte{7});
  CHECK(written(space, start));
  REQUIRE(space.hide(start, kPart));
  space.divide(start, std::vector{nothing});
  space.unclaim(kPart);
  space.end_reservation(start);
  CHECK(space.find(start)->state == "which was freed");
  CHECK_FALSE(space.mapped(start, 4, false));

  const std::uint64_t small = space.reserve(1000, "small", Part{1000, true, false, {}, {}}, 512);
  space.fill(small, std::byte{1}, 1000);
  space.discard(small, 1000);
  CHECK(space.host(small)[999] == std::byte{0});
  CHECK_FALSE(written(space, small));
  CHECK_THAT(message_of([&] { space.claim(std::uint64_t{1} << 40, "too much"); }, "out-of-memory"),
             Catch::StartsWith("too much of 1099511627776 bytes does not fit"));
}
