// src/emulator/state/support_table.cpp - how each row is executed, or why it is refused
#include "emulator/state/support_table.hpp"

#include <array>

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Op;

constexpr std::string_view kSeveralDevices =
    "needs multicast memory of several devices; the emulator has one device";
constexpr std::string_view kAsyncReductions =
    "asynchronous reductions are not supported by the emulator; use red.shared::cluster or a loop "
    "of "
    "red";
constexpr std::string_view kRestrictedFences =
    "fences that are restricted to shared memory are not supported by the emulator; use the fence "
    "without .sync_restrict";
constexpr std::string_view kStack = "the emulator has no dynamic stack; use a .local array";
constexpr std::string_view kIm2col =
    "the im2col mode of tensor maps is not supported by the emulator; use tiled mode";
constexpr std::string_view kAsyncStores =
    "asynchronous stores are not supported by the emulator; use st or red with .release";
constexpr std::string_view kBulkStore =
    "bulk stores are not supported by the emulator; use a loop of st";
constexpr std::string_view kNarrowMma =
    "8-, 6- and 4-bit float matrices are not supported by the emulator; use f16 or bf16";
constexpr std::string_view kBlockScale =
    "block-scaled matrices are not supported by the emulator; use f16 or bf16";
constexpr std::string_view kSparse =
    "sparse matrices are not supported by the emulator; use mma without .sp";
constexpr std::string_view kByteMatrices =
    "matrices of 8-bit and narrower elements are not supported by the emulator; use .m8n8 with "
    ".b16";
constexpr std::string_view kOpaqueQuery =
    "this query is not supported by the emulator; pass the property to the kernel";
constexpr std::string_view kClusterLaunch =
    "needs cluster launch control, which the emulator does not support";

/// Rows from one to another of the table, in its order.
struct Range {
  Op first;
  Op last;
  Execution execution;
  std::string_view reason = {};
};

constexpr Range kRanges[] = {
    // ops_arithmetic.def
    {Op::add_sat, Op::cvt_pack_shift, Execution::Lane},
    // ops_memory.def
    {Op::ld, Op::red_op_first, Execution::Memory},
    {Op::multimem_ld_reduce, Op::multimem_red_vector_ordered, Execution::Refused, kSeveralDevices},
    {Op::prefetch, Op::prefetch_evict, Execution::NoEffect},
    {Op::prefetch_tensormap, Op::prefetch_tensormap, Execution::NoEffect},
    // discard leaves the bytes undefined; that they keep their values is one way of it.
    {Op::prefetchu, Op::discard, Execution::NoEffect},
    {Op::createpolicy_fractional, Op::cvta_to, Execution::Memory},
    {Op::mapa, Op::getctarank, Execution::Memory},
    {Op::alloca, Op::stackrestore, Execution::Refused, kStack},
    // ops_texture.def
    {Op::tex, Op::txq, Execution::Memory},
    {Op::txq_opaque, Op::txq_opaque, Execution::Refused, kOpaqueQuery},
    {Op::txq_level, Op::suq, Execution::Memory},
    {Op::suq_opaque, Op::suq_opaque, Execution::Refused, kOpaqueQuery},
    // ops_control.def
    {Op::bra, Op::brkpt, Execution::Control},
    // The scheduler takes nanosleep for a place where others may go on.
    {Op::nanosleep, Op::setmaxnreg, Execution::NoEffect},
    {Op::bar_sync, Op::barrier_red_count, Execution::Barrier},
    {Op::barrier_cluster_arrive, Op::barrier_cluster_wait, Execution::Barrier},
    {Op::fence, Op::fence, Execution::Barrier},
    {Op::fence_sync_restrict_acquire, Op::fence_sync_restrict_release, Execution::Refused,
     kRestrictedFences},
    {Op::fence_mbarrier_init, Op::fence_proxy_tensormap_acquire, Execution::Barrier},
    {Op::fence_proxy_async_acquire, Op::fence_proxy_async_release, Execution::Refused,
     kRestrictedFences},
    {Op::membar, Op::membar_proxy, Execution::Barrier},
    // One grid runs at a time, so that those it depends on have ended.
    {Op::griddepcontrol, Op::griddepcontrol, Execution::NoEffect},
    {Op::shfl, Op::elect, Execution::Warp},
    // ops_async.def
    {Op::mbarrier_init, Op::mbarrier_pending_count, Execution::Async},
    {Op::cp_async, Op::cp_async_mbarrier_arrive, Execution::Async},
    {Op::cp_async_bulk_load, Op::cp_async_bulk_wait_group, Execution::Async},
    {Op::cp_reduce_async_bulk_shared, Op::cp_reduce_async_bulk_noftz, Execution::Refused,
     kAsyncReductions},
    {Op::st_async, Op::st_async, Execution::Async},
    {Op::st_async_release, Op::st_async_release, Execution::Refused, kAsyncStores},
    {Op::st_bulk, Op::st_bulk, Execution::Refused, kBulkStore},
    {Op::red_async, Op::red_async, Execution::Refused, kAsyncReductions},
    {Op::red_async_release, Op::red_async_release, Execution::Refused, kAsyncStores},
    {Op::cp_async_bulk_tensor_load, Op::cp_async_bulk_tensor_load, Execution::Async},
    {Op::cp_async_bulk_tensor_load_im2col, Op::cp_async_bulk_tensor_load_im2col, Execution::Refused,
     kIm2col},
    {Op::cp_async_bulk_tensor_store, Op::cp_async_bulk_tensor_store, Execution::Async},
    {Op::cp_async_bulk_tensor_store_im2col, Op::cp_async_bulk_tensor_store_im2col,
     Execution::Refused, kIm2col},
    {Op::cp_reduce_async_bulk_tensor, Op::cp_async_bulk_prefetch_tensor, Execution::Async},
    {Op::tensormap_replace_address, Op::tensormap_cp_fenceproxy, Execution::Memory},
    {Op::clusterlaunchcontrol_try_cancel, Op::clusterlaunchcontrol_first_ctaid_dimension,
     Execution::Refused, kClusterLaunch},
    // ops_matrix.def
    {Op::mma_m8n8k4_f16_f16, Op::mma_m16n8k32_fp8_f16, Execution::Matrix},
    {Op::mma_f8f6f4_f32, Op::mma_f8f6f4_f16, Execution::Refused, kNarrowMma},
    {Op::mma_mxf8f6f4, Op::mma_mxf4nvf4_4x, Execution::Refused, kBlockScale},
    {Op::mma_sp_m16n8k16_f16_f16, Op::mma_sp_mxf4nvf4_4x, Execution::Refused, kSparse},
    {Op::ldmatrix_x1, Op::ldmatrix_x4, Execution::MatrixMemory},
    {Op::ldmatrix_m16n16_x1, Op::ldmatrix_m8n16_x4_unpack, Execution::Refused, kByteMatrices},
    {Op::stmatrix_x1, Op::stmatrix_x1, Execution::MatrixMemory},
    {Op::stmatrix_m16n8_x1, Op::stmatrix_m16n8_x1, Execution::Refused, kByteMatrices},
    {Op::stmatrix_x2, Op::stmatrix_x2, Execution::MatrixMemory},
    {Op::stmatrix_m16n8_x2, Op::stmatrix_m16n8_x2, Execution::Refused, kByteMatrices},
    {Op::stmatrix_x4, Op::stmatrix_x4, Execution::MatrixMemory},
    {Op::stmatrix_m16n8_x4, Op::stmatrix_m16n8_x4, Execution::Refused, kByteMatrices},
    {Op::movmatrix, Op::movmatrix, Execution::Matrix},
    {Op::wmma_load_a_f16, Op::wmma_store_f64, Execution::MatrixMemory},
    {Op::wmma_mma_f16_f16, Op::wmma_mma_b1, Execution::Matrix},
    {Op::wgmma_fence, Op::wgmma_s8_registers, Execution::Async},
};

constexpr std::size_t kOpCount =
#define PTXGEN_GROUP(id, title)
#define PTXGEN_OP(id, mnemonic, pattern, operands, needs, flags, doc) 1 +
#include "ptxgen/ptx/ops.def"
    0;

/// Every row is in one range: each begins where the one before it ends. A row that is added between
/// two ranges does not compile until it is given its place.
constexpr bool covers_the_table() {
  std::size_t next = 0;
  for (const Range& range : kRanges) {
    if (static_cast<std::size_t>(range.first) != next || range.last < range.first) return false;
    if ((range.execution == Execution::Refused) == range.reason.empty()) return false;
    next = static_cast<std::size_t>(range.last) + 1;
  }
  return next == kOpCount;
}
static_assert(covers_the_table());

constexpr auto kRangeOfOp = [] {
  std::array<std::uint8_t, kOpCount> all{};
  for (std::size_t i = 0; i < std::size(kRanges); ++i) {
    for (auto op = static_cast<std::size_t>(kRanges[i].first);
         op <= static_cast<std::size_t>(kRanges[i].last); ++op) {
      all[op] = static_cast<std::uint8_t>(i);
    }
  }
  return all;
}();

const Range& range_of(Op op) noexcept { return kRanges[kRangeOfOp[static_cast<std::size_t>(op)]]; }

}  // namespace

Execution execution_of(ptx::Op op) noexcept { return range_of(op).execution; }
std::string_view refusal_reason(ptx::Op op) noexcept { return range_of(op).reason; }

}  // namespace ptxgen::inline v0::emulator
