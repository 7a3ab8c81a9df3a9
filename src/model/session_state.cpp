// src/model/session_state.cpp - prefill and decode
#include "model/session_state.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "model/format.hpp"
#include "ptxgen/kernels/attention/flash_problem.hpp"
#include "ptxgen/kernels/gemv/batched.hpp"

namespace ptxgen::inline v0::model {

namespace {

class PlanEmitter final : public Emitter {
 public:
  PlanEmitter(const Launcher& launcher, const Stream& stream, std::vector<PlannedStep>& plans,
              std::vector<Step>& steps)
      : Emitter(launcher, stream), plans_(plans), steps_(steps) {}

 private:
  [[nodiscard]] bool plans() const override { return true; }
  void planned(const Step& step, LaunchPlan plan, std::span<const Tap> taps) override {
    steps_.push_back({step.layer, step.name, plan.record().kernel});
    plans_.push_back({std::move(plan), {taps.begin(), taps.end()}});
  }
  void launched(std::span<const Tap>) override {}

  std::vector<PlannedStep>& plans_;
  std::vector<Step>& steps_;
};

class LaunchEmitter final : public Emitter {
 public:
  using Show = std::function<void(std::span<const Tap>)>;
  LaunchEmitter(const Launcher& launcher, const Stream& stream, Show show)
      : Emitter(launcher, stream), show_(std::move(show)) {}

 private:
  [[nodiscard]] bool plans() const override { return false; }
  void planned(const Step&, LaunchPlan, std::span<const Tap>) override {}
  void launched(std::span<const Tap> taps) override { show_(taps); }

  Show show_;
};

constexpr std::uint32_t kMaxRows = BatchedGemv::kMaxRows;

[[noreturn]] void bad_option(std::string message) {
  throw Error(Stage::Launch, "bad-option", std::move(message));
}

void check_prefill_type(ElementType type) {
  if (type <= ElementType::bf16) return;
  bad_option(format_text("prefill_type is {}; expects f32, f16 or bf16", to_string(type)));
}

// Of the matrices of the layers, which GEMM kernels multiply as they are stored.
const Matrix* find_repacked(const Weights& weights) {
  for (const LayerWeights& layer : weights.layers) {
    for (const Matrix* one :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      if (one->repacked) return one;
    }
  }
  return nullptr;
}

// Whether chunks of a prompt go to GEMM kernels: the host has better loops of its own, repacked
// rows only GEMVs. Throws if tensor cores were asked for.
bool has_gemm(const Context& context, const Weights& weights, ElementType prefill_type) {
  const bool host = context.device().info().kind == DeviceKind::Host;
  const Matrix* repacked = find_repacked(weights);
  if (prefill_type == ElementType::f32) return !host && repacked == nullptr;
  if (host) {
    bad_option(format_text("prefill_type is {}, which the host does not multiply; expects f32",
                           to_string(prefill_type)));
  }
  if (repacked != nullptr) {
    bad_option(
        format_text("prefill_type is {}, but matrices of {} are repacked; load the model "
                    "without ModelOptions::repack, or take f32",
                    to_string(prefill_type), to_string(repacked->type)));
  }
  return true;
}

// Whether a kernel of many queries has the model's attention; the host has loops of its own.
bool has_flash(const Context& context, const ModelConfig& config) {
  return context.device().info().kind != DeviceKind::Host &&
         config.heads / config.kv_heads <= kMaxFlashGroup;
}

SessionOptions checked(const Model& model, SessionOptions options) {
  const ModelConfig& config = model.config();
  if (options.context == 0) options.context = std::min(config.context, kDefaultContext);
  if (options.context > config.context) {
    bad_option(format_text("context is {} positions; the model was made for {}", options.context,
                           config.context));
  }
  if (options.sequences < 1 || options.sequences > kMaxRows) {
    bad_option(format_text("sequences is {}; expects 1 to {}", options.sequences, kMaxRows));
  }
  if (options.prefill_rows < 1 || options.prefill_rows > kMaxPrefillRows) {
    bad_option(
        format_text("prefill_rows is {}; expects 1 to {}", options.prefill_rows, kMaxPrefillRows));
  }
  check_prefill_type(options.prefill_type);
  if (std::ranges::none_of(kCacheTypes,
                           [&](const auto& type) { return type.value == options.cache; })) {
    bad_option(
        format_text("cache is {}; expects f32, f16, bf16 or q8_0", to_string(options.cache)));
  }
  const std::uint32_t block = info(options.cache).block_values;
  if (config.head_size % block != 0) {
    bad_option(
        format_text("cache is {}, whose blocks have {} values; heads of this model have {}: "
                    "use f32, f16 or bf16",
                    to_string(options.cache), block, config.head_size));
  }
  return options;
}

Activations make_activations(const Context& context, const ModelConfig& config,
                             const SessionOptions& options) {
  // Whole groups of rows, for `head_rows`.
  const std::uint64_t wanted = std::max(options.prefill_rows, options.sequences);
  const std::uint64_t rows = (wanted + kHeadRows - 1) / kHeadRows * kHeadRows;
  const auto floats = [&](std::uint64_t columns) { return Buffer<f32>(context, rows * columns); };
  const bool narrow = options.prefill_type != ElementType::f32;
  const std::uint64_t widest = std::max({config.width, config.q_width(), config.ffn});
  return {.h = floats(config.width),
          .norm = floats(config.width),
          .q = floats(config.q_width()),
          .k = floats(config.kv_width()),
          .v = floats(config.kv_width()),
          .q_rope = floats(config.q_width()),
          .attention = floats(config.q_width()),
          .product = floats(config.width),
          .gate = floats(config.ffn),
          .up = floats(config.ffn),
          .narrow = narrow ? Buffer<b8>(context, rows * widest * 2) : Buffer<b8>(),
          .overflow = narrow ? Buffer<u32>(context, std::uint64_t{config.layers} * kNarrowInputs)
                             : Buffer<u32>(),
          .logits = Buffer<f32>(context, std::uint64_t{options.sequences} * config.vocabulary),
          .greedy = Buffer<u32>(context, options.sequences)};
}

// Ids, positions and lengths.
constexpr std::uint32_t kControls = 3;

DeviceSpan<u32> control_part(const Buffer<u32>& control, std::uint32_t which, std::uint32_t rows) {
  return DeviceSpan<u32>(control).subspan(which * (control.size() / kControls), rows);
}

ForwardRows rows_of(const Buffer<u32>& control, std::uint32_t rows) {
  ForwardRows all;
  all.rows = rows;
  all.ids = control_part(control, 0, rows);
  all.positions = control_part(control, 1, rows);
  all.lengths = control_part(control, 2, rows);
  return all;
}

// Ends the capture of a stream if planning throws.
class Capture {
 public:
  explicit Capture(const Stream& stream) : stream_(stream) { stream.begin_capture(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (ended_) return;
    try {
      static_cast<void>(stream_.end_capture());
    } catch (const Error&) {
      // The first cause is thrown.
    }
  }
  [[nodiscard]] Graph end() {
    ended_ = true;
    return stream_.end_capture();
  }

 private:
  const Stream& stream_;
  bool ended_ = false;
};

}  // namespace

Session::State::State(const Model& of, SessionOptions wanted)
    : owner(&of),
      model(&*of.state_),
      options(checked(of, wanted)),
      stream(of.context()),
      work(make_activations(of.context(), model->config, options)),
      prefill_control(of.context(), std::uint64_t{kControls} * options.prefill_rows),
      decode_control(of.context(), std::uint64_t{kControls} * options.sequences),
      positions(options.sequences),
      computed(options.sequences),
      copied(options.sequences),
      greedy(options.sequences),
      logits(std::size_t{options.sequences} * model->config.vocabulary),
      gemm(has_gemm(of.context(), model->weights, options.prefill_type)),
      flash(has_flash(of.context(), model->config)) {
  for (std::uint32_t layer = 0; layer < model->config.layers; ++layer) {
    const std::uint64_t bytes = cache_bytes() * options.sequences;
    cache.push_back({Buffer<b8>(of.context(), bytes), Buffer<b8>(of.context(), bytes)});
  }
  plan_decode();
  if (options.graph) capture();
}

std::uint64_t Session::State::cache_bytes() const {
  return bytes(options.cache, std::uint64_t{model->config.kv_width()} * options.context);
}

std::uint64_t Session::State::device_bytes() const {
  std::uint64_t all = cache_bytes() * options.sequences * 2 * cache.size();
  for (const auto* one :
       {&work.h, &work.norm, &work.q, &work.k, &work.v, &work.q_rope, &work.attention,
        &work.product, &work.gate, &work.up, &work.logits, &row_logits}) {
    all += one->bytes();
  }
  all += work.narrow.bytes() + work.overflow.bytes();
  return all + work.greedy.bytes() + prefill_control.bytes() + decode_control.bytes();
}

void Session::State::plan_decode() {
  ForwardRows rows = rows_of(decode_control, options.sequences);
  rows.one_sequence = options.sequences == 1;
  rows.batch = options.sequences;
  PlanEmitter emit(model->launcher, stream, plans, steps);
  forward(emit, shape(), rows);
}

void Session::State::capture() {
  Capture capture(stream);
  for (const PlannedStep& step : plans) step.plan.launch();
  graph = capture.end();
}

void Session::State::refuse(std::string_view code, std::string message) const {
  throw Error(Stage::Launch, std::string(code), std::move(message));
}

void Session::State::check_sequence(std::uint32_t sequence) const {
  if (sequence < options.sequences) return;
  refuse("bad-sequence", format_text("sequence is {}; the session has {}, numbered from 0",
                                     sequence, options.sequences));
}

void Session::State::check_computed(std::uint32_t sequence) const {
  check_sequence(sequence);
  if (computed[sequence]) return;
  refuse("no-logits", format_text("sequence {} has no logits: call prefill or decode first, also "
                                  "after truncate, restore and a call that failed",
                                  sequence));
}

void Session::State::check_tokens(std::span<const std::uint32_t> tokens) const {
  const std::uint32_t vocabulary = model->config.vocabulary;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < vocabulary) continue;
    refuse("bad-token", format_text("token {} of the call is {}; the vocabulary has {} tokens, "
                                    "numbered from 0",
                                    i, tokens[i], vocabulary));
  }
}

void Session::State::check_context(std::uint32_t sequence, std::size_t tokens) const {
  const std::uint32_t position = positions[sequence];
  if (tokens <= options.context - position) return;
  refuse("context-full",
         format_text("sequence {} has {} of {} positions, and {} more tokens do not fit: shorten "
                     "the prompt, truncate the sequence, or make a session with a larger context "
                     "(the model's is {})",
                     sequence, position, options.context, tokens, model->config.context));
}

void Session::State::forget_logits(std::uint32_t sequence) {
  computed[sequence] = false;
  copied[sequence] = false;
}

void Session::State::show(std::span<const Tap> taps, std::uint32_t position) {
  if (observer.tensor == nullptr || taps.empty()) return;
  stream.synchronize();
  std::vector<float> values;
  for (const Tap& tap : taps) {
    values.resize(std::size_t{tap.rows} * tap.columns);
    tap.memory->read_part(tap.first, values, &stream);
    stream.synchronize();
    observer.tensor(observer.user, {tap.layer, tap.name, tap.rows, tap.columns, position, values});
  }
}

void Session::State::run_plans(std::uint32_t position) {
  if (graph && observer.tensor == nullptr) return graph->launch(stream);
  for (const PlannedStep& step : plans) {
    step.plan.launch();
    show(step.taps, position);
  }
}

void Session::State::decode(std::span<const std::uint32_t> tokens) {
  if (tokens.size() != options.sequences) {
    refuse("arguments", format_text("decode was given {} tokens; the session has {} sequences, "
                                    "which take one each",
                                    tokens.size(), options.sequences));
  }
  check_tokens(tokens);
  for (std::uint32_t i = 0; i < options.sequences; ++i) check_context(i, 1);
  control.clear();
  control.insert(control.end(), tokens.begin(), tokens.end());
  control.insert(control.end(), positions.begin(), positions.end());
  for (const std::uint32_t position : positions) control.push_back(position + 1);
  for (std::uint32_t i = 0; i < options.sequences; ++i) forget_logits(i);
  waited([&] {
    decode_control.write(control, &stream);
    run_plans(positions[0]);
    work.greedy.read(greedy, &stream);
  });
  for (std::uint32_t i = 0; i < options.sequences; ++i) {
    ++positions[i];
    computed[i] = true;
  }
}

void Session::State::prefill_chunk(std::span<const std::uint32_t> tokens, std::uint32_t sequence,
                                   std::uint32_t position, bool head) {
  const auto count = static_cast<std::uint32_t>(tokens.size());
  control.assign(prefill_control.size(), 0);
  const std::size_t stride = options.prefill_rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    control[i] = tokens[i];
    control[stride + i] = position + i;
    control[2 * stride + i] = position + i + 1;
  }
  ForwardRows rows = rows_of(prefill_control, count);
  rows.sequence = sequence;
  rows.first = position;
  rows.gemm = count >= kMinGemmRows && gemm;
  rows.flash = count >= kMinGemmRows && flash;
  rows.batch = std::clamp(options.prefill_rows, 2u, kMaxRows);
  rows.head = head;
  LaunchEmitter emit(model->launcher, stream,
                     [&](std::span<const Tap> taps) { show(taps, position); });
  waited([&] {
    prefill_control.write(control, &stream);
    overflow.assign(work.overflow.size(), 0);
    if (!overflow.empty()) work.overflow.write(overflow, &stream);
    forward(emit, shape(), rows);
    if (head) work.greedy.read(greedy, &stream);
    if (!overflow.empty()) work.overflow.read(overflow, &stream);
  });
  check_overflow(position, count);
}

void Session::State::check_overflow(std::uint32_t position, std::uint32_t count) const {
  const auto first = std::ranges::find_if(overflow, [](std::uint32_t word) { return word != 0; });
  if (first == overflow.end()) return;
  const auto at = static_cast<std::uint32_t>(first - overflow.begin());
  refuse("activation-overflow",
         format_text("positions {} to {}: {} of layer {} is infinite or not a number in {}, {}; "
                     "take {}prefill_type f32",
                     position, position + count - 1, kNarrowNames[at % kNarrowInputs],
                     at / kNarrowInputs, to_string(options.prefill_type),
                     options.prefill_type == ElementType::f16 ? "which has no magnitude above 65504"
                                                              : "as it is in f32",
                     options.prefill_type == ElementType::f16 ? "prefill_type bf16 or " : ""));
}

void Session::State::read_rows(std::uint32_t rows, std::vector<float>& all) {
  const std::uint32_t vocabulary = model->config.vocabulary;
  if (row_logits.size() == 0) {
    row_logits = Buffer<f32>(owner->context(), std::uint64_t{kHeadRows} * vocabulary);
  }
  LaunchEmitter emit(model->launcher, stream, [](std::span<const Tap>) {});
  for (std::uint32_t first = 0; first < rows; first += kHeadRows) {
    const std::uint32_t count = std::min(kHeadRows, rows - first);
    const std::size_t at = all.size();
    all.resize(at + std::size_t{count} * vocabulary);
    waited([&] {
      head_rows(emit, shape(), first, count, row_logits);
      row_logits.read_part(0, std::span(all).subspan(at), &stream);
    });
  }
}

void Session::State::prefill(std::span<const std::uint32_t> tokens, std::uint32_t sequence,
                             std::vector<float>* all) {
  check_sequence(sequence);
  if (tokens.empty()) refuse("arguments", "prefill was given no tokens; it needs at least one");
  check_tokens(tokens);
  check_context(sequence, tokens.size());
  forget_logits(sequence);
  const std::uint32_t begin = positions[sequence];
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t count = std::min<std::size_t>(options.prefill_rows, tokens.size() - at);
    const bool last = at + count == tokens.size();
    prefill_chunk(tokens.subspan(at, count), sequence, begin + static_cast<std::uint32_t>(at),
                  last);
    if (all != nullptr) read_rows(static_cast<std::uint32_t>(count), *all);
    at += count;
  }
  positions[sequence] = begin + static_cast<std::uint32_t>(tokens.size());
  computed[sequence] = true;
}

}  // namespace ptxgen::inline v0::model
