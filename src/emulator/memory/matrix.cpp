// src/emulator/memory/matrix.cpp - ldmatrix, stmatrix, wmma.load, wmma.store
#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// One matrix load or store of a warp.
class Matrix {
 public:
  Matrix(Context& context, const Step& step)
      : context_(context), step_(step), detail_(context.code->memory[step.detail]) {}

  void run() {
    mask_ = context_.mask(step_);
    if (mask_ == 0) return;
    compute_addresses(context_, detail_.address, addresses_);
    for (unsigned lane = 0; lane < 32; ++lane) {
      strides_[lane] = detail_.sources.empty() ? 0 : get_lane(context_, detail_.sources[0], lane);
    }
    const MatrixDetail& matrix = detail_.as<MatrixDetail>();
    count_ = matrix.layout(matrix.lane, addresses_, strides_, pieces_.data());
    // Inaccessible memory loads as 0.
    std::memset(registers_, 0, detail_.data.size() * sizeof registers_[0]);
    if (detail_.writes) get_registers();
    // ldmatrix and stmatrix move rows of 16 bytes, whose address one lane gives; in wmma every lane
    // has the addresses of its own pieces.
    if (detail_.elements == 16) {
      move_rows();
    } else {
      move_pieces();
    }
    if (detail_.reads) set_registers();
  }

 private:
  void get_registers() {
    for (std::size_t word = 0; word < detail_.data.size(); ++word) {
      for_each_lane(mask_, [&](unsigned lane) {
        get_element(context_, detail_.data[word], lane, registers_[word][lane], 8);
      });
    }
  }

  void set_registers() {
    for (std::size_t word = 0; word < detail_.data.size(); ++word) {
      const Slot& slot = detail_.data[word];
      if (!slot.present()) continue;
      if (slot.lane_bytes == 4 && slot.bits == 32) {
        auto* const to = context_.lanes<std::uint32_t>(slot.offset);
        for_each_lane(mask_,
                      [&](unsigned lane) { std::memcpy(to + lane, registers_[word][lane], 4); });
        continue;
      }
      for_each_lane(mask_, [&](unsigned lane) {
        set_element(context_, slot, lane, registers_[word][lane], slot.lane_bytes);
      });
    }
  }

  AccessRequest request(const std::uint64_t* addresses, std::uint32_t lanes, unsigned bytes) const {
    AccessRequest result;
    result.space = detail_.space;
    result.addresses = addresses;
    result.mask = lanes;
    result.bytes = bytes;
    result.alignment = bytes;
    result.reads = detail_.reads;
    result.writes = detail_.writes;
    result.kind = detail_.writes ? RaceAccess::Kind::Write : RaceAccess::Kind::Read;
    return result;
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

  void move_rows() {
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
    AccessRequest access = request(addresses_, lanes & mask_, 16);
    if (detail_.writes) {
      access.values = values[0];
      access.value_stride = 16;
    }
    AccessTargets found;
    resolve_access(context_, step_, detail_, access, found);
    for (unsigned i = 0; i < count_; ++i) {
      const MatrixPiece& piece = pieces_[i];
      if ((found.mask >> piece.address_lane & 1u) == 0) continue;
      move(piece,
           found.host[piece.address_lane] + (piece.address - addresses_[piece.address_lane]));
    }
  }

  /// wmma: one access for all pieces at the same place of their lanes' registers.
  void move_pieces() {
    std::stable_sort(pieces_.begin(), pieces_.begin() + count_,
                     [](const MatrixPiece& a, const MatrixPiece& b) {
                       return a.word != b.word ? a.word < b.word : a.offset < b.offset;
                     });
    counted_space_ = detail_.space;
    for (unsigned first = 0; first < count_;) first = move_group(first);
    count();
  }

  /// Moves the pieces from `first` on that form one access. Returns the first piece after them.
  unsigned move_group(unsigned first) {
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
    AccessRequest access = request(addresses, lanes & mask_, head.bytes);
    access.count = false;
    if (detail_.writes) {
      access.values = values[0];
      access.value_stride = 8;
    }
    AccessTargets found;
    resolve_access(context_, step_, detail_, access, found);
    if (counted_space_ == ptx::Space::Generic) counted_space_ = window_of(head.address);
    for_each_lane(found.mask, [&](unsigned lane) {
      const MatrixPiece& piece = pieces_[first + piece_of[lane]];
      move(piece, found.host[lane]);
      spans_[span_count_++] = {piece.address, piece.bytes};
    });
    moved_bytes_ += static_cast<std::uint64_t>(std::popcount(found.mask)) * head.bytes;
    if (counted_space_ == ptx::Space::Shared) {
      const WavefrontCount count = count_wavefronts(addresses, found.mask, head.bytes);
      wavefronts_.wavefronts += count.wavefronts;
      wavefronts_.ideal += count.ideal;
    }
    return end;
  }

  /// Counts all pieces as one request.
  void count() {
    AccessCounters* const counters = counters_of(context_, detail_);
    if (counters == nullptr || span_count_ == 0) return;
    if (counted_space_ == ptx::Space::Shared) {
      add_request(counters->shared, wavefronts_, moved_bytes_);
    } else {
      add_request(counted_space_ == ptx::Space::Local ? counters->local : counters->memory,
                  count_sectors(std::span(spans_.data(), span_count_)), moved_bytes_);
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
  // Of wmma, for the counters.
  ptx::Space counted_space_ = ptx::Space::Generic;
  std::array<ByteSpan, kMaxMatrixPieces> spans_;
  std::size_t span_count_ = 0;
  std::uint64_t moved_bytes_ = 0;
  WavefrontCount wavefronts_;
};

}  // namespace

void run_matrix(Context& context, const Step& step) { Matrix(context, step).run(); }

}  // namespace ptxgen::inline v0::emulator
