// src/model/forward.hpp - the kernels of a decoder, in order
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "model/weights.hpp"
#include "ptxgen/model/session.hpp"
#include "ptxgen/runtime/device/stream.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace ptxgen::inline v0::model {

/// Memory of a session that kernels work in: [rows][columns] each.
struct Activations {
  Buffer<f32> h, norm, q, k, v, q_rope, attention, product, gate, up;
  Buffer<b8> narrow;     ///< the input of products on tensor cores, in `prefill_type`
  Buffer<u32> overflow;  ///< [layers][kNarrowInputs]: not 0 where an input was not finite in it
  Buffer<f32> logits;    ///< a row for each sequence
  Buffer<u32> greedy;    ///< a token for each sequence
};

/// Inputs of products of a layer, as a tap names them.
inline constexpr std::string_view kNarrowNames[] = {"attn_norm", "q_rope", "attn", "ffn_norm",
                                                    "ffn_gate"};
inline constexpr std::uint32_t kNarrowInputs = 5;

/// Keys and values of a layer, [sequence][kv_head][position][head_size].
struct LayerCache {
  Buffer<b8> k, v;
};

/// A launch's result that an observer sees after it.
struct Tap {
  std::uint32_t layer = kNoLayer;
  std::string_view name;
  const Buffer<f32>* memory = nullptr;
  std::uint64_t first = 0;  ///< element of `memory`: [rows][columns] from there
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

/// Receives the launches of a forward pass: makes plans of them, launches or describes them.
class Emitter {
 public:
  /// Only describes.
  Emitter() = default;
  Emitter(const Launcher& launcher, const Stream& stream)
      : launcher_(&launcher), stream_(&stream) {}
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;
  virtual ~Emitter() = default;

  template <class K>
  void operator()(const Step& step, const K& kernel, const typename K::Operands& operands,
                  std::initializer_list<Tap> taps = {}) {
    if (launcher_ == nullptr) {
      described(step, kDescription<K>, &kernel);
    } else if (plans()) {
      planned(step, launcher_->plan(kernel, operands, *stream_), {taps.begin(), taps.size()});
    } else {
      launcher_->launch(kernel, operands, *stream_);
      launched({taps.begin(), taps.size()});
    }
  }

 private:
  [[nodiscard]] virtual bool plans() const { return false; }
  virtual void planned(const Step&, LaunchPlan, std::span<const Tap>) {}
  virtual void launched(std::span<const Tap>) {}
  /// `spec` is a value of the kernel's type.
  virtual void described(const Step&, const KernelDescription&, const void* /*spec*/) {}

  const Launcher* launcher_ = nullptr;
  const Stream* stream_ = nullptr;
};

/// The rows of a forward pass.
struct ForwardRows {
  std::uint32_t rows = 1;
  /// Rows are tokens of one sequence, else one token of each sequence.
  bool one_sequence = true;
  std::uint32_t sequence = 0;  ///< with `one_sequence`
  std::uint32_t first = 0;     ///< position of the first row, with `flash`
  std::uint32_t batch = 1;     ///< the m of batched kernels, at least `rows`; 1: single-row kernels
  /// Of one sequence: products by GEMM kernels, in `SessionOptions::prefill_type`.
  bool gemm = false;
  /// Of one sequence: attention of all rows by a kernel of many queries.
  bool flash = false;
  DeviceSpan<u32> ids{}, positions{}, lengths{};
  /// Logits and greedy token of the last row of a sequence, or of each sequence.
  bool head = true;
};

struct ForwardShape {
  const ModelConfig& config;
  const Weights& weights;
  const Activations& work;
  std::span<const LayerCache> cache;
  const SessionOptions& options;
  const ptx::Gpu& gpu;                    ///< what kernels are chosen for
  const ptx::Target* emulated = nullptr;  ///< of an emulated device, if kernels are to suit it
};

/// Emits embedding, layers, the norm of the output and the head.
void forward(Emitter& emit, const ForwardShape& shape, const ForwardRows& rows);

/// Rows of logits computed together for `prefill_all`.
inline constexpr std::uint32_t kHeadRows = 8;
/// Emits the product of the output matrix and rows of `norm` from `first` on.
void head_rows(Emitter& emit, const ForwardShape& shape, std::uint32_t first, std::uint32_t rows,
               DeviceSpan<f32> logits);

}  // namespace ptxgen::inline v0::model
