// tests/driver/tensor_map_test.cpp - cuTensorMapEncodeTiled, and a kernel with wgmma that uses it
#include <array>
#include <cstring>

#include "emulated_context.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/warpgroup.hpp"
#include "ptxgen/check/gates.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using ptxgen::test::EmulatedContext;

namespace {

/// Arguments of a valid map: f16, 64 x 32, boxes of 64 x 8 with the 128-byte swizzle.
struct Arguments {
  CUtensorMap map;
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  std::uint32_t rank = 2;
  std::uint64_t address = 0x10000000000;
  std::array<std::uint64_t, 5> dims{64, 32, 1, 1, 1};
  std::array<std::uint64_t, 4> strides{128, 4096, 4096, 4096};
  std::array<std::uint32_t, 5> box{64, 8, 1, 1, 1};
  std::array<std::uint32_t, 5> steps{1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  CUresult encode(EmulatedContext& gpu) { return encode(gpu, &map); }
  CUresult encode(EmulatedContext& gpu, CUtensorMap* to) {
    return gpu.api.tensor_map_encode_tiled(to, type, rank, reinterpret_cast<void*>(address),
                                           dims.data(), strides.data(), box.data(), steps.data(),
                                           interleave, swizzle, promotion, fill);
  }
};

template <class Change>
void check_refused(EmulatedContext& gpu, const std::string& text, Change&& change,
                   CUresult expected = CUDA_ERROR_INVALID_VALUE) {
  Arguments arguments;
  change(arguments);
  CHECK(arguments.encode(gpu) == expected);
  CHECK_THAT(gpu.log(), Contains("cuTensorMapEncodeTiled: " + text));
}

}  // namespace

TEST_CASE("cuTensorMapEncodeTiled: the rules of its arguments") {
  EmulatedContext gpu;
  REQUIRE(Arguments().encode(gpu) == CUDA_SUCCESS);
  CHECK(gpu.log() == "");
  check_refused(gpu, "tensorRank is 0, but must be 1 to 5", [](Arguments& a) { a.rank = 0; });
  check_refused(gpu, "tensorRank is 6, but must be 1 to 5", [](Arguments& a) { a.rank = 6; });
  check_refused(gpu, "globalAddress 0x10000000008 must be a multiple of 16",
                [](Arguments& a) { a.address += 8; });
  check_refused(gpu, "globalDim[1] is 0, but must be 1 to 2^32",
                [](Arguments& a) { a.dims[1] = 0; });
  check_refused(gpu, "globalDim[0] is 4294967297",
                [](Arguments& a) { a.dims[0] = (std::uint64_t{1} << 32) + 1; });
  check_refused(gpu, "globalStrides[0] is 120 bytes, but must be a multiple of 16 below 2^40",
                [](Arguments& a) { a.strides[0] = 120; });
  check_refused(gpu, "globalStrides[0] is 1099511627776 bytes",
                [](Arguments& a) { a.strides[0] = std::uint64_t{1} << 40; });
  check_refused(gpu, "boxDim[1] is 257, but must be 1 to 256",
                [](Arguments& a) { a.box[1] = 257; });
  check_refused(gpu, "boxDim[0] is 12 elements of 2 bytes, but must be a multiple of 16 bytes",
                [](Arguments& a) { a.box[0] = 12; });
  check_refused(gpu, "elementStrides[1] is 9, but must be 1 to 8",
                [](Arguments& a) { a.steps[1] = 9; });
  check_refused(gpu, "boxDim[0] is 128 bytes, more than the 64 of CU_TENSOR_MAP_SWIZZLE_64B",
                [](Arguments& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; });
  check_refused(gpu, "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA requires elements that are",
                [](Arguments& a) {
                  a.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
                  a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
                });
  check_refused(gpu, "99 is no CUtensorMapDataType",
                [](Arguments& a) { a.type = static_cast<CUtensorMapDataType>(99); });
  check_refused(gpu, "7 is no CUtensorMapSwizzle",
                [](Arguments& a) { a.swizzle = static_cast<CUtensorMapSwizzle>(7); });
  check_refused(
      gpu, "interleaved layouts (CU_TENSOR_MAP_INTERLEAVE_16B and _32B) are not emulated",
      [](Arguments& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }, CUDA_ERROR_NOT_SUPPORTED);
  check_refused(
      gpu, "packed elements of 4 and 6 bits are not emulated",
      [](Arguments& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B; },
      CUDA_ERROR_NOT_SUPPORTED);
  check_refused(
      gpu, "swizzles with atoms of 32 and 64 bytes are not emulated",
      [](Arguments& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B; },
      CUDA_ERROR_NOT_SUPPORTED);
  CHECK(gpu.api.tensor_map_encode_tiled(nullptr, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, nullptr, nullptr,
                                        nullptr, nullptr, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("must not be null"));
}

TEST_CASE("cuTensorMapReplaceAddress changes the address of a map") {
  EmulatedContext gpu;
  Arguments one;
  Arguments other;
  REQUIRE(one.encode(gpu) == CUDA_SUCCESS);
  other.address += 4096;
  REQUIRE(other.encode(gpu) == CUDA_SUCCESS);
  CHECK(std::memcmp(&one.map, &other.map, sizeof one.map) != 0);
  REQUIRE(gpu.api.tensor_map_replace_address(&one.map, reinterpret_cast<void*>(other.address)) ==
          CUDA_SUCCESS);
  CHECK(std::memcmp(&one.map, &other.map, sizeof one.map) == 0);
  one.map.opaque[3] ^= 1;
  CHECK(gpu.api.tensor_map_replace_address(&one.map, reinterpret_cast<void*>(other.address)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("was not made by cuTensorMapEncodeTiled"));
}

TEST_CASE("a tensor map that is not aligned works, with a warning") {
  EmulatedContext gpu;
  Arguments one;
  REQUIRE(one.encode(gpu) == CUDA_SUCCESS);
  alignas(64) std::array<std::byte, 192> buffer{};
  auto* const map = reinterpret_cast<CUtensorMap*>(buffer.data() + 16);
  REQUIRE(one.encode(gpu, map) == CUDA_SUCCESS);
  CHECK(std::memcmp(&one.map, map, sizeof one.map) == 0);
  CHECK_THAT(gpu.log(), Contains("cuTensorMapEncodeTiled: the address of the tensorMap is not a "
                                 "multiple of 64, as cuda.h asks"));
  REQUIRE(gpu.api.tensor_map_replace_address(map, reinterpret_cast<void*>(one.address + 4096)) ==
          CUDA_SUCCESS);
  CHECK_THAT(gpu.log(), Contains("cuTensorMapReplaceAddress: the address of the tensorMap is not"));
  CHECK(gpu.api.tensor_map_replace_address(nullptr, map) == CUDA_ERROR_INVALID_VALUE);
}

namespace {

constexpr unsigned kM = 64, kN = 64, kK = 64;

/// d = a b of one block: a 64 x 64, b 64 (n) x 64 (k), f16, by tensor copies and four wgmma.
BuiltKernel product_kernel() {
  KernelBuilder k("product", "sm_90a");
  const TensorMap map_a = tensor_map_param(k, "map_a");
  const TensorMap map_b = tensor_map_param(k, "map_b");
  const auto out = k.param<Ptr<f32>>("out");
  k.required_threads(128);
  const auto a = k.shared<f16>(kM * kK, "a", 1024).base();
  const auto b = k.shared<f16>(kN * kK, "b", 1024).base();
  const Mbarrier full = k.shared<u64>(1, "full").base();
  const auto thread = k.tid_x();
  const Value<s32> zero = k.constant<s32>(0);
  k.if_(thread == 0, [&] {
    mbarrier_init(k, full, 1);
    fence_proxy_async(k);
    mbarrier_arrive_expect_tx(k, full, (kM + kN) * kK * 2);
    copy_tensor(k, a, map_a, std::array{zero, zero}, full);
    copy_tensor(k, b, map_b, std::array{zero, zero}, full);
  });
  k.bar_sync();
  mbarrier_wait(k, full, 0);
  const WarpgroupAccumulator<kN, f32> d(k);
  const Value<u64> at_a = matrix_descriptor(k, a, {});
  const Value<u64> at_b = matrix_descriptor(k, b, {});
  wgmma_fence(k);
  for (unsigned step = 0; step < kK / 16; ++step) {
    // 32 bytes of k further.
    wgmma<f16, f16>(k, d, at_a + step * 2, at_b + step * 2);
  }
  wgmma_commit(k);
  wgmma_wait(k, 0);
  const Value<u32> lane = thread & 31;
  const Value<u32> row = (thread >> 5) * 16 + (lane >> 2);
  const auto first = out + (row * kN + (lane & 3) * 2);
  for (unsigned i = 0; i < d.kRegisters; ++i) {
    const auto place = d.place(0, i);
    k.st(first + (place.row * kN + place.column), d.variables()[i].read());
  }
  return k.build();
}

std::uint16_t half(int value) {
  if (value == 0) return 0;
  unsigned magnitude = static_cast<unsigned>(value < 0 ? -value : value);
  unsigned exponent = 25;
  for (; magnitude < 1024; magnitude *= 2) --exponent;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000u : 0u) + exponent * 1024 + magnitude -
                                    1024);
}

}  // namespace

TEST_CASE("a built kernel with tensor copies, an mbarrier and wgmma on the emulated driver") {
  const BuiltKernel kernel = product_kernel();
  for (const Finding& finding : gates::run(kernel.module())) {
    INFO(to_text(finding));
    CHECK(finding.severity != Severity::Error);
    CHECK(finding.rule != "warpgroup-order");
  }
  const std::string ptx = kernel.ptx();
  CHECK_THAT(ptx, Contains(".param .align 64 .b8 map_a[128]"));
  CHECK_THAT(ptx, Contains("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"));
  EmulatedContext gpu;
  const CUfunction function = gpu.function(gpu.load(ptx), "product");
  const auto value_a = [](unsigned i, unsigned j) {
    return static_cast<int>(i * 7 + j * 3) % 11 - 5;
  };
  const auto value_b = [](unsigned i, unsigned j) {
    return static_cast<int>(i * 5 + j * 2) % 9 - 4;
  };
  std::vector<std::uint16_t> a(kM * kK), b(kN * kK);
  for (unsigned i = 0; i < kM; ++i) {
    for (unsigned j = 0; j < kK; ++j) {
      a[i * kK + j] = half(value_a(i, j));
      b[i * kK + j] = half(value_b(i, j));
    }
  }
  const CUdeviceptr at_a = gpu.allocate(a.size() * 2), at_b = gpu.allocate(b.size() * 2);
  const CUdeviceptr at_d = gpu.allocate(kM * kN * 4);
  REQUIRE(gpu.api.memcpy_to_device(at_a, a.data(), a.size() * 2) == CUDA_SUCCESS);
  REQUIRE(gpu.api.memcpy_to_device(at_b, b.data(), b.size() * 2) == CUDA_SUCCESS);
  Arguments map_a, map_b;
  map_a.address = at_a;
  map_b.address = at_b;
  for (Arguments* map : {&map_a, &map_b}) {
    map->dims = {kK, kM, 1, 1, 1};
    map->strides[0] = kK * 2;
    map->box = {kK, kM, 1, 1, 1};
    REQUIRE(map->encode(gpu) == CUDA_SUCCESS);
  }
  CUdeviceptr d = at_d;
  void* parameters[] = {&map_a.map, &map_b.map, &d};
  REQUIRE(gpu.api.launch_kernel(function, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
  REQUIRE(gpu.api.ctx_synchronize() == CUDA_SUCCESS);
  CHECK(gpu.log() == "");
  std::vector<float> got(kM * kN);
  REQUIRE(gpu.api.memcpy_to_host(got.data(), at_d, got.size() * 4) == CUDA_SUCCESS);
  for (unsigned i = 0; i < kM; ++i) {
    for (unsigned j = 0; j < kN; ++j) {
      int want = 0;
      for (unsigned l = 0; l < kK; ++l) want += value_a(i, l) * value_b(j, l);
      REQUIRE(got[i * kN + j] == static_cast<float>(want));
    }
  }
}

namespace {

/// out = 8 rows of 64 elements of `other`, of which the changed map has 6, by a map of another
/// tensor that a warp changes.
BuiltKernel change_kernel() {
  KernelBuilder k("change", "sm_90a");
  const TensorMap map = tensor_map_param(k, "map");
  const auto other = k.param<Ptr<f16>>("other");
  const auto published = k.param<Ptr<b8>>("published");
  const auto out = k.param<Ptr<u32>>("out");
  k.required_threads(32);
  const auto tile = k.shared<f16>(64 * 8, "tile", 1024).base();
  const auto own = k.shared<b8>(128, "own", 128).base();
  const Mbarrier full = k.shared<u64>(1, "full").base();
  const auto lane = k.tid_x();
  const auto from = k.pointer<u32, Generic>(k.address_of(map.address()));
  const auto to = k.pointer<u32, Shared>(k.address_of(own));
  k.st(to + lane, k.ld(from + lane));
  k.bar_warp_sync();
  k.if_(lane == 0, [&] {
    replace_map_address(k, own, other);
    replace_map_extent(k, own, 1, 6);
    replace_map_stride(k, own, 1, 160);
    replace_map_swizzle(k, own, Swizzle::None);
  });
  k.bar_warp_sync();
  publish_map(k, published, own);
  const TensorMap changed(published);
  acquire_map(k, changed);
  k.if_(lane == 0, [&] {
    const Value<s32> zero = k.constant<s32>(0);
    mbarrier_init(k, full, 1);
    fence_proxy_async(k);
    mbarrier_arrive_expect_tx(k, full, 64 * 8 * 2);
    copy_tensor(k, tile, changed, std::array{zero, zero}, full);
  });
  k.bar_sync();
  mbarrier_wait(k, full, 0);
  const auto words = k.pointer<u32, Shared>(k.address_of(tile));
  for (unsigned i = 0; i < 8; ++i) k.st(out + (lane + i * 32), k.ld(words + (lane + i * 32)));
  return k.build();
}

}  // namespace

TEST_CASE("a built kernel changes a tensor map, publishes it and copies by it") {
  const BuiltKernel kernel = change_kernel();
  for (const Finding& finding : gates::run(kernel.module())) {
    INFO(to_text(finding));
    CHECK(finding.severity != Severity::Error);
  }
  const std::string ptx = kernel.ptx();
  CHECK_THAT(ptx, Contains("tensormap.replace.tile.global_address.shared::cta.b1024.b64 ["));
  CHECK_THAT(ptx, Contains("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 ["));
  CHECK_THAT(ptx, Contains("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release."
                           "gpu.sync.aligned ["));
  CHECK_THAT(ptx, Contains("fence.proxy.tensormap::generic.acquire.gpu ["));
  EmulatedContext gpu;
  const CUfunction function = gpu.function(gpu.load(ptx), "change");
  std::vector<std::uint16_t> other(80 * 8);  // rows of 160 bytes
  for (std::size_t i = 0; i < other.size(); ++i) other[i] = static_cast<std::uint16_t>(i + 1);
  const CUdeviceptr first = gpu.allocate(64 * 32 * 2), at_other = gpu.allocate(other.size() * 2);
  const CUdeviceptr published = gpu.allocate(128), out = gpu.allocate(64 * 8 * 2);
  REQUIRE(gpu.api.memcpy_to_device(at_other, other.data(), other.size() * 2) == CUDA_SUCCESS);
  Arguments map;
  map.address = first;
  REQUIRE(map.encode(gpu) == CUDA_SUCCESS);
  CUdeviceptr addresses[] = {at_other, published, out};
  void* parameters[] = {&map.map, &addresses[0], &addresses[1], &addresses[2]};
  REQUIRE(gpu.api.launch_kernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
  REQUIRE(gpu.api.ctx_synchronize() == CUDA_SUCCESS);
  CHECK(gpu.log() == "");
  std::vector<std::uint16_t> got(64 * 8);
  REQUIRE(gpu.api.memcpy_to_host(got.data(), out, got.size() * 2) == CUDA_SUCCESS);
  for (unsigned row = 0; row < 8; ++row) {
    for (unsigned column = 0; column < 64; ++column) {
      REQUIRE(got[row * 64 + column] == (row < 6 ? row * 80 + column + 1 : 0));
    }
  }
}

TEST_CASE("changes of dimensions that no tensor has are refused where they are built") {
  KernelBuilder k("refused", "sm_90a");
  const auto map = k.param<Ptr<b8>>("map");
  CHECK_THROWS_WITH(replace_map_extent(k, map, 5, 1),
                    Contains("global_dim of dimension 5; rule: a tensor has dimensions 0 to 4"));
  KernelBuilder strides("refused", "sm_90a");
  const auto other = strides.param<Ptr<b8>>("map");
  CHECK_THROWS_WITH(
      replace_map_stride(strides, other, 0, 16),
      Contains("global_stride of dimension 0") && Contains("cure: name one of dimensions 1 to 4"));
  KernelBuilder ranks("refused", "sm_90a");
  const auto third = ranks.param<Ptr<b8>>("map");
  CHECK_THROWS_WITH(replace_map_rank(ranks, third, 0),
                    Contains("a tensor of 0 dimensions; rule: a tensor has 1 to 5"));
}
