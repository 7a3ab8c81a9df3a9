// src/model/tokenizer/byte_pairs.cpp - byte-level BPE: pairs merged by rank, piece by piece
#include "model/tokenizer/byte_pairs.hpp"

#include <algorithm>
#include <string>

#include "model/format.hpp"
#include "model/printable.hpp"
#include "model/tokenizer/byte_level.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

std::string list_of_names() {
  std::string list;
  for (const std::string_view name : PreTokenizer::names()) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

// The name of a pre-tokenizer that this build has.
std::string_view checked_name(const gguf::File& file) {
  const std::string_view name = file.string(kPre);
  if (PreTokenizer::names().empty()) {
    refuse(file.name(), "unsupported-pre-tokenizer",
           format_text("key '{}' is '{}': byte-level BPE needs ICU, which this build of ptxgen is "
                       "without; build it with PTXGEN_ICU=ON, or give the ids of tokens (--tokens) "
                       "instead of text",
                       kPre, printable(name)));
  }
  if (std::ranges::find(PreTokenizer::names(), name) == PreTokenizer::names().end()) {
    refuse(file.name(), "unsupported-pre-tokenizer",
           format_text("key '{}' is '{}'; supported are {}; give the ids of tokens (--tokens) "
                       "instead of text",
                       kPre, printable(name), list_of_names()));
  }
  return name;
}

std::uint64_t hash_of_pair(std::uint32_t left, std::uint32_t right) {
  const std::array pair{left, right};
  return hash64(pair.data(), sizeof pair);
}

}  // namespace

BytePairs::BytePairs(const gguf::File& file, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      pre_tokenizer_(checked_name(file)),
      whole_pieces_(file.string(kPre) == "llama-bpe") {
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = vocabulary.find(byte_character(static_cast<std::uint8_t>(byte)));
  }
  if (std::ranges::count(byte_tokens_, kNoToken) == 256) {
    refuse(vocabulary.file, "bad-vocabulary",
           "key 'tokenizer.ggml.tokens' has no token of a single byte, which byte-level BPE begins "
           "with");
  }
  read_merges(file);
}

void BytePairs::read_merges(const gguf::File& file) {
  const gguf::Value& merges = file.array(kMerges, gguf::ValueType::string);
  merges_.reserve(merges.size());
  ranks_ = HashIndex(merges.size());
  std::uint32_t rank = 0;
  std::string merged;
  for (const gguf::Value& value : merges) {
    const std::string_view text = *value.string();
    // A token may begin with a space where the vocabulary is not byte-level in all of its tokens.
    const std::size_t space = text.size() < 2 ? std::string_view::npos : text.find(' ', 1);
    if (space == std::string_view::npos) {
      refuse(vocabulary_.file, "bad-vocabulary",
             format_text("key '{}': merge {}, \"{}\", is no two tokens with a space between them",
                         kMerges, rank, printable(text)));
    }
    const std::string_view left = text.substr(0, space);
    const std::string_view right = text.substr(space + 1);
    merged.assign(left);
    merged += right;
    const std::array<std::string_view, 3> texts = {left, right, merged};
    std::array<std::uint32_t, 3> ids{};
    std::ranges::transform(texts, ids.begin(),
                           [&](std::string_view part) { return vocabulary_.find(part); });
    const auto unknown = std::ranges::find(ids, kNoToken);
    if (unknown != ids.end()) {
      refuse(vocabulary_.file, "bad-vocabulary",
             format_text("key '{}': merge {}, \"{}\", names \"{}\", which is no token", kMerges,
                         rank, printable(text),
                         printable(texts[static_cast<std::size_t>(unknown - ids.begin())])));
    }
    merges_.push_back({ids[0], ids[1], ids[2]});
    (void)ranks_.add(hash_of_pair(ids[0], ids[1]), rank, [&](std::uint32_t other) {
      return merges_[other].left == ids[0] && merges_[other].right == ids[1];
    });
    ++rank;
  }
}

std::uint32_t BytePairs::find_merge(std::uint32_t left, std::uint32_t right) const {
  return ranks_.find(hash_of_pair(left, right), [&](std::uint32_t rank) {
    return merges_[rank].left == left && merges_[rank].right == right;
  });
}

void BytePairs::encode(std::string_view text, bool, std::vector<std::uint32_t>& ids) const {
  SymbolList symbols;
  for (const std::string_view piece : pre_tokenizer_.split(text)) {
    encode_piece(piece, symbols, ids);
  }
}

void BytePairs::encode_piece(std::string_view piece, SymbolList& symbols,
                             std::vector<std::uint32_t>& ids) const {
  if (whole_pieces_ && piece.size() <= vocabulary_.longest()) {
    const std::uint32_t token = vocabulary_.find(byte_characters(piece));
    if (token != kNoToken) return ids.push_back(token);
  }
  symbols.clear();
  for (std::uint32_t at = 0; at < piece.size(); ++at) {
    symbols.add(at, at + 1, byte_tokens_[static_cast<std::uint8_t>(piece[at])]);
  }
  symbols.merge([&](const Symbol& left, const Symbol& right) -> std::optional<PairMerge> {
    const std::uint32_t rank = find_merge(left.token, right.token);
    if (rank == HashIndex::kNone) return std::nullopt;
    return PairMerge{-static_cast<double>(rank), merges_[rank].token};
  });
  symbols.each([&](const Symbol& symbol) {
    if (symbol.token != kNoToken) ids.push_back(symbol.token);
  });
}

std::string BytePairs::bytes(std::uint32_t id) const {
  return bytes_of_characters(vocabulary_.text(id));
}

}  // namespace ptxgen::inline v0::model
