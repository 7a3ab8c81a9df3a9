// tests/capi/model_test.cpp - models and sessions through the C API
#include <algorithm>
#include <string_view>

#include "capi/capi.hpp"
#include "model/alphabet_model.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen::test;
using ptxgen::TemporaryDirectory;
using A = AlphabetModel;

namespace {

using OwnedModel = Owned<ptxgen_model, ptxgen_model_free>;
using OwnedSession = Owned<ptxgen_session, ptxgen_session_free>;

struct Opened {
  TemporaryDirectory folder;
  OwnedDevice device;
  OwnedModel model;
  explicit Opened(AlphabetOptions options = {}) {
    open_emulator(device);
    const std::string path = folder.file("alphabet.gguf");
    ptxgen::write_file(path, A(std::move(options)).bytes());
    good(ptxgen_model_open(device, path.c_str(), nullptr, nullptr, &model), device);
  }
};

std::vector<std::uint32_t> tokens_of(const ptxgen_model* model, std::string_view text,
                                     std::uint32_t flags = 0) {
  std::size_t count = 0;
  good(ptxgen_model_tokenize(model, text.data(), text.size(), flags, nullptr, 0, &count), model);
  std::vector<std::uint32_t> tokens(count);
  good(ptxgen_model_tokenize(model, text.data(), text.size(), flags, tokens.data(), count, &count),
       model);
  return tokens;
}

std::string text_of(const ptxgen_model* model, const std::vector<std::uint32_t>& tokens) {
  std::string text(1000, '\0');
  std::size_t bytes = 0;
  good(ptxgen_model_detokenize(model, tokens.data(), tokens.size(), text.data(), text.size(),
                               &bytes),
       model);
  REQUIRE(bytes <= text.size());
  text.resize(bytes);
  return text;
}

std::uint32_t position_of(const ptxgen_session* session, std::uint32_t sequence = 0) {
  std::uint32_t position = 0;
  good(ptxgen_session_position(session, sequence, &position), session);
  return position;
}

}  // namespace

TEST_CASE("a model is opened, described and kept by its sessions", "[capi]") {
  TemporaryDirectory folder;
  const std::string path = folder.file("alphabet.gguf");
  ptxgen::write_file(path, A().bytes());
  OwnedSession session;
  {
    OwnedDevice device;
    open_emulator(device);
    std::uint64_t loaded = 0;
    OwnedModel model;
    good(ptxgen_model_open(
             device, path.c_str(),
             [](void* user, std::uint64_t bytes, std::uint64_t total) {
               if (bytes <= total) *static_cast<std::uint64_t*>(user) = bytes;
             },
             &loaded, &model),
         device);
    ptxgen_model_info info{};
    info.struct_bytes = sizeof info;
    good(ptxgen_model_get_info(model, &info), model);
    CHECK(std::string(info.name) == "Alphabet");
    CHECK(std::string(info.architecture) == "llama");
    CHECK(info.layers == A::kLayers);
    CHECK(info.width == A::kWidth);
    CHECK(info.heads == A::kHeads);
    CHECK(info.kv_heads == 1);
    CHECK(info.head_size == A::kHeadSize);
    CHECK(info.vocabulary == A::kVocabulary);
    CHECK(info.context == 96);
    CHECK(info.tokenizer == 1);
    CHECK(info.device_bytes > info.bytes_per_token);
    CHECK(loaded > 0);
    good(ptxgen_session_create(model, nullptr, &session), model);
  }
  // Device and model live as long as the session.
  const std::uint32_t prompt[] = {A::letter('a'), A::letter('b')};
  good(ptxgen_session_prefill(session, 0, prompt, 2), session);
  std::uint32_t token = 0;
  good(ptxgen_session_greedy(session, 0, &token), session);
  CHECK(token == A::letter('c'));
}

TEST_CASE("prefill, decode, logits and truncate", "[capi]") {
  const Opened opened;
  OwnedSession session;
  good(ptxgen_session_create(opened.model, nullptr, &session), opened.model);
  const std::vector<std::uint32_t> prompt = tokens_of(opened.model, "ab");
  CHECK(prompt == std::vector<std::uint32_t>{A::kBegin, A::letter('a'), A::letter('b')});
  good(ptxgen_session_prefill(session, 0, prompt.data(), prompt.size()), session);
  CHECK(position_of(session) == 3);
  std::uint32_t token = 0;
  for (const char expected : std::string("cdefg")) {
    good(ptxgen_session_greedy(session, 0, &token), session);
    CHECK(token == A::letter(expected));
    good(ptxgen_session_decode(session, &token, 1), session);
  }
  CHECK(position_of(session) == 8);
  std::vector<float> logits(A::kVocabulary);
  std::size_t count = 0;
  good(ptxgen_session_logits(session, 0, logits.data(), 2, &count), session);
  CHECK(count == A::kVocabulary);
  CHECK(logits[2] == 0);  // beyond the capacity
  good(ptxgen_session_logits(session, 0, logits.data(), logits.size(), &count), session);
  CHECK(std::max_element(logits.begin(), logits.end()) - logits.begin() == A::letter('h'));
  good(ptxgen_session_truncate(session, 0, 2), session);
  CHECK(position_of(session) == 2);
  CHECK(ptxgen_session_logits(session, 0, logits.data(), logits.size(), &count) ==
        PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(session) == "no-logits");
}

TEST_CASE("sequences side by side, with a cache of q8_0", "[capi]") {
  const Opened opened;
  ptxgen_session_options options{};
  options.struct_bytes = sizeof options;
  options.context = 32;
  options.cache = PTXGEN_CACHE_Q8_0;
  options.sequences = 2;
  OwnedSession session;
  good(ptxgen_session_create(opened.model, &options, &session), opened.model);
  const std::uint32_t first[] = {A::letter('a'), A::letter('b')};
  const std::uint32_t second[] = {A::letter('p')};
  good(ptxgen_session_prefill(session, 0, first, 2), session);
  good(ptxgen_session_prefill(session, 1, second, 1), session);
  const std::uint32_t next[] = {A::letter('c'), A::letter('q')};
  good(ptxgen_session_decode(session, next, 2), session);
  std::uint32_t token = 0;
  good(ptxgen_session_greedy(session, 0, &token), session);
  CHECK(token == A::letter('d'));
  good(ptxgen_session_greedy(session, 1, &token), session);
  CHECK(token == A::letter('r'));
  CHECK(ptxgen_session_decode(session, next, 1) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(session) == "arguments");
  CHECK(ptxgen_session_prefill(session, 2, first, 2) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(session) == "bad-sequence");
  CHECK(position_of(session, 0) == 3);
}

TEST_CASE("generate calls back for every token, and stops for a reason", "[capi]") {
  const Opened opened;
  OwnedSession session;
  good(ptxgen_session_create(opened.model, nullptr, &session), opened.model);
  struct Receiver {
    std::vector<std::uint32_t> tokens;
    std::size_t wanted = 100;
  };
  const ptxgen_token_callback receive = [](void* user, std::uint32_t token) -> std::int32_t {
    auto& to = *static_cast<Receiver*>(user);
    to.tokens.push_back(token);
    return to.tokens.size() < to.wanted ? 1 : 0;
  };
  ptxgen_generate_options options{};
  options.struct_bytes = sizeof options;
  options.greedy = 1;
  const std::vector<std::uint32_t> prompt = tokens_of(opened.model, "uv");
  std::int32_t reason = -1;
  Receiver all;
  good(ptxgen_session_generate(session, prompt.data(), prompt.size(), &options, receive, &all,
                               &reason),
       session);
  CHECK(text_of(opened.model, all.tokens) == "wxyz");
  CHECK(reason == PTXGEN_STOP_TOKEN);

  good(ptxgen_session_truncate(session, 0, 0), session);
  options.max_tokens = 2;
  Receiver few;
  good(ptxgen_session_generate(session, prompt.data(), prompt.size(), &options, receive, &few,
                               &reason),
       session);
  CHECK(text_of(opened.model, few.tokens) == "wx");
  CHECK(reason == PTXGEN_STOP_LENGTH);

  good(ptxgen_session_truncate(session, 0, 0), session);
  Receiver one;
  one.wanted = 1;
  good(ptxgen_session_generate(session, prompt.data(), prompt.size(), &options, receive, &one,
                               &reason),
       session);
  CHECK(text_of(opened.model, one.tokens) == "w");
  CHECK(reason == PTXGEN_STOP_CALLER);
  options.temperature = -1;
  options.greedy = 0;
  CHECK(ptxgen_session_generate(session, nullptr, 0, &options, nullptr, nullptr, nullptr) ==
        PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(session) == "bad-option");
}

TEST_CASE("a session is saved, and restored into another one", "[capi]") {
  const Opened opened;
  OwnedSession from;
  OwnedSession to;
  good(ptxgen_session_create(opened.model, nullptr, &from), opened.model);
  good(ptxgen_session_create(opened.model, nullptr, &to), opened.model);
  const std::vector<std::uint32_t> prompt = tokens_of(opened.model, "abcd");
  good(ptxgen_session_prefill(from, 0, prompt.data(), prompt.size()), from);
  std::size_t bytes = 0;
  good(ptxgen_session_save(from, nullptr, 0, &bytes), from);
  std::vector<unsigned char> saved(bytes + 1, 0xee);
  good(ptxgen_session_save(from, saved.data(), bytes, &bytes), from);
  CHECK(saved.back() == 0xee);
  saved.pop_back();
  REQUIRE(saved.size() == bytes);
  good(ptxgen_session_restore(to, saved.data(), bytes), to);
  CHECK(position_of(to) == position_of(from));
  // The next token has the same logits in both.
  const std::uint32_t next = A::letter('e');
  std::vector<float> logits[2];
  for (ptxgen_session* session : {from.handle, to.handle}) {
    std::vector<float>& of = logits[session == to.handle ? 1 : 0];
    of.resize(A::kVocabulary);
    std::size_t count = 0;
    good(ptxgen_session_decode(session, &next, 1), session);
    good(ptxgen_session_logits(session, 0, of.data(), of.size(), &count), session);
  }
  CHECK(logits[0] == logits[1]);

  // What is no such session changes nothing.
  saved[bytes / 2] ^= 1;
  const std::uint32_t position = position_of(to);
  CHECK(ptxgen_session_restore(to, saved.data(), bytes) == PTXGEN_ERROR_IO);
  CHECK(error_code(to) == "bad-session");
  CHECK(ptxgen_session_restore(to, nullptr, 8) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(to) == "saved is NULL");
  CHECK(position_of(to) == position);
}

TEST_CASE("an observer receives every tensor of a token", "[capi]") {
  const Opened opened;
  OwnedSession session;
  good(ptxgen_session_create(opened.model, nullptr, &session), opened.model);
  struct Seen {
    std::vector<std::string> names;
    std::vector<float> logits;
    std::uint32_t position = 0;
    const ptxgen_session* session = nullptr;
  } seen;
  seen.session = session;
  const ptxgen_layer_callback receive = [](void* user, const ptxgen_layer_tensor* tensor) {
    auto& to = *static_cast<Seen*>(user);
    CHECK(tensor->struct_bytes == sizeof *tensor);
    const bool of_layer = tensor->layer != PTXGEN_NO_LAYER;
    to.names.push_back((of_layer ? std::to_string(tensor->layer) + "." : "") + tensor->name);
    if (std::string_view(tensor->name) == "ffn_out") CHECK(tensor->columns == A::kWidth);
    if (std::string_view(tensor->name) == "logits") {
      to.logits.assign(tensor->values, tensor->values + tensor->columns);
      to.position = tensor->position;
    }
    std::uint32_t position = 0;  // reading the session is allowed
    good(ptxgen_session_position(to.session, 0, &position), to.session);
  };
  good(ptxgen_session_observe(session, receive, &seen), session);
  const std::vector<std::uint32_t> prompt = tokens_of(opened.model, "ab");
  good(ptxgen_session_prefill(session, 0, prompt.data(), prompt.size()), session);
  const std::uint32_t token = A::letter('c');
  seen.names.clear();
  good(ptxgen_session_decode(session, &token, 1), session);
  CHECK(seen.names.front() == "embedding");
  CHECK(std::ranges::count(seen.names, "0.attn_norm") == 1);
  CHECK(std::ranges::count(seen.names, "1.ffn_out") == (A::kLayers > 1 ? 1 : 0));
  CHECK(seen.names.back() == "logits");
  CHECK(seen.position == prompt.size());
  std::vector<float> logits(A::kVocabulary);
  std::size_t count = 0;
  good(ptxgen_session_logits(session, 0, logits.data(), logits.size(), &count), session);
  CHECK(seen.logits == logits);
  good(ptxgen_session_observe(session, nullptr, nullptr), session);
  seen.names.clear();
  good(ptxgen_session_decode(session, &token, 1), session);
  CHECK(seen.names.empty());
}

TEST_CASE("text and tokens of a model", "[capi]") {
  const Opened opened;
  CHECK(tokens_of(opened.model, "ab", PTXGEN_TOKENIZE_PLAIN) ==
        std::vector<std::uint32_t>{A::letter('a'), A::letter('b')});
  CHECK(tokens_of(opened.model, "</s>", PTXGEN_TOKENIZE_PLAIN) ==
        std::vector<std::uint32_t>{A::kEnd});
  CHECK(tokens_of(opened.model, "</s>", PTXGEN_TOKENIZE_PLAIN | PTXGEN_TOKENIZE_TEXT).size() == 4);
  CHECK(tokens_of(opened.model, "", PTXGEN_TOKENIZE_PLAIN).empty());
  CHECK(text_of(opened.model, {A::kSpace, A::letter('x'), A::kEnd}) == " x");
  std::int32_t is_end = -1;
  good(ptxgen_model_is_end(opened.model, A::kEnd, &is_end), opened.model);
  CHECK(is_end == 1);
  good(ptxgen_model_is_end(opened.model, A::letter('a'), &is_end), opened.model);
  CHECK(is_end == 0);
  const ptxgen_chat_message messages[] = {{"user", "hi"}};
  std::string text(200, '\0');
  std::size_t bytes = 0;
  good(ptxgen_model_chat(opened.model, messages, 1, text.data(), text.size(), &bytes),
       opened.model);
  CHECK(text.substr(0, bytes) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  std::size_t count = 0;
  CHECK(ptxgen_model_tokenize(opened.model, "a", 1, 4, nullptr, 0, &count) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(opened.model) == "flags is 4; valid are sums of 1 (plain) and 2 (text)");
  const std::uint32_t beyond[] = {A::kVocabulary};
  CHECK(ptxgen_model_detokenize(opened.model, beyond, 1, nullptr, 0, &bytes) == PTXGEN_ERROR_IO);
  CHECK(error_code(opened.model) == "out-of-vocabulary");
}

TEST_CASE("a model without a tokenizer takes ids", "[capi]") {
  const Opened opened({.tokenizer = ""});
  ptxgen_model_info info{};
  info.struct_bytes = sizeof info;
  good(ptxgen_model_get_info(opened.model, &info), opened.model);
  CHECK(info.tokenizer == 0);
  std::size_t count = 0;
  CHECK(ptxgen_model_tokenize(opened.model, "a", 1, 0, nullptr, 0, &count) == PTXGEN_ERROR_IO);
  CHECK(error_code(opened.model) == "no-tokenizer");
  std::int32_t is_end = 0;
  good(ptxgen_model_is_end(opened.model, A::kEnd, &is_end), opened.model);
  CHECK(is_end == 1);
}

TEST_CASE("models and sessions that cannot be are refused by name", "[capi]") {
  const Opened opened;
  auto* model = reinterpret_cast<ptxgen_model*>(std::uintptr_t{0x10});
  const std::string missing = opened.folder.file("none.gguf");
  CHECK(ptxgen_model_open(opened.device, missing.c_str(), nullptr, nullptr, &model) ==
        PTXGEN_ERROR_IO);
  CHECK(model == nullptr);
  CHECK(error_text(opened.device).find("none.gguf: error: cannot map the file") !=
        std::string::npos);
  const auto refused = [&](auto change) {
    ptxgen_session_options options{};
    options.struct_bytes = sizeof options;
    change(options);
    ptxgen_session* session = nullptr;
    const ptxgen_status status = ptxgen_session_create(opened.model, &options, &session);
    CHECK(session == nullptr);
    CHECK(status != PTXGEN_OK);
    return error_message(opened.model);
  };
  CHECK(refused([](auto& options) { options.cache = 4; }) ==
        "options.cache is 4; valid values are 0 to 3");
  CHECK(refused([](auto& options) { options.context = 97; }).find("97") != std::string::npos);
  CHECK(refused([](auto& options) { options.sequences = 65; }).find("65") != std::string::npos);
  OwnedSession session;
  good(ptxgen_session_create(opened.model, nullptr, &session), opened.model);
  const std::uint32_t beyond[] = {A::kVocabulary};
  CHECK(ptxgen_session_prefill(session, 0, beyond, 1) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(session) == "bad-token");
  std::vector<std::uint32_t> longer(97, A::letter('a'));
  CHECK(ptxgen_session_prefill(session, 0, longer.data(), longer.size()) == PTXGEN_ERROR_LAUNCH);
  CHECK(error_code(session) == "context-full");
  CHECK(position_of(session) == 0);
  CHECK(ptxgen_session_prefill(reinterpret_cast<ptxgen_session*>(opened.model.handle), 0, beyond,
                               1) == PTXGEN_ERROR_USAGE);
  CHECK(error_message(opened.model) == "session is the handle of a model; expected a session");
}
