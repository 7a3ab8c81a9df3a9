// src/model/session_state.hpp - what a session holds, and its steps
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/forward.hpp"
#include "model/model_state.hpp"
#include "ptxgen/model/session.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

struct PlannedStep {
  LaunchPlan plan;
  std::vector<Tap> taps;
};

struct Session::State {
  State(const Model& model, SessionOptions wanted);

  const Model* owner;
  const Model::State* model;
  SessionOptions options;
  Stream stream;
  Activations work;
  std::vector<LayerCache> cache;
  Buffer<u32> prefill_control;           // ids, positions, lengths of `prefill_rows` rows
  Buffer<u32> decode_control;            // the same of each sequence
  Buffer<f32> row_logits;                // of `prefill_all`, made by its first call
  std::vector<std::uint32_t> positions;  // of each sequence: its tokens
  std::vector<bool> computed;            // whether a sequence's logits are on the device
  std::vector<bool> copied;              // and on the host
  std::vector<std::uint32_t> control;    // host side of the copies
  std::vector<std::uint32_t> overflow;   // of the chunk: of each narrowed input
  std::vector<std::uint32_t> greedy;
  std::vector<float> logits;
  bool gemm;   // whether chunks of a prompt are multiplied by GEMM kernels
  bool flash;  // whether they have attention by a kernel of many queries
  std::vector<PlannedStep> plans;
  std::vector<Step> steps;
  std::optional<Graph> graph;
  LayerObserver observer;

  [[nodiscard]] ForwardShape shape() const {
    const ptx::Target& target = owner->context().device().target();
    return {model->config,
            model->weights,
            work,
            cache,
            options,
            model->gpu,
            model->emulated_plans ? &target : nullptr};
  }
  [[nodiscard]] std::uint64_t device_bytes() const;
  [[nodiscard]] std::uint64_t cache_bytes() const;  // of k or v of a sequence and a layer

  void plan_decode();
  void capture();

  // Throw as `Session`.
  [[noreturn]] void refuse(std::string_view code, std::string message) const;
  void check_sequence(std::uint32_t sequence) const;
  void check_computed(std::uint32_t sequence) const;
  void check_tokens(std::span<const std::uint32_t> tokens) const;
  void check_context(std::uint32_t sequence, std::size_t tokens) const;

  void decode(std::span<const std::uint32_t> tokens);
  void prefill(std::span<const std::uint32_t> tokens, std::uint32_t sequence,
               std::vector<float>* all);
  void run_plans(std::uint32_t position);
  void prefill_chunk(std::span<const std::uint32_t> tokens, std::uint32_t sequence,
                     std::uint32_t position, bool head);
  void check_overflow(std::uint32_t position, std::uint32_t count) const;
  void read_rows(std::uint32_t rows, std::vector<float>& all);
  void show(std::span<const Tap> taps, std::uint32_t position);
  void forget_logits(std::uint32_t sequence);
  template <class F>
  void waited(const F& work_of);

  // saved_session.cpp
  [[nodiscard]] std::vector<std::byte> save();
  void restore(std::span<const std::byte> saved);
  [[nodiscard]] std::vector<std::uint32_t> check_saved(std::span<const std::byte> saved) const;
  template <class F>
  void each_part(std::span<const std::uint32_t> tokens, const F& f);
};

// Nothing of a failed call is left in the stream, so its host memory can be used again.
template <class F>
void Session::State::waited(const F& work_of) {
  try {
    work_of();
    stream.synchronize();
  } catch (...) {
    try {
      stream.synchronize();
    } catch (const Error&) {
      // The first cause is thrown.
    }
    throw;
  }
}

}  // namespace ptxgen::inline v0::model
