// src/kernels/host/decoder.cpp - attention, rotations, caches and tokens on the host
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/host/rows.hpp"
#include "ptxgen/kernels/attention/decode.hpp"
#include "ptxgen/kernels/attention/kv_cache_write.hpp"
#include "ptxgen/kernels/attention/rope.hpp"
#include "ptxgen/kernels/attention/rope_kv_write.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/tokens/argmax.hpp"
#include "ptxgen/kernels/tokens/embedding.hpp"

namespace ptxgen::inline v0 {

namespace {

// As of the kernels.
constexpr auto kNan = std::bit_cast<float>(0x7fffffffu);

// Rounded to the type and back.
void round_to(const HostVectors& vectors, ElementType type, std::vector<std::uint16_t>& space,
              std::size_t count, float* values) {
  if (type == ElementType::f32) return;
  space.resize(count);
  vectors.from_f32(type, values, count, space.data());
  vectors.to_f32(type, space.data(), count, values);
}

// A head of a KV cache: floats, or blocks of q8_0.
void write_cache(const HostVectors& vectors, ElementType type, std::span<const float> head,
                 std::byte* to) {
  if (is_block_format(type)) {
    quantize(type, head, {to, static_cast<std::size_t>(bytes(type, head.size()))});
  } else {
    vectors.from_f32(type, head.data(), head.size(), to);
  }
}

// Sine and cosine of each pair of a head at a position.
class Rotation {
 public:
  Rotation(std::uint32_t head_size, bool interleaved, double theta, const float* factors)
      : interleaved_(interleaved), frequencies_(head_size / 2), angles_(head_size / 2) {
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
      const double power = -2.0 * static_cast<double>(i) / head_size;
      frequencies_[i] = std::pow(theta, power) / (factors == nullptr ? 1.0 : double{factors[i]});
    }
  }
  void move_to(double position, double direction) {
    for (std::size_t i = 0; i < angles_.size(); ++i) {
      const double angle = position * frequencies_[i];
      angles_[i] = {direction * std::sin(angle), std::cos(angle)};
    }
  }
  /// y may be x.
  void rotate(const float* x, float* y) const {
    const std::size_t distance = interleaved_ ? 1 : angles_.size();
    for (std::size_t i = 0; i < angles_.size(); ++i) {
      const std::size_t at = interleaved_ ? 2 * i : i;
      const double x0 = x[at];
      const double x1 = x[at + distance];
      y[at] = static_cast<float>(x0 * angles_[i].cosine - x1 * angles_[i].sine);
      y[at + distance] = static_cast<float>(x0 * angles_[i].sine + x1 * angles_[i].cosine);
    }
  }

 private:
  struct Angle {
    double sine, cosine;
  };
  bool interleaved_;
  std::vector<double> frequencies_;
  std::vector<Angle> angles_;
};

// Keys or values of one head: `f32`, in place if they are floats, else unpacked.
class Strip {
 public:
  Strip(const HostVectors& vectors, ElementType type, const std::byte* memory, std::size_t size)
      : vectors_(vectors), type_(type), memory_(memory), size_(size) {}
  /// The type of what `read` returns.
  [[nodiscard]] ElementType type() const { return blocks() ? ElementType::f32 : type_; }
  /// `count` positions from `first` on.
  [[nodiscard]] const void* read(std::size_t first, std::size_t count, std::vector<float>& space) {
    const std::byte* const at = memory_ + bytes(type_, std::uint64_t{first} * size_);
    if (!blocks()) return at;
    space.resize(count * size_);
    vectors_.dequantize(type_, at, space.size(), space.data());
    return space.data();
  }

 private:
  [[nodiscard]] bool blocks() const { return is_block_format(type_); }
  const HostVectors& vectors_;
  ElementType type_;
  const std::byte* memory_;
  std::size_t size_;
};

// Positions whose weighted values are added at a time.
constexpr std::size_t kPositions = 64;

struct Attention {
  const HostVectors& vectors;
  std::size_t size;  // of a head
  float scale;
  float cap;  // 0: none
  std::vector<float> scores, unpacked, part;

  void score(Strip keys, const float* q, std::size_t begin, std::size_t end) {
    scores.resize(end - begin);
    for (std::size_t first = begin; first < end; first += kPositions) {
      const std::size_t count = std::min(kPositions, end - first);
      float lanes[kPositions][kDotLanes] = {};
      vectors.dot(keys.type(), keys.read(first, count, unpacked), size, count, q, size, lanes[0]);
      for (std::size_t i = 0; i < count; ++i) {
        const float s = scale * sum_of_lanes(lanes[i]);
        scores[first - begin + i] =
            cap == 0 ? s : static_cast<float>(double{cap} * std::tanh(double{s} / cap));
      }
    }
  }

  // The weighted mean of the values; 0 if there is none.
  void mean(Strip values, std::size_t begin, std::size_t end, float* out) {
    std::fill_n(out, size, 0.0f);
    const float largest = vectors.largest(scores.data(), scores.size());
    if (largest == -std::numeric_limits<float>::infinity()) return;
    const double sum =
        vectors.exponentials(scores.data(), largest, 1, scores.size(), scores.data());
    for (std::size_t first = begin; first < end; first += kPositions) {
      const std::size_t count = std::min(kPositions, end - first);
      part.assign(size, 0.0f);
      vectors.add_rows(values.type(), values.read(first, count, unpacked), size, count,
                       scores.data() + (first - begin), size, part.data());
      vectors.add(out, part.data(), size, out);
    }
    vectors.scale(out, static_cast<float>(1 / sum), nullptr, size, out);
  }
};

float root_of_head(const HostVectors& vectors, const float* x, std::size_t size, float eps) {
  const double squares = vectors.squares(x, 0, size);
  return static_cast<float>(1 / std::sqrt(squares / static_cast<double>(size) + double{eps}));
}

}  // namespace

void Describe<AttentionDecode>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const HostArray q(run, k.type, o.q);
  const HostArray out(run, k.type, o.out);
  const auto* const keys = run.at<std::byte>(o.k);
  const auto* const values = run.at<std::byte>(o.v);
  const auto* const lengths = run.at<std::uint32_t>(o.lengths);
  const std::size_t size = k.head_size;
  const std::uint64_t heads = k.heads();
  const std::uint64_t strip = bytes(k.cache, std::uint64_t{k.max_seq} * size);
  const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
  run.for_parts(
      k.rows * heads, 2 * bytes(k.cache, k.positions() * size), 1,
      [&](std::uint64_t first, std::uint64_t last) {
        Attention attention{vectors, size, o.scale == 0 ? root : o.scale, k.softcap ? o.cap : 0, {},
                            {},      {}};
        std::vector<float> query(size), mean(size);
        for (std::uint64_t head = first; head < last; ++head) {
          const std::uint64_t row = head / heads;
          const std::uint64_t kv = (k.shared_cache ? 0 : row) * k.kv_heads + head % heads / k.group;
          const std::size_t end = std::min(lengths[row], k.max_seq);
          const std::size_t begin = k.window == 0 || k.window > end ? 0 : end - k.window;
          attention.score({vectors, k.cache, keys + kv * strip, size},
                          q.read(vectors, head * size, size, query.data()), begin, end);
          attention.mean({vectors, k.cache, values + kv * strip, size}, begin, end, mean.data());
          out.write(vectors, head * size, size, mean.data());
        }
      });
}

template <RopePairs kPairs>
void Describe<Rope<kPairs>>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const HostArray x(run, k.type, o.x);
  const HostArray y(run, k.type, o.y);
  const auto* const positions = run.at<std::uint32_t>(o.positions);
  const std::size_t size = k.head_size;
  run.for_parts(k.rows, 2 * k.heads * size * bytes(k.type), 1,
                [&](std::uint64_t first, std::uint64_t last) {
                  Rotation rotation(k.head_size, kInterleaved, o.theta, run.at<float>(o.factors));
                  std::vector<float> head(size);
                  for (std::uint64_t row = first; row < last; ++row) {
                    const double position =
                        k.indirect ? positions[row] : static_cast<double>(o.position + row);
                    rotation.move_to(position, k.inverse ? -1 : 1);
                    for (std::uint64_t h = row * k.heads; h < (row + 1) * k.heads; ++h) {
                      rotation.rotate(x.read(vectors, h * size, size, head.data()), head.data());
                      y.write(vectors, h * size, size, head.data());
                    }
                  }
                });
}
template void Describe<RopeInterleaved>::host(const RopeInterleaved&,
                                              const RopeInterleaved::Operands&, const HostRun&);
template void Describe<RopeNeox>::host(const RopeNeox&, const RopeNeox::Operands&, const HostRun&);

void Describe<KvCacheWrite>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const HostArray x(run, k.type, o.x);
  auto* const cache = run.at<std::byte>(o.cache);
  const auto* const positions = run.at<std::uint32_t>(o.positions);
  const std::size_t size = k.head_size;
  // Of rows with the same position the last one stays.
  run.for_parts(
      k.heads, 2 * k.rows * size * bytes(k.type), 1, [&](std::uint64_t first, std::uint64_t last) {
        std::vector<float> space(size);
        for (std::uint64_t head = first; head < last; ++head) {
          for (std::uint64_t row = 0; row < k.rows; ++row) {
            if (positions[row] >= k.max_seq) continue;
            const std::uint64_t from = (row * k.heads + head) * size;
            const std::uint64_t to = (head * k.max_seq + positions[row]) * std::uint64_t{size};
            write_cache(vectors, k.cache, {x.read(vectors, from, size, space.data()), size},
                        cache + bytes(k.cache, to));
          }
        }
      });
}

namespace {

// The steps of one launch of rope_kv_write for one row after another.
class RopeKvRows {
 public:
  RopeKvRows(const RopeKvWrite& spec, const RopeKvWrite::Operands& operands, const HostRun& run)
      : k_(spec),
        o_(operands),
        run_(run),
        vectors_(*run.vectors()),
        rotation_(spec.head_size, spec.pairs == RopePairs::Interleaved, operands.theta,
                  run.at<float>(operands.factors)),
        head_(spec.head_size) {}

  void row(std::uint64_t row) {
    const std::uint32_t position = run_.at<std::uint32_t>(o_.positions)[row];
    rotation_.move_to(position, 1);
    const HostArray out(run_, k_.type, o_.out);
    for (std::uint64_t head = row * k_.heads; head < (row + 1) * k_.heads; ++head) {
      rotate({run_, k_.type, o_.q}, head, o_.q_weight);
      out.write(vectors_, head * size(), size(), head_.data());
    }
    if (position >= k_.max_seq) return;
    for (std::uint64_t index = 0; index < k_.kv_heads; ++index) {
      const std::uint64_t head = row * k_.kv_heads + index;
      const std::uint64_t strip = k_.shared_cache ? index : head;
      const std::uint64_t to = bytes(k_.cache, (strip * k_.max_seq + position) * size());
      rotate({run_, k_.type, o_.k}, head, o_.k_weight);
      write_cache(vectors_, k_.cache, head_, run_.at<std::byte>(o_.k_cache) + to);
      const HostArray v(run_, k_.type, o_.v);
      vectors_.to_f32(k_.type, v.at(head * size()), size(), head_.data());
      write_cache(vectors_, k_.cache, head_, run_.at<std::byte>(o_.v_cache) + to);
    }
  }

 private:
  [[nodiscard]] std::size_t size() const { return k_.head_size; }
  // A head of q or k through its steps, each rounded to the type.
  void rotate(const HostArray& x, std::uint64_t head, const DeviceRange& weight) {
    vectors_.to_f32(k_.type, x.at(head * size()), size(), head_.data());
    if (k_.qk_norm) {
      const float root = root_of_head(vectors_, head_.data(), size(), o_.eps);
      vectors_.scale(head_.data(), root, run_.at<float>(weight), size(), head_.data());
      round_to(vectors_, k_.type, rounded_, size(), head_.data());
    }
    rotation_.rotate(head_.data(), head_.data());
    round_to(vectors_, k_.type, rounded_, size(), head_.data());
  }

  const RopeKvWrite& k_;
  const RopeKvWrite::Operands& o_;
  const HostRun& run_;
  const HostVectors& vectors_;
  Rotation rotation_;
  std::vector<float> head_;
  std::vector<std::uint16_t> rounded_;
};

}  // namespace

// In one thread: rows of one sequence may have the same position.
void Describe<RopeKvWrite>::host(const K& k, const O& o, const HostRun& run) {
  RopeKvRows rows(k, o, run);
  for (std::uint64_t row = 0; row < k.rows; ++row) rows.row(row);
}

void Describe<Embedding>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const auto* const ids = run.at<std::uint32_t>(o.ids);
  const auto* const table = run.at<std::byte>(o.table);
  const HostArray y(run, k.y, o.y);
  const std::size_t columns = k.columns;
  rows_on_host(run, k.rows, bytes(k.table, columns) + bytes(k.y, columns), columns,
               [&](std::uint64_t row, float* space) {
                 const std::uint64_t id = ids[row];
                 if (id < k.vocabulary) {
                   const std::byte* const from = table + bytes(k.table, id * columns);
                   if (is_block_format(k.table)) {
                     vectors.dequantize(k.table, from, columns, space);
                   } else {
                     vectors.to_f32(k.table, from, columns, space);
                   }
                   vectors.scale(space, o.scale, nullptr, columns, space);
                 } else {
                   std::fill_n(space, columns, kNan);
                 }
                 y.write(vectors, row * columns, columns, space);
               });
}

void Describe<Argmax>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const HostArray x(run, k.type, o.x);
  auto* const indices = run.at<std::uint32_t>(o.index);
  rows_on_host(run, k.rows, bytes(k.type, k.columns), kHostPiece,
               [&](std::uint64_t row, float* space) {
                 std::uint32_t best = 0;
                 float largest = kNan;
                 for (std::uint32_t i = 0; i < k.columns; i += kHostPiece) {
                   const std::size_t size = std::min<std::size_t>(kHostPiece, k.columns - i);
                   const float* const piece = x.read(vectors, row * k.columns + i, size, space);
                   for (std::uint32_t j = 0; j < size; ++j) {
                     // The first number replaces NaN.
                     if (piece[j] > largest || (std::isnan(largest) && !std::isnan(piece[j]))) {
                       largest = piece[j];
                       best = i + j;
                     }
                   }
                 }
                 indices[row] = best;
               });
}

}  // namespace ptxgen::inline v0
