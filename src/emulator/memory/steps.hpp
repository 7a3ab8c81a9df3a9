// src/emulator/memory/steps.hpp - handlers of memory instructions
#pragma once

#include "emulator/race/race.hpp"
#include "emulator/state/code.hpp"
#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

// Handlers for any mask, space and width. step.detail is the index in Code::memory.
void run_load(Context& context, const Step& step);
void run_store(Context& context, const Step& step);
/// A kernel parameter at a constant address.
void run_load_parameter(Context& context, const Step& step);
void run_atomic(Context& context, const Step& step);

// cvta, isspacep, createpolicy, fence and membar; the operands are data[0] and sources[0].
void run_to_generic(Context& context, const Step& step);
void run_from_generic(Context& context, const Step& step);
void run_is_space(Context& context, const Step& step);
void run_policy(Context& context, const Step& step);
void run_fence(Context& context, const Step& step);

/// ldmatrix, stmatrix, wmma.load and wmma.store.
void run_matrix(Context& context, const Step& step);

// cp.async and its groups.
void run_copy_async(Context& context, const Step& step);
void run_commit_group(Context& context, const Step& step);
void run_wait_group(Context& context, const Step& step);

/// All mbarrier instructions but pending_count, and cp.async.mbarrier.arrive.
void run_mbarrier(Context& context, const Step& step);
/// cp.async.bulk.
void run_copy_bulk(Context& context, const Step& step);
/// cp.async.bulk.commit_group and .wait_group.
void run_commit_bulk(Context& context, const Step& step);
void run_wait_bulk(Context& context, const Step& step);
/// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor.
void run_copy_tensor(Context& context, const Step& step);
/// st.async.
void run_store_async(Context& context, const Step& step);
// tex and tld4; suld and sust; txq and suq.
void run_fetch(Context& context, const Step& step);
void run_surface(Context& context, const Step& step);
void run_image_query(Context& context, const Step& step);
// mapa and getctarank.
void run_map_peer(Context& context, const Step& step);
void run_peer_rank(Context& context, const Step& step);
void run_pending_count(Context& context, const Step& step);

/// An access for which vector/memory_hot.cpp may have a handler.
struct HotAccess {
  bool store = false;
  bool shared = false;  ///< else global
  std::uint8_t element_bytes = 4;
  std::uint8_t elements = 1;
  std::uint8_t lane_bytes = 4;  ///< of the registers
  bool is_signed = false;       ///< loads of 1 and 2 bytes
  bool base_is_64bit = true;
};

// For the hot handlers.
/// Counts a global access with irregular addresses.
void count_scattered_global(AccessCounters& counters, const std::uint64_t addresses[32],
                            std::uint32_t mask, unsigned bytes);
void count_scattered_shared(AccessCounters& counters, const std::uint64_t offsets[32],
                            std::uint32_t mask, unsigned bytes);
/// Reports a valid access to the race checks. `values`: 32 times `bytes`, or null.
void note_shared_access(Context& context, const Step& step, const std::uint64_t offsets[32],
                        std::uint32_t mask, unsigned bytes, const std::byte* values,
                        RaceAccess::Shape shape);
void note_global_access(Context& context, const Step& step, const std::uint64_t addresses[32],
                        std::uint32_t mask, unsigned bytes, const std::byte* values,
                        RaceAccess::Shape shape);

}  // namespace ptxgen::inline v0::emulator
