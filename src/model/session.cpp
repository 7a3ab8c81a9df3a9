// src/model/session.cpp - the interface of a session
#include "ptxgen/model/session.hpp"

#include "model/format.hpp"
#include "model/session_state.hpp"

namespace ptxgen::inline v0::model {

Session::Session(const Model& model, SessionOptions options)
    : state_(Hidden<State>::make(model, options)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const Model& Session::model() const noexcept { return *state_->owner; }
const SessionOptions& Session::options() const noexcept { return state_->options; }
std::span<const Step> Session::steps() const noexcept { return state_->steps; }
std::uint64_t Session::device_bytes() const noexcept { return state_->device_bytes(); }
const Stream& Session::stream() const noexcept { return state_->stream; }

void Session::prefill(std::span<const std::uint32_t> tokens, std::uint32_t sequence) {
  state_->prefill(tokens, sequence, nullptr);
}

std::vector<float> Session::prefill_all(std::span<const std::uint32_t> tokens,
                                        std::uint32_t sequence) {
  std::vector<float> all;
  state_->prefill(tokens, sequence, &all);
  return all;
}

void Session::decode(std::uint32_t token) { state_->decode({&token, 1}); }
void Session::decode(std::span<const std::uint32_t> tokens) { state_->decode(tokens); }

std::span<const float> Session::logits(std::uint32_t sequence) {
  State& state = *state_;
  state.check_computed(sequence);
  const std::size_t vocabulary = state.model->config.vocabulary;
  const std::span<float> row = std::span(state.logits).subspan(sequence * vocabulary, vocabulary);
  if (!state.copied[sequence]) {
    state.waited([&] { state.work.logits.read_part(sequence * vocabulary, row, &state.stream); });
    state.copied[sequence] = true;
  }
  return row;
}

std::uint32_t Session::greedy(std::uint32_t sequence) const {
  state_->check_computed(sequence);
  return state_->greedy[sequence];
}

std::uint32_t Session::position(std::uint32_t sequence) const {
  state_->check_sequence(sequence);
  return state_->positions[sequence];
}

void Session::truncate(std::uint32_t position, std::uint32_t sequence) {
  State& state = *state_;
  state.check_sequence(sequence);
  if (position > state.positions[sequence]) {
    state.refuse("arguments", format_text("position is {}; sequence {} has {} tokens", position,
                                          sequence, state.positions[sequence]));
  }
  if (position == state.positions[sequence]) return;
  state.positions[sequence] = position;
  state.forget_logits(sequence);
}

void Session::clear() {
  for (std::uint32_t i = 0; i < state_->options.sequences; ++i) truncate(0, i);
}

void Session::observe(LayerObserver observer) { state_->observer = observer; }

}  // namespace ptxgen::inline v0::model
