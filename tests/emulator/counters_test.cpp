// tests/emulator/counters_test.cpp - sectors and wavefronts, computed by hand
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "emulator/memory/access_counts.hpp"
#include "support/harness.hpp"

using namespace ptxgen::emulator;

namespace {

constexpr std::uint32_t kAll = 0xffffffffu;

std::array<std::uint64_t, 32> strided(std::uint64_t base, std::uint64_t stride) {
  std::array<std::uint64_t, 32> result;
  for (std::uint64_t i = 0; i < 32; ++i) result[i] = base + i * stride;
  return result;
}

struct SectorRow {
  const char* what;
  std::uint64_t base;
  std::uint64_t stride;  ///< bytes from lane to lane
  unsigned bytes;
  std::uint32_t mask;
  unsigned sectors, ideal;
};

struct BankRow {
  const char* what;
  std::uint64_t base;
  std::uint64_t stride;
  unsigned bytes;
  std::uint32_t mask;
  unsigned wavefronts, ideal;
};

}  // namespace

TEST_CASE("sectors of global accesses, by hand") {
  const SectorRow rows[] = {
      // 32 lanes x 4 bytes = 128 bytes = 4 sectors.
      {"4 bytes, stride 1", 0x1000, 4, 4, kAll, 4, 4},
      {"4 bytes, stride 2: 256 bytes spanned, half used", 0x1000, 8, 4, kAll, 8, 4},
      {"4 bytes, stride 4: two lanes a sector", 0x1000, 16, 4, kAll, 16, 4},
      {"4 bytes, stride 8: a lane a sector", 0x1000, 32, 4, kAll, 32, 4},
      {"4 bytes, stride 32", 0x1000, 128, 4, kAll, 32, 4},
      {"4 bytes, stride 33", 0x1000, 132, 4, kAll, 32, 4},
      {"4 bytes, base 4 bytes late: a fifth sector", 0x1004, 4, 4, kAll, 5, 4},
      {"4 bytes, base 28 bytes late", 0x101c, 4, 4, kAll, 5, 4},
      {"4 bytes, all lanes the same", 0x1008, 0, 4, kAll, 1, 1},
      {"4 bytes, half a warp", 0x1000, 4, 4, 0x0000ffffu, 2, 2},
      {"4 bytes, every second lane", 0x1000, 4, 4, 0x55555555u, 4, 2},
      {"4 bytes, one lane", 0x1000, 4, 4, 0x00000010u, 1, 1},
      {"4 bytes, seven lanes from a sector's start", 0x1000, 4, 4, 0x7fu, 1, 1},
      {"4 bytes, nine lanes", 0x1000, 4, 4, 0x1ffu, 2, 2},
      // 32 x 8 = 256 bytes = 8 sectors.
      {"8 bytes, stride 1", 0x1000, 8, 8, kAll, 8, 8},
      {"8 bytes, stride 2", 0x1000, 16, 8, kAll, 16, 8},
      {"8 bytes, stride 32", 0x1000, 256, 8, kAll, 32, 8},
      {"8 bytes, base 8 bytes late", 0x1008, 8, 8, kAll, 9, 8},
      {"8 bytes, all lanes the same", 0x1000, 0, 8, kAll, 1, 1},
      // 32 x 16 = 512 bytes = 16 sectors.
      {"16 bytes, stride 1", 0x1000, 16, 16, kAll, 16, 16},
      {"16 bytes, stride 2: every lane its sector", 0x1000, 32, 16, kAll, 32, 16},
      {"16 bytes, base 16 bytes late", 0x1010, 16, 16, kAll, 17, 16},
      {"16 bytes, quarter warp", 0x1000, 16, 16, 0xffu, 4, 4},
      {"32 bytes, stride 1", 0x1000, 32, 32, kAll, 32, 32},
      // Misaligned accesses touch two sectors where they straddle an edge.
      {"4 bytes at 0x101e: 30..33", 0x101e, 0, 4, 1u, 2, 1},
      {"8 bytes a lane, 4 bytes late: lanes 3, 7, ... straddle", 0x1004, 8, 8, kAll, 9, 8},
      {"16 bytes, overlapping by half: 16 * 8 + 16 - 8 = 264", 0x1000, 8, 16, kAll, 9, 9},
      {"1 byte, stride 1", 0x1000, 1, 1, kAll, 1, 1},
      {"1 byte, stride 1, base 31", 0x101f, 1, 1, kAll, 2, 1},
      {"2 bytes, stride 1", 0x1000, 2, 2, kAll, 2, 2},
      {"no lane", 0x1000, 4, 4, 0, 0, 0},
  };
  for (const SectorRow& row : rows) {
    CAPTURE(row.what);
    const auto addresses = strided(row.base, row.stride);
    const SectorCount count = count_sectors(addresses.data(), row.mask, row.bytes);
    CHECK(count.sectors == row.sectors);
    CHECK(count.ideal == row.ideal);
  }
}

TEST_CASE("the order of lanes does not change sectors") {
  // Lanes backwards over 128 bytes; and each address twice: 16 distinct words are two sectors.
  std::array<std::uint64_t, 32> backwards, twice, zigzag;
  for (std::uint64_t i = 0; i < 32; ++i) {
    backwards[i] = 0x1000 + (31 - i) * 4;
    twice[i] = 0x1000 + (i / 2) * 4;
    zigzag[i] = 0x1000 + (i % 2 == 0 ? i : 63 - i) * 4;
  }
  CHECK(count_sectors(backwards.data(), kAll, 4) == SectorCount{4, 4});
  CHECK(count_sectors(twice.data(), kAll, 4) == SectorCount{2, 2});
  // Even lanes are in words 0, 2 .. 30 (4 sectors), odd ones in 62, 60 .. 32 (4 sectors).
  CHECK(count_sectors(zigzag.data(), kAll, 4) == SectorCount{8, 4});
}

TEST_CASE("wavefronts of shared memory, by hand") {
  const BankRow rows[] = {
      {"4 bytes, stride 1", 0, 4, 4, kAll, 1, 1},
      {"4 bytes, stride 2: two words in each even bank", 0, 8, 4, kAll, 2, 1},
      {"4 bytes, stride 4", 0, 16, 4, kAll, 4, 1},
      {"4 bytes, stride 8", 0, 32, 4, kAll, 8, 1},
      {"4 bytes, stride 32: a column of an unpadded tile", 0, 128, 4, kAll, 32, 1},
      {"4 bytes, stride 33: a column of a padded tile", 0, 132, 4, kAll, 1, 1},
      {"4 bytes, stride 3: odd strides are free", 0, 12, 4, kAll, 1, 1},
      {"4 bytes, stride 6", 0, 24, 4, kAll, 2, 1},
      {"4 bytes, stride 1, other base", 52, 4, 4, kAll, 1, 1},
      {"4 bytes, broadcast", 64, 0, 4, kAll, 1, 1},
      {"4 bytes, stride 32, eight lanes", 0, 128, 4, 0xffu, 8, 1},
      {"4 bytes, one lane", 0, 4, 4, 0x8000u, 1, 1},
      {"1 byte, stride 1: eight words, four lanes each", 0, 1, 1, kAll, 1, 1},
      {"2 bytes, stride 1", 0, 2, 2, kAll, 1, 1},
      {"2 bytes, stride 64 halves: a column", 0, 128, 2, kAll, 32, 1},
      // 8 bytes: lanes 0-15 and 16-31 after each other.
      {"8 bytes, stride 1", 0, 8, 8, kAll, 2, 2},
      {"8 bytes, stride 2: 16 lanes, words 4i and 4i+1, each bank twice", 0, 16, 8, kAll, 4, 2},
      {"8 bytes, stride 16: 16 lanes in banks 0 and 1", 0, 128, 8, kAll, 32, 2},
      {"8 bytes, stride 17: padded", 0, 136, 8, kAll, 2, 2},
      {"8 bytes, broadcast", 8, 0, 8, kAll, 2, 2},
      {"8 bytes, lower half warp", 0, 8, 8, 0x0000ffffu, 1, 1},
      {"8 bytes, one lane of each half", 0, 8, 8, 0x00010001u, 2, 2},
      // 16 bytes: eight lanes after each other.
      {"16 bytes, stride 1", 0, 16, 16, kAll, 4, 4},
      {"16 bytes, stride 2: 8 lanes, words 8i .. 8i+3, each bank twice", 0, 32, 16, kAll, 8, 4},
      {"16 bytes, stride 8: a column of 128-byte rows", 0, 128, 16, kAll, 32, 4},
      {"16 bytes, stride 9: rows padded by 16 bytes", 0, 144, 16, kAll, 4, 4},
      {"16 bytes, broadcast", 16, 0, 16, kAll, 4, 4},
      {"16 bytes, first quarter", 0, 16, 16, 0xffu, 1, 1},
      {"16 bytes, last lane", 0, 16, 16, 0x80000000u, 1, 1},
      // 4 bytes at offset 2 of a word touch two words: 33 words in all, bank 0 has two.
      {"4 bytes, misaligned by 2", 2, 4, 4, kAll, 2, 1},
      {"no lane", 0, 4, 4, 0, 0, 0},
  };
  for (const BankRow& row : rows) {
    CAPTURE(row.what);
    const auto offsets = strided(row.base, row.stride);
    const WavefrontCount count = count_wavefronts(offsets.data(), row.mask, row.bytes);
    CHECK(count.wavefronts == row.wavefronts);
    CHECK(count.ideal == row.ideal);
  }
}

// github.com/te42kyfo/gpu-benches at 1c36d50, gpu-strides/a100.txt (its first 16 strides are equal
// on a GH200): wavefronts of the data pipe for each load of a warp. Loads that hit the L1 meet the
// banks that shared memory has.
TEST_CASE("wavefronts are those that an A100 counts, by stride and by shape of the block") {
  constexpr unsigned kFloats[] = {1, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2,  1,  16,
                                  1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1,  32, 1,
                                  2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1, 16, 1,  2,
                                  1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1, 32};
  constexpr unsigned kDoubles[] = {2, 2, 4, 2, 8, 2,  4,  2,  16, 2, 4, 2, 8, 2, 4,  2,  32,
                                   2, 4, 2, 8, 2, 4,  2,  16, 2,  4, 2, 8, 2, 4, 2,  32, 2,
                                   4, 2, 8, 2, 4, 2,  16, 2,  4,  2, 8, 2, 4, 2, 32, 2,  4,
                                   2, 8, 2, 4, 2, 16, 2,  4,  2,  8, 2, 4, 2, 32};
  const auto wavefronts = [](auto place, std::uint32_t bytes) {
    std::array<std::uint64_t, 32> offsets{};
    for (std::uint64_t lane = 0; lane < 32; ++lane) offsets[lane] = place(lane) * bytes;
    return count_wavefronts(offsets.data(), kAll, bytes).wavefronts;
  };
  for (std::uint64_t stride = 0; stride < std::size(kFloats); ++stride) {
    CAPTURE(stride);
    CHECK(wavefronts([&](std::uint64_t lane) { return stride * lane; }, 4) == kFloats[stride]);
  }
  for (std::uint64_t stride = 0; stride < std::size(kDoubles); ++stride) {
    CAPTURE(stride);
    CHECK(wavefronts([&](std::uint64_t lane) { return stride * lane; }, 8) == kDoubles[stride]);
  }
  struct Shape {
    std::uint64_t width;
    unsigned floats, doubles;
  };
  // Rows of `width` threads, 4098 elements apart.
  for (const Shape& shape : {Shape{1, 2, 4}, Shape{2, 1, 2}, Shape{4, 2, 4}, Shape{8, 4, 4},
                             Shape{16, 2, 2}, Shape{32, 1, 2}}) {
    CAPTURE(shape.width);
    const auto place = [&](std::uint64_t lane) {
      return lane % shape.width + lane / shape.width * 4098;
    };
    CHECK(wavefronts(place, 4) == shape.floats);
    CHECK(wavefronts(place, 8) == shape.doubles);
  }
}

TEST_CASE("local memory has the lanes side by side") {
  std::array<std::uint64_t, 32> same{};
  same.fill(16);
  // The same word of every lane: 128 bytes.
  CHECK(count_local_sectors(same.data(), kAll, 4) == SectorCount{4, 4});
  CHECK(count_local_sectors(same.data(), kAll, 8) == SectorCount{8, 8});
  CHECK(count_local_sectors(same.data(), kAll, 16) == SectorCount{16, 16});
  // One byte of each lane: 32 bytes in 4 sectors.
  CHECK(count_local_sectors(same.data(), kAll, 1) == SectorCount{4, 1});
  CHECK(count_local_sectors(same.data(), 0x1u, 4) == SectorCount{1, 1});
  CHECK(count_local_sectors(same.data(), 0xffu, 4) == SectorCount{1, 1});
  // Each lane another word: one sector each.
  CHECK(count_local_sectors(strided(0, 4).data(), kAll, 4) == SectorCount{32, 4});
  // Misaligned by 2: parts of two words of each lane.
  same.fill(2);
  CHECK(count_local_sectors(same.data(), kAll, 4) == SectorCount{8, 4});
}

TEST_CASE("random accesses, against sets of bytes, sectors and words") {
  std::mt19937_64 random(ptxgen::test::seed());
  const unsigned widths[] = {1, 2, 4, 8, 16};
  for (int round = 0; round < ptxgen::test::count(2000, 50000); ++round) {
    const unsigned bytes = widths[random() % 5];
    const std::uint64_t range = std::uint64_t{1} << (5 + random() % 10);
    const bool aligned = random() % 2 == 0;
    const auto mask = static_cast<std::uint32_t>(random() | (random() % 2 == 0 ? ~0u : 0u));
    std::array<std::uint64_t, 32> addresses;
    for (auto& one : addresses) {
      one = random() % range;
      if (aligned) one = one / bytes * bytes;
    }
    std::set<std::uint64_t> touched, sectors;
    unsigned wavefronts = 0, ideal = 0;
    const unsigned lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
    for (unsigned first = 0; first < 32; first += lanes) {
      std::array<std::set<std::uint64_t>, 32> banks;
      std::size_t worst = 0;
      for (unsigned lane = first; lane < first + lanes; ++lane) {
        if ((mask >> lane & 1u) == 0) continue;
        for (std::uint64_t i = 0; i < bytes; ++i) {
          const std::uint64_t byte = addresses[lane] + i;
          touched.insert(byte);
          sectors.insert(byte / 32);
          auto& bank = banks[byte / 4 % 32];
          bank.insert(byte / 4);
          worst = std::max(worst, bank.size());
        }
      }
      wavefronts += static_cast<unsigned>(worst);
      ideal += worst > 0 ? 1 : 0;
    }
    const SectorCount count = count_sectors(addresses.data(), mask, bytes);
    REQUIRE(count.sectors == sectors.size());
    REQUIRE(count.ideal == (touched.size() + 31) / 32);
    const WavefrontCount shared = count_wavefronts(addresses.data(), mask, bytes);
    REQUIRE(shared.wavefronts == wavefronts);
    REQUIRE(shared.ideal == ideal);
  }
}
