// tests/emulator/tensor_test.cpp - cp.async.bulk.tensor: loads, stores, reductions, findings
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "emulator/state/tensor_map.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using Catch::Contains;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kTile = 16384;

/// A map of a tensor without padding, f16 unless told otherwise.
TensorMap map_of(std::vector<std::uint64_t> dims, std::vector<std::uint32_t> box,
                 std::uint32_t swizzle = 0, ptx::Type type = ptx::Type::f16) {
  TensorMap map;
  map.type = type;
  map.rank = static_cast<std::uint32_t>(dims.size());
  map.swizzle_bytes = swizzle;
  std::uint64_t stride = map.element_bytes();
  for (std::uint32_t i = 0; i < map.rank; ++i) {
    map.dims[i] = dims[i];
    map.strides[i] = stride;
    map.box[i] = box[i];
    map.steps[i] = 1;
    stride = (stride * dims[i] + 15) / 16 * 16;
  }
  return map;
}

std::size_t bytes_of(const TensorMap& map) {
  return map.strides[map.rank - 1] * map.dims[map.rank - 1];
}

/// "{%r9, ...}" of coordinates that `setup` loads.
std::string coordinates(const std::vector<int>& at) {
  std::string text = "{";
  for (std::size_t i = 0; i < at.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(at[i]);
  }
  return text + "}";
}

/// k(map, out): %rd1 is the map, %r1 the tile, %r2 the mbarrier, %out; %p1: thread 0.
std::string kernel_of(const std::string& body) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{\n"
         ".shared .align 1024 .b8 tile[16384];\n.shared .align 8 .b64 bar;\n"
         ".local .align 64 .b8 stack[128];\n"
         ".reg .pred %p<4>;\n.reg .b16 %rs<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>, %out;\n"
         ".reg .b32 %t;\n"
         "mov.b64 %rd1, map;\ncvta.param.u64 %rd1, %rd1;\nld.param.u64 %out, [out];\n"
         "mov.u32 %t, %tid.x;\nmov.u32 %r1, tile;\nmov.u32 %r2, bar;\nsetp.eq.u32 %p1, %t, 0;\n" +
         body + "ret;\n}\n";
}

std::string load(const std::string& opcode_end, const std::vector<int>& at, std::size_t bytes) {
  return "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\nfence.proxy.async.shared::cta;\n"
         "bar.sync 0;\n"
         "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
         std::to_string(bytes) + ";\n@%p1 cp.async.bulk.tensor." + std::to_string(at.size()) +
         "d.shared::cluster.global" + opcode_end + " [%r1], [%rd1, " + coordinates(at) +
         "], [%r2];\n"
         "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra wait;\n";
}
constexpr const char* kPlain = ".mbarrier::complete_tx::bytes";

/// Copies the tile to out, 16 bytes a thread.
const std::string kCopyOut =
    "shl.b32 %r3, %t, 4;\nbra enter;\nagain:\nadd.u32 %r4, %r1, %r3;\ncvt.u64.u32 %rd3, %r3;\n"
    "add.u64 %rd3, %out, %rd3;\nld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r4];\n"
    "st.global.v4.u32 [%rd3], {%r8, %r9, %r10, %r11};\nadd.u32 %r3, %r3, 512;\n"
    "enter:\nsetp.lt.u32 %p3, %r3, ";
std::string copy_out(std::size_t bytes) {
  return kCopyOut + std::to_string(bytes) + ";\n@%p3 bra again;\n";
}
/// Fills the tile: byte i of each word pattern is its offset.
const std::string kFill =
    "shl.b32 %r3, %t, 2;\nfill:\nadd.u32 %r4, %r1, %r3;\nst.shared.u32 [%r4], %r3;\n"
    "add.u32 %r3, %r3, 128;\nsetp.lt.u32 %p3, %r3, 16384;\n@%p3 bra fill;\n";
std::string store(const std::string& opcode, const std::vector<int>& at) {
  return "@%p1 " + opcode + " [%rd1, " + coordinates(at) +
         "], [%r1];\n@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n";
}

struct Run {
  Device device{default_gpu("sm_90a")};
  TensorMap map;
  std::uint64_t tensor = 0;
  std::uint64_t out = 0;
  std::size_t tensor_bytes = 0;

  Run(TensorMap tensor_map, const Bytes& contents)
      : map(tensor_map), tensor_bytes(contents.size()) {
    tensor = device.allocate(contents.size(), "tensor");
    device.write(tensor, std::as_bytes(std::span(contents)));
    out = device.allocate(2 * kTile, "out");
    map.address = tensor;
  }

  std::string operator()(const std::string& body, std::uint64_t seed = 0, std::uint32_t cluster = 1,
                         bool packed = true) {
    Program program = Program::load(device, kernel_of(body));
    alignas(64) std::byte parameters[136] = {};
    if (packed) map.pack(std::span<std::byte, 128>(parameters, 128));
    std::memcpy(parameters + 128, &out, 8);
    Launch launch;
    launch.kernel = "k";
    launch.grid = {cluster, 1, 1};
    launch.cluster = {cluster, 1, 1};
    launch.block = {32, 1, 1};
    launch.parameters = parameters;
    Options options;
    options.seed = seed;
    std::string text;
    for (const auto& finding : run(program, launch, options).findings) {
      text += to_text(finding) + "\n";
    }
    return text;
  }
  Bytes read(std::uint64_t address, std::size_t bytes) {
    Bytes data(bytes);
    device.read(address, std::as_writable_bytes(std::span(data)));
    return data;
  }
};

Bytes random_bytes(std::size_t count, std::mt19937_64& random) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// What a load leaves in the tile: rows of the box along dimension 0, `pitch` bytes apart, whose
/// 16-byte pieces are moved by the number of 128 bytes before them.
Bytes expected_tile(const TensorMap& map, const Bytes& tensor, const std::vector<int>& at,
                    std::uint64_t fill, const Bytes& before = {}) {
  const std::uint32_t size = map.element_bytes();
  const auto extent = [&](std::uint32_t i) {
    return (map.box[i] + map.steps[i] - 1) / map.steps[i];
  };
  std::uint32_t rows = 1;
  for (std::uint32_t i = 1; i < map.rank; ++i) rows *= extent(i);
  const std::uint32_t pitch = map.swizzle_bytes != 0 ? map.swizzle_bytes : map.box[0] * size;
  Bytes tile(before.begin(), before.end());
  tile.resize(std::size_t{rows} * pitch);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t x = 0; x < map.box[0]; ++x) {
      std::uint64_t from = 0;
      bool inside = true;
      std::uint32_t rest = row;
      for (std::uint32_t i = 0; i < map.rank; ++i) {
        const std::int64_t place = i == 0
                                       ? at[0] + static_cast<int>(x)
                                       : at[i] + static_cast<int>(rest % extent(i) * map.steps[i]);
        if (i != 0) rest /= extent(i);
        inside = inside && place >= 0 && place < static_cast<std::int64_t>(map.dims[i]);
        if (inside) from += static_cast<std::uint64_t>(place) * map.strides[i];
      }
      std::size_t to = std::size_t{row} * pitch + x * size;
      if (map.swizzle_bytes != 0) {
        const std::size_t piece = to % map.swizzle_bytes / 16;
        const std::size_t moved = piece ^ to / 128 % (map.swizzle_bytes / 16);
        to += (moved - piece) * 16;
      }
      if (inside) {
        std::memcpy(tile.data() + to, tensor.data() + from, size);
      } else {
        std::memcpy(tile.data() + to, &fill, size);
      }
    }
  }
  return tile;
}

/// The tile after kFill.
Bytes filled_tile() {
  Bytes image(kTile);
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<std::uint8_t>((i & ~std::size_t{3}) >> i % 4 * 8);
  }
  return image;
}

void check_load(const TensorMap& map, const std::vector<int>& at, std::mt19937_64& random,
                std::uint64_t fill = 0) {
  const Bytes tensor = random_bytes(bytes_of(map), random);
  Run run(map, tensor);
  const Bytes want = expected_tile(map, tensor, at, fill, filled_tile());
  REQUIRE(want.size() <= kTile);
  INFO(map.text() << " at " << coordinates(at) << ", swizzle " << map.swizzle_bytes);
  const bool padded = map.swizzle_bytes > map.box[0] * map.element_bytes();
  // Gaps of padded rows keep what was there.
  const std::string body =
      (padded ? kFill : "") + load(kPlain, at, map.box_bytes()) + copy_out(want.size());
  REQUIRE(run(body, random() % 4) == "");
  REQUIRE(run.read(run.out, want.size()) == want);
}

}  // namespace

// The 128-byte swizzle of the CUDA programming guide: piece p of row r is at piece p ^ r.
TEST_CASE("tensor load: the places of elements, by hand") {
  TensorMap map = map_of({64, 16}, {64, 8}, 128);
  Bytes tensor(bytes_of(map));
  for (std::size_t i = 0; i < tensor.size(); i += 2) {
    const auto value = static_cast<std::uint16_t>(i / 2);
    std::memcpy(tensor.data() + i, &value, 2);
  }
  Run run(map, tensor);
  REQUIRE(run(load(kPlain, {0, 4}, 1024) + copy_out(1024)) == "");
  const Bytes got = run.read(run.out, 1024);
  const auto element = [&](std::size_t at) { return got[at] | got[at + 1] << 8; };
  CHECK(element(0) == 4 * 64);  // row 4, column 0
  CHECK(element(14) == 4 * 64 + 7);
  CHECK(element(16) == 4 * 64 + 8);
  CHECK(element(128 + 16) == 5 * 64);  // row 5: its first piece is the second
  CHECK(element(128) == 5 * 64 + 8);
  CHECK(element(256 + 32) == 6 * 64);
  CHECK(element(896 + 112) == 11 * 64);  // the eighth row: the last piece
  CHECK(element(896) == 11 * 64 + 56);
}

TEST_CASE("tensor load: 1 to 5 dimensions, all swizzles, boxes over the edges") {
  std::mt19937_64 random(test::seed());
  check_load(map_of({1000}, {64}), {128}, random);
  check_load(map_of({1000}, {64}), {968}, random);
  check_load(map_of({24}, {64}), {-8}, random);
  check_load(map_of({64, 32}, {32, 16}), {32, 8}, random);
  check_load(map_of({20, 10, 6}, {8, 4, 3}), {16, 8, 4}, random);
  check_load(map_of({16, 5, 4, 3}, {16, 2, 2, 2}), {-4, 4, -1, 2}, random);
  check_load(map_of({8, 4, 3, 3, 3}, {8, 2, 2, 2, 2}), {0, 3, 2, -1, 2}, random);
  for (const std::uint32_t swizzle : {32u, 64u, 128u}) {
    check_load(map_of({256, 64}, {swizzle / 2, 32}, swizzle), {16, 40}, random);
    check_load(map_of({100, 9, 5}, {swizzle / 2, 4, 4}, swizzle), {96, 7, -2}, random);
  }
  // Rows narrower than the swizzle are padded to it.
  check_load(map_of({100, 20}, {16, 8}, 128), {8, 2}, random);
  check_load(map_of({100, 20, 3}, {8, 4, 2}, 64), {96, 17, 0}, random);
  for (const ptx::Type type : {ptx::Type::u8, ptx::Type::s32, ptx::Type::f64, ptx::Type::f32}) {
    check_load(map_of({70, 20}, {16, 8}, 0, type), {60, 15}, random);
  }
  TensorMap stepped = map_of({64, 32}, {32, 16});
  stepped.steps[1] = 3;  // rows 2, 5, 8, ...
  check_load(stepped, {8, 2}, random);
  const int cases = test::count(20, 1000);
  for (int i = 0; i < cases; ++i) {
    constexpr std::uint32_t kSwizzles[] = {0, 32, 64, 128};
    const std::uint32_t swizzle = kSwizzles[random() % 4];
    const auto rank = static_cast<std::uint32_t>(1 + random() % 5);
    std::vector<std::uint64_t> dims;
    std::vector<std::uint32_t> box;
    std::vector<int> at;
    for (std::uint32_t d = 0; d < rank; ++d) {
      dims.push_back(1 + random() % (d == 0 ? 100 : 12));
      box.push_back(
          d == 0 ? (swizzle != 0 ? swizzle / 2 : 8 * static_cast<std::uint32_t>(1 + random() % 6))
                 : static_cast<std::uint32_t>(1 + random() % 3));
      at.push_back(static_cast<int>(random() % (dims[d] + 8)) - 4);
    }
    check_load(map_of(dims, box, swizzle), at, random);
  }
}

TEST_CASE("tensor load: fill with NaN, subnormals flushed to zero") {
  std::mt19937_64 random(test::seed());
  for (const auto& [type, nan] :
       {std::pair(ptx::Type::f16, 0x7fffull), std::pair(ptx::Type::bf16, 0x7fffull),
        std::pair(ptx::Type::f32, 0x7fffffffull)}) {
    TensorMap map = map_of({40, 10}, {16, 8}, 0, type);
    map.fill_nan = true;
    check_load(map, {32, 6}, random, nan);
  }
  TensorMap map = map_of({16, 1}, {16, 1}, 0, ptx::Type::f32);
  map.flush = true;
  Bytes tensor(64);
  const std::uint32_t values[3] = {0x00400000, 0x80000001, 0x00800000};
  std::memcpy(tensor.data(), values, sizeof values);
  Run run(map, tensor);
  REQUIRE(run(load(kPlain, {0, 0}, 64) + copy_out(64)) == "");
  std::uint32_t got[3];
  std::memcpy(got, run.read(run.out, 12).data(), 12);
  CHECK(got[0] == 0);
  CHECK(got[1] == 0x80000000);
  CHECK(got[2] == 0x00800000);
}

TEST_CASE("tensor store: writes what is inside, and nothing else") {
  std::mt19937_64 random(test::seed());
  for (const std::uint32_t swizzle : {0u, 64u, 128u}) {
    const TensorMap map = map_of({50, 9, 3}, {swizzle == 0 ? 24 : swizzle / 2, 4, 2}, swizzle);
    const std::vector<int> at = {40, 7, -1};
    const Bytes before = random_bytes(bytes_of(map), random);
    Run run(map, before);
    REQUIRE(run(kFill + "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
                    store("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group", at),
                random() % 4) == "");
    const Bytes after = run.read(run.tensor, before.size());
    // The reverse of a load: load what was stored back, by the reference.
    const Bytes image = filled_tile();
    const Bytes tile = expected_tile(map, after, at, 0);
    const Bytes old = expected_tile(map, before, at, 0);
    const Bytes inside = expected_tile(map, Bytes(before.size(), 0xff), at, 0);
    std::size_t stored = 0;
    for (std::size_t i = 0; i < tile.size(); ++i) {
      if (inside[i] != 0xff) continue;
      REQUIRE(tile[i] == image[i]);
      ++stored;
    }
    CHECK(stored == 10u * 2 * 1 * 2);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < after.size(); ++i) changed += after[i] != before[i] ? 1 : 0;
    CHECK(changed <= stored);
    CHECK(changed > stored / 2);
  }
}

TEST_CASE("tensor reductions") {
  // The tile's words are 0, 4, 8, ...
  const auto reduced = [](const std::string& operation, ptx::Type type, std::uint32_t before,
                          std::string* findings = nullptr) {
    const TensorMap map = map_of({16, 2}, {8, 2}, 0, type);
    Bytes contents(bytes_of(map));
    for (std::size_t i = 0; i < contents.size(); i += 4) {
      std::memcpy(contents.data() + i, &before, 4);
    }
    Run run(map, contents);
    const std::string text =
        run(kFill + "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
            store("cp.reduce.async.bulk.tensor.2d.global.shared::cta." + operation + ".bulk_group",
                  {8, 0}));
    if (findings != nullptr) {
      *findings = text;
    } else {
      REQUIRE(text == "");
    }
    // Element (10, 1): the tile's word 10.
    const Bytes after = run.read(run.tensor, contents.size());
    std::uint32_t word = 0;
    std::memcpy(&word, after.data() + (16 + 10) * 4, 4);
    std::uint32_t untouched = 0;
    std::memcpy(&untouched, after.data() + 7 * 4, 4);
    CHECK(untouched == before);
    return word;
  };
  CHECK(reduced("add", ptx::Type::u32, 5) == 45);
  CHECK(reduced("min", ptx::Type::s32, 0xffffffff) == 0xffffffff);
  CHECK(reduced("min", ptx::Type::u32, 0xffffffff) == 40);
  CHECK(reduced("max", ptx::Type::s32, 0xffffffff) == 40);
  CHECK(reduced("inc", ptx::Type::u32, 40) == 0);
  CHECK(reduced("inc", ptx::Type::u32, 39) == 40);
  CHECK(reduced("dec", ptx::Type::u32, 0) == 40);
  CHECK(reduced("and", ptx::Type::u32, 0xf8) == 40);
  CHECK(reduced("or", ptx::Type::u32, 3) == 43);
  CHECK(reduced("xor", ptx::Type::u32, 41) == 1);
  // 1.0f + the subnormal with the bits 40.
  CHECK(reduced("add", ptx::Type::f32, 0x3f800000) == 0x3f800000);
  CHECK(reduced("add", ptx::Type::f32, 40) == 80);
  std::string findings;
  CHECK(reduced("and", ptx::Type::f32, 1, &findings) == 1);
  CHECK_THAT(findings, Contains("there is no reduction .and of f32"));
}

TEST_CASE("tensor load: multicast in a cluster") {
  std::mt19937_64 random(test::seed());
  const TensorMap map = map_of({64, 8}, {64, 8}, 128);
  const Bytes tensor = random_bytes(bytes_of(map), random);
  Run run(map, tensor);
  const std::string body =
      "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\nfence.proxy.async.shared::cta;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "mov.u32 %r5, %cluster_ctarank;\nsetp.eq.and.u32 %p2, %r5, 0, %p1;\nmov.u16 %rs1, 3;\n"
      "@%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%r1], [%rd1, {0, 0}], [%r2], %rs1;\n"
      "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra wait;\n"
      "mul.wide.u32 %rd4, %r5, 16384;\nadd.u64 %out, %out, %rd4;\n" +
      copy_out(1024) + "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    REQUIRE(run(body, seed, 2) == "");
    const Bytes want = expected_tile(map, tensor, {0, 0}, 0);
    CHECK(run.read(run.out, 1024) == want);
    CHECK(run.read(run.out + 16384, 1024) == want);
  }
}

TEST_CASE("tensor copies: findings") {
  const TensorMap map = map_of({64, 16}, {64, 8}, 128);
  const Bytes tensor(bytes_of(map));
  const auto text_of = [&](const std::string& body, bool packed = true) {
    Run run(map, tensor);
    return run(body, 0, 1, packed);
  };
  CHECK(text_of(load(kPlain, {0, 0}, 1024)) == "");
  CHECK_THAT(text_of(load(kPlain, {0, 0, 0}, 0)),
             Contains("the instruction gives 3 coordinates, but the map is of a 2D tensor of f16, "
                      "64 x 16, box 64 x 8") &&
                 Contains("use the .2d form with 2 coordinates"));
  CHECK_THAT(text_of(load(kPlain, {0, 0}, 0), false),
             Contains("are not a tensor map of cuTensorMapEncodeTiled") &&
                 Contains("pass the CUtensorMap itself, not a pointer to it"));
  CHECK_THAT(text_of("add.u64 %rd1, %rd1, 8;\n" + load(kPlain, {0, 0}, 0)), Contains("tensor-map"));
  CHECK_THAT(
      text_of("mov.u64 %rd1, stack;\ncvta.local.u64 %rd1, %rd1;\n" + load(kPlain, {0, 0}, 0)),
      Contains("the tensor map is in the thread's local memory") &&
          Contains("const __grid_constant__ CUtensorMap"));
  CHECK_THAT(text_of("mov.u64 %rd1, %out;\nadd.u64 %rd1, %rd1, 32;\n" + load(kPlain, {0, 0}, 0)),
             Contains("is not aligned to 64 bytes"));
  CHECK_THAT(text_of("add.u32 %r1, %r1, 64;\n" + load(kPlain, {0, 0}, 1024)),
             Contains("misaligned"));
  CHECK_THAT(text_of("add.u32 %r1, %r1, 16256;\n" + load(kPlain, {0, 0}, 1024)),
             Contains("out-of-bounds"));
  Run beyond(map, Bytes(1024));
  CHECK_THAT(beyond(load(kPlain, {0, 8}, 1024)), Contains("out-of-bounds") && Contains("tensor"));
  const std::string stores = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";
  CHECK_THAT(text_of(kFill + "bar.sync 0;\n" + store(stores, {0, 0})),
             Contains("the copy reads shared memory that was stored to") &&
                 Contains("with no fence.proxy.async after the store"));
  CHECK_THAT(text_of(kFill + "fence.proxy.async.shared::cta;\nbar.sync 0;\n@%p1 " + stores +
                     " [%rd1, {0, 0}], [%r1];\n"),
             Contains("unfinished-copy"));
  CHECK_THROWS_WITH(
      text_of("@%p1 cp.async.bulk.tensor.3d.shared::cluster.global.im2col"
              ".mbarrier::complete_tx::bytes [%r1], [%rd1, {0, 0, 0}], [%r2], {%rs1};\n"),
      Contains("the im2col mode of tensor maps is not supported by the emulator"));
  // Prefetches and fences of maps have no effect.
  CHECK(text_of("prefetch.tensormap [%rd1];\n"
                "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;\n"
                "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {0, 0}];\n" +
                load(kPlain, {0, 0}, 1024)) == "");
}
