// src/emulator/memory/matrix.cpp - ldmatrix, stmatrix, wmma.load, wmma.store
#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/memory/access_counts.hpp"
#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// One such instruction while it runs.
class Matrix {
 public:
  Matrix(Context& context, const Step& step)
      : context_(context), step_(step), detail_(context.code->memory[step.detail]) {}

  void run() {
    mask_ = context_.mask(step_);
    if (mask_ == 0) return;
    compute_addresses(context_, detail_.base, detail_.offset, addresses_);
    for (unsigned lane = 0; lane < 32; ++lane) {
      strides_[lane] = detail_.sources.empty() ? 0 : get_lane(context_, detail_.sources[0], lane);
    }
    count_ = detail_.layout(detail_.lane, addresses_, strides_, pieces_.data());
    // What is not found loads 0.
    std::memset(registers_, 0, sizeof registers_);
    if (detail_.writes) take_registers();
    // ldmatrix and stmatrix move rows of 16 bytes, each given by one lane; wmma moves pieces that
    // every lane finds for itself.
    if (detail_.elements == 16) {
      rows();
    } else {
      rounds();
    }
    if (detail_.reads) give_registers();
  }

 private:
  void take_registers() {
    for (std::size_t word = 0; word < detail_.data.size(); ++word) {
      for_each_lane(mask_, [&](unsigned lane) {
        get_element(context_, detail_.data[word], lane, registers_[word][lane], 8);
      });
    }
  }

  void give_registers() {
    for (std::size_t word = 0; word < detail_.data.size(); ++word) {
      const Slot& slot = detail_.data[word];
      if (!slot.present()) continue;
      for_each_lane(mask_, [&](unsigned lane) {
        set_element(context_, slot, lane, registers_[word][lane], slot.lane_bytes);
      });
    }
  }

  AccessRequest request(const std::uint64_t* addresses, std::uint32_t lanes, unsigned bytes) const {
    AccessRequest made;
    made.space = detail_.space;
    made.addresses = addresses;
    made.mask = lanes;
    made.bytes = bytes;
    made.alignment = bytes;
    made.reads = detail_.reads;
    made.writes = detail_.writes;
    made.kind = detail_.writes ? RaceAccess::Kind::Write : RaceAccess::Kind::Read;
    return made;
  }

  void move(const MatrixPiece& piece, std::byte* memory) {
    if ((mask_ >> piece.lane & 1u) == 0) return;
    std::byte* const data = registers_[piece.word][piece.lane] + piece.offset;
    if (detail_.writes) {
      store_bytes(memory, data, piece.bytes);
    } else {
      load_bytes(data, memory, piece.bytes);
    }
  }

  void rows() {
    std::uint32_t lanes = 0;
    std::byte values[32][16] = {};
    for (unsigned i = 0; i < count_; ++i) {
      const MatrixPiece& piece = pieces_[i];
      lanes |= 1u << piece.address_lane;
      if (detail_.writes) {
        std::memcpy(values[piece.address_lane] + (piece.address - addresses_[piece.address_lane]),
                    registers_[piece.word][piece.lane] + piece.offset, piece.bytes);
      }
    }
    AccessRequest wanted = request(addresses_, lanes & mask_, 16);
    if (detail_.writes) {
      wanted.values = values[0];
      wanted.value_stride = 16;
    }
    Reach found;
    reach(context_, step_, detail_, wanted, found);
    for (unsigned i = 0; i < count_; ++i) {
      const MatrixPiece& piece = pieces_[i];
      if ((found.mask >> piece.address_lane & 1u) == 0) continue;
      move(piece,
           found.host[piece.address_lane] + (piece.address - addresses_[piece.address_lane]));
    }
  }

  /// Pieces of the same place in each lane's registers go together.
  void rounds() {
    std::stable_sort(pieces_.begin(), pieces_.begin() + count_,
                     [](const MatrixPiece& a, const MatrixPiece& b) {
                       return a.word != b.word ? a.word < b.word : a.offset < b.offset;
                     });
    std::array<ByteSpan, kMaxMatrixPieces> spans;
    std::size_t span_count = 0;
    std::uint64_t touched = 0;
    ptx::Space space = detail_.space;
    for (unsigned first = 0; first < count_;) {
      const MatrixPiece& head = pieces_[first];
      std::uint64_t addresses[32] = {};
      std::uint8_t piece_of[32] = {};
      std::byte values[32][8] = {};
      std::uint32_t lanes = 0;
      unsigned end = first;
      for (; end < count_; ++end) {
        const MatrixPiece& piece = pieces_[end];
        if (piece.word != head.word || piece.offset != head.offset || piece.bytes != head.bytes ||
            (lanes >> piece.lane & 1u) != 0) {
          break;
        }
        lanes |= 1u << piece.lane;
        addresses[piece.lane] = piece.address;
        piece_of[piece.lane] = static_cast<std::uint8_t>(end - first);
        std::memcpy(values[piece.lane], registers_[piece.word][piece.lane] + piece.offset,
                    piece.bytes);
      }
      AccessRequest wanted = request(addresses, lanes & mask_, head.bytes);
      wanted.count = false;
      if (detail_.writes) {
        wanted.values = values[0];
        wanted.value_stride = 8;
      }
      Reach found;
      reach(context_, step_, detail_, wanted, found);
      if (space == ptx::Space::Generic) space = window_of(head.address);
      for_each_lane(found.mask, [&](unsigned lane) {
        const MatrixPiece& piece = pieces_[first + piece_of[lane]];
        move(piece, found.host[lane]);
        spans[span_count++] = {piece.address, piece.bytes};
      });
      touched += static_cast<std::uint64_t>(std::popcount(found.mask)) * head.bytes;
      if (space == ptx::Space::Shared) {
        const WavefrontCount count = count_wavefronts(addresses, found.mask, head.bytes);
        wavefronts_.wavefronts += count.wavefronts;
        wavefronts_.ideal += count.ideal;
      }
      first = end;
    }
    AccessCounters* const counters = counters_of(context_, detail_);
    if (counters == nullptr || span_count == 0) return;
    if (space == ptx::Space::Shared) {
      ++counters->shared.requests;
      counters->shared.wavefronts += wavefronts_.wavefronts;
      counters->shared.ideal_wavefronts += wavefronts_.ideal;
      counters->shared.bank_conflicts += wavefronts_.wavefronts - wavefronts_.ideal;
      counters->shared.bytes += touched;
    } else {
      const SectorCount count = count_sectors(std::span(spans.data(), span_count));
      MemoryCounters& memory = space == ptx::Space::Local ? counters->local : counters->memory;
      ++memory.requests;
      memory.sectors += count.sectors;
      memory.ideal_sectors += count.ideal;
      memory.bytes += touched;
    }
  }

  Context& context_;
  const Step& step_;
  const MemoryDetail& detail_;
  std::uint32_t mask_ = 0;
  unsigned count_ = 0;
  std::uint64_t addresses_[32];
  std::uint64_t strides_[32];
  std::array<MatrixPiece, kMaxMatrixPieces> pieces_;
  std::byte registers_[16][32][8];  ///< [data register][lane]
  WavefrontCount wavefronts_;
};

}  // namespace

void run_matrix(Context& context, const Step& step) { Matrix(context, step).run(); }

}  // namespace ptxgen::inline v0::emulator
