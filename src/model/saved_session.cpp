// src/model/saved_session.cpp - a session as bytes, and back
#include <bit>
#include <cstring>

#include "model/format.hpp"
#include "model/session_state.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0::model {

namespace {

static_assert(std::endian::native == std::endian::little, "saved sessions are little endian");

constexpr std::uint64_t kMagic = 0x3130564b47585450u;  // "PTXGKV01"

// Followed by the positions of each sequence, keys and values, and the hash of all before it.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t fingerprint = 0;  // of the model
  std::uint64_t cache = 0;        // element type
  std::uint64_t sequences = 0;
};

[[noreturn]] void bad_session(std::string message) {
  throw Error(Stage::Io, "bad-session", std::move(message));
}

template <class T>
T read_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void append(std::vector<std::byte>& bytes, const void* from, std::size_t size) {
  const std::size_t at = bytes.size();
  bytes.resize(at + size);
  std::memcpy(bytes.data() + at, from, size);
}

}  // namespace

// The bytes of `positions` keys or values of a head are consecutive in a cache. Calls
// `f(cache, first byte, bytes)` for each head of each sequence.
template <class F>
void Session::State::each_part(std::span<const std::uint32_t> tokens, const F& f) {
  const ModelConfig& config = model->config;
  const std::uint64_t row = bytes(options.cache, config.head_size);
  for (LayerCache& layer : cache) {
    for (Buffer<b8>* one : {&layer.k, &layer.v}) {
      for (std::uint32_t sequence = 0; sequence < options.sequences; ++sequence) {
        for (std::uint32_t head = 0; head < config.kv_heads; ++head) {
          const std::uint64_t strip = std::uint64_t{sequence} * config.kv_heads + head;
          if (tokens[sequence] != 0) {
            f(*one, strip * options.context * row, std::uint64_t{tokens[sequence]} * row);
          }
        }
      }
    }
  }
}

std::vector<std::byte> Session::State::save() {
  const Header header{.fingerprint = model->fingerprint,
                      .cache = static_cast<std::uint64_t>(options.cache),
                      .sequences = options.sequences};
  std::vector<std::byte> saved;
  append(saved, &header, sizeof header);
  append(saved, positions.data(), positions.size() * sizeof(std::uint32_t));
  waited([&] {
    each_part(positions, [&](const Buffer<b8>& from, std::uint64_t first, std::uint64_t size) {
      const std::size_t at = saved.size();
      saved.resize(at + size);
      auto* to = reinterpret_cast<std::uint8_t*>(saved.data() + at);
      from.read_part(first, {to, size}, &stream);
      stream.synchronize();  // before `saved` moves
    });
  });
  const std::uint64_t hash = hash128(saved).low;
  append(saved, &hash, sizeof hash);
  return saved;
}

// The positions of each sequence. Throws "bad-session".
std::vector<std::uint32_t> Session::State::check_saved(std::span<const std::byte> saved) const {
  const std::size_t fixed =
      sizeof(Header) + options.sequences * sizeof(std::uint32_t) + sizeof(std::uint64_t);
  if (saved.size() < sizeof(Header) || read_at<Header>(saved, 0).magic != kMagic) {
    bad_session("the bytes are not a saved session, which begins with 'PTXGKV01'");
  }
  const auto header = read_at<Header>(saved, 0);
  if (header.fingerprint != model->fingerprint) {
    bad_session(
        "the session was saved with another model: names, types or sizes of tensors differ");
  }
  if (header.cache != static_cast<std::uint64_t>(options.cache) ||
      header.sequences != options.sequences) {
    const bool known = header.cache < std::size(kElementTypes);
    bad_session(
        format_text("the session was saved with {} sequences and a cache of {}; this one has {} "
                    "and {}",
                    header.sequences,
                    known ? to_string(static_cast<ElementType>(header.cache)) : "unknown type",
                    options.sequences, to_string(options.cache)));
  }
  if (saved.size() < fixed || hash128(saved.first(saved.size() - sizeof(std::uint64_t))).low !=
                                  read_at<std::uint64_t>(saved, saved.size() - 8)) {
    bad_session("the saved session is damaged or incomplete: its hash differs");
  }
  std::vector<std::uint32_t> tokens(options.sequences);
  std::uint64_t size = fixed;
  const ModelConfig& config = model->config;
  for (std::uint32_t i = 0; i < options.sequences; ++i) {
    tokens[i] = read_at<std::uint32_t>(saved, sizeof(Header) + i * sizeof(std::uint32_t));
    if (tokens[i] > options.context) {
      bad_session(
          format_text("sequence {} was saved with {} tokens; the context of this session is {}", i,
                      tokens[i], options.context));
    }
    size += std::uint64_t{tokens[i]} * 2 * config.layers * config.kv_heads *
            bytes(options.cache, config.head_size);
  }
  if (size != saved.size()) {
    bad_session(
        format_text("the saved session has {} bytes; its header makes it {}", saved.size(), size));
  }
  return tokens;
}

void Session::State::restore(std::span<const std::byte> saved) {
  const std::vector<std::uint32_t> tokens = check_saved(saved);
  for (std::uint32_t i = 0; i < options.sequences; ++i) {
    positions[i] = 0;  // if a copy fails
    forget_logits(i);
  }
  std::size_t at = sizeof(Header) + tokens.size() * sizeof(std::uint32_t);
  waited([&] {
    each_part(tokens, [&](Buffer<b8>& to, std::uint64_t first, std::uint64_t size) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(saved.data() + at);
      to.write_part(first, {from, size}, &stream);
      at += size;
    });
  });
  positions = tokens;
}

std::vector<std::byte> Session::save() const { return state_->save(); }
void Session::restore(std::span<const std::byte> saved) { state_->restore(saved); }

}  // namespace ptxgen::inline v0::model
