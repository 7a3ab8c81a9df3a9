// src/emulator/memory/steps.hpp - handlers of memory instructions
#pragma once

#include "emulator/race/race.hpp"
#include "emulator/state/code.hpp"
#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

// Every one: step.detail is the MemoryDetail of the code that runs. They do all that emulation.md
// and MemoryDetail promise, for any mask, space and width.
void run_load(Context& context, const Step& step);
void run_store(Context& context, const Step& step);
/// Kernel parameter at a known address.
void run_load_parameter(Context& context, const Step& step);
void run_atomic(Context& context, const Step& step);

// cvta, isspacep, createpolicy, fence and membar; data[0] and sources[0] are their operands.
void run_to_generic(Context& context, const Step& step);
void run_from_generic(Context& context, const Step& step);
void run_is_space(Context& context, const Step& step);
void run_policy(Context& context, const Step& step);
void run_fence(Context& context, const Step& step);

/// ldmatrix and stmatrix, which have MemoryDetail::elements of 16; wmma.load and wmma.store.
void run_matrix(Context& context, const Step& step);

// cp.async (`base` in shared, `second_base` in global memory, `sources[0]` the bytes to read or the
// predicate that ignores them) and its groups (`second_offset`: how many may stay unfinished).
void run_copy_async(Context& context, const Step& step);
void run_commit_group(Context& context, const Step& step);
void run_wait_group(Context& context, const Step& step);

/// Everything on mbarrier objects, and cp.async.mbarrier.arrive (`lane.extra`: .noinc).
void run_mbarrier(Context& context, const Step& step);
/// cp.async.bulk, `base` where to, `second_base` where from. Sources: bytes; not for stores the
/// mbarrier's base, to which `lane.extra` is added; with multicast the ranks.
void run_copy_bulk(Context& context, const Step& step);
/// cp.async.bulk.commit_group and .wait_group (`second_offset`: how many may stay unfinished).
void run_commit_bulk(Context& context, const Step& step);
void run_wait_bulk(Context& context, const Step& step);
/// st.async: `data` to `base`, `second_base` is the mbarrier.
void run_store_async(Context& context, const Step& step);
// mapa and getctarank.
void run_map_peer(Context& context, const Step& step);
void run_peer_rank(Context& context, const Step& step);
void run_pending_count(Context& context, const Step& step);

/// What vector/memory_hot.cpp asks of an access that it may run.
struct HotAccess {
  bool store = false;
  bool shared = false;  ///< else global
  std::uint8_t element_bytes = 4;
  std::uint8_t elements = 1;
  std::uint8_t lane_bytes = 4;  ///< of the registers
  bool is_signed = false;       ///< loads of 1 and 2 bytes
  bool base_is_64bit = true;
};

// What the hot handlers fall back on.
/// Counts a global access whose lanes are neither neighbours nor equal.
void count_scattered_global(AccessCounters& counters, const std::uint64_t addresses[32],
                            std::uint32_t mask, unsigned bytes);
void count_scattered_shared(AccessCounters& counters, const std::uint64_t offsets[32],
                            std::uint32_t mask, unsigned bytes);
/// Tells Races of an access that found all its bytes. `values`: 32 times `bytes`, or null.
void note_shared_access(Context& context, const Step& step, const std::uint64_t offsets[32],
                        std::uint32_t mask, unsigned bytes, const std::byte* values,
                        RaceAccess::Shape shape);
void note_global_access(Context& context, const Step& step, const std::uint64_t addresses[32],
                        std::uint32_t mask, unsigned bytes, const std::byte* values,
                        RaceAccess::Shape shape);

}  // namespace ptxgen::inline v0::emulator
