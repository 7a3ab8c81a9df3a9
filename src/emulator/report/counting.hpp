// src/emulator/report/counting.hpp - sums the counters of workers for a launch
#pragma once

#include <span>

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

void add(MemoryCounters& to, const MemoryCounters& from);
void add(SharedCounters& to, const SharedCounters& from);
void add(BulkCounters& to, const BulkCounters& from);
void add(PeerCounters& to, const PeerCounters& from);

/// All but opcodes and lines.
void add_totals(Counters& to, const Counters& from);

/// Sums of all workers after a launch of `Image::kernels[kernel]`.
[[nodiscard]] Counters collect(const Image& image, std::uint32_t kernel,
                               std::span<const Worker> workers);

}  // namespace ptxgen::inline v0::emulator
