// src/capi/model.cpp - models and sessions
#include "ptxgen/model.hpp"

#include <algorithm>
#include <mutex>

#include "capi/objects.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace ptxgen::inline v0::capi {

/// Shared by its handle and by its sessions.
struct SharedModel {
  SharedRuntime runtime;
  model::Model model;
  std::string architecture;
  std::optional<model::Tokenizer> tokenizer;
  std::optional<Error> tokenizer_error;
  std::vector<std::uint32_t> ends;  ///< ascending

  SharedModel(SharedRuntime shared, gguf::File file, const model::ModelOptions& options)
      : runtime(std::move(shared)),
        model(runtime->context, std::move(file), options),
        architecture(to_string(model.config().architecture)) {
    const gguf::Value* const eos = model.file().find("tokenizer.ggml.eos_token_id");
    const auto id = eos == nullptr ? std::nullopt : eos->unsigned_integer();
    if (id && *id < model.config().vocabulary) ends = {static_cast<std::uint32_t>(*id)};
    try {
      tokenizer = model::Tokenizer::read(model.file());
      ends.assign(tokenizer->ends().begin(), tokenizer->ends().end());
    } catch (const Error& error) {
      tokenizer_error = error;
    }
  }

  [[nodiscard]] const model::Tokenizer& need_tokenizer() const {
    if (!tokenizer) throw Error(*tokenizer_error);
    return *tokenizer;
  }
};

}  // namespace ptxgen::inline v0::capi

struct ptxgen_model : Handle {
  static constexpr auto kKind = Kind::Model;
  std::shared_ptr<const SharedModel> shared;

  explicit ptxgen_model(std::shared_ptr<const SharedModel> of)
      : Handle(kKind), shared(std::move(of)) {}
};

/// Adapter from LayerObserver to a C callback.
struct LayerReceiver {
  ptxgen_layer_callback callback = nullptr;
  void* user = nullptr;
};

struct ptxgen_session : Handle {
  static constexpr auto kKind = Kind::Session;
  std::shared_ptr<const SharedModel> shared;
  /// A session is used by one thread at a time. A callback of `generate` may read it.
  mutable std::recursive_mutex mutex;
  mutable model::Session session;
  LayerReceiver layers;

  ptxgen_session(std::shared_ptr<const SharedModel> of, const model::SessionOptions& options)
      : Handle(kKind), shared(std::move(of)), session(shared->model, options) {}
};

namespace {

/// Adapter from LoadProgress to a C callback.
struct LoadReceiver {
  ptxgen_load_callback callback;
  void* user;
};

/// Writes the number of elements and the first `capacity` of them.
template <class Elements, class T>
void write_elements(const Elements& from, T* to, std::size_t capacity, std::size_t* count,
                    std::string_view name, std::string_view count_name) {
  std::size_t& found = need_place(count, count_name);
  (void)need_array(to, capacity, name);
  std::copy_n(from.begin(), std::min(capacity, from.size()), to);
  found = from.size();
}

model::SessionOptions session_options(const ptxgen_session_options* settings) {
  // Of a cache; the first three also of a prefill.
  constexpr ElementType kTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                    ElementType::q8_0};
  const ptxgen_session_options from = read_struct(settings, "options");
  model::SessionOptions options;
  if (from.cache < 0 || from.cache >= static_cast<std::int32_t>(std::size(kTypes))) {
    throw UsageError{"out-of-range", format_text("options.cache is {}; valid values are 0 to {}",
                                                 from.cache, std::size(kTypes) - 1)};
  }
  if (from.prefill_type < 0 || from.prefill_type > PTXGEN_PREFILL_BF16) {
    throw UsageError{"out-of-range",
                     format_text("options.prefill_type is {}; valid values are 0 to {}",
                                 from.prefill_type, int{PTXGEN_PREFILL_BF16})};
  }
  options.cache = kTypes[from.cache];
  options.prefill_type = kTypes[from.prefill_type];
  options.context = from.context;
  if (from.sequences != 0) options.sequences = from.sequences;
  if (from.prefill_rows != 0) options.prefill_rows = from.prefill_rows;
  options.graph = from.no_graph == 0;
  return options;
}

model::GenerateOptions generate_options(const ptxgen_generate_options* settings,
                                        const SharedModel& shared) {
  const ptxgen_generate_options from = read_struct(settings, "options");
  model::GenerateOptions options;
  if (from.max_tokens != 0) options.max_tokens = from.max_tokens;
  if (from.temperature != 0) options.sampler.temperature = from.temperature;
  if (from.greedy != 0) options.sampler.temperature = 0;
  if (from.top_k != 0) options.sampler.top_k = from.top_k;
  if (from.top_p != 0) options.sampler.top_p = from.top_p;
  if (from.min_p != 0) options.sampler.min_p = std::max(from.min_p, 0.0F);
  options.sampler.seed = from.seed;
  if (from.ignore_end == 0) options.stop = shared.ends;
  return options;
}

std::int32_t to_c(model::StopReason reason) noexcept {
  static_assert(static_cast<int>(model::StopReason::Length) == PTXGEN_STOP_LENGTH &&
                static_cast<int>(model::StopReason::StopToken) == PTXGEN_STOP_TOKEN &&
                static_cast<int>(model::StopReason::ContextFull) == PTXGEN_STOP_CONTEXT &&
                static_cast<int>(model::StopReason::Caller) == PTXGEN_STOP_CALLER);
  return static_cast<std::int32_t>(reason);
}

void receive_layer(void* to, const model::LayerTensor& tensor) {
  const auto& receiver = *static_cast<const LayerReceiver*>(to);
  const std::string name(tensor.name);
  const ptxgen_layer_tensor out{sizeof out,      tensor.layer, tensor.rows,         tensor.columns,
                                tensor.position, name.c_str(), tensor.values.data()};
  receiver.callback(receiver.user, &out);
}

/// Runs a call on a session that no other thread uses meanwhile.
template <class Body>
ptxgen_status on_session(const ptxgen_session* session, const Body& body) noexcept {
  return guarded(session, [&] {
    const ptxgen_session& handle = need(session, "session");
    const std::lock_guard lock(handle.mutex);
    body(handle.session);
  });
}

}  // namespace

extern "C" {

ptxgen_status ptxgen_model_open(ptxgen_device* device, const char* path,
                                ptxgen_load_callback callback, void* user,
                                ptxgen_model** model) noexcept {
  return guarded(device, [&] {
    ptxgen_model*& result = need_result(model, "model");
    const SharedRuntime& runtime = need(device, "device").runtime;
    gguf::File file{std::string(need_text(path, "path"))};
    LoadReceiver receiver{callback, user};
    model::ModelOptions options;
    options.launcher = runtime->options;
    if (callback != nullptr) {
      options.progress.user = &receiver;
      options.progress.report = [](void* to, std::uint64_t bytes, std::uint64_t total) {
        const auto& from = *static_cast<const LoadReceiver*>(to);
        from.callback(from.user, bytes, total);
      };
    }
    result =
        new ptxgen_model(std::make_shared<const SharedModel>(runtime, std::move(file), options));
  });
}

void ptxgen_model_free(ptxgen_model* model) noexcept { delete model; }

ptxgen_status ptxgen_model_get_info(const ptxgen_model* model, ptxgen_model_info* info) noexcept {
  return guarded(model, [&] {
    const SharedModel& shared = *need(model, "model").shared;
    const model::ModelConfig& config = shared.model.config();
    ptxgen_model_info out{};
    out.name = config.name.c_str();
    out.architecture = shared.architecture.c_str();
    out.layers = config.layers;
    out.width = config.width;
    out.heads = config.heads;
    out.kv_heads = config.kv_heads;
    out.head_size = config.head_size;
    out.vocabulary = config.vocabulary;
    out.context = config.context;
    out.tokenizer = shared.tokenizer ? 1 : 0;
    out.device_bytes = shared.model.device_bytes();
    out.bytes_per_token = shared.model.bytes_per_token();
    write_struct(info, out, "info");
  });
}

ptxgen_status ptxgen_model_tokenize(const ptxgen_model* model, const char* text, size_t bytes,
                                    uint32_t flags, uint32_t* tokens, size_t capacity,
                                    size_t* count) noexcept {
  return guarded(model, [&] {
    const model::Tokenizer& tokenizer = need(model, "model").shared->need_tokenizer();
    if (text == nullptr && bytes != 0) throw_null("text");
    if ((flags & ~std::uint32_t{PTXGEN_TOKENIZE_PLAIN | PTXGEN_TOKENIZE_TEXT}) != 0) {
      throw UsageError{"out-of-range",
                       format_text("flags is {}; valid are sums of 1 (plain) and 2 (text)", flags)};
    }
    model::EncodeOptions options;
    options.add_special = (flags & PTXGEN_TOKENIZE_PLAIN) == 0;
    options.parse_special = (flags & PTXGEN_TOKENIZE_TEXT) == 0;
    const std::string_view characters =
        bytes == 0 ? std::string_view() : std::string_view(text, bytes);
    write_elements(tokenizer.encode(characters, options), tokens, capacity, count, "tokens",
                   "count");
  });
}

ptxgen_status ptxgen_model_detokenize(const ptxgen_model* model, const uint32_t* tokens,
                                      size_t count, char* text, size_t capacity,
                                      size_t* bytes) noexcept {
  return guarded(model, [&] {
    const model::Tokenizer& tokenizer = need(model, "model").shared->need_tokenizer();
    write_elements(tokenizer.decode(need_array(tokens, count, "tokens"), {.continues = true}), text,
                   capacity, bytes, "text", "bytes");
  });
}

ptxgen_status ptxgen_model_is_end(const ptxgen_model* model, uint32_t token,
                                  int32_t* is_end) noexcept {
  return guarded(model, [&] {
    const SharedModel& shared = *need(model, "model").shared;
    need_place(is_end, "is_end") = std::ranges::binary_search(shared.ends, token) ? 1 : 0;
  });
}

ptxgen_status ptxgen_model_chat(const ptxgen_model* model, const ptxgen_chat_message* messages,
                                size_t count, char* text, size_t capacity, size_t* bytes) noexcept {
  return guarded(model, [&] {
    const model::Tokenizer& tokenizer = need(model, "model").shared->need_tokenizer();
    std::vector<model::ChatMessage> all;
    for (const ptxgen_chat_message& message : need_array(messages, count, "messages")) {
      all.push_back({std::string(need_text(message.role, "messages.role")),
                     std::string(need_text(message.content, "messages.content"))});
    }
    write_elements(tokenizer.chat(all), text, capacity, bytes, "text", "bytes");
  });
}

ptxgen_status ptxgen_session_create(const ptxgen_model* model,
                                    const ptxgen_session_options* options,
                                    ptxgen_session** session) noexcept {
  return guarded(model, [&] {
    ptxgen_session*& result = need_result(session, "session");
    result = new ptxgen_session(need(model, "model").shared, session_options(options));
  });
}

void ptxgen_session_free(ptxgen_session* session) noexcept { delete session; }

ptxgen_status ptxgen_session_prefill(ptxgen_session* session, uint32_t sequence,
                                     const uint32_t* tokens, size_t count) noexcept {
  return on_session(session, [&](model::Session& on) {
    on.prefill(need_array(tokens, count, "tokens"), sequence);
  });
}

ptxgen_status ptxgen_session_decode(ptxgen_session* session, const uint32_t* tokens,
                                    size_t count) noexcept {
  return on_session(session,
                    [&](model::Session& on) { on.decode(need_array(tokens, count, "tokens")); });
}

ptxgen_status ptxgen_session_logits(ptxgen_session* session, uint32_t sequence, float* logits,
                                    size_t capacity, size_t* count) noexcept {
  return on_session(session, [&](model::Session& on) {
    write_elements(on.logits(sequence), logits, capacity, count, "logits", "count");
  });
}

ptxgen_status ptxgen_session_greedy(const ptxgen_session* session, uint32_t sequence,
                                    uint32_t* token) noexcept {
  return on_session(
      session, [&](const model::Session& on) { need_place(token, "token") = on.greedy(sequence); });
}

ptxgen_status ptxgen_session_position(const ptxgen_session* session, uint32_t sequence,
                                      uint32_t* position) noexcept {
  return on_session(session, [&](const model::Session& on) {
    need_place(position, "position") = on.position(sequence);
  });
}

ptxgen_status ptxgen_session_truncate(ptxgen_session* session, uint32_t sequence,
                                      uint32_t position) noexcept {
  return on_session(session, [&](model::Session& on) { on.truncate(position, sequence); });
}

ptxgen_status ptxgen_session_save(const ptxgen_session* session, void* saved, size_t capacity,
                                  size_t* bytes) noexcept {
  return on_session(session, [&](const model::Session& on) {
    write_elements(on.save(), static_cast<std::byte*>(saved), capacity, bytes, "saved", "bytes");
  });
}

ptxgen_status ptxgen_session_restore(ptxgen_session* session, const void* saved,
                                     size_t bytes) noexcept {
  return on_session(session, [&](model::Session& on) {
    on.restore(need_array(static_cast<const std::byte*>(saved), bytes, "saved"));
  });
}

ptxgen_status ptxgen_session_observe(ptxgen_session* session, ptxgen_layer_callback callback,
                                     void* user) noexcept {
  return on_session(session, [&](model::Session& on) {
    session->layers = {callback, user};
    on.observe({callback != nullptr ? receive_layer : nullptr, &session->layers});
  });
}

ptxgen_status ptxgen_session_generate(ptxgen_session* session, const uint32_t* prompt, size_t count,
                                      const ptxgen_generate_options* options,
                                      ptxgen_token_callback callback, void* user,
                                      int32_t* reason) noexcept {
  return on_session(session, [&](model::Session& on) {
    const auto tokens = need_array(prompt, count, "prompt");
    struct Receiver {
      ptxgen_token_callback callback;
      void* user;
    } receiver{callback, user};
    model::GenerateOptions how = generate_options(options, *session->shared);
    if (callback != nullptr) {
      how.on_token.user = &receiver;
      how.on_token.token = [](void* to, std::uint32_t token) {
        const auto& from = *static_cast<const Receiver*>(to);
        return from.callback(from.user, token) != 0;
      };
    }
    const model::Generated generated = model::generate(on, tokens, how);
    if (reason != nullptr) *reason = to_c(generated.reason);
  });
}

}  // extern "C"
