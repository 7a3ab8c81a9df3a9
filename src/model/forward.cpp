// src/model/forward.cpp - the kernels of a decoder, in order
#include "model/forward.hpp"

#include "model/emulator_plans.hpp"

#include "ptxgen/kernels/attention/decode.hpp"
#include "ptxgen/kernels/attention/flash_predict.hpp"
#include "ptxgen/kernels/attention/rope_kv_write.hpp"
#include "ptxgen/kernels/elementwise/bias_activation.hpp"
#include "ptxgen/kernels/elementwise/elementwise_mul.hpp"
#include "ptxgen/kernels/elementwise/gelu.hpp"
#include "ptxgen/kernels/elementwise/narrow.hpp"
#include "ptxgen/kernels/elementwise/swiglu.hpp"
#include "ptxgen/kernels/gemm/gemm.hpp"
#include "ptxgen/kernels/gemv/batched.hpp"
#include "ptxgen/kernels/gemv/group.hpp"
#include "ptxgen/kernels/normalization/fused_residual_rmsnorm.hpp"
#include "ptxgen/kernels/normalization/rmsnorm.hpp"
#include "ptxgen/kernels/tokens/argmax.hpp"
#include "ptxgen/kernels/tokens/embedding.hpp"

namespace ptxgen::inline v0::model {

namespace {

DeviceRange part(DeviceRange of, std::uint64_t first, std::uint64_t bytes) {
  return {of.address + first, bytes, of.type};
}

GemvProblem problem_of(const Matrix& w) {
  return {.k = w.k, .n = w.n, .layout = GemvLayout::R, .weights = w.type, .repacked = w.repacked};
}
BatchedGemv batched(const Matrix& w, std::uint32_t rows) {
  BatchedGemv kernel{w.k, w.n, rows, w.type};
  kernel.repacked = w.repacked;
  return kernel;
}

class Pass {
 public:
  Pass(Emitter& emit, const ForwardShape& shape, const ForwardRows& rows)
      : emit_(emit),
        work_(shape.work),
        options_(shape.options),
        cache_(shape.cache),
        config_(shape.config),
        weights_(shape.weights),
        gpu_(shape.gpu),
        emulated_(shape.emulated),
        rows_(rows) {}

  void run() {
    embed();
    for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
      attention(layer);
      feed_forward(layer);
    }
    if (rows_.head) head();
  }

 private:
  [[nodiscard]] bool single() const { return rows_.batch == 1; }
  [[nodiscard]] static Tap tap(std::uint32_t layer, std::string_view name, const Buffer<f32>& of,
                               std::uint32_t rows, std::uint32_t columns) {
    return {layer, name, &of, 0, rows, columns};
  }
  [[nodiscard]] Tap tap(std::uint32_t layer, std::string_view name, const Buffer<f32>& of,
                        std::uint32_t columns) const {
    return tap(layer, name, of, rows_.rows, columns);
  }

  void embed();
  void attention(std::uint32_t layer);
  void project(std::uint32_t layer);
  void rotate_and_store(std::uint32_t layer);
  void attend(std::uint32_t layer);
  void attend_together(std::uint32_t layer);
  void feed_forward(std::uint32_t layer);
  void gate(std::uint32_t layer);
  void add_and_norm(std::uint32_t layer, std::string_view name, DeviceRange weight, Tap sum,
                    Tap norm);
  void head();

  // y = W x for every row.
  void multiply(const Step& step, const Matrix& w, const Buffer<f32>& x, const Buffer<f32>& y,
                std::initializer_list<Tap> taps = {});
  // y = W x for one row.
  void multiply_row(const Step& step, const Matrix& w, DeviceSpan<f32> x, DeviceSpan<f32> y,
                    std::initializer_list<Tap> taps);
  void multiply_rows(const Step& step, const Matrix& w, const Buffer<f32>& x, const Buffer<f32>& y,
                     DeviceRange bias, std::initializer_list<Tap> taps);
  [[nodiscard]] bool on_tensor_cores() const {
    return rows_.gemm && options_.prefill_type != ElementType::f32;
  }
  // The input `which` of products on tensor cores; of others nothing.
  void narrow(std::uint32_t layer, std::uint32_t which, const Buffer<f32>& x,
              std::uint32_t columns);
  void suit_emulator(GemvGroup& group) const;
  void normalise(const Step& step, const Buffer<f32>& x, const Buffer<f32>& y, DeviceRange weight,
                 std::initializer_list<Tap> taps = {});
  [[nodiscard]] DeviceRange cache_part(const Buffer<b8>& cache, std::uint32_t sequence) const;

  Emitter& emit_;
  const Activations& work_;
  const SessionOptions& options_;
  std::span<const LayerCache> cache_;
  const ModelConfig& config_;
  const Weights& weights_;
  const ptx::Gpu& gpu_;
  const ptx::Target* emulated_;
  const ForwardRows& rows_;
};

void Pass::suit_emulator(GemvGroup& group) const {
  if (emulated_ == nullptr) return;
  group.lane_rows = group.repacked ? 0 : lane_rows(group, *emulated_);
  if (group.lane_rows == 0 && group.n1 != 0) group.warp_rows = max_warp_rows(group, *emulated_);
}

void Pass::multiply_row(const Step& step, const Matrix& w, DeviceSpan<f32> x, DeviceSpan<f32> y,
                        std::initializer_list<Tap> taps) {
  GemvGroup group{.k = w.k, .n0 = w.n, .n1 = 0, .n2 = 0};
  group.w0 = w.type;
  group.repacked = w.repacked;
  suit_emulator(group);
  if (group.lane_rows != 0) {
    GemvGroup::Operands operands{.y0 = y};
    operands.w0 = w.memory;
    operands.x = x;
    return emit_(step, group, operands, taps);
  }
  emit_(step, problem_of(w), {.y = y, .a = w.memory, .x = x, .constant_weights = true}, taps);
}

void Pass::narrow(std::uint32_t layer, std::uint32_t which, const Buffer<f32>& x,
                  std::uint32_t columns) {
  if (!on_tensor_cores()) return;
  const std::uint64_t word = std::uint64_t{layer} * kNarrowInputs + which;
  emit_(
      {layer, "narrow", {}}, Narrow{.n = rows_.rows * columns, .type = options_.prefill_type},
      {.out = work_.narrow, .in = x, .overflow = DeviceSpan<u32>(work_.overflow).subspan(word, 1)});
}

// By the GEMM that the planner chooses. On tensor cores the input is the last narrowed one.
void Pass::multiply_rows(const Step& step, const Matrix& w, const Buffer<f32>& x,
                         const Buffer<f32>& y, DeviceRange bias, std::initializer_list<Tap> taps) {
  GemmProblem problem{.m = rows_.rows, .n = w.n, .k = w.k};
  problem.type = on_tensor_cores() ? options_.prefill_type : ElementType::f32;
  problem.b = w.type;
  problem.transpose_b = true;
  problem.bias = bias.address != 0;
  GemmOperands operands{.c = y, .a = x, .b = w.memory, .bias = bias};
  if (on_tensor_cores()) operands.a = work_.narrow;
  const std::optional<GemmKernel> suited =
      emulated_ == nullptr ? std::nullopt : emulator_gemm(problem, *emulated_);
  if (!suited) return emit_(step, problem, operands, taps);
  std::visit([&](const auto& kernel) { emit_(step, kernel, operands, taps); }, *suited);
}

void Pass::multiply(const Step& step, const Matrix& w, const Buffer<f32>& x, const Buffer<f32>& y,
                    std::initializer_list<Tap> taps) {
  if (single()) {
    multiply_row(step, w, x, y, taps);
  } else if (rows_.gemm) {
    multiply_rows(step, w, x, y, {}, taps);
  } else {
    emit_(step, batched(w, rows_.batch), {.y = y, .w = w.memory, .x = x, .m_dim = rows_.rows},
          taps);
  }
}

void Pass::normalise(const Step& step, const Buffer<f32>& x, const Buffer<f32>& y,
                     DeviceRange weight, std::initializer_list<Tap> taps) {
  emit_(step, RmsNorm{.rows = rows_.rows, .columns = config_.width, .precise = true},
        {.y = y, .x = x, .weight = weight, .eps = config_.eps}, taps);
}

void Pass::embed() {
  const Matrix& table = weights_.embedding;
  emit_({kNoLayer, "embedding", {}},
        Embedding{rows_.rows, config_.width, config_.vocabulary, table.type, ElementType::f32},
        {.y = work_.h, .table = table.memory, .ids = rows_.ids, .scale = config_.embedding_scale},
        {tap(kNoLayer, "embedding", work_.h, config_.width)});
  normalise({0, "attn_norm", {}}, work_.h, work_.norm, weights_.layers[0].attn_norm,
            {tap(0, "attn_norm", work_.norm, config_.width)});
}

void Pass::project(std::uint32_t layer) {
  const LayerWeights& w = weights_.layers[layer];
  const Tap taps[] = {tap(layer, "q", work_.q, config_.q_width()),
                      tap(layer, "k", work_.k, config_.kv_width()),
                      tap(layer, "v", work_.v, config_.kv_width())};
  if (single()) {
    GemvGroup group{.k = w.q.k, .n0 = w.q.n, .n1 = w.k.n, .n2 = w.v.n};
    group.w0 = w.q.type;
    group.w1 = w.k.type;
    group.w2 = w.v.type;
    group.bias = config_.qkv_bias;
    group.repacked = w.q.repacked || w.k.repacked || w.v.repacked;
    suit_emulator(group);
    emit_({layer, "qkv", {}}, group,
          {.y0 = work_.q,
           .y1 = work_.k,
           .y2 = work_.v,
           .w0 = w.q.memory,
           .w1 = w.k.memory,
           .w2 = w.v.memory,
           .bias0 = w.q_bias,
           .bias1 = w.k_bias,
           .bias2 = w.v_bias,
           .x = work_.norm},
          {taps[0], taps[1], taps[2]});
    return;
  }
  narrow(layer, 0, work_.norm, config_.width);
  const auto one = [&](std::string_view name, const Matrix& matrix, DeviceRange bias,
                       const Buffer<f32>& y, const Tap& result) {
    if (rows_.gemm) {
      return multiply_rows({layer, name, {}}, matrix, work_.norm, y, bias, {result});
    }
    if (!config_.qkv_bias) return multiply({layer, name, {}}, matrix, work_.norm, y, {result});
    multiply({layer, name, {}}, matrix, work_.norm, y);
    emit_(
        {layer, "bias", {}},
        BiasActivation{rows_.rows * matrix.n, matrix.n, ElementType::f32, ptxgen::Activation::None},
        {.out = y, .bias = bias}, {result});
  };
  one("q", w.q, w.q_bias, work_.q, taps[0]);
  one("k", w.k, w.k_bias, work_.k, taps[1]);
  one("v", w.v, w.v_bias, work_.v, taps[2]);
}

DeviceRange Pass::cache_part(const Buffer<b8>& cache, std::uint32_t sequence) const {
  const std::uint64_t bytes = cache.bytes() / options_.sequences;
  return part({cache.address().value, cache.bytes()}, sequence * bytes, bytes);
}

void Pass::rotate_and_store(std::uint32_t layer) {
  const LayerWeights& w = weights_.layers[layer];
  const bool global = config_.is_global(layer);
  const DeviceRange factors = global ? weights_.factors : weights_.local_factors;
  const bool one = rows_.one_sequence;
  RopeKvWrite kernel{.rows = rows_.rows,
                     .heads = config_.heads,
                     .kv_heads = config_.kv_heads,
                     .head_size = config_.head_size,
                     .max_seq = options_.context,
                     .cache = options_.cache,
                     .pairs = config_.rope_pairs,
                     .qk_norm = config_.head_norms,
                     .factors = factors.address != 0,
                     .shared_cache = one,
                     .precise = true};
  const LayerCache& cache = cache_[layer];
  emit_({layer, "rope_kv", {}}, kernel,
        {.out = work_.q_rope,
         .k_cache = one ? cache_part(cache.k, rows_.sequence) : DeviceRange(cache.k),
         .v_cache = one ? cache_part(cache.v, rows_.sequence) : DeviceRange(cache.v),
         .q = work_.q,
         .k = work_.k,
         .v = work_.v,
         .positions = rows_.positions,
         .theta = global ? config_.rope_base : config_.rope_base_local,
         .factors = factors,
         .q_weight = w.q_norm,
         .k_weight = w.k_norm,
         .eps = config_.head_norms ? config_.eps : 0},
        {tap(layer, "q_rope", work_.q_rope, config_.q_width())});
}

// A block loads a tile of keys and values once for many queries. On tensor cores q is rounded to
// the type of the cache, so that has to be the type of the products.
void Pass::attend_together(std::uint32_t layer) {
  const FlashProblem problem{.kv_heads = config_.kv_heads,
                             .group = config_.heads / config_.kv_heads,
                             .head_size = config_.head_size,
                             .queries = rows_.rows,
                             .keys = rows_.first + rows_.rows,
                             .max_seq = options_.context,
                             .cache = options_.cache,
                             .window = config_.is_global(layer) ? 0 : config_.window,
                             .tokens_first = true};
  const LayerCache& cache = cache_[layer];
  const FlashOperands operands{.out = work_.attention,
                               .q = work_.q_rope,
                               .k = cache_part(cache.k, rows_.sequence),
                               .v = cache_part(cache.v, rows_.sequence),
                               .scale = config_.attention_scale};
  const Step step{layer, "attention", {}};
  const Tap result = tap(layer, "attn", work_.attention, config_.q_width());
  if (!on_tensor_cores() || options_.cache != options_.prefill_type) {
    const FlashAttention kernel =
        emulated_ != nullptr ? emulator_flash(problem, *emulated_) : FlashAttention{problem};
    return emit_(step, kernel, operands, {result});
  }
  // Only to see whether the type has it: an infinity could end as weights of 0.
  narrow(layer, 1, work_.q_rope, config_.q_width());
  if (emulated_ != nullptr) {
    return emit_(step, FlashAttentionTensorCore{problem}, operands, {result});
  }
  std::visit([&](const auto& kernel) { emit_(step, kernel, operands, {result}); },
             plan_flash(problem, gpu_));
}

void Pass::attend(std::uint32_t layer) {
  if (rows_.flash) return attend_together(layer);
  const LayerCache& cache = cache_[layer];
  AttentionDecode attention{.rows = 1,
                            .kv_heads = config_.kv_heads,
                            .group = config_.heads / config_.kv_heads,
                            .head_size = config_.head_size,
                            .max_seq = options_.context,
                            .cache = options_.cache,
                            .window = config_.is_global(layer) ? 0 : config_.window,
                            .shared_cache = rows_.one_sequence};
  // Of one row, whatever the rows: the bits of a result depend on it.
  attention.chunk = attention.chunk_positions();
  attention.rows = rows_.rows;
  const bool one = rows_.one_sequence;
  emit_({layer, "attention", {}}, attention,
        {.out = work_.attention,
         .q = work_.q_rope,
         .k = one ? cache_part(cache.k, rows_.sequence) : DeviceRange(cache.k),
         .v = one ? cache_part(cache.v, rows_.sequence) : DeviceRange(cache.v),
         .lengths = rows_.lengths,
         .scale = config_.attention_scale},
        {tap(layer, "attn", work_.attention, config_.q_width())});
}

// h += product, with the norm of `post`, and the norm of the sum.
void Pass::add_and_norm(std::uint32_t layer, std::string_view name, DeviceRange weight, Tap sum,
                        Tap norm) {
  emit_({layer, name, {}},
        FusedResidualRmsNorm{
            .rows = rows_.rows, .columns = config_.width, .write_sum = true, .precise = true},
        {.y = work_.norm,
         .sum = work_.h,
         .x = work_.product,
         .residual = work_.h,
         .weight = weight,
         .eps = config_.eps},
        {sum, norm});
}

void Pass::attention(std::uint32_t layer) {
  const LayerWeights& w = weights_.layers[layer];
  project(layer);
  rotate_and_store(layer);
  attend(layer);
  narrow(layer, 2, work_.attention, config_.q_width());
  multiply({layer, "attn_output", {}}, w.o, work_.attention, work_.product);
  if (config_.post_norms) {
    normalise({layer, "post_attention_norm", {}}, work_.product, work_.product,
              w.post_attention_norm);
  }
  add_and_norm(layer, "ffn_norm", w.ffn_norm, tap(layer, "attn_out", work_.h, config_.width),
               tap(layer, "ffn_norm", work_.norm, config_.width));
}

void Pass::gate(std::uint32_t layer) {
  const LayerWeights& w = weights_.layers[layer];
  const Tap result = tap(layer, "ffn_gate", work_.gate, config_.ffn);
  const bool silu = config_.activation == FfnActivation::Silu;
  if (single()) {
    GemvGroup group{.k = w.gate.k, .n0 = w.gate.n, .n1 = w.up.n, .n2 = 0};
    group.w0 = w.gate.type;
    group.w1 = w.up.type;
    group.repacked = w.gate.repacked || w.up.repacked;
    // tanh.approx has 11 bits.
    group.gate = silu ? GemvGate::Silu : GemvGate::GeluPrecise;
    suit_emulator(group);
    GemvGroup::Operands operands{.y0 = work_.gate};
    operands.w0 = w.gate.memory;
    operands.w1 = w.up.memory;
    operands.x = work_.norm;
    return emit_({layer, "ffn_gate_up", {}}, group, operands, {result});
  }
  narrow(layer, 3, work_.norm, config_.width);
  multiply({layer, "ffn_gate", {}}, w.gate, work_.norm, work_.gate);
  multiply({layer, "ffn_up", {}}, w.up, work_.norm, work_.up);
  if (silu) {
    return emit_({layer, "silu", {}}, BatchedSwiglu{rows_.rows, config_.ffn},
                 {.out = work_.gate, .gate = work_.gate, .up = work_.up}, {result});
  }
  const std::uint32_t values = rows_.rows * config_.ffn;
  emit_({layer, "gelu", {}}, GeluTanh{.n = values, .precise = true},
        {.out = work_.gate, .in = work_.gate});
  emit_({layer, "gate", {}}, ElementwiseMul{.n = values},
        {.out = work_.gate, .a = work_.gate, .b = work_.up}, {result});
}

void Pass::feed_forward(std::uint32_t layer) {
  const LayerWeights& w = weights_.layers[layer];
  gate(layer);
  narrow(layer, 4, work_.gate, config_.ffn);
  multiply({layer, "ffn_down", {}}, w.down, work_.gate, work_.product);
  if (config_.post_norms) {
    normalise({layer, "post_ffw_norm", {}}, work_.product, work_.product, w.post_ffw_norm);
  }
  const Tap sum = tap(layer, "ffn_out", work_.h, config_.width);
  if (layer + 1 < config_.layers) {
    add_and_norm(layer + 1, "attn_norm", weights_.layers[layer + 1].attn_norm, sum,
                 tap(layer + 1, "attn_norm", work_.norm, config_.width));
  } else {
    add_and_norm(kNoLayer, "output_norm", weights_.output_norm, sum,
                 tap(kNoLayer, "output_norm", work_.norm, config_.width));
  }
}

void Pass::head() {
  const Matrix& w = weights_.output;
  const std::uint32_t rows = rows_.one_sequence ? 1 : rows_.rows;
  const std::uint32_t first = rows_.one_sequence ? rows_.sequence : 0;
  const std::uint64_t at = std::uint64_t{first} * w.n;
  const auto logits = DeviceSpan<f32>(work_.logits).subspan(at, std::uint64_t{rows} * w.n);
  const Tap result{kNoLayer, "logits", &work_.logits, at, rows, w.n};
  if (rows == 1) {
    const DeviceSpan<f32> x =
        DeviceSpan<f32>(work_.norm).subspan(std::uint64_t{rows_.rows - 1} * w.k, w.k);
    multiply_row({kNoLayer, "output", {}}, w, x, logits, {result});
  } else {
    emit_({kNoLayer, "output", {}}, batched(w, rows_.batch),
          {.y = logits, .w = w.memory, .x = work_.norm, .m_dim = rows}, {result});
  }
  emit_({kNoLayer, "greedy", {}}, Argmax{rows, w.n},
        {.index = DeviceSpan<u32>(work_.greedy).subspan(first, rows), .x = logits});
}

}  // namespace

void forward(Emitter& emit, const ForwardShape& shape, const ForwardRows& rows) {
  Pass(emit, shape, rows).run();
}

void head_rows(Emitter& emit, const ForwardShape& shape, std::uint32_t first, std::uint32_t rows,
               DeviceSpan<f32> logits) {
  const Matrix& w = shape.weights.output;
  const DeviceSpan<f32> x =
      DeviceSpan<f32>(shape.work.norm)
          .subspan(std::uint64_t{first} * w.k, std::uint64_t{kHeadRows} * w.k);
  emit({kNoLayer, "output", {}}, batched(w, kHeadRows),
       {.y = logits, .w = w.memory, .x = x, .m_dim = rows});
}

}  // namespace ptxgen::inline v0::model
