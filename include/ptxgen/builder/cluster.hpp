// ptxgen/builder/cluster.hpp - clusters, mbarriers, bulk copies, programmatic launches
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/builder/kernel_builder.hpp"

// Not part of ptxgen/builder.hpp: what kernels for sm_90 and later use is asked for by name. Every
// function emits one statement where it does not say otherwise, and checks as KernelBuilder does.

namespace ptxgen::inline v0 {

/// Shared memory of the blocks of a cluster. Addresses of the own memory are addresses here too.
struct ClusterShared : detail::SpaceTag<ptx::Space::Shared, true, ptx::Modifier::shared_cluster> {};

// The cluster of the block ---------------------------------------------------------------------

/// Number of the block in its cluster, from 0.
inline Value<u32> cluster_rank(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  return k.special_reg(ptx::SpecialRegister::cluster_ctarank, 0, site);
}
/// Blocks of a cluster.
inline Value<u32> cluster_blocks(KernelBuilder& k,
                                 SourceLocation site = SourceLocation::current()) {
  return k.special_reg(ptx::SpecialRegister::cluster_nctarank, 0, site);
}
/// Number of the cluster in the grid, `component` 0, 1, 2 for x, y, z.
inline Value<u32> cluster_id(KernelBuilder& k, unsigned component = 0,
                             SourceLocation site = SourceLocation::current()) {
  return k.special_reg(ptx::SpecialRegister::clusterid, component, site);
}

/// What is at p in the memory of the block of that rank (`mapa`). Two statements where p has an
/// offset.
template <class T, class R>
Ptr<T, ClusterShared> map_rank(KernelBuilder& k, const Ptr<T, Shared>& p, const R& rank,
                               SourceLocation site = SourceLocation::current()) {
  const Value<u32> own = k.address_of(p, site);
  const Value<u32> there = k.undefined<u32>(site);
  k.emit(ptx::Op::mapa, {ptx::Modifier::shared_cluster, ptx::Modifier::type_u32},
         {there, own, rank}, site);
  return k.pointer<T, ClusterShared>(there, site);
}

/// All threads of the cluster arrive, and wait for each other: what they did before the first is
/// seen after the second. All lanes of a warp come together.
inline void cluster_arrive(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::barrier_cluster_arrive,
         {ptx::Modifier::cluster, ptx::Modifier::arrive, ptx::Modifier::aligned}, {}, site);
}
inline void cluster_wait(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::barrier_cluster_wait,
         {ptx::Modifier::cluster, ptx::Modifier::wait, ptx::Modifier::aligned}, {}, site);
}
/// Two statements.
inline void cluster_sync(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  cluster_arrive(k, site);
  cluster_wait(k, site);
}

// mbarriers ------------------------------------------------------------------------------------

/// An mbarrier is 8 bytes of shared memory, `k.shared<u64>(1).base()`.
using Mbarrier = Ptr<u64, Shared>;

/// By one thread, with a barrier of the block (or cluster) between it and all uses.
inline void mbarrier_init(KernelBuilder& k, const Mbarrier& bar, const In<u32>& arrivals,
                          SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::mbarrier_init, {ptx::Modifier::shared, ptx::Modifier::type_b64}, {bar, arrivals},
         site);
}
/// Makes initialised mbarriers known to the other blocks of the cluster, in front of their barrier.
inline void fence_mbarrier_init(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::fence_mbarrier_init,
         {ptx::Modifier::mbarrier_init, ptx::Modifier::release, ptx::Modifier::cluster}, {}, site);
}
/// Between this thread's own accesses to shared memory and bulk copies of the same bytes.
inline void fence_proxy_async(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::fence_proxy, {ptx::Modifier::async, ptx::Modifier::shared_cta}, {}, site);
}
inline void mbarrier_arrive(KernelBuilder& k, const Mbarrier& bar,
                            SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::mbarrier_arrive, {ptx::Modifier::shared, ptx::Modifier::type_b64},
         {Operand::sink(), bar}, site);
}
/// At an mbarrier of any block of the cluster; releases to the cluster.
inline void mbarrier_arrive(KernelBuilder& k, const Ptr<u64, ClusterShared>& bar,
                            SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::mbarrier_arrive,
         {ptx::Modifier::release, ptx::Modifier::cluster, ptx::Modifier::shared_cluster,
          ptx::Modifier::type_b64},
         {Operand::sink(), bar}, site);
}
/// Arrives, and says that copies will bring so many bytes in this phase.
inline void mbarrier_arrive_expect_tx(KernelBuilder& k, const Mbarrier& bar, const In<u32>& bytes,
                                      SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::mbarrier_arrive_expect_tx, {ptx::Modifier::shared, ptx::Modifier::type_b64},
         {Operand::sink(), bar, bytes}, site);
}
/// Whether the phase of that parity (0, 1, 0, ... from the first on) has ended; may wait a while.
/// `scope`: Scope::cluster where other blocks have arrived.
inline Pred mbarrier_try_wait(KernelBuilder& k, const Mbarrier& bar, const In<u32>& parity,
                              Scope scope = Scope::none,
                              SourceLocation site = SourceLocation::current()) {
  const Pred done = k.undefined<pred>(site);
  if (scope == Scope::none) {
    k.emit(ptx::Op::mbarrier_try_wait_parity,
           {ptx::Modifier::parity, ptx::Modifier::shared, ptx::Modifier::type_b64},
           {done, bar, parity}, site);
  } else {
    k.emit(ptx::Op::mbarrier_try_wait_parity,
           {ptx::Modifier::parity, ptx::Modifier::acquire, static_cast<ptx::Modifier>(scope),
            ptx::Modifier::shared, ptx::Modifier::type_b64},
           {done, bar, parity}, site);
  }
  return done;
}
/// Tries until it has: a loop.
inline void mbarrier_wait(KernelBuilder& k, const Mbarrier& bar, const In<u32>& parity,
                          Scope scope = Scope::none,
                          SourceLocation site = SourceLocation::current()) {
  k.do_while([] {}, [&] { return !mbarrier_try_wait(k, bar, parity, scope, site); }, site);
}

// Bulk copies ----------------------------------------------------------------------------------

/// By one thread: `bytes` from global to shared memory, counted by `bar`. Addresses and bytes are
/// multiples of 16.
template <class T>
void copy_bulk(KernelBuilder& k, const Ptr<T, Shared>& to, const Ptr<T, Global>& from,
               const In<u32>& bytes, const Mbarrier& bar,
               SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::cp_async_bulk_load, {ptx::Modifier::shared_cluster, ptx::Modifier::global},
         {to, from, bytes, bar}, site);
}
/// The same with a policy of the L2, see `policy_evict_first`.
template <class T>
void copy_bulk(KernelBuilder& k, const Ptr<T, Shared>& to, const Ptr<T, Global>& from,
               const In<u32>& bytes, const Mbarrier& bar, const Value<u64>& policy,
               SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::cp_async_bulk_load,
         {ptx::Modifier::shared_cluster, ptx::Modifier::global, ptx::Modifier::L2_cache_hint},
         {to, from, bytes, bar, policy}, site);
}
/// By one thread: from shared to global memory. Ends with `copy_bulk_commit` and `copy_bulk_wait`.
template <class T>
void copy_bulk(KernelBuilder& k, const Ptr<T, Global>& to, const Ptr<T, Shared>& from,
               const In<u32>& bytes, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::cp_async_bulk_store, {ptx::Modifier::global, ptx::Modifier::shared_cta},
         {to, from, bytes}, site);
}
inline void copy_bulk_commit(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::cp_async_bulk_commit_group, {}, {}, site);
}
/// Until at most `pending` groups of this thread are on their way; `read`: have yet to be read.
inline void copy_bulk_wait(KernelBuilder& k, unsigned pending, bool read = false,
                           SourceLocation site = SourceLocation::current()) {
  if (read) {
    k.emit(ptx::Op::cp_async_bulk_wait_group, {ptx::Modifier::read}, {pending}, site);
  } else {
    k.emit(ptx::Op::cp_async_bulk_wait_group, {}, {pending}, site);
  }
}
/// Brings `bytes` at p into the L2.
template <class T>
void prefetch_bulk(KernelBuilder& k, const Ptr<T, Global>& p, const In<u32>& bytes,
                   SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::cp_async_bulk_prefetch, {ptx::Modifier::global}, {p, bytes}, site);
}

/// Policies of the L2 for all accesses that are given them: bytes that are used once, and bytes
/// that others will use.
inline Value<u64> policy_evict_first(KernelBuilder& k,
                                     SourceLocation site = SourceLocation::current()) {
  const Value<u64> policy = k.undefined<u64>(site);
  k.emit(ptx::Op::createpolicy_fractional, {ptx::Modifier::L2_evict_first}, {policy, 1.0f}, site);
  return policy;
}
inline Value<u64> policy_evict_last(KernelBuilder& k,
                                    SourceLocation site = SourceLocation::current()) {
  const Value<u64> policy = k.undefined<u64>(site);
  k.emit(ptx::Op::createpolicy_fractional, {ptx::Modifier::L2_evict_last}, {policy, 1.0f}, site);
  return policy;
}

// Programmatic dependent launch ----------------------------------------------------------------

/// Waits until the kernels before this one in the stream have ended and their writes can be seen.
inline void grid_wait(KernelBuilder& k, SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::griddepcontrol, {ptx::Modifier::wait}, {}, site);
}
/// The next kernel may begin as soon as every block has come here or has ended.
inline void grid_launch_dependents(KernelBuilder& k,
                                   SourceLocation site = SourceLocation::current()) {
  k.emit(ptx::Op::griddepcontrol, {ptx::Modifier::launch_dependents}, {}, site);
}

}  // namespace ptxgen::inline v0
