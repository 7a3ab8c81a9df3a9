// tests/emulator/tensor_replace_test.cpp - tensormap.replace, tensormap.cp_fenceproxy, their fences
#include <catch2/catch.hpp>
#include <cstring>

#include "emulator/state/tensor_map.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using Catch::Contains;

namespace {

/// k(map, out, other, global): %rd1 is the parameter map, %r1 the tile, %r2 the mbarrier, %r3 a map
/// in shared memory, %gm one in global memory, %other a tensor; %p1: thread 0.
std::string replacing_kernel(const std::string& body) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 other, "
         ".param .u64 global)\n{\n"
         ".shared .align 1024 .b8 tile[4096];\n.shared .align 128 .b8 own[256];\n"
         ".shared .align 8 .b64 bar;\n.local .align 64 .b8 stack[128];\n"
         ".reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>, %out, %other, %gm;\n"
         ".reg .b32 %t;\n"
         "mov.b64 %rd1, map;\ncvta.param.u64 %rd1, %rd1;\nld.param.u64 %out, [out];\n"
         "ld.param.u64 %other, [other];\nld.param.u64 %gm, [global];\n"
         "mov.u32 %t, %tid.x;\nmov.u32 %r1, tile;\nmov.u32 %r2, bar;\nmov.u32 %r3, own;\n"
         "setp.eq.u32 %p1, %t, 0;\n" +
         body + "ret;\n}\n";
}

const std::string kSync = "bar.warp.sync -1;\n";
/// The warp copies the parameter map to shared memory, 4 bytes a lane.
const std::string kTakeMap =
    "shl.b32 %r4, %t, 2;\nmul.wide.u32 %rd3, %t, 4;\nadd.u64 %rd3, %rd1, %rd3;\n"
    "add.u32 %r5, %r3, %r4;\nld.b32 %r6, [%rd3];\nst.shared.b32 [%r5], %r6;\n" +
    kSync;
const std::string kZeroMap =
    "shl.b32 %r4, %t, 2;\nadd.u32 %r5, %r3, %r4;\nst.shared.b32 [%r5], 0;\n" + kSync;
/// `field` with its ordinal and value, of the map in shared memory, by thread 0.
std::string replace(const std::string& field, const std::string& operands) {
  const bool wide = field == "global_address" || field == "global_stride";
  return "@%p1 tensormap.replace.tile." + field + ".shared::cta.b1024." + (wide ? "b64" : "b32") +
         " [%r3], " + operands + ";\n";
}
const std::string kPublish =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
    "[%gm], [%r3], 128;\n";
const std::string kAcquire = "fence.proxy.tensormap::generic.acquire.gpu [%gm], 128;\n";
const std::string kRelease = "fence.proxy.tensormap::generic.release.gpu;\n";

std::string load(const std::string& map, const std::string& at, unsigned dimensions,
                 std::size_t bytes) {
  return "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\nfence.proxy.async.shared::cta;\n"
         "bar.sync 0;\n"
         "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
         std::to_string(bytes) + ";\n@%p1 cp.async.bulk.tensor." + std::to_string(dimensions) +
         "d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [" + map + ", {" + at +
         "}], [%r2];\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n"
         "@!%p2 bra wait;\n";
}

/// Copies the tile to out, 4 bytes a thread.
std::string copy_replaced(std::size_t bytes) {
  return "shl.b32 %r4, %t, 2;\nagain:\nadd.u32 %r5, %r1, %r4;\ncvt.u64.u32 %rd3, %r4;\n"
         "add.u64 %rd3, %out, %rd3;\nld.shared.u32 %r6, [%r5];\nst.global.u32 [%rd3], %r6;\n"
         "add.u32 %r4, %r4, 128;\nsetp.lt.u32 %p3, %r4, " +
         std::to_string(bytes) + ";\n@%p3 bra again;\n";
}

constexpr std::size_t kTensorBytes = 8192;

/// Two tensors, the elements of `other` being the numbers of 16 bits from 0 on; a map of the first:
/// f16, 64 x 16, boxes of 16 x 4.
struct ReplacingRun {
  Device device{default_gpu("sm_90a")};
  TensorMap map;
  std::uint64_t tensor = 0, other = 0, out = 0, global = 0;
  std::uint32_t threads = 32;

  ReplacingRun() {
    std::vector<std::uint16_t> numbers(kTensorBytes / 2);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint16_t>(i);
    const std::vector<std::uint8_t> zeros(kTensorBytes);
    tensor = device.allocate(kTensorBytes, "tensor");
    other = device.allocate(kTensorBytes, "other");
    out = device.allocate(4096, "out");
    global = device.allocate(256, "maps");
    device.write(tensor, std::as_bytes(std::span(zeros)));
    device.write(other, std::as_bytes(std::span(numbers)));
    map.type = ptx::Type::f16;
    map.rank = 2;
    map.address = tensor;
    map.dims = {64, 16};
    map.strides[0] = 2;
    map.strides[1] = 128;
    map.box = {16, 4};
    map.steps = {1, 1};
  }

  std::string operator()(const std::string& body, std::uint64_t seed = 0) {
    Program program = Program::load(device, replacing_kernel(body));
    alignas(64) std::byte parameters[152] = {};
    map.pack(std::span<std::byte, 128>(parameters, 128));
    std::memcpy(parameters + 128, &out, 8);
    std::memcpy(parameters + 136, &other, 8);
    std::memcpy(parameters + 144, &global, 8);
    Launch launch;
    launch.kernel = "k";
    launch.grid = {1, 1, 1};
    launch.block = {threads, 1, 1};
    launch.parameters = parameters;
    Options options;
    options.seed = seed;
    std::string text;
    for (const auto& finding : run(program, launch, options).findings) {
      text += to_text(finding) + "\n";
    }
    return text;
  }
  template <class T>
  std::vector<T> read(std::size_t count) {
    std::vector<T> data(count);
    device.read(out, std::as_writable_bytes(std::span(data)));
    return data;
  }
};

std::string changed(const std::string& changes) {
  return kTakeMap + changes + kSync + kPublish + kAcquire;
}

std::string findings_of(const std::string& body) {
  ReplacingRun run;
  return run(body);
}

}  // namespace

TEST_CASE("a map that is changed in shared memory and published is what copies use") {
  const std::string changes = "mov.b32 %r7, 40;\nmov.b64 %rd4, 80;\n" +
                              replace("global_address", "%other") +
                              replace("global_dim", "0, %r7") + replace("global_dim", "1, 10") +
                              replace("global_stride", "0, %rd4") + replace("box_dim", "1, 8");
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    ReplacingRun run;
    REQUIRE(run(changed(changes) + load("%gm", "32, 6", 2, 256) + copy_replaced(256), seed) == "");
    const auto got = run.read<std::uint16_t>(128);
    for (unsigned row = 0; row < 8; ++row) {
      for (unsigned column = 0; column < 16; ++column) {
        const bool inside = column < 8 && row < 4;  // of 40 x 10
        const unsigned want = inside ? (6 + row) * 40 + 32 + column : 0;
        REQUIRE(got[row * 16 + column] == want);
      }
    }
  }
}

TEST_CASE("all fields of a map of zeros: rank, type, steps, modes") {
  // 3D, f32: rows of 8 elements, every second row of 4, 2 planes; swizzled, NaN beyond the end.
  const std::string changes =
      kZeroMap + replace("global_address", "%other") + replace("rank", "2") +
      replace("box_dim", "0, 8") + replace("box_dim", "1, 4") + replace("box_dim", "2, 2") +
      replace("global_dim", "0, 8") + replace("global_dim", "1, 8") +
      replace("global_dim", "2, 2") + replace("global_stride", "0, 32") +
      replace("global_stride", "1, 256") + replace("element_stride", "0, 1") +
      replace("element_stride", "1, 2") + replace("element_stride", "2, 1") +
      replace("elemtype", "7") + replace("interleave_layout", "0") + replace("swizzle_mode", "1") +
      replace("fill_mode", "1") + kSync + kPublish + kAcquire;
  ReplacingRun run;
  REQUIRE(run(changes + load("%gm", "0, 4, 1", 3, 128) + copy_replaced(128)) == "");
  const auto got = run.read<std::uint32_t>(32);
  const auto word = [](unsigned index) { return (2 * index + 1) << 16 | 2 * index; };
  for (unsigned plane = 0; plane < 2; ++plane) {
    for (unsigned row = 0; row < 2; ++row) {
      for (unsigned column = 0; column < 8; ++column) {
        unsigned at = (plane * 2 + row) * 8 + column;
        at ^= at / 32 % 2 * 4;  // 16-byte pieces of 32-byte rows
        const bool inside = plane == 0;
        REQUIRE(got[at] == (inside ? word(64 + (4 + 2 * row) * 8 + column) : 0x7fffffffu));
      }
    }
  }
}

TEST_CASE("a map in global memory is changed in place, with generic and global addresses") {
  const std::string change =
      "@%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%gm], %other;\n"
      "@%p1 tensormap.replace.tile.swizzle_mode.b1024.b32 [%gm], 1;\n";
  ReplacingRun run;
  REQUIRE(run(kTakeMap + kPublish + change + kRelease + kAcquire + load("%gm", "0, 0", 2, 128) +
              copy_replaced(128)) == "");
  const auto got = run.read<std::uint16_t>(64);
  CHECK(got[0] == 0);
  CHECK(got[15] == 15);
  CHECK(got[16] == 64);
}

TEST_CASE("a warp of several publishes, by a guard and without a barrier after the change") {
  const std::string first = "setp.lt.u32 %p2, %t, 32;\n";
  const std::string take =
      "shl.b32 %r4, %t, 2;\nmul.wide.u32 %rd3, %t, 4;\nadd.u64 %rd3, %rd1, %rd3;\n"
      "add.u32 %r5, %r3, %r4;\n@%p2 ld.b32 %r6, [%rd3];\n@%p2 st.shared.b32 [%r5], %r6;\n" +
      kSync;
  ReplacingRun run;
  run.threads = 128;
  const std::string changes = replace("global_address", "%other") + replace("box_dim", "1, 16");
  REQUIRE(run(first + take + changes + "@%p2 " + kPublish + "@%p1 " + kAcquire +
              load("%gm", "16, 1", 2, 512) + "setp.ge.u32 %p2, %t, 32;\n@%p2 bra end;\n" +
              copy_replaced(512) + "end:\n") == "");
  const auto got = run.read<std::uint16_t>(256);
  CHECK(got[0] == 80);
  CHECK(got[63] == 4 * 64 + 31);
  CHECK(got[255] == 0);  // the sixteenth row is beyond the tensor
}

TEST_CASE("tensormap.replace: values that no map has") {
  const auto text = [](const std::string& field, const std::string& operands) {
    return findings_of(kTakeMap + replace(field, operands));
  };
  CHECK_THAT(
      findings_of(kTakeMap + "add.u64 %rd4, %other, 8;\n" + replace("global_address", "%rd4")),
      Contains("[tensor-map]") && Contains("global_address becomes 0x") &&
          Contains("rule: the tensor's address is a multiple of 16 and not null") &&
          Contains("align the tensor to 16 bytes"));
  CHECK_THAT(text("rank", "5"),
             Contains("rank becomes 5, a tensor of 6 dimensions") &&
                 Contains("rule: the field is the number of dimensions minus 1: 0 to 4") &&
                 Contains("pass the rank minus 1"));
  CHECK_THAT(text("global_stride", "0, 120"),
             Contains("global_stride[0] becomes 120") &&
                 Contains("rule: strides are in bytes, multiples of 16 below 2^40") &&
                 Contains("pad the rows of the tensor to a multiple of 16 bytes"));
  CHECK_THAT(text("global_stride", "1, 1099511627776"), Contains("global_stride[1] becomes 1099"));
  CHECK_THAT(text("box_dim", "1, 257"),
             Contains("box_dim[1] becomes 257") && Contains("rule: a box has 1 to 256 elements"));
  CHECK_THAT(text("box_dim", "0, 0"), Contains("box_dim[0] becomes 0"));
  CHECK_THAT(text("global_dim", "2, 0"),
             Contains("global_dim[2] becomes 0") && Contains("skip the copy of an empty tensor"));
  CHECK_THAT(text("element_stride", "1, 9"),
             Contains("element_stride[1] becomes 9") &&
                 Contains("rule: the step along a dimension is 1 to 8 elements"));
  CHECK(text("global_dim", "4, 1") == "");
  CHECK(text("global_stride", "3, 16") == "");
}

TEST_CASE("tensormap.replace: where there is no map") {
  const std::string change = replace("rank", "1");
  CHECK_THAT(findings_of("st.shared.b32 [%r3], 1;\nst.shared.v4.b32 [%r3], {%t, %t, %t, %t};\n" +
                         kTakeMap + "@%p1 st.shared.b32 [%r3], 7;\n" + kSync + change),
             Contains("the 128 bytes at shared offset 0x") && Contains("are not a tensor map") &&
                 Contains("rule: tensormap.replace changes a map of cuTensorMapEncodeTiled, or "
                          "128 bytes of zero") &&
                 Contains("copy all 128 bytes of the CUtensorMap there first"));
  CHECK_THAT(findings_of(change), Contains("[uninitialized-read]") && Contains("thread reads 128 "
                                                                               "bytes"));
  CHECK_THAT(findings_of(kTakeMap + "add.u32 %r3, %r3, 16;\n" + change),
             Contains("[misaligned]") && Contains("which is not a multiple of 64"));
  CHECK_THAT(findings_of(kTakeMap + "add.u32 %r3, %r3, 8192;\n" + change),
             Contains("[out-of-bounds]"));
  CHECK_THAT(findings_of("@%p1 tensormap.replace.tile.rank.b1024.b32 [%rd1], 1;\n"),
             Contains("is in a kernel parameter") &&
                 Contains("rule: tensormap.replace changes a map in shared or global memory") &&
                 Contains("write it to global memory with tensormap.cp_fenceproxy"));
  CHECK_THAT(findings_of("mov.u64 %rd4, stack;\ncvta.local.u64 %rd4, %rd4;\n"
                         "@%p1 tensormap.replace.tile.rank.b1024.b32 [%rd4], 1;\n"),
             Contains("is in the thread's local memory"));
  CHECK_THAT(
      findings_of(kTakeMap + "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r3], 1;\n"),
      Contains("[shared-race]"));
}

TEST_CASE("maps that no copy can use") {
  const auto text = [](const std::string& changes) {
    return findings_of(changed(changes) + load("%gm", "0, 0", 2, 128));
  };
  CHECK(text("") == "");
  CHECK_THAT(text(replace("box_dim", "0, 12")),
             Contains("box_dim[0] of the tensor map is 12 of f16, 24 bytes") &&
                 Contains("rule: a row of the box is a multiple of 16 bytes"));
  CHECK_THAT(text(replace("box_dim", "0, 64") + replace("swizzle_mode", "2")),
             Contains("box_dim[0] of the tensor map is 128 bytes, and its swizzle_mode has 64") &&
                 Contains("choose a wider swizzle_mode"));
  CHECK_THAT(text(replace("elemtype", "1") + replace("fill_mode", "1")),
             Contains("the tensor map fills elements of u16 with NaN") &&
                 Contains("rule: fill_mode 1 is for floats"));
  CHECK_THAT(text(replace("rank", "2")),
             Contains("global_dim[2] of the tensor map was never set") &&
                 Contains("set it with tensormap.replace.tile.global_dim"));
  CHECK_THAT(text(replace("rank", "2") + replace("global_dim", "2, 1") +
                  replace("box_dim", "2, 1") + replace("element_stride", "2, 1")),
             Contains("global_stride[1] of the tensor map was never set"));
  CHECK_THAT(text(replace("rank", "0")),
             Contains("the instruction gives 2 coordinates, but the map is of a 1D tensor"));
  CHECK_THAT(findings_of(kZeroMap + kPublish + kAcquire + load("%gm", "0, 0", 2, 128)),
             Contains("are not a tensor map of cuTensorMapEncodeTiled"));
  CHECK_THAT(findings_of(kZeroMap + replace("rank", "1") + kSync + kPublish + kAcquire +
                         load("%gm", "0, 0", 2, 128)),
             Contains("global_address of the tensor map was never set"));
}

TEST_CASE("a changed map without the fences of its proxy") {
  const std::string use = load("%gm", "0, 0", 2, 128);
  CHECK_THAT(findings_of(kTakeMap + kPublish + use),
             Contains("[proxy-fence]") && Contains("the copy uses the tensor map at 0x") &&
                 Contains("which was changed at line") && Contains("no acquire of the map since") &&
                 Contains("rule: tensor copies read maps through the tensormap proxy") &&
                 Contains("put fence.proxy.tensormap::generic.acquire.gpu [map], 128 before"));
  const std::string change =
      "@%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%gm], %other;\n";
  CHECK_THAT(findings_of(kTakeMap + kPublish + kAcquire + change + kAcquire + use),
             Contains("[proxy-fence]") && Contains("no release to the tensormap proxy since") &&
                 Contains("write the map with tensormap.cp_fenceproxy"));
  CHECK_THAT(findings_of(kTakeMap + kPublish + kAcquire + change + kRelease + use),
             Contains("no acquire of the map since"));
  CHECK(findings_of(kTakeMap + kPublish + kAcquire + change + kRelease + kAcquire + use) == "");
  // The acquire of another map does not help, nor does that before the change.
  CHECK_THAT(findings_of(kTakeMap + kAcquire + kPublish +
                         "fence.proxy.tensormap::generic.acquire.gpu [%gm+128], 128;\n" + use),
             Contains("no acquire of the map since"));
}

TEST_CASE("tensormap.cp_fenceproxy: its memory") {
  CHECK_THAT(findings_of(kPublish), Contains("[uninitialized-read]"));
  CHECK_THAT(findings_of(kTakeMap + "add.u64 %gm, %gm, 16;\n" + kPublish),
             Contains("[misaligned]") && Contains("which is not a multiple of 64"));
  CHECK_THAT(findings_of(kTakeMap + "add.u64 %gm, %gm, 192;\n" + kPublish),
             Contains("[out-of-bounds]") && Contains("maps"));
  // The instruction waits for the warp, which orders what its lanes did before.
  const std::string by_fifth = kTakeMap + "setp.eq.u32 %p3, %t, 5;\n" +
                               "@%p3 tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r3], 1;\n";
  CHECK(findings_of(by_fifth + kPublish) == "");
  CHECK_THAT(findings_of(by_fifth + "@%p1 ld.shared.b32 %r6, [%r3];\n"), Contains("[shared-race]"));
  // A lane that waits elsewhere.
  CHECK_THAT(findings_of(kTakeMap + "@%p1 bra skip;\n" + kPublish + "skip:\n" + kSync),
             Contains("[sync-mask]"));
}

TEST_CASE("numbers of tensormap.replace that the emulator does not have") {
  TensorMap map = TensorMap::blank();
  CHECK(map.replace(ptx::Modifier::elemtype, 0, 13).message == "elemtype becomes 13");
  CHECK(map.replace(ptx::Modifier::swizzle_mode, 0, 4).rule == "the emulator has modes 0 to 3");
  CHECK(map.replace(ptx::Modifier::global_stride, 4, 16).message == "there is no global_stride[4]");
  CHECK_FALSE(map.replace(ptx::Modifier::elemtype, 0, 12).found());
  CHECK(map.flush);
  CHECK(map.element_bytes() == 4);
  CHECK_THROWS_WITH(findings_of(replace("elemtype", "16")),
                    Contains("expects 0 to 15 as operand 2"));
  const auto refusal = [](const std::string& field, const std::string& number, const char* text) {
    CHECK_THROWS_WITH(findings_of(replace(field, number)), Contains(text));
  };
  refusal("interleave_layout", "1", "interleaved tensor maps are not supported by the emulator");
  const auto blackwell = [](const std::string& field, const std::string& number) {
    Device device{default_gpu("sm_100a")};
    std::string text = replacing_kernel(replace(field, number));
    text.replace(text.find("8.6"), 3, "8.8");
    text.replace(text.find("sm_90a"), 6, "sm_100a");
    return Program::load(device, text);
  };
  CHECK_THROWS_WITH(blackwell("elemtype", "13"),
                    Contains("packed elements of 4 and 6 bits are not supported by the emulator"));
  CHECK_THROWS_WITH(blackwell("swizzle_atomicity", "1"),
                    Contains("swizzles with atoms of 32 and 64 bytes are not supported"));
  CHECK_NOTHROW(blackwell("swizzle_atomicity", "0"));
}
